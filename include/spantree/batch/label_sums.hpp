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

/// The labels of up to eight edges of one head: each step is done for all of them before the next, so that none waits.
template <class Registers>
struct LabelBlock {
    using Pack = PackOf<Registers::width>;

    int labels, padded;
    double* score;   // s[y] - t, `padded` from one edge to the next; -inf in the padding
    double* weight;  // w[y]; 0 in the padding

    double largest[pack_size];  // t
    double total[pack_size];    // of weights; 0: the edge is impossible; NaN: some score is NaN or +inf

    LabelBlock(int labels, double* memory)
        : labels(labels), padded(round_up(labels)), score(memory), weight(memory + pack_size * padded) {}

    /// Edges whose labels begin `stride` apart.
    template <class T>
    [[gnu::always_inline]] void read(const T* scores, std::ptrdiff_t stride, int edges) {
        T highest[pack_size];
        details::MaxOverLabels::Kernel<Registers>::run(scores, stride, edges, labels, highest);
        const int whole = labels / pack_size * pack_size;
        for (int e = 0; e < edges; ++e) {
            largest[e] = highest[e];
            const T* const from = scores + e * stride;
            double* const to = score + e * padded;
            const Pack shift = Pack::broadcast(largest[e] == minus_infinity<double> ? 0.0 : largest[e]);
            for (int y = 0; y < whole; y += pack_size) below(load_as_doubles(from + y), shift).store(to + y);
            if (whole < labels) {
                for (int y = whole; y < padded; ++y)
                    to[y] = y < labels ? static_cast<double>(from[y]) : minus_infinity<double>;
                below(Pack::load(to + whole), shift).store(to + whole);
            }
        }
        const int all = edges * padded;
        const auto exponentiate = [&]<int count>(int first) __attribute__((always_inline)) {
            Pack x[count];
            for (int i = 0; i < count; ++i) x[i] = Pack::load(score + first + i * pack_size);
            plain_exp<count>(x);
            for (int i = 0; i < count; ++i) x[i].store(weight + first + i * pack_size);
        };
        int first = 0;
        for (; first + 2 * pack_size <= all; first += 2 * pack_size) exponentiate.template operator()<2>(first);
        if (first < all) exponentiate.template operator()<1>(first);
        for (int e = 0; e < edges; ++e) {
            Pack sum = {};
            for (int y = 0; y < padded; y += pack_size) sum += Pack::load(weight + e * padded + y);
            total[e] = spantree::sum(sum);
        }
    }

private:
    /// x - shift, never above 0: scores may change after `shift` was found.
    [[gnu::always_inline]] static Pack below(const Pack& x, const Pack& shift) {
        const Pack difference = x - shift;
        return if_less(Pack{}, difference, Pack{}, difference);
    }

    template <class T>
    [[gnu::always_inline]] static Pack load_as_doubles(const T* from) {
        if constexpr (std::is_same_v<T, double>) {
            return Pack::load(from);
        } else {
            constexpr int width = Registers::width;
            Pack x;
            for (int i = 0; i < Pack::parts; ++i)
                x.part[i] = __builtin_convertvector(load<width>(from + i * width), Vector<double, width>);
            return x;
        }
    }
};

/// Labels y to y + 7 of an edge's values; 0 beyond the last.
template <class Pack>
[[gnu::always_inline]] inline Pack load_labels(const double* values, int y, int labels) {
    if (y + pack_size <= labels) return Pack::load(values + y);
    alignas(64) double tail[pack_size] = {};
    for (int i = 0; y + i < labels; ++i) tail[i] = values[y + i];
    return Pack::load(tail);
}

/// What becomes of the edges of one head, d = 1..words, when labels are summed out. Entries of impossible edges and of
/// the diagonal: -inf, and 0.
struct LabelRow {
    double* largest = nullptr;    // t
    double* log_total = nullptr;  // the edge's log-weight less t
    double* mean = nullptr;  // if wanted: of `values`, or of minus the log of the labels' own shares (their entropy)
    // If wanted, for `ShareWeights`:
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
            LabelBlock<Registers> block(sentence.labels, scratch);
            for (int first = 1; first <= sentence.words; first += pack_size) {
                const int edges = std::min(pack_size, sentence.words + 1 - first);
                if (row.weights) block.weight = row.weights + static_cast<std::ptrdiff_t>(first - 1) * block.padded;
                block.read(sentence.edge(head, first), sentence.dep_stride, edges);
                if (head >= first && head < first + edges) {
                    block.largest[head - first] = minus_infinity<double>;
                    block.total[head - first] = 0.0;
                }
                log_totals(block, edges, row.log_total + first - 1);
                for (int e = 0; e < edges; ++e) {
                    const double total = block.total[e];
                    const int at = first - 1 + e;
                    row.largest[at] = std::isnan(total) ? total : block.largest[e];
                    if (row.totals) row.totals[at] = total;
                    if (row.mean) row.mean[at] = total == 0.0 ? 0.0 : mean_of(block, e, values, head, first + e);
                    // The entropy of labels is log total - sum of w x / total, of which the second part is there.
                    if (row.mean && !values && total != 0.0) row.mean[at] += row.log_total[at];
                }
            }
        }

    private:
        using Pack = PackOf<Registers::width>;

        /// The logarithms of a block's totals, 0 for an edge that is impossible.
        [[gnu::always_inline]] static void log_totals(const LabelBlock<Registers>& block, int edges, double* to) {
            alignas(64) double logs[pack_size];
            for (int e = 0; e < pack_size; ++e) logs[e] = e < edges && block.total[e] != 0.0 ? block.total[e] : 1.0;
            natural_log(Pack::load(logs)).store(logs);
            for (int e = 0; e < edges; ++e)  // the series knows no NaN
                to[e] = std::isnan(block.total[e]) ? block.total[e] : logs[e];
        }

        /// The mean of values by share; without values, of minus s[y] - t. Labels without a share do not count.
        [[gnu::always_inline]] static double mean_of(const LabelBlock<Registers>& block, int e,
                                                     const Sentence<double>* values, int head, int dep) {
            const double *const weight = block.weight + e * block.padded, *const score = block.score + e * block.padded;
            const double* const given = values ? values->edge(head, dep) : nullptr;
            Pack sum = {};
            for (int y = 0; y < block.padded; y += pack_size) {
                const Pack w = Pack::load(weight + y);
                const Pack v = given ? load_labels<Pack>(given, y, block.labels) : Pack{} - Pack::load(score + y);
                sum += if_less(Pack{}, w, w * v, Pack{});
            }
            return spantree::sum(sum) / block.total[e];
        }
    };
};

