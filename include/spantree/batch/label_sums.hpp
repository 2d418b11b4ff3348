// Labels as parallel edges: summed out once, and what an edge has shared among them.
//
// With t = max over labels of s[y] and w[y] = exp(s[y] - t), the edge's log-weight is t + log(sum of w), and label y has
// the share w[y] / sum of w: shares add up to 1 at any magnitude of scores. The labels of an edge lie next to each other and
// are taken eight at a time; if there are at least eight, the last eight may have been seen in part. Eight running sums,
// added in a fixed order. O(labels) an edge.
#pragma once

#include <cmath>
#include <limits>

#include "../number/exp.hpp"
#include "../number/log.hpp"
#include "../simd/dispatch.hpp"
#include "../simd/pack.hpp"
#include "aligned_buffer.hpp"
#include "labels.hpp"
#include "sentence.hpp"

namespace spantree {

/// Edges whose labels are read together: enough for the search of their largest scores to be out of the way when these are
/// needed, few enough for the labels' weights to stay near.
inline constexpr int edges_at_once = 32;

/// Memory that a `LabelBlock` works in.
constexpr std::size_t label_block_size(int labels) { return std::size_t{edges_at_once} * round_up(labels); }

/// Eight labels' numbers as doubles.
template <class Pack, class T>
[[gnu::always_inline]] inline Pack load_labels(const T* numbers) {
    constexpr int width = pack_size / Pack::parts;
    Pack x;
    for (int i = 0; i < Pack::parts; ++i) x.part[i] = load_as_doubles<width>(numbers + i * width);
    return x;
}

/// Fewer, if `count` is less than eight: `beyond` is in the place of those that there are not.
template <class Pack, class T>
[[gnu::always_inline]] inline Pack load_labels(const T* numbers, int count, double beyond = 0.0) {
    if (count >= pack_size) return load_labels<Pack>(numbers);
    alignas(64) double some[pack_size];
    for (int i = 0; i < pack_size; ++i) some[i] = i < count ? static_cast<double>(numbers[i]) : beyond;
    return Pack::load(some);
}

/// The way back: each number rounded once.
template <class Pack, class Out>
[[gnu::always_inline]] inline void store_labels(const Pack& x, Out* to) {
    constexpr int width = pack_size / Pack::parts;
    for (int i = 0; i < Pack::parts; ++i) store(to + i * width, __builtin_convertvector(x.part[i], Vector<Out, width>));
}

/// The first `count` of them, if there are fewer than eight.
template <class Pack, class Out>
[[gnu::always_inline]] inline void store_labels(const Pack& x, Out* to, int count) {
    if (count >= pack_size) return store_labels(x, to);
    for (int i = 0; i < count; ++i) to[i] = static_cast<Out>(x[i]);
}

/// Covers `labels` eight at a time: visit(y) for labels y to y + 7.
template <class Visit>
[[gnu::always_inline]] inline void each_eight(int labels, Visit visit) {
    for (int y = 0; y < labels - pack_size; y += pack_size) visit(y);
    visit(std::max(labels - pack_size, 0));
}

/// Where some eights of labels begin.
template <int count>
struct Eights {
    int first, last;
    [[gnu::always_inline]] int operator[](int i) const { return i + 1 < count ? first + i * pack_size : last; }
};

/// The labels of some edges of one head, at most `edges_at_once`.
template <class Registers>
struct LabelBlock {
    using Pack = PackOf<Registers::width>;

    int labels, padded;
    double* weight;  // w[y], `padded` from one edge to the next; the padding means nothing

    alignas(64) double largest[edges_at_once];  // t; 0 if the edge is impossible
    alignas(64) double total[edges_at_once];    // of weights; 0: the edge is impossible; NaN: a score is NaN or +inf

    LabelBlock(int labels, double* memory) : labels(labels), padded(round_up(labels)), weight(memory) {}

    /// Edges whose labels begin `stride` apart.
    template <class T>
    [[gnu::always_inline]] void read(const T* scores, std::ptrdiff_t stride, int edges) {
        find_largest(scores, stride, edges);
        sum_labels<5>(  // eights of labels at once: their operations fill the time that each takes
            edges, total,
            [&]<int count>(int e, const Eights<count>& y, Pack(&x)[count]) __attribute__((always_inline)) {
                const T* const from = scores + e * stride;
                double* const to = weight + e * padded;
                const Pack t = Pack::broadcast(largest[e]);
                if constexpr (count == 1)
                    x[0] = load_labels<Pack>(from + y[0], labels, minus_infinity<double>) - t;
                else
#pragma GCC unroll 8
                    for (int i = 0; i < count; ++i) x[i] = load_labels<Pack>(from + y[i]) - t;
                plain_exp<count>(x);
#pragma GCC unroll 8
                for (int i = 0; i < count; ++i) x[i].store(to + y[i]);
            });
    }

