// What every search for trees does with a batch: labels taken care of, results and padding written.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "batch.hpp"
#include "spantree/batch/labels.hpp"
#include "spantree/batch/tree.hpp"
#include "spantree/decode/tree_stream.hpp"

namespace spantree::bindings {

inline std::int64_t count_infeasible(const FlatHeads& unattachable) {
    return std::count_if(unattachable.data(), unattachable.data() + unattachable.size(),
                         [](Heads word) { return word != 0; });
}

using Words = nb::ndarray<nb::numpy, Heads, nb::ndim<1>>;

/// For every sentence a word that cannot be attached: 0 where there is a tree, `bad_scores` where a score is bad.
class Unattachable {
public:
    explicit Unattachable(const Batch& batch) : words_(batch.size()) {}

    void set(std::size_t sentence, Heads word) {
        words_[sentence] = word;
        if (word != 0) some_ = true;
    }

    /// As an array, if there is such a word in any sentence.
    std::optional<Words> result() && {
        if (!some_) return std::nullopt;
        auto* const kept = new std::vector<Heads>(std::move(words_));
        const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<Heads>*>(p); });
        return Words(kept->data(), {kept->size()}, owner);
    }

private:
    std::vector<Heads> words_;
    std::atomic<bool> some_ = false;
};

/// Where heads, labels (labelled batches only) and scores of k trees per sentence go: heads and labels are k arrays one
/// after the other, scores k times one number per sentence. Whoever does not want scores gives no room for them.
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
    /// The score of a tree of `words` words that has been written, and padding behind it; no score: no tree.
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

/// find(scratch, sentence, heads, stop) writes a sentence's best tree and returns an `Unattachable` word.
template <class MakeScratch, class Find>
std::optional<Words> write_best_trees(const Batch& batch, int threads, const TreeRows& rows, MakeScratch make_scratch,
                                      Find find, std::size_t grain = 1) {
    Unattachable unattachable(batch);
    for_each_sentence(
        batch, threads, make_scratch,
        [&]<class T>(auto& scratch, const Sentence<T>& sentence, const Place& place, std::size_t i, StopSignal& stop) {
            Heads* heads = rows.head_row(batch, place, 0);
            Heads* labels = rows.label_row(batch, place, 0);
            const Heads word = find(scratch, sentence, heads, stop);
            unattachable.set(i, word);
            std::optional<double> score;
            if (word == 0 && sentence.labels) label_tree(sentence, heads, labels);
            if (word == 0) score = rows.scores ? tree_score(sentence, heads, sentence.labels ? labels : nullptr) : 0.0;
            rows.finish(batch, place, i, sentence.words, 0, score);
        },
        grain);
    return std::move(unattachable).result();
}

/// trees_of(sentence, feasible, stop) is a stream of a sentence's trees, best first, or null.
template <class TreesOf>
std::optional<Words> write_k_best_trees(const Batch& batch, std::int64_t k, int threads, const TreeRows& rows,
                                        TreesOf trees_of) {
    Unattachable unattachable(batch);
    for_each_sentence(
        batch, threads, [] { return nullptr; },
        [&]<class T>(auto&, const Sentence<T>& sentence, const Place& place, std::size_t i, StopSignal& stop) {
            Feasibility feasible;
            const std::unique_ptr<TreeStream> trees = trees_of(sentence, feasible, stop);
            unattachable.set(i, feasible.unattachable);
            std::optional<double> score = 0.0;
            for (std::int64_t rank = 0; rank < k; ++rank) {
                score = trees && score
                            ? trees->next(rows.head_row(batch, place, rank), rows.label_row(batch, place, rank), stop)
                            : std::nullopt;
                rows.finish(batch, place, i, sentence.words, rank, score);
            }
        });
    return std::move(unattachable).result();
}

/// Writes the best trees. Returns null if all sentences have one. Batches need not have been checked for bad scores.
std::optional<Words> write_argmax(const Batch& batch, Root root, int threads, const TreeRows& rows);

}  // namespace spantree::bindings
