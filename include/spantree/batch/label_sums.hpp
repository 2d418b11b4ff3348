// Labels as parallel edges: summed out once, and what an edge has shared among them.
//
// With t = max over labels of s[y] and w[y] = exp(s[y] - t), the edge's log-weight is t + log(sum of w), and label y has
// the share w[y] / sum of w: shares add up to 1 at any magnitude of scores. One pass over the labels of an edge, which lie
// next to each other; eight running sums by label modulo eight, added in a fixed order. O(labels) an edge.
#pragma once

#include <cmath>
#include <limits>

#include "../number/exp.hpp"
#include "../number/log.hpp"
#include "../simd/dispatch.hpp"
#include "../simd/pack.hpp"
#include "aligned_buffer.hpp"
#include "sentence.hpp"

namespace spantree {

/// The labels of one edge, one after the other, in memory for round_up(labels) doubles each.
template <int width>
struct EdgeLabels {
    double* score;   // s[y] - t; -inf in the padding
    double* weight;  // w[y]; 0 in the padding
    int labels;

    double largest = 0.0;  // t
    double total = 0.0;    // of weights; 0: the edge is impossible; NaN: some score is NaN or +inf

    using Pack = PackOf<width>;

    template <class T>
    [[gnu::always_inline]] void read(const T* scores) {
        const int whole = labels / pack_size * pack_size, padded = round_up(labels);
        Pack highest = Pack::broadcast(minus_infinity<double>);
        for (int y = 0; y < whole; y += pack_size) {
            const Pack x = load_as_doubles(scores + y);
            x.store(score + y);
            highest = larger(x, highest);
        }
        if (whole < labels) {
            for (int y = whole; y < padded; ++y)
                score[y] = y < labels ? static_cast<double>(scores[y]) : minus_infinity<double>;
            highest = larger(Pack::load(score + whole), highest);
        }
        largest = largest_of(highest);
        if (largest == minus_infinity<double>) {  // and perhaps NaN, which no comparison finds
            total = 0.0;
            for (int y = 0; y < labels; ++y) total += std::isnan(score[y]) ? score[y] : 0.0;
            for (int y = 0; y < padded; ++y) weight[y] = 0.0;
            return;
        }
        const Pack shift = Pack::broadcast(largest);
        Pack sum = {};
        const auto block = [&]<int count>(int y) __attribute__((always_inline)) {
            Pack x[count];
            for (int i = 0; i < count; ++i) {
                x[i] = Pack::load(score + y + i * pack_size) - shift;
                x[i].store(score + y + i * pack_size);
            }
            plain_exp<count>(x);
            for (int i = 0; i < count; ++i) {
                x[i].store(weight + y + i * pack_size);
                sum += x[i];
            }
        };
        int y = 0;
        for (; y + 2 * pack_size <= padded; y += 2 * pack_size) block.template operator()<2>(y);
        for (; y < padded; y += pack_size) block.template operator()<1>(y);
        total = spantree::sum(sum);
    }

    bool possible() const { return total > 0.0; }

private:
    template <class T>
    [[gnu::always_inline]] static Pack load_as_doubles(const T* from) {
        if constexpr (std::is_same_v<T, double>) {
            return Pack::load(from);
        } else {
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

/// Memory for `EdgeLabels`, and for a row.
class LabelScratch {
public:
    double* reserve(int labels) { return memory_.reserve(2 * static_cast<std::size_t>(round_up(labels))); }
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
            const int padded = round_up(sentence.labels);
            EdgeLabels<Registers::width> edge{scratch, scratch + padded, sentence.labels};
            for (int d = 1; d <= sentence.words; ++d) {
                double& total = row.log_total[d - 1];
                row.largest[d - 1] = minus_infinity<double>;
                total = 1.0;
                if (row.mean) row.mean[d - 1] = 0.0;
                if (row.totals) row.totals[d - 1] = 0.0;
                if (d == head) continue;
                if (row.weights) edge.weight = row.weights + static_cast<std::ptrdiff_t>(d - 1) * padded;
                edge.read(sentence.edge(head, d));
                if (row.totals) row.totals[d - 1] = edge.total;
                row.largest[d - 1] = std::isnan(edge.total) ? edge.total : edge.largest;
                if (edge.total == 0.0) continue;
                total = edge.total;
                if (row.mean) row.mean[d - 1] = mean_of<Pack>(edge, values ? values->edge(head, d) : nullptr);
            }
            const int whole = sentence.words / pack_size * pack_size;
            for (int d = 0; d < whole; d += pack_size)
                natural_log(Pack::load(row.log_total + d)).store(row.log_total + d);
            if (whole < sentence.words) {
                alignas(64) double rest[pack_size];
                for (int i = 0; i < pack_size; ++i)
                    rest[i] = whole + i < sentence.words ? row.log_total[whole + i] : 1.0;
                natural_log(Pack::load(rest)).store(rest);
                for (int i = 0; whole + i < sentence.words; ++i) row.log_total[whole + i] = rest[i];
            }
            for (int d = 1; d <= sentence.words; ++d) {
                // The series knows no NaN.
                if (d != head && !(row.largest[d - 1] < std::numeric_limits<double>::infinity()))
                    row.log_total[d - 1] = std::numeric_limits<double>::quiet_NaN();
                // The entropy of labels is log total - sum of w x / total, of which the second part is there.
                if (row.mean && !values && row.largest[d - 1] > minus_infinity<double>)
                    row.mean[d - 1] += row.log_total[d - 1];
            }
        }

    private:
        /// The mean of values by share; without values, of minus s[y] - t. Labels without a share do not count.
        template <class Pack>
        [[gnu::always_inline]] static double mean_of(const EdgeLabels<Registers::width>& edge, const double* values) {
            Pack sum = {};
            for (int y = 0; y < round_up(edge.labels); y += pack_size) {
                const Pack w = Pack::load(edge.weight + y);
                const Pack v = values ? load_labels<Pack>(values, y, edge.labels) : Pack{} - Pack::load(edge.score + y);
                sum += if_less(Pack{}, w, w * v, Pack{});
            }
            return spantree::sum(sum) / edge.total;
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
            const int padded = round_up(sentence.labels);
            EdgeLabels<Registers::width> edge{scratch, scratch + padded, sentence.labels};
            for (int d = 1; d <= sentence.words; ++d, out += stride) {
                const double whole = of_edge[d - 1];
                if (d == head || (whole == 0.0 && !(marginal && marginal[d - 1] > 0.0))) {
                    std::fill_n(out, sentence.labels, Out{0});
                    continue;
                }
                edge.read(sentence.edge(head, d));
                const double inverse = edge.possible() ? 1.0 / edge.total : 0.0;
                if (!marginal) {
                    const Pack factor = Pack::broadcast(whole * inverse);
                    for (int y = 0; y < padded; y += pack_size)
                        (Pack::load(edge.weight + y) * factor).store(edge.weight + y);
                } else {
                    const double log_total = std::log(edge.total);
                    const double* const given = values ? values->edge(head, d) : nullptr;
                    const Pack m = Pack::broadcast(marginal[d - 1]), centre = Pack::broadcast(mean[d - 1]);
                    for (int y = 0; y < padded; y += pack_size) {
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