    /// Means by share of number(e, y), eight labels of an edge. Labels without a share do not count; an edge without labels
    /// has the mean 0.
    template <class Number>
    [[gnu::always_inline]] void means(int edges, double* means, Number number) const {
        sum_labels<1>(edges, means,
                      [&]<int count>(int e, const Eights<count>& y, Pack(&x)[count]) __attribute__((always_inline)) {
                          for (int i = 0; i < count; ++i) {
                              const Pack w = Pack::load(weight + e * padded + y[i]);
                              x[i] = if_less(Pack{}, w, w * number(e, y[i]), Pack{});
                          }
                      });
        for (int e = 0; e < edges; e += pack_size) {
            const Pack totals = Pack::load(total + e);
            if_equal(totals, Pack{}, Pack{}, Pack::load(means + e) / totals).store(means + e);
        }
    }

private:
    template <class T>
    [[gnu::always_inline]] void find_largest(const T* scores, std::ptrdiff_t stride, int edges) {
        const Pack nothing = Pack::broadcast(minus_infinity<double>);
        T highest[edges_at_once];
        details::MaxOverLabels::Kernel<Registers>::run(scores, stride, edges, labels, highest);
        for (int e = edges; e % pack_size != 0; ++e) highest[e] = T{0};
        for (int e = 0; e < edges; e += pack_size) {
            const Pack t = load_labels<Pack>(highest + e) + 0.0;  // of 0 and -0, whichever was seen first: 0
            if_equal(t, nothing, Pack{}, t).store(largest + e);
        }
    }

    /// The sums, for each edge, of its numbers: eight running sums over the labels, and these in a fixed order. numbers(e, y,
    /// x) writes those of labels y[0] to y[0] + 7 of edge e to x[0], and so on, of up to `most` eights. If there are fewer than eight labels, 0 for
    /// the rest. Writes round_up(edges) sums, or one.
    template <int most, class Numbers>
    [[gnu::always_inline]] void sum_labels(int edges, double* sums, Numbers numbers) const {
        with_last_eights<most, most>([&]<int count>() __attribute__((always_inline)) {
            const int before = padded - count * pack_size, last = std::max(labels - pack_size, 0),
                      seen = labels < pack_size ? 0 : padded - labels;  // of the last eight
            for (int first = 0; first < edges; first += pack_size) {
                Pack of_edge[pack_size] = {};
                const int here = std::min(edges - first, pack_size);
                for (int i = 0; i < here; ++i) {
                    Pack sum = {};
                    for (int y = 0; y < before; y += most * pack_size) {
                        Pack x[most];
                        numbers(first + i, Eights<most>{y, y + (most - 1) * pack_size}, x);
                        for (const Pack& some : x) sum += some;
                    }
                    Pack x[count];
                    numbers(first + i, Eights<count>{before, last}, x);
                    x[count - 1] = Pack::only_lanes(seen, pack_size, x[count - 1], Pack{});
                    for (const Pack& some : x) sum += some;
                    of_edge[i] = sum;
                }
                if (edges == 1) {
                    *sums = spantree::sum(of_edge[0]);
                    return;
                }
                transpose(of_edge);
                (((of_edge[0] + of_edge[1]) + (of_edge[2] + of_edge[3])) +
                 ((of_edge[4] + of_edge[5]) + (of_edge[6] + of_edge[7])))
                    .store(sums + first);
            }
        });
    }

