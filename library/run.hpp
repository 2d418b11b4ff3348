// How a batch is gone through: numbers of any type, threads, the caller's wish to stop, rows of trees.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "batch.hpp"
#include "spantree/batch/parallel.hpp"
#include "spantree/batch/tree.hpp"

namespace spantree::library {

/// At any address: callers' integers may lie oddly, and change while they are looked at.
inline std::int64_t integer_at(const void* data, IntType type, std::ptrdiff_t at) {
    const auto read = [&]<class Integer>(Integer value) -> std::int64_t {
        std::memcpy(&value, static_cast<const char*>(data) + at * static_cast<std::ptrdiff_t>(sizeof value),
                    sizeof value);
        return value;
    };
    return type == IntType::i32 ? read(std::int32_t{}) : read(std::int64_t{});
}

/// body(T{}) with the type that `dtype` names.
template <class Body>
decltype(auto) with_type(DType dtype, Body body) {
    return dtype == DType::f32 ? body(float{}) : body(double{});
}

/// Numbers in an array of all edges of a sentence.
template <class T>
std::size_t edges_of(const Sentence<T>& sentence) {
    const auto nodes = static_cast<std::size_t>(sentence.words) + 1;
    return nodes * nodes * static_cast<std::size_t>(std::max(sentence.labels, 1));
}

/// value(head, dep, label), labels or none.
inline auto values_of(const Sentence<double>& values) {
    return [&values](int head, int dep, int label) {
        return values.labels ? values(head, dep, label) : values(head, dep);
    };
}

/// The sum of one number for each label. In eight running sums, so that it need not wait for each addition.
template <class Out>
double sum_of_labels(const Out* numbers, int count) {
    double part[8] = {};
    int i = 0;
    for (; i + 8 <= count; i += 8)
        for (int lane = 0; lane < 8; ++lane) part[lane] += numbers[i + lane];
    for (; i < count; ++i) part[0] += numbers[i];
    return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

// Threads

inline int threads_of(const Options& options) {
    if (options.threads < 0) throw InvalidInput("a negative number of threads");
    return options.threads ? options.threads : default_threads();
}

/// Waking a thread takes some 10 us. Below this many scores, looking at each of them once takes less.
inline constexpr double scores_worth_a_thread = 1 << 15;

/// Below this many words cubed, so does a solve.
inline constexpr double cubes_worth_a_thread = 1e5;

template <class Cost>
int threads_if_worth(const Batch& batch, const Options& options, double least, Cost cost) {
    const int threads = threads_of(options);
    if (threads == 1 || batch.size() < 2) return 1;
    double sum = 0.0;
    batch.visit([&](const auto& sentences) {
        for (const auto& sentence : sentences) sum += cost(sentence);
    });
    return sum < least ? 1 : threads;
}

/// To look at every score once or a few times.
inline int threads_to_look_at(const Batch& batch, const Options& options) {
    return threads_if_worth(batch, options, scores_worth_a_thread, [](const auto& sentence) {
        return static_cast<double>(sentence.words) * sentence.words * std::max(sentence.labels, 1);
    });
}

inline int threads_to_solve(const Batch& batch, const Options& options) {
    return threads_if_worth(batch, options, cubes_worth_a_thread, [](const auto& sentence) {
        return static_cast<double>(sentence.words) * sentence.words * sentence.words;
    });
}

/// Sentences that a thread takes at a time, if little is done to each of their scores: about 4096 scores, so that asking for
/// the next ones costs nothing beside them.
inline std::size_t grain(const Batch& batch) {
    std::ptrdiff_t words = 0;
    batch.visit([&](const auto& sentences) {
        for (const auto& sentence : sentences) words = std::max<std::ptrdiff_t>(words, sentence.words);
    });
    return static_cast<std::size_t>(1 + (1 << 12) / (words * words + 1));
}

// The caller's wish to stop

inline StopSignal stop_signal_of(const Options& options) {
    return StopSignal(options.stop ? options.stop : [] { return false; });
}

inline void throw_if_stopped(const StopSignal& stop) {
    if (stop.stopped()) throw Interrupted();
}

/// ask(); `Stopped` becomes `Interrupted`.
template <class Ask>
auto unless_stopped(Ask ask) {
    try {
        return ask();
    } catch (const Stopped&) {
        throw Interrupted();
    }
}

/// Calls body(scratch, sentence, i) for every sentence; throws `Interrupted` if the caller wanted to stop.
template <class T, class MakeScratch, class Body>
void for_each_sentence(const std::vector<Sentence<T>>& sentences, int threads, StopSignal& stop,
                       MakeScratch make_scratch, Body body, std::size_t at_once = 1) {
    parallel_for(sentences.size(), at_once, threads, stop, make_scratch,
                 [&](auto& scratch, std::size_t i) { body(scratch, sentences[i], i); });
    throw_if_stopped(stop);
}

template <class MakeScratch, class Body>
void for_each_sentence(const Batch& batch, int threads, StopSignal& stop, MakeScratch make_scratch, Body body) {
    batch.visit([&](const auto& sentences) { for_each_sentence(sentences, threads, stop, make_scratch, body); });
}

// Rows of trees

/// Trees on their way to the caller. Kernels write int64 one after the other: at once where they belong if that is what the
/// caller wants, else into memory of our own.
class TreeWriter {
public:
    /// For sentences with room for `at_once` trees at a time.
    explicit TreeWriter(const TreesOut& to, std::int64_t at_once = 1) : to_(to), at_once_(at_once) {}

    /// Before the trees of a sentence.
    void start(std::size_t i, int words, bool labelled) {
        sentence_ = i;
        nodes_ = words + 1;
        labelled_ = labelled;
        const auto size = static_cast<std::size_t>(at_once_) * static_cast<std::size_t>(nodes_);
        if (!in_place(to_.heads)) heads_.resize(size);
        if (labelled && !in_place(to_.labels)) labels_.resize(size);
    }

    /// Where heads[0..words] of a tree are to be written, and its labels, null if there are none.
    Heads* heads(std::int64_t tree) { return row(to_.heads, heads_, tree); }
    Heads* labels(std::int64_t tree) { return labelled_ ? row(to_.labels, labels_, tree) : nullptr; }

    /// Passes on a tree that was written there, or says that there is none, with -1 at ROOT and in the padding.
    void finish(std::int64_t tree, bool found) {
        pass_on(to_.heads, heads_, tree, found);
        if (labelled_) pass_on(to_.labels, labels_, tree, found);
    }

private:
    static bool in_place(const HeadsOut& rows) {
        return rows.data && rows.type == IntType::i64 && rows.node_stride == 1;
    }

    Heads* row(const HeadsOut& rows, std::vector<Heads>& own, std::int64_t tree) {
        if (in_place(rows)) return static_cast<Heads*>(rows.data) + to_.start(rows, sentence_, tree);
        return own.data() + (tree % at_once_) * nodes_;
    }

    void pass_on(const HeadsOut& rows, std::vector<Heads>& own, std::int64_t tree, bool found) {
        if (!rows.data) return;
        const int written = found ? nodes_ : 0, width = to_.width(sentence_);
        const Heads* const from = row(rows, own, tree);
        const std::ptrdiff_t start = to_.start(rows, sentence_, tree);
        const auto copy = [&]<class Integer>(Integer* out) {
            for (int node = 0; node < width; ++node)
                out[start + node * rows.node_stride] =
                    static_cast<Integer>(node > 0 && node < written ? from[node] : no_head);
        };
        if (in_place(rows))
            std::fill_n(static_cast<Heads*>(rows.data) + start + written, width - written, no_head);
        else if (rows.type == IntType::i32)
            copy(static_cast<std::int32_t*>(rows.data));
        else
            copy(static_cast<std::int64_t*>(rows.data));
    }

    TreesOut to_;
    std::int64_t at_once_;
    std::size_t sentence_ = 0;
    int nodes_ = 0;
    bool labelled_ = false;
    std::vector<Heads> heads_, labels_;
};

/// A tree that a caller gave, in memory of our own: bytes that change afterwards are not seen. What stands at ROOT does not
/// matter.
struct GivenTree {
    static constexpr Heads unknown = -2;

    std::vector<Heads> heads, labels;

    void read(const TreesIn& from, std::size_t i, std::int64_t tree, int words, bool labelled) {
        read_row(from, from.heads, i, tree, words, heads);
        if (labelled) read_row(from, from.labels, i, tree, words, labels);
    }

    Heads head(int dep) const { return heads[static_cast<std::size_t>(dep)]; }
    Heads label(int dep) const { return labels.empty() ? 0 : labels[static_cast<std::size_t>(dep)]; }
    const Heads* labels_or_null() const { return labels.empty() ? nullptr : labels.data(); }

    bool complete(int words) const {
        for (int dep = 1; dep <= words; ++dep)
            if (head(dep) == unknown || label(dep) == unknown) return false;
        return true;
    }
    /// Whether it is a tree, and has no edge that is forbidden.
    template <class T>
    bool is_tree_of(const Sentence<T>& sentence, Root root, bool projective) {
        const int words = sentence.words;
        if (!is_tree(heads.data(), words, root, mark_)) return false;
        if (projective && !is_projective(heads.data(), words)) return false;
        if (!labels_exist(words, sentence.labels)) return false;
        for (int dep = 1; dep <= words; ++dep)
            if (edge_score(sentence, dep, heads.data(), labels_or_null()) == minus_infinity<double>) return false;
        return true;
    }
    bool labels_exist(int words, int count) const {
        return labels.empty() || std::all_of(labels.begin() + 1, labels.begin() + words + 1,
                                             [&](Heads label) { return label >= 0 && label < count; });
    }

private:
    std::vector<int> mark_;

    static void read_row(const TreesIn& from, const HeadsView& rows, std::size_t i, std::int64_t tree, int words,
                         std::vector<Heads>& to) {
        to.resize(static_cast<std::size_t>(words) + 1);
        to[0] = no_head;
        const std::ptrdiff_t start = from.start(rows, i, tree);
        if (rows.type == IntType::i64 && rows.node_stride == 1) {
            const auto* const bytes = static_cast<const char*>(rows.data) + (start + 1) * std::ptrdiff_t{sizeof(Heads)};
            std::memcpy(to.data() + 1, bytes, static_cast<std::size_t>(words) * sizeof(Heads));
            return;
        }
        for (int node = 1; node <= words; ++node)
            to[static_cast<std::size_t>(node)] = integer_at(rows.data, rows.type, start + node * rows.node_stride);
    }
};

}  // namespace spantree::library