/// The same marginals where `SumLabels` has left the weights.
struct ShareWeights {
    template <class Registers>
    struct Kernel {
        template <class Out>
        static void run(int words, int labels, const double* of_edge, const LabelRow& row, Out* out,
                        std::ptrdiff_t stride) {
            using Pack = PackOf<Registers::width>;
            const int whole = labels / pack_size * pack_size, padded = round_up(labels);
            for (int d = 1; d <= words; ++d, out += stride) {
                const double total = row.totals[d - 1];
                if (!(total > 0.0)) {
                    std::fill_n(out, labels, Out{0});
                    continue;
                }
                const double* const w = row.weights + static_cast<std::ptrdiff_t>(d - 1) * padded;
                const double factor = of_edge[d - 1] * (1.0 / total);
                for (int y = 0; y < whole; y += pack_size) {
                    const Pack x = Pack::load(w + y) * factor;
                    for (int i = 0; i < Pack::parts; ++i)
                        store(out + y + i * Registers::width,
                              __builtin_convertvector(x.part[i], Vector<Out, Registers::width>));
                }
                for (int y = whole; y < labels; ++y) out[y] = static_cast<Out>(w[y] * factor);
            }
        }
    };
};

/// Shares what the edges of one head have among their labels: out[d, y] = share (m[d] + ...), see `run`.
struct ShareAmongLabels {
    template <class Registers>
    struct Kernel {
        /// Marginals: out = share edge[d]. Gradients, where `marginal` is given: the edge's own gradient is edge[d], and
        /// out = share ((v[y] - mean[d]) marginal[d] + edge[d]), v being `values`, or minus the log of the label's share.
        /// out[d - 1] of each word d is `stride` apart.
        template <class T, class Out>
        static void run(const Sentence<T>& sentence, int head, const double* of_edge, const double* marginal,
                        const double* mean, const Sentence<double>* values, double* scratch, Out* out,
                        std::ptrdiff_t stride) {
            using Pack = PackOf<Registers::width>;
            LabelBlock<Registers> edge(sentence.labels, scratch);
            for (int d = 1; d <= sentence.words; ++d, out += stride) {
                const double whole = of_edge[d - 1];
                if (d == head || (whole == 0.0 && !(marginal && marginal[d - 1] > 0.0))) {
                    std::fill_n(out, sentence.labels, Out{0});
                    continue;
                }
                edge.read(sentence.edge(head, d), sentence.dep_stride, 1);
                const double total = edge.total[0], inverse = total > 0.0 ? 1.0 / total : 0.0;
                if (!marginal) {
                    const Pack factor = Pack::broadcast(whole * inverse);
                    for (int y = 0; y < edge.padded; y += pack_size)
                        (Pack::load(edge.weight + y) * factor).store(edge.weight + y);
                } else {
                    const double log_total = std::log(total);
                    const double* const given = values ? values->edge(head, d) : nullptr;
                    const Pack m = Pack::broadcast(marginal[d - 1]), centre = Pack::broadcast(mean[d - 1]);
                    for (int y = 0; y < edge.padded; y += pack_size) {
                        const Pack share = Pack::load(edge.weight + y) * inverse;
                        const Pack v = given ? load_labels<Pack>(given, y, sentence.labels)
                                             : Pack::broadcast(log_total) - Pack::load(edge.score + y);
                        if_less(Pack{}, share, share * ((v - centre) * m + whole), Pack{}).store(edge.weight + y);
                    }
                }
                for (int y = 0; y < sentence.labels; ++y) out[y] = static_cast<Out>(edge.weight[y]);
            }
        }
    };
};

}  // namespace spantree