    /// body.template operator()<count>(), with as many eights as are left when `most` at a time have been taken.
    template <int most, int count, class Body>
    [[gnu::always_inline]] void with_last_eights(Body body) const {
        if constexpr (count > 1)
            if ((padded / pack_size - 1) % most + 1 < count) return with_last_eights<most, count - 1>(body);
        body.template operator()<count>();
    }
};

/// What becomes of the edges of one head, d = 1..words, when labels are summed out: each if wanted. Entries of impossible
/// edges and of the diagonal: -inf for the largest, else 0.
struct LabelRow {
    double* largest = nullptr;  // t
    double* mean = nullptr;     // of `values`, or of t - s[y]
    double* weights = nullptr;  // w[y], round_up(labels) of them for each edge
    double* totals = nullptr;   // their sums
};

/// Memory for a `LabelBlock`.
class LabelScratch {
public:
    double* reserve(int labels) { return memory_.reserve(label_block_size(labels)); }
    std::size_t bytes() const { return memory_.bytes(); }

private:
    AlignedBuffer<double> memory_;
};

/// Sums labels out, of one head's edges. `values`, if any, has the sentence's form.
struct SumLabels {
    template <class Registers>
    struct Kernel {
        template <class T>
        static void run(const Sentence<T>& sentence, int head, const Sentence<double>* values, double* scratch,
                        const LabelRow& row) {
            using Pack = PackOf<Registers::width>;
            LabelBlock<Registers> block(sentence.labels, scratch);
            for (int first = 1; first <= sentence.words; first += edges_at_once) {
                const int edges = std::min(edges_at_once, sentence.words + 1 - first);
                if (row.weights) block.weight = row.weights + static_cast<std::ptrdiff_t>(first - 1) * block.padded;
                block.read(sentence.edge(head, first), sentence.dep_stride, edges);
                if (head >= first && head < first + edges) block.total[head - first] = 0.0;
                const auto write = [&](double* to, const double* from) __attribute__((always_inline)) {
                    for (int e = 0; e < edges; e += pack_size)
                        store_labels(Pack::load(from + e), to + first - 1 + e, edges - e);
                };
                if (row.totals) write(row.totals, block.total);
                alignas(64) double numbers[edges_at_once];
                if (row.mean && values) {
                    block.means(edges, numbers, [&](int e, int y) __attribute__((always_inline)) {
                        return load_labels<Pack>(values->edge(head, first + e) + y, block.labels);
                    });
                    write(row.mean, numbers);
                } else if (row.mean) {
                    block.means(edges, numbers, [&](int e, int y) __attribute__((always_inline)) {
                        return block.largest[e] - load_labels<Pack>(sentence.edge(head, first + e) + y, block.labels);
                    });
                    write(row.mean, numbers);
                }
                for (int e = 0; row.largest && e < edges; e += pack_size) {
                    const Pack totals = Pack::load(block.total + e), t = Pack::load(block.largest + e);
                    const Pack found = if_equal(totals, totals, t, totals);
                    store_labels(if_equal(totals, Pack{}, Pack::broadcast(minus_infinity<double>), found),
                                 row.largest + first - 1 + e, edges - e);
                }
            }
        }
    };
};

/// Totals become their logarithms; 0 where there is nothing. NaN stays NaN.
struct LogTotals {
    template <class Registers>
    struct Kernel {
        static void run(double* totals, int edges) {
            using Pack = PackOf<Registers::width>;
            for (int e = 0; e < edges; e += pack_size) {
                const Pack total = load_labels<Pack>(totals + e, edges - e, 1.0);
                const Pack logs = natural_log(if_equal(total, Pack{}, Pack::broadcast(1.0), total));
                store_labels(if_equal(total, total, logs, total), totals + e, edges - e);
            }
        }
    };
};

/// Shares what the edges of one head have among their labels: out[d, y] = share[d, y] edge[d]. `row` is what `SumLabels` has
/// left, weights and totals; out[d] of each word is `stride` apart.
struct ShareAmongLabels {
    template <class Registers>
    struct Kernel {
        template <class Out>
        static void run(int words, int labels, int head, const double* of_edge, const LabelRow& row, Out* out,
                        std::ptrdiff_t stride) {
            using Pack = PackOf<Registers::width>;
            for (int first = 0; first < words; first += pack_size) {
                alignas(64) double factors[pack_size];
                const Pack totals = Pack::load(row.totals + first);
                if_less(Pack{}, totals, Pack::load(of_edge + first) * (1.0 / totals), Pack{}).store(factors);
                const int end = std::min(first + pack_size, words);
                for (int at = first; at < end; ++at, out += stride) {
                    const double* const weight = row.weights + static_cast<std::ptrdiff_t>(at) * round_up(labels);
                    const Pack factor = Pack::broadcast(factors[at - first]);
                    if (at + 1 == head || factors[at - first] == 0.0)
                        std::fill_n(out, labels, Out{0});
                    else if (labels < pack_size)
                        store_labels(Pack::load(weight) * factor, out, labels);
                    else
                        each_eight(labels, [&](int y) __attribute__((always_inline)) {
                            store_labels(Pack::load(weight + y) * factor, out + y);
                        });
                }
            }
        }
    };
};

/// The same for gradients: an edge's own is edge[d], and out[d, y] = share[d, y] ((v[y] - mean[d]) marginal[d] + edge[d]), v
/// being `values`, or minus the scores. `row` is all that `SumLabels` has left.
struct ShareGradientAmongLabels {
    template <class Registers>
    struct Kernel {
        template <class T, class Out>
        static void run(const Sentence<T>& sentence, int head, const double* of_edge, const double* marginal,
                        const Sentence<double>* values, const LabelRow& row, Out* out, std::ptrdiff_t stride) {
            using Pack = PackOf<Registers::width>;
            const int labels = sentence.labels;
            for (int d = 1; d <= sentence.words; ++d, out += stride) {
                const int at = d - 1;
                if (d == head || !(marginal[at] > 0.0) || !(row.totals[at] > 0.0)) {  // no tree has it
                    std::fill_n(out, labels, Out{0});
                    continue;
                }
                const double* const weight = row.weights + static_cast<std::ptrdiff_t>(at) * round_up(labels);
                const double unit = 1.0 / row.totals[at];
                const auto share = [&](auto value) __attribute__((always_inline)) {
                    each_eight(labels, [&](int y) __attribute__((always_inline)) {
                        const Pack of_label = Pack::load(weight + y) * unit, v = value(y) - row.mean[at];
                        store_labels(if_less(Pack{}, of_label, of_label * (v * marginal[at] + of_edge[at]), Pack{}),
                                     out + y, labels);
                    });
                };
                if (values)
                    share([&](int y) __attribute__((always_inline)) {
                        return load_labels<Pack>(values->edge(head, d) + y, labels);
                    });
                else
                    share([&](int y) __attribute__((always_inline)) {
                        return row.largest[at] - load_labels<Pack>(sentence.edge(head, d) + y, labels);
                    });
            }
        }
    };
};

}  // namespace spantree
