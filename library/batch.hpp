// The sentences of one call, and where their results go: what every question (questions.hpp) is asked about. No kernels here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "spantree/batch/edges_out.hpp"
#include "spantree/batch/sentence.hpp"
#include "spantree/spantree.hpp"

namespace spantree::library {

/// Rows, columns and labels beyond this are no batch but a mistake.
inline constexpr int most_nodes = 1 << 20;

/// More numbers than this, of edges or of trees, no memory holds; and sums of a few such sizes do not overflow.
inline constexpr std::int64_t most_numbers = std::int64_t{1} << 56;

/// How the scores of a sentence have to lie; if they do not, they are copied.
enum class Lie {
    labels_together,  // an edge's labels next to each other
    rows_together     // and, without labels, an edge next to another with the same head, or with the same dependent
};

/// The scores are seen where they lie: whoever makes a batch keeps them alive.
class Batch {
public:
    /// Throws `InvalidInput` if the view makes no sense.
    explicit Batch(const ScoresView& scores, Lie lie = Lie::labels_together);

    /// Of sentences that lie as any question wants them.
    template <class T>
    explicit Batch(std::vector<Sentence<T>> sentences) : sentences_(Sentences<T>{std::move(sentences), {}}) {}

    /// body(sentences), of floats or of doubles.
    template <class Body>
    decltype(auto) visit(Body body) const {
        return std::visit([&](const auto& sentences) -> decltype(auto) { return body(sentences.all); }, sentences_);
    }

    std::size_t size() const {
        return visit([](const auto& all) { return all.size(); });
    }
    int words(std::size_t i) const {
        return visit([&](const auto& all) { return all[i].words; });
    }
    /// Of every sentence; 0: edges have none.
    int labels() const {
        return visit([](const auto& all) { return all.empty() ? 0 : all[0].labels; });
    }

private:
    template <class T>
    struct Sentences {
        std::vector<Sentence<T>> all;
        std::vector<T> copy;
    };
    template <class T>
    static Sentences<T> read(const ScoresView& scores, Lie lie);

    std::variant<Sentences<double>, Sentences<float>> sentences_;
};

/// What became of each sentence: see `Status`.
using Statuses = std::vector<std::int32_t>;

/// Of what a search or a solve reported.
inline std::int32_t status_of(const Feasibility& found) {
    return found.bad_score ? Status::bad_score : found.unattachable;
}

/// Whether every sentence has a tree.
inline bool all_well(const Statuses& statuses) {
    return std::all_of(statuses.begin(), statuses.end(), [](std::int32_t status) { return status == 0; });
}

/// One for each sentence; none: not wanted. (One without data: not of this sentence.)
using EdgeTargets = std::variant<std::vector<EdgeTarget<double>>, std::vector<EdgeTarget<float>>>;

inline bool wanted(const EdgeTargets& targets) {
    return std::visit([](const auto& all) { return !all.empty(); }, targets);
}

/// How many numbers there are of so many trees of each sentence.
inline std::size_t numbers_of_trees(std::int64_t trees, const Batch& batch) {
    if (trees < 0) throw InvalidInput("a negative number of trees");
    const auto sentences = static_cast<std::int64_t>(batch.size());
    if (sentences > 0 && trees > most_numbers / sentences) throw InvalidInput("more trees than any memory holds");
    return static_cast<std::size_t>(trees * sentences);
}

/// Numbers of edges of each sentence.
using EdgeValues = std::vector<Sentence<double>>;

/// Where a sentence's results begin in flat arrays that have one entry a node, and one an edge (times labels).
struct Place {
    std::ptrdiff_t row = 0, edges = 0;
    int width = 0;  // nodes a row, padding included
};

/// Heads (and labels) of some trees of each sentence. Row t of sentence i begins at i * batch_stride + t * tree_stride; or,
/// where sentences lie one behind the other, at places[i].row + t * tree_stride.
template <class View>
struct TreeRows {
    View heads, labels;
    int nodes = 0;  // entries a row, padding included
    const Place* places = nullptr;

    std::ptrdiff_t start(const View& rows, std::size_t i, std::int64_t tree) const {
        const std::ptrdiff_t first = places ? places[i].row : static_cast<std::ptrdiff_t>(i) * rows.batch_stride;
        return first + tree * rows.tree_stride;
    }
    int width(std::size_t i) const { return places ? places[i].width : nodes; }
};
using TreesIn = TreeRows<HeadsView>;
using TreesOut = TreeRows<HeadsOut>;

/// A batch whose results go to flat arrays, sentence behind sentence: all as wide as the longest, or each as itself.
class FlatBatch {
public:
    /// `scores` without lengths of its own; lengths[i] words, or none given: all it has room for.
    FlatBatch(const ScoresView& scores, const std::int64_t* lengths, bool dep_major);

    /// Of sentences of any sizes, all with the same labels.
    template <class T>
    FlatBatch(std::vector<Sentence<T>> sentences, bool dep_major)
        : batch(std::vector<Sentence<T>>()), dep_major(dep_major) {
        places.reserve(sentences.size());
        for (const Sentence<T>& sentence : sentences) add(sentence.words + 1, sentence.words, sentence.labels);
        batch = Batch(std::move(sentences));
    }

    Batch batch;
    std::vector<Place> places;
    std::ptrdiff_t row_size = 0, edge_size = 0;  // of arrays of one entry a node, and one an edge (times labels)
    int max_words = 0;
    bool dep_major = false;  // edges are [dep, head] in results

    EdgeTargets edges(void* data, DType dtype) const;
    EdgeValues values(const double* data) const;
    /// Labels may be null.
    TreesOut trees(Heads* heads, Heads* labels) const;
    TreesIn trees(const Heads* heads, const Heads* labels) const;

private:
    void add(int width, int words, int labels) {
        places.push_back({row_size, edge_size, width});
        if (edge_size > most_numbers) throw InvalidInput("scores: more than any memory holds");
        row_size += width;
        edge_size += std::ptrdiff_t{width} * width * std::max(labels, 1);
        max_words = std::max(max_words, words);
    }
};

}  // namespace spantree::library
