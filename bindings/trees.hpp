// What every search for trees does with a batch: labels taken care of, results and padding written.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>

#include "batch.hpp"
#include "spantree/batch/labels.hpp"
#include "spantree/batch/tree.hpp"
#include "spantree/decode/tree_stream.hpp"

namespace spantree::bindings {

inline std::int64_t count_infeasible(const FlatHeads& unattachable) {
    return std::count_if(unattachable.data(), unattachable.data() + unattachable.size(),
                         [](Heads word) { return word != 0; });
}

/// Heads, labels (labelled batches only) and scores of k trees per sentence: heads and labels are k arrays one after
/// the other, scores k rows of one number per sentence. And for every sentence a word that cannot be attached (0: a
/// tree exists). Whoever does not want scores or those words gives no room for them.
struct TreeRows {
    FlatHeads heads;
    std::optional<FlatHeads> labels;
    std::optional<Flat64> scores;
    std::optional<FlatHeads> unattachable;

    Heads* head_row(const Batch& batch, const Place& place, std::int64_t rank) const {
        return heads.data() + rank * batch.row_size + place.row;
    }
    Heads* label_row(const Batch& batch, const Place& place, std::int64_t rank) const {
        return labels ? labels->data() + rank * batch.row_size + place.row : nullptr;
    }
    void note(std::size_t sentence, Feasibility feasible, std::atomic<std::int64_t>& infeasible) const {
        if (!feasible) ++infeasible;
        if (unattachable) unattachable->data()[sentence] = feasible.unattachable;
    }
    /// The score of a tree of `words` words in the rows, and padding behind it; no score: no tree.
    void finish(const Batch& batch, const Place& place, std::size_t sentence, int words, std::int64_t rank,
                std::optional<double> score) const {
        const int written = score ? words + 1 : 0;
        for (Heads* row : {head_row(batch, place, rank), label_row(batch, place, rank)})
            if (row) std::fill(row + written, row + place.width, no_head);
        if (scores)
            scores->data()[rank * static_cast<std::int64_t>(batch.size()) + static_cast<std::int64_t>(sentence)] =
                score.value_or(minus_infinity<double>);
    }
};

/// find(scratch, sentence, heads, stop) finds a sentence's best tree. Returns how many sentences have none.
template <class MakeScratch, class Find>
std::int64_t write_best_trees(const Batch& batch, int threads, const TreeRows& rows, MakeScratch make_scratch,
                              Find find, std::size_t grain = 1) {
    std::atomic<std::int64_t> infeasible = 0;
    for_each_sentence(
        batch, threads, make_scratch,
        [&]<class T>(auto& scratch, const Sentence<T>& sentence, const Place& place, std::size_t i, StopSignal& stop) {
            Heads* heads = rows.head_row(batch, place, 0);
            Heads* labels = rows.label_row(batch, place, 0);
            const Feasibility feasible = find(scratch, sentence, heads, stop);
            rows.note(i, feasible, infeasible);
            std::optional<double> score;
            if (feasible && sentence.labels) label_tree(sentence, heads, labels);
            if (feasible)
                score = !rows.scores      ? 0.0
                        : sentence.labels ? tree_score(sentence, heads, labels)
                                          : tree_score(sentence, heads);
            rows.finish(batch, place, i, sentence.words, 0, score);
        },
        grain);
    return infeasible;
}

/// trees_of(sentence, feasible, stop) is a stream of a sentence's trees, best first, or null. Returns how many
/// sentences have none.
template <class TreesOf>
std::int64_t write_k_best_trees(const Batch& batch, std::int64_t k, int threads, const TreeRows& rows,
                                TreesOf trees_of) {
    std::atomic<std::int64_t> infeasible = 0;
    for_each_sentence(
        batch, threads, [] { return nullptr; },
        [&]<class T>(auto&, const Sentence<T>& sentence, const Place& place, std::size_t i, StopSignal& stop) {
            Feasibility feasible;
            const std::unique_ptr<TreeStream> trees = trees_of(sentence, feasible, stop);
            rows.note(i, feasible, infeasible);
            for (std::int64_t rank = 0; rank < k; ++rank) {
                stop.check();
                std::optional<double> score;
                if (trees) score = trees->next(rows.head_row(batch, place, rank), rows.label_row(batch, place, rank));
                rows.finish(batch, place, i, sentence.words, rank, score);
            }
        });
    return infeasible;
}

/// Writes the best trees. Returns how many sentences have none, or `bad_scores` (unlabelled batches need not have been
/// checked).
std::int64_t write_argmax(const Batch& batch, Root root, int threads, const TreeRows& rows);

}  // namespace spantree::bindings
