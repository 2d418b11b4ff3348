// From the public views to what the core works on, and back.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "spantree/batch/edges_out.hpp"
#include "spantree/batch/parallel.hpp"
#include "spantree/batch/sentence.hpp"
#include "spantree/spantree.hpp"

namespace spantree::library {

/// Rows, columns and labels beyond this are no batch but a mistake.
inline constexpr int most_nodes = 1 << 20;

inline std::int64_t integer_at(const void* data, IntType type, std::ptrdiff_t at) {
    return type == IntType::i32 ? static_cast<const std::int32_t*>(data)[at]
                                : static_cast<const std::int64_t*>(data)[at];
}

inline double number_at(const void* data, DType dtype, std::ptrdiff_t at) {
    return dtype == DType::f32 ? static_cast<const float*>(data)[at] : static_cast<const double*>(data)[at];
}

/// body(T{}) with the type that `dtype` names.
template <class Body>
decltype(auto) with_type(DType dtype, Body body) {
    return dtype == DType::f32 ? body(float{}) : body(double{});
}

inline void check(const ScoresView& scores) {
    const auto fail = [](const std::string& what) { throw InvalidInput(what); };
    if (scores.batch < 0) fail("scores: a negative number of sentences");
    if (scores.nodes < 1 || scores.nodes > most_nodes) fail("scores: between 1 and 2^20 nodes, ROOT included");
    if (scores.labels < 0 || scores.labels > most_nodes) fail("scores: between 0 and 2^20 labels");
    if (!scores.data && scores.batch > 0) fail("scores: no data");
}

/// How the scores of a sentence have to lie; if they do not, they are copied.
enum class Lie {
    labels_together,  // an edge's labels next to each other
    rows_together     // and, without labels, an edge next to another with the same head, or with the same dependent
};

/// The sentences of a batch.
template <class T>
class Sentences {
public:
    explicit Sentences(const ScoresView& scores, Lie lie = Lie::labels_together) : scores_(scores) {
        check(scores);
        all_.reserve(static_cast<std::size_t>(scores.batch));
        const auto* const data = static_cast<const T*>(scores.data);
        for (std::int64_t i = 0; i < scores.batch; ++i)
            all_.push_back({data + i * scores.batch_stride, words(i), scores.head_stride, scores.dep_stride,
                            scores.labels, scores.labels ? scores.label_stride : 0});
        const bool apart = scores.labels == 0 && scores.head_stride != 1 && scores.dep_stride != 1;
        if ((scores.labels > 1 && scores.label_stride != 1) || (lie == Lie::rows_together && apart)) bring_together();
        for (Sentence<T>& sentence : all_)
            if (sentence.labels == 1) sentence.label_stride = 1;
    }
    Sentences(const Sentences&) = delete;
    Sentences& operator=(const Sentences&) = delete;

    const std::vector<Sentence<T>>& all() const { return all_; }
    const Sentence<T>& operator[](std::size_t i) const { return all_[i]; }
    std::size_t size() const { return all_.size(); }

private:
    int words(std::int64_t i) const {
        if (!scores_.lengths) return scores_.nodes - 1;
        const std::int64_t length = integer_at(scores_.lengths, scores_.lengths_type, i);
        if (length < 0 || length >= scores_.nodes)
            throw InvalidInput("sentence " + std::to_string(i) + " cannot have " + std::to_string(length) +
                               " words: there is room for " + std::to_string(scores_.nodes - 1));
        return static_cast<int>(length);
    }

    void bring_together() {
        const std::ptrdiff_t cell = std::max(scores_.labels, 1);
        std::size_t size = 0;
        for (const Sentence<T>& sentence : all_)
            size += static_cast<std::size_t>(sentence.words + 1) * (sentence.words + 1) * cell;
        copy_.resize(size);
        T* to = copy_.data();
        for (Sentence<T>& sentence : all_) {
            const Sentence<T> from = sentence;
            const int nodes = from.words + 1;
            sentence = {to, from.words, nodes * cell, cell, from.labels, from.labels ? 1 : 0};
            for (int h = 0; h < nodes; ++h)
                for (int d = 0; d < nodes; ++d)
                    for (int y = 0; y < cell; ++y) *to++ = from(h, d, y);
        }
    }

