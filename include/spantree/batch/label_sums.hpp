// Labels as parallel edges: summed out once, and what an edge has shared among them.
//
// With t = max over labels of s[y] and w[y] = exp(s[y] - t), the edge's log-weight is t + log(sum of w), and label y has
// the share w[y] / sum of w: shares add up to 1 at any magnitude of scores. The labels of an edge lie next to each other;
// eight running sums by label modulo eight, added in a fixed order. O(labels) an edge.
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

/// Memory that a `LabelBlock` works in.
constexpr std::size_t label_block_size(int labels) { return std::size_t{2} * pack_size * round_up(labels); }

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
[[gnu::always_inline]] inline void store_labels(const Pack& x, Out* to, int count) {
    constexpr int width = pack_size / Pack::parts;
    if (count >= pack_size)
        for (int i = 0; i < Pack::parts; ++i)
            store(to + i * width, __builtin_convertvector(x.part[i], Vector<Out, width>));
    else
        for (int i = 0; i < count; ++i) to[i] = static_cast<Out>(x[i]);
}

/// The labels of up to eight edges of one head.
template <class Registers>
struct LabelBlock {
    using Pack = PackOf<Registers::width>;

    int labels, padded;
    double* score;   // s[y], `padded` from one edge to the next; -inf in the padding
    double* weight;  // w[y]; 0 in the padding

    alignas(64) double largest[pack_size];  // t; 0 if the edge is impossible
    alignas(64) double total[pack_size];    // of weights; 0: the edge is impossible; NaN: some score is NaN or +inf

    LabelBlock(int labels, double* memory)
        : labels(labels), padded(round_up(labels)), score(memory), weight(memory + pack_size * padded) {}

    /// Edges whose labels begin `stride` apart. Every score is read once.
    template <class T>
    [[gnu::always_inline]] void read(const T* scores, std::ptrdiff_t stride, int edges) {
        const Pack nothing = Pack::broadcast(minus_infinity<double>);
        const int whole = labels / pack_size * pack_size;
        Pack highest[pack_size];
        for (int e = 0; e < pack_size; ++e) {
            const T* const from = scores + e * stride;
            double* const to = score + e * padded;
            Pack of_edge = nothing;
            const auto look = [&](int y, const Pack& x) __attribute__((always_inline)) {
                x.store(to + y);
                of_edge = larger(x, of_edge);
            };
            if (e < edges) {
                for (int y = 0; y < whole; y += pack_size) look(y, load_labels<Pack>(from + y));
                if (whole < labels)
                    look(whole, load_labels<Pack>(from + whole, labels - whole, minus_infinity<double>));
            }
            highest[e] = of_edge;
        }
        const Pack t = across(highest, edges,
                              [](const auto& a, const auto& b) __attribute__((always_inline)) { return larger(a, b); });
        if_equal(t, nothing, Pack{}, t).store(largest);
        const Pack sums =
            sum_labels(edges, [&]<int count>(int e, int y, Pack(&x)[count]) __attribute__((always_inline)) {
                for (int i = 0; i < count; ++i) x[i] = Pack::load(score + (e + i) * padded + y) - largest[e + i];
                plain_exp<count>(x);
                for (int i = 0; i < count; ++i) x[i].store(weight + (e + i) * padded + y);
            });
        sums.store(total);
    }

    /// Means by share of number(e, y), eight labels of an edge. Labels without a share do not count; an edge without labels
    /// has the mean 0.
    template <class Number>
    [[gnu::always_inline]] Pack means(int edges, Number number) const {
        const Pack sums = sum_labels(edges, [&](int e, int y, auto& x) __attribute__((always_inline)) {
            for (Pack& of_edge : x) {
                const Pack w = Pack::load(weight + e * padded + y);
                of_edge = if_less(Pack{}, w, w * number(e++, y), Pack{});
            }
        });
        const Pack totals = Pack::load(total);
        return if_equal(totals, Pack{}, Pack{}, sums / totals);
    }

private:
    /// The sums, for each edge, of its numbers: eight running sums over the labels, and these in a fixed order. numbers(e, y,
    /// x) writes those of labels y to y + 7 of edge e to x[0], of the next edge to x[1], and so on: of four edges at once,
    /// so that none waits.
    template <class Numbers>
    [[gnu::always_inline]] Pack sum_labels(int edges, Numbers numbers) const {
        Pack sums[pack_size];
        const auto several = [&]<int count>(int e) __attribute__((always_inline)) {
            Pack sum[count] = {}, x[count];
            for (int y = 0; y < padded; y += pack_size) {
                numbers(e, y, x);
                for (int i = 0; i < count; ++i) sum[i] += x[i];
            }
            for (int i = 0; i < count; ++i) sums[e + i] = sum[i];
        };
        int e = 0;
        for (; e + 4 <= edges; e += 4) several.template operator()<4>(e);
        for (; e < edges; ++e) several.template operator()<1>(e);
        for (; e < pack_size; ++e) sums[e] = Pack{};
        return across(sums, edges, [](const auto& a, const auto& b) __attribute__((always_inline)) { return a + b; });
    }

    /// The eight lanes of each row put together, in a fixed order.
    template <class Add>
    [[gnu::always_inline]] static Pack across(Pack (&rows)[pack_size], int count, Add add) {
        const auto all = [&](const auto& x) __attribute__((always_inline)) {
            return add(add(add(x[0], x[1]), add(x[2], x[3])), add(add(x[4], x[5]), add(x[6], x[7])));
        };
        if (count == 1) return Pack::broadcast(all(rows[0]));
        transpose(rows);
        return all(rows);
    }
};

