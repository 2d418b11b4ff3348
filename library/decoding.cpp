// Best trees, one or k for each sentence.
#include <atomic>
#include <memory>
#include <tuple>
#include <vector>

#include "spantree/batch/check.hpp"
#include "spantree/batch/labels.hpp"
#include "spantree/batch/scratch_pool.hpp"
#include "spantree/batch/tree.hpp"
#include "spantree/chart/eisner.hpp"
#include "spantree/chart/kbest.hpp"
#include "spantree/decode/best_tree.hpp"
#include "spantree/decode/kbest.hpp"
#include "view.hpp"

namespace spantree {

using namespace library;

namespace {

template <class T>
ScratchPool<BestTree<T>> best_tree_finders;

/// What one thread needs to decode.
template <class T>
struct Decoder {
    typename ScratchPool<BestTree<T>>::Loan best_tree = best_tree_finders<T>.borrow();
    std::unique_ptr<projective::BestProjectiveTree<T>> best_projective_tree;
    std::vector<T> arcs;
    TreeRow row;

    /// Returns a status.
    std::int32_t operator()(const Sentence<T>& sentence, const Options& options, StopSignal& stop) {
        const Sentence<T> plain = sentence.labels ? best_labels(sentence, arcs) : sentence;
        if (options.projective) {
            if (!best_projective_tree) best_projective_tree = std::make_unique<projective::BestProjectiveTree<T>>();
            if (best_projective_tree->read(plain).bad) return Status::bad_score;
            return best_projective_tree->write(options.root, row.heads(), stop).unattachable;
        }
        if ((*best_tree).read(plain).bad) return Status::bad_score;
        return (*best_tree).write(options.root, row.heads()).unattachable;
    }
};

/// Below this many scores, waking a thread costs more than decoding.
constexpr double scores_worth_a_thread = 1 << 15;

template <class T>
int useful_threads_to_decode(const Sentences<T>& sentences, const Options& options) {
    double scores = 0.0;
    for (const Sentence<T>& sentence : sentences.all()) {
        const double cost = options.projective ? sentence.words / 16.0 : 1.0;
        scores += cost * sentence.words * sentence.words * std::max(sentence.labels, 1);
    }
    return scores < scores_worth_a_thread ? 1 : threads_of(options);
}

}  // namespace

void argmax(const ScoresView& scores, const Options& options, HeadsOut heads, HeadsOut labels, void* best,
            Status status) {
    with_type(scores.dtype, [&]<class T>(T) {
        const Sentences<T> sentences(scores, Lie::rows_together);
        StopSignal stop = stop_signal_of(options);
        std::vector<double> best_scores(sentences.size(), minus_infinity<double>);
        parallel_for(
            sentences.size(), 1, useful_threads_to_decode(sentences, options), stop, [] { return Decoder<T>(); },
            [&](Decoder<T>& decoder, std::size_t i) {
                const Sentence<T>& sentence = sentences[i];
                decoder.row.reserve(sentence.words + 1, sentence.labels > 0);
                const std::int32_t found = decoder(sentence, options, stop);
                if (found == 0 && sentence.labels) label_tree(sentence, decoder.row.heads(), decoder.row.labels());
                if (found == 0 && best)
                    best_scores[i] = tree_score(sentence, decoder.row.heads(), decoder.row.labels());
                const int written = found == 0 ? sentence.words + 1 : 0;
                const auto at = static_cast<std::int64_t>(i);
                TreeRow::write(decoder.row.heads(), written, scores.nodes, heads, at, 0);
                TreeRow::write(decoder.row.labels(), sentence.labels ? written : 0, scores.nodes, labels, at, 0);
                if (status.per_sentence) status.per_sentence[i] = found;
            });
        throw_if_stopped(stop);
        write_numbers(best_scores, scores.dtype, best);
    });
}

void topk(const ScoresView& scores, const Options& options, std::int64_t k, HeadsOut heads, HeadsOut labels, void* best,
          Status status) {
    if (k < 0) throw InvalidInput("a negative number of trees");
    with_type(scores.dtype, [&]<class T>(T) {
        const Sentences<T> sentences(scores, Lie::rows_together);
        StopSignal stop = stop_signal_of(options);
        std::vector<double> best_scores(static_cast<std::size_t>(k) * sentences.size(), minus_infinity<double>);
        parallel_for(
            sentences.size(), 1, threads_of(options), stop, [] { return TreeRow(); },
            [&](TreeRow& row, std::size_t i) {
                const Sentence<T>& sentence = sentences[i];
                row.reserve(sentence.words + 1, sentence.labels > 0);
                Feasibility feasible;
                std::unique_ptr<TreeStream> trees;
                const bool bad = first_bad_score(sentence).has_value();
                if (!bad)
                    trees = options.projective
                                ? projective::best_projective_trees(sentence, options.root, feasible, stop)
                                : best_trees(sentence, options.root, feasible);
                if (status.per_sentence) status.per_sentence[i] = bad ? Status::bad_score : feasible.unattachable;
                for (std::int64_t tree = 0; tree < k; ++tree) {
                    std::optional<double> score;
                    if (trees) score = trees->next(row.heads(), row.labels(), stop);
                    if (!score) trees = nullptr;
                    const int written = score ? sentence.words + 1 : 0;
                    const auto at = static_cast<std::int64_t>(i);
                    TreeRow::write(row.heads(), written, scores.nodes, heads, at, tree);
                    TreeRow::write(row.labels(), sentence.labels ? written : 0, scores.nodes, labels, at, tree);
                    if (score) best_scores[static_cast<std::size_t>(tree) * sentences.size() + i] = *score;
                }
            });
        throw_if_stopped(stop);
        write_numbers(best_scores, scores.dtype, best);
    });
}

}  // namespace spantree
