// Random trees, with and without replacement.
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "spantree/batch/check.hpp"
#include "spantree/batch/scratch_pool.hpp"
#include "spantree/chart/solution.hpp"
#include "spantree/sample/label_draws.hpp"
#include "spantree/sample/projective_without_replacement.hpp"
#include "spantree/sample/random_trees.hpp"
#include "spantree/sample/without_replacement.hpp"
#include "view.hpp"

namespace spantree {

using namespace library;
using namespace sampling;

namespace {

struct Samplers {
    RandomTrees trees;
    std::tuple<LabelTable<float>, LabelTable<double>> labels;
    std::vector<Heads> heads;

    std::size_t bytes() const {
        return trees.bytes() + std::get<0>(labels).bytes() + std::get<1>(labels).bytes() +
               heads.capacity() * sizeof(Heads);
    }
};

ScratchPool<Samplers> samplers;

SentenceStreams streams_of(const std::uint64_t* keys, std::size_t sentence) {
    return {{keys[2 * sentence], keys[2 * sentence + 1]}, 0};
}

void check_draws(std::int64_t k, const std::uint64_t* keys, const ScoresView& scores) {
    if (k < 0) throw InvalidInput("a negative number of trees");
    if (!keys && scores.batch > 0) throw InvalidInput("random trees need keys");
}

/// Draws `count` trees from tree number `first` on, heads one after the other.
template <class T>
void draw_heads(const Sentence<T>& sentence, RandomTrees& trees, const SentenceStreams& streams, std::int64_t first,
                std::int64_t count, std::vector<Heads>& heads, StopSignal& stop) {
    trees(
        streams, static_cast<std::uint64_t>(first), count, stop,
        [&](std::int64_t tree) { return heads.data() + tree * (sentence.words + 1); }, [](std::int64_t) {});
}

}  // namespace

void sample(const ScoresView& scores, const Options& options, std::int64_t k, const std::uint64_t* keys, HeadsOut heads,
            HeadsOut labels, Status status) {
    check_draws(k, keys, scores);
    with_type(scores.dtype, [&]<class T>(T) {
        const Sentences<T> sentences(scores);
        StopSignal stop = stop_signal_of(options);
        const auto make_scratch = [] {
            return std::tuple(samplers.borrow(), projective::solved_pool.borrow(), projective::question_pool.borrow());
        };
        parallel_for(sentences.size(), 1, threads_of(options), stop, make_scratch, [&](auto& loans, std::size_t i) {
            const Sentence<T>& sentence = sentences[i];
            Samplers& scratch = *std::get<0>(loans);
            projective::SolvedSentence& solved = *std::get<1>(loans);
            projective::QuestionScratch& questions = *std::get<2>(loans);
            auto& table = std::get<LabelTable<T>>(scratch.labels);
            const SentenceStreams streams = streams_of(keys, i);
            const int nodes = sentence.words + 1;
            const auto at = static_cast<std::int64_t>(i);

            std::int32_t found = 0;
            if (sentence.words > 0 && options.projective) {
                solved.solve(sentence, options.root, projective::Purpose::partition, stop);
                found = solved.bad() ? Status::bad_score : solved.unattachable();
                if (found == 0) questions.draw.start(sentence.words, options.root);
            } else if (sentence.words > 0) {
                const Feasibility feasible =
                    scratch.trees.start(sentence, options.root, SamplingMethod::automatic, stop);
                found = scratch.trees.bad() ? Status::bad_score : feasible.unattachable;
            }
            if (found == 0 && sentence.labels) table.start(sentence);
            if (status.per_sentence) status.per_sentence[i] = found;

            constexpr std::int64_t at_once = 256;  // trees, so that memory for them is small and Ctrl-C is heard
            scratch.heads.resize(static_cast<std::size_t>(std::min(k, at_once) + 1) * nodes);
            Heads* const label_row = scratch.heads.data() + std::min(k, at_once) * nodes;
            const int written = found == 0 ? nodes : 0;
            for (std::int64_t first = 0; first < k; first += at_once) {
                stop.check();
                const std::int64_t count = std::min(at_once, k - first);
                if (found == 0 && sentence.words > 0 && options.projective)
                    solved.with_inside([&](const auto& sums) {
                        for (std::int64_t tree = 0; tree < count; ++tree) {
                            RandomStream random = streams.tree(static_cast<std::uint64_t>(first + tree));
                            questions.draw(sums, random, scratch.heads.data() + tree * nodes);
                        }
                    });
                else if (found == 0 && sentence.words > 0)
                    draw_heads(sentence, scratch.trees, streams, first, count, scratch.heads, stop);
                for (std::int64_t tree = 0; tree < count; ++tree) {
                    const Heads* const row = scratch.heads.data() + tree * nodes;
                    TreeRow::write(row, written, scores.nodes, heads, at, first + tree);
                    if (!sentence.labels) continue;
                    if (found == 0 && sentence.words > 0)
                        draw_labels(table, sentence.words, row,
                                    streams.tree(static_cast<std::uint64_t>(first + tree) | label_stream), label_row);
                    TreeRow::write(label_row, written, scores.nodes, labels, at, first + tree);
                }
            }
        });
        throw_if_stopped(stop);
    });
}

void sample_without_replacement(const ScoresView& scores, const Options& options, std::int64_t k,
                                const std::uint64_t* keys, const DistinctOut& out, Status status) {
    check_draws(k, keys, scores);
    with_type(scores.dtype, [&]<class T>(T) {
        const Sentences<T> sentences(scores);
        StopSignal stop = stop_signal_of(options);
        const std::size_t count = sentences.size();
        const auto rows = static_cast<std::size_t>(k) * count;
        std::vector<double> log_probs(rows, minus_infinity<double>), gumbel_keys(rows, minus_infinity<double>);
        std::vector<double> threshold(count, minus_infinity<double>), log_left(count, minus_infinity<double>);
        const auto run = [&]<class Trees>(Trees& trees, TreeRow& row, std::size_t i) {
            const Sentence<T>& sentence = sentences[i];
            const auto at = static_cast<std::int64_t>(i);
            row.reserve(sentence.words + 1, sentence.labels > 0);
            std::int32_t found = first_bad_score(sentence) ? Status::bad_score : 0;
            if (found == 0)
                found = trees.start(sentence, options.root, DistinctMethod::automatic, k, streams_of(keys, i), stop)
                            .unattachable;
            if (status.per_sentence) status.per_sentence[i] = found;
            for (std::int64_t rank = 0; rank < k; ++rank) {
                stop.check();
                std::optional<DistinctTree> tree;
                if (found == 0) tree = trees.next(row.heads(), row.labels(), stop);
                const int written = tree ? sentence.words + 1 : 0;
                TreeRow::write(row.heads(), written, scores.nodes, out.heads, at, rank);
                TreeRow::write(row.labels(), sentence.labels ? written : 0, scores.nodes, out.labels, at, rank);
                if (!tree) continue;
                const std::size_t place = static_cast<std::size_t>(rank) * count + i;
                log_probs[place] = tree->log_probability;
                gumbel_keys[place] = tree->key;
            }
            if (found != 0) return;
            log_left[i] = trees.log_left();
            threshold[i] = trees.next_key();
        };
        parallel_for(
            count, 1, threads_of(options), stop,
            [] { return std::tuple<DistinctTrees<T>, DistinctProjectiveTrees<T>, TreeRow>(); },
            [&](auto& scratch, std::size_t i) {
                if (options.projective)
                    run(std::get<1>(scratch), std::get<2>(scratch), i);
                else
                    run(std::get<0>(scratch), std::get<2>(scratch), i);
            });
        throw_if_stopped(stop);
        write_numbers(log_probs, scores.dtype, out.log_probs);
        write_numbers(gumbel_keys, scores.dtype, out.keys);
        write_numbers(threshold, scores.dtype, out.threshold);
        write_numbers(log_left, scores.dtype, out.log_left);
    });
}

}  // namespace spantree
