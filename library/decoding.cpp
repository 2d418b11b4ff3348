// Best trees, one or k for each sentence, and the scores of trees.
#include <array>
#include <memory>
#include <tuple>
#include <vector>

#include "questions.hpp"
#include "spantree/batch/labels.hpp"
#include "spantree/batch/scratch_pool.hpp"
#include "spantree/batch/tree.hpp"
#include "spantree/chart/eisner.hpp"
#include "spantree/chart/projective_kbest.hpp"
#include "spantree/decode/best_tree.hpp"
#include "spantree/decode/kbest.hpp"
#include "view.hpp"

namespace spantree::library {

namespace {

/// What one thread needs to decode.
template <class T>
struct Decoder {
    BestTree<T> best_tree;
    std::unique_ptr<projective::BestProjectiveTree<T>> best_projective_tree;
    int longest_projective = 0;  // words of a sentence that was decoded with it
    std::vector<T> arcs;

    std::size_t bytes() const {
        constexpr std::size_t tables = 5;  // of Eisner's chart, with a number for each pair of words
        const std::size_t nodes = static_cast<std::size_t>(longest_projective) + 1;
        return best_tree.bytes() + tables * nodes * nodes * sizeof(double) + arcs.capacity() * sizeof(T);
    }

    Feasibility operator()(const Sentence<T>& sentence, const Options& options, Heads* heads, StopSignal& stop) {
        const Sentence<T> plain = sentence.labels ? best_labels(sentence, arcs) : sentence;
        if (options.projective) {
            if (!best_projective_tree) best_projective_tree = std::make_unique<projective::BestProjectiveTree<T>>();
            longest_projective = std::max(longest_projective, plain.words);
            return (*best_projective_tree)(plain, options.root, heads, stop);
        }
        return best_tree(plain, options.root, heads, stop);
    }
};

template <class T>
ScratchPool<Decoder<T>> decoders;

/// Eisner's algorithm looks at every score about n / 16 times, eight numbers at a time.
int threads_to_decode(const Batch& batch, const Options& options) {
    return threads_if_worth(batch, options, scores_worth_a_thread, [&](const auto& sentence) {
        const double looks = options.projective ? sentence.words / 16.0 : 1.0;
        return looks * sentence.words * sentence.words * std::max(sentence.labels, 1);
    });
}

int words_in_row(const std::vector<Heads>& row) {
    std::size_t nodes = row.size();
    while (nodes > 1 && row[nodes - 1] == no_head) --nodes;  // padding
    return static_cast<int>(nodes) - 1;
}

}  // namespace

Statuses argmax(const Batch& batch, const Options& options, const TreesOut& trees, double* scores) {
    StopSignal stop = stop_signal_of(options);
    Statuses statuses(batch.size());
    batch.visit([&]<class T>(const std::vector<Sentence<T>>& sentences) {
        for_each_sentence(
            sentences, threads_to_decode(batch, options), stop,
            [&] { return std::pair(decoders<T>.borrow(), TreeWriter(trees)); },
            [&](auto& scratch, const Sentence<T>& sentence, std::size_t i) {
                auto& [decoder, writer] = scratch;
                writer.start(i, sentence.words, sentence.labels > 0);
                Heads *const heads = writer.heads(0), *const labels = writer.labels(0);
                const Feasibility feasible = (*decoder)(sentence, options, heads, stop);
                const bool found{feasible};
                statuses[i] = status_of(feasible);
                if (found && labels) label_tree(sentence, heads, labels);
                if (scores) scores[i] = found ? tree_score(sentence, heads, labels) : minus_infinity<double>;
                writer.finish(0, found);
            },
            options.projective ? 1 : grain(batch));
    });
    return statuses;
}

template <class T>
std::int32_t best_tree(const Sentence<T>& sentence, const Options& options, Heads* heads) {
    StopSignal stop = stop_signal_of(options);
    return status_of(
        unless_stopped([&] { return (*decoders<T>.borrow()).best_tree(sentence, options.root, heads, stop); }));
}
template std::int32_t best_tree(const Sentence<float>&, const Options&, Heads*);
template std::int32_t best_tree(const Sentence<double>&, const Options&, Heads*);

Statuses topk(const Batch& batch, const Options& options, std::int64_t k, const TreesOut& trees, double* scores) {
    if (k < 0) throw InvalidInput("a negative number of trees");
    if (k == 1) return argmax(batch, options, trees, scores);  // the same tree, and nothing is laid out for a second
    StopSignal stop = stop_signal_of(options);
    Statuses statuses(batch.size());
    for_each_sentence(
        batch, threads_of(options), stop, [&] { return TreeWriter(trees); },
        [&](TreeWriter& writer, const auto& sentence, std::size_t i) {
            writer.start(i, sentence.words, sentence.labels > 0);
            Feasibility feasible;
            auto stream = options.projective ? projective::best_projective_trees(sentence, options.root, feasible, stop)
                                             : best_trees(sentence, options.root, feasible, stop);
            statuses[i] = status_of(feasible);
            for (std::int64_t tree = 0; tree < k; ++tree) {
                std::optional<double> score;
                if (stream) score = stream->next(writer.heads(tree), writer.labels(tree), stop);
                if (!score) stream = nullptr;
                writer.finish(tree, score.has_value());
                scores[static_cast<std::size_t>(tree) * batch.size() + i] = score.value_or(minus_infinity<double>);
            }
        });
    return statuses;
}

BestTrees::BestTrees(std::unique_ptr<TreeStream> stream) : stream_(std::move(stream)) {}
BestTrees::~BestTrees() = default;

std::unique_ptr<BestTrees> BestTrees::of(const Batch& batch, std::size_t i, const Options& options) {
    StopSignal stop = stop_signal_of(options);
    Feasibility feasible;
    auto stream = unless_stopped([&] {
        return batch.visit([&](const auto& sentences) {
            return options.projective ? projective::best_projective_trees(sentences.at(i), options.root, feasible, stop)
                                      : best_trees(sentences.at(i), options.root, feasible, stop);
        });
    });
    return stream ? std::make_unique<BestTrees>(std::move(stream)) : nullptr;
}

std::optional<double> BestTrees::next(Heads* heads, Heads* labels, const Options& options) {
    StopSignal stop = stop_signal_of(options);
    return unless_stopped([&] { return stream_->next(heads, labels, stop); });
}

void score(const Batch& batch, const Options& options, std::int64_t trees, const TreesIn& heads, const TreesIn* than,
           double* scores, bool* allowed) {
    StopSignal stop = stop_signal_of(options);
    const double words_a_tree = scores_worth_a_thread / static_cast<double>(std::max<std::int64_t>(trees, 1));
    const int threads =
        threads_if_worth(batch, options, words_a_tree, [](const auto& sentence) { return sentence.words; });
    for_each_sentence(
        batch, threads, stop, [] { return std::array<GivenTree, 2>(); },
        [&](std::array<GivenTree, 2>& candidates, const auto& sentence, std::size_t i) {
            auto& [tree, other] = candidates;
            const bool labelled = sentence.labels > 0;
            if (than) other.read(*than, i, 0, sentence.words, labelled);
            const bool compare = than && other.is_tree_of(sentence, options.root, options.projective);
            for (std::int64_t t = 0; t < trees; ++t) {
                if (t % 1024 == 0) stop.check();
                tree.read(heads, i, t, sentence.words, labelled);
                const std::size_t at = static_cast<std::size_t>(t) * batch.size() + i;
                allowed[at] = tree.is_tree_of(sentence, options.root, options.projective);
                scores[at] = !allowed[at] ? minus_infinity<double>
                             : compare    ? score_difference(sentence, tree.heads.data(), tree.labels_or_null(),
                                                             other.heads.data(), other.labels_or_null())
                                          : tree_score(sentence, tree.heads.data(), tree.labels_or_null());
            }
        });
}

void are_trees(const Heads* rows, std::size_t count, int width, const Options& options, bool* result) {
    const TreesIn given{{rows, IntType::i64, width, 1, 0}, {}, width, nullptr};
    StopSignal stop = stop_signal_of(options);
    GivenTree row;
    std::vector<int> mark;
    for (std::size_t i = 0; i < count; ++i) {
        if (i % 1024 == 0 && stop.asked()) throw Interrupted();
        row.read(given, i, 0, width - 1, false);
        const int words = words_in_row(row.heads);
        const bool empty = words == 0 && width > 1;  // how a sentence without a tree is marked
        result[i] = !empty && is_tree(row.heads.data(), words, options.root, mark) &&
                    (!options.projective || is_projective(row.heads.data(), words));
    }
}

}  // namespace spantree::library

namespace spantree {

using namespace library;

void argmax(const ScoresView& scores, const Options& options, HeadsOut heads, HeadsOut labels, void* best,
            Status status) {
    const Batch batch(scores, Lie::rows_together);
    std::vector<double> best_scores(best ? batch.size() : 0);
    write_statuses(library::argmax(batch, options, {heads, labels, scores.nodes}, best ? best_scores.data() : nullptr),
                   status);
    write_numbers(best_scores, scores.dtype, best);
}

void topk(const ScoresView& scores, const Options& options, std::int64_t k, HeadsOut heads, HeadsOut labels, void* best,
          Status status) {
    const Batch batch(scores, Lie::rows_together);
    std::vector<double> best_scores(numbers_of_trees(k, batch));
    write_statuses(library::topk(batch, options, k, {heads, labels, scores.nodes}, best_scores.data()), status);
    write_numbers(best_scores, scores.dtype, best);
}

}  // namespace spantree