    ScoresView scores_;
    std::vector<Sentence<T>> all_;
    std::vector<T> copy_;
};

/// Values of edges in one direction, as doubles, labels next to each other: where they lie if they do, else copied.
class Values {
public:
    template <class T>
    Values(const EdgesView& edges, const Sentences<T>& sentences, int direction) {
        if (!edges.data && sentences.size() > 0) throw InvalidInput("values of edges: no data");
        const std::ptrdiff_t start = direction * edges.direction_stride;
        std::size_t size = 0;
        const int labels = sentences.size() > 0 ? sentences[0].labels : 0;
        const bool as_they_lie = edges.dtype == DType::f64 && (labels <= 1 || edges.label_stride == 1);
        for (std::size_t i = 0; i < sentences.size(); ++i) {
            const auto nodes = static_cast<std::size_t>(sentences[i].words) + 1;
            size += nodes * nodes * static_cast<std::size_t>(std::max(labels, 1));
        }
        if (!as_they_lie) copy_.resize(size);
        double* to = copy_.data();
        for (std::size_t i = 0; i < sentences.size(); ++i) {
            const int words = sentences[i].words;
            const std::ptrdiff_t at = start + static_cast<std::ptrdiff_t>(i) * edges.batch_stride;
            if (as_they_lie) {
                all_.push_back({static_cast<const double*>(edges.data) + at, words, edges.head_stride, edges.dep_stride,
                                labels, labels ? 1 : 0});
                continue;
            }
            const std::ptrdiff_t cell = std::max(labels, 1);
            all_.push_back({to, words, cell * (words + 1), cell, labels, labels ? 1 : 0});
            for (int h = 0; h <= words; ++h)
                for (int d = 0; d <= words; ++d)
                    for (int y = 0; y < cell; ++y)
                        *to++ = number_at(edges.data, edges.dtype,
                                          at + h * edges.head_stride + d * edges.dep_stride + y * edges.label_stride);
        }
    }

    const std::vector<Sentence<double>>& all() const { return all_; }

private:
    std::vector<Sentence<double>> all_;
    std::vector<double> copy_;
};

/// value(head, dep, label), labels or none.
inline auto values_of(const Sentence<double>& values) {
    return [&values](int head, int dep, int label) {
        return values.labels ? values(head, dep, label) : values(head, dep);
    };
}

/// One target for each sentence; none if nobody wants them.
template <class Out>
std::vector<EdgeTarget<Out>> targets(const EdgesOut& edges, const ScoresView& scores, int direction = 0) {
    std::vector<EdgeTarget<Out>> result;
    if (!edges.data) return result;
    auto* const data = static_cast<Out*>(edges.data) + direction * edges.direction_stride;
    for (std::int64_t i = 0; i < scores.batch; ++i)
        result.push_back({data + i * edges.batch_stride, edges.head_stride, edges.dep_stride, scores.nodes});
    return result;
}

/// One number for each sentence, in the type of the scores.
inline void write_numbers(const std::vector<double>& numbers, DType dtype, void* to, std::ptrdiff_t first = 0) {
    if (!to) return;
    with_type(dtype, [&]<class Out>(Out) {
        auto* const out = static_cast<Out*>(to) + first;
        for (std::size_t i = 0; i < numbers.size(); ++i) out[i] = static_cast<Out>(numbers[i]);
    });
}

/// Trees for the core to write, and how they get to the caller.
class TreeRow {
public:
    /// For `nodes` nodes; labels too if they are wanted.
    void reserve(int nodes, bool labelled) {
        heads_.resize(static_cast<std::size_t>(nodes));
        labels_.resize(labelled ? static_cast<std::size_t>(nodes) : 0);
    }
    Heads* heads() { return heads_.data(); }
    Heads* labels() { return labels_.empty() ? nullptr : labels_.data(); }

    /// The first `written` entries, and -1 up to `nodes`.
    static void write(const Heads* row, int written, int nodes, const HeadsOut& to, std::int64_t sentence,
                      std::int64_t tree) {
        if (!to.data) return;
        const std::ptrdiff_t at = sentence * to.batch_stride + tree * to.tree_stride;
        const auto copy = [&](auto* out) {
            for (int node = 0; node < nodes; ++node)
                out[at + node * to.node_stride] =
                    static_cast<std::remove_pointer_t<decltype(out)>>(node > 0 && node < written ? row[node] : no_head);
        };
        to.type == IntType::i32 ? copy(static_cast<std::int32_t*>(to.data)) : copy(static_cast<std::int64_t*>(to.data));
    }

private:
    std::vector<Heads> heads_, labels_;
};

/// Reads heads[0..words] of a tree into memory of our own: bytes that change afterwards are not seen.
inline void read_row(const HeadsView& from, std::int64_t sentence, std::int64_t tree, int words,
                     std::vector<Heads>& to) {
    to.assign(static_cast<std::size_t>(words) + 1, no_head);
    for (int node = 1; node <= words; ++node)
        to[static_cast<std::size_t>(node)] = integer_at(
            from.data, from.type, sentence * from.batch_stride + tree * from.tree_stride + node * from.node_stride);
}

inline int threads_of(const Options& options) {
    if (options.threads < 0) throw InvalidInput("a negative number of threads");
    return options.threads ? options.threads : default_threads();
}

inline StopSignal stop_signal_of(const Options& options) {
    return StopSignal(options.stop ? options.stop : [] { return false; });
}

inline void throw_if_stopped(const StopSignal& stop) {
    if (stop.stopped()) throw Interrupted();
}

/// Below this many words cubed in a batch, starting a thread costs more than it saves.
inline constexpr double cubes_worth_a_thread = 1e5;

template <class T>
int useful_threads(const Sentences<T>& sentences, int threads, double least = cubes_worth_a_thread) {
    double cubes = 0.0;
    for (const Sentence<T>& sentence : sentences.all())
        cubes += static_cast<double>(sentence.words) * sentence.words * sentence.words;
    return cubes < least ? 1 : threads;
}

}  // namespace spantree::library