/// What becomes of the edges of one head, d = 1..words, when labels are summed out: each if wanted. Entries of impossible
/// edges and of the diagonal: -inf for the largest, else 0.
struct LabelRow {
    double* largest = nullptr;    // t
    double* log_total = nullptr;  // the edge's log-weight less t
    double* mean = nullptr;       // of `values`, or of t - s[y]
    double* weights = nullptr;    // w[y], round_up(labels) of them for each edge
    double* totals = nullptr;     // their sums
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
            for (int first = 1; first <= sentence.words; first += pack_size) {
                const int edges = std::min(pack_size, sentence.words + 1 - first);
                if (row.weights) block.weight = row.weights + static_cast<std::ptrdiff_t>(first - 1) * block.padded;
                block.read(sentence.edge(head, first), sentence.dep_stride, edges);
                if (head >= first && head < first + edges) block.total[head - first] = 0.0;
                const Pack totals = Pack::load(block.total);
                const auto write = [&](double* to, const Pack& x)
                                       __attribute__((always_inline)) { store_labels(x, to + first - 1, edges); };
                if (row.totals) write(row.totals, totals);
                if (row.largest) {
                    const Pack found = if_equal(totals, totals, Pack::load(block.largest), totals);
                    write(row.largest, if_equal(totals, Pack{}, Pack::broadcast(minus_infinity<double>), found));
                }
                if (row.log_total) write(row.log_total, totals);
                if (row.mean && values)
                    write(row.mean, block.means(edges, [&](int e, int y) __attribute__((always_inline)) {
                        return load_labels<Pack>(values->edge(head, first + e) + y, block.labels - y);
                    }));
                else if (row.mean)
                    write(row.mean, block.means(edges, [&](int e, int y) __attribute__((always_inline)) {
                        return Pack::broadcast(block.largest[e]) - Pack::load(block.score + e * block.padded + y);
                    }));
            }
            for (int d = 0; row.log_total && d < sentence.words;
                 d += pack_size) {  // all at once: none waits for another
                const int edges = sentence.words - d;
                const Pack totals = load_labels<Pack>(row.log_total + d, edges, 1.0);
                const Pack logs = natural_log(if_equal(totals, Pack{}, Pack::broadcast(1.0), totals));
                store_labels(if_equal(totals, totals, logs, totals), row.log_total + d, edges);  // NaN stays NaN
            }
        }
    };
};

/// Shares what the edges of one head have among their labels: out[d, y] = share (m[d] + ...), see `run`.
struct ShareAmongLabels {
    template <class Registers>
    struct Kernel {
        /// Marginals: out = share edge[d]. Gradients, where `marginal` is given: the edge's own gradient is edge[d], and
        /// out = share ((v[y] - mean[d]) marginal[d] + edge[d]), v being `values`, or minus the scores. `row` is what
        /// `SumLabels` has left, all of it for gradients; the rest is made again. out[d - 1] of each word d is `stride`
        /// apart.
        template <class T, class Out>
        static void run(const Sentence<T>& sentence, int head, const double* of_edge, const double* marginal,
                        const Sentence<double>* values, const LabelRow& row, double* scratch, Out* out,
                        std::ptrdiff_t stride) {
            using Pack = PackOf<Registers::width>;
            const int labels = sentence.labels;
            LabelBlock<Registers> block(labels, scratch);
            for (int d = 1; d <= sentence.words; ++d, out += stride) {
                const int at = d - 1, e = at % pack_size;
                if (!row.weights && e == 0)
                    block.read(sentence.edge(head, d), sentence.dep_stride, std::min(pack_size, sentence.words - at));
                const double *const weight = row.weights ? row.weights + static_cast<std::ptrdiff_t>(at) * block.padded
                                                         : block.weight + e * block.padded,
                                    total = row.weights ? row.totals[at] : block.total[e], whole = of_edge[at];
                const bool nothing = whole == 0.0 && !(marginal && marginal[at] > 0.0);
                if (d == head || nothing || !(total > 0.0)) {
                    std::fill_n(out, labels, Out{0});
                    continue;
                }
                const double unit = 1.0 / total;
                if (!marginal) {
                    const Pack factor = Pack::broadcast(whole * unit);
                    for (int y = 0; y < labels; y += pack_size)
                        store_labels(Pack::load(weight + y) * factor, out + y, labels - y);
                    continue;
                }
                const auto share = [&](auto value, double centre) __attribute__((always_inline)) {
                    for (int y = 0; y < labels; y += pack_size) {
                        const Pack of_label = Pack::load(weight + y) * unit, v = value(y) - centre;
                        store_labels(if_less(Pack{}, of_label, of_label * (v * marginal[at] + whole), Pack{}), out + y,
                                     labels - y);
                    }
                };
                if (values)
                    share([&](int y) __attribute__((
                              always_inline)) { return load_labels<Pack>(values->edge(head, d) + y, labels - y); },
                          row.mean[at]);
                else
                    share(
                        [&](int y) __attribute__((always_inline)) {
                            return Pack::broadcast(row.largest[at]) -
                                   load_labels<Pack>(sentence.edge(head, d) + y, labels - y);
                        },
                        row.mean[at]);
            }
        }
    };
};

}  // namespace spantree
