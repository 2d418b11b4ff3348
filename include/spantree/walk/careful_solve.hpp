// The divide and conquer of solve.hpp for one sentence in numbers that have the range and carry derivatives (jet.hpp).
//
// For sentences whose weights leave the range of doubles, and for derivatives whose closed form would cancel: accuracy is
// worth more than speed. Same recursion, by back-substitution: about 1.3 n^3 operations on numbers, vectorised along rows.
// It is not elimination.hpp with another number, since the tiles of registers there are for numbers of which eight fill a pack.
// From the escape probabilities E, with c[j] = sum over heads h of w[h, j] E[h, j] (E[ROOT] = 1),
//
//     marginal[h, j]  =  w[h, j] E[h, j] / c[j]
//
// and its derivatives: along u they are the product of the Hessian of log Z with u, since the marginals are the gradient.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "../batch/aligned_buffer.hpp"
#include "../batch/parallel.hpp"
#include "../number/jet.hpp"
#include "../simd/dispatch.hpp"
#include "elimination.hpp"

namespace spantree {

/// Rows of jets, whole packs; of a walk, the first column is ROOT's.
template <int order>
struct JetRows {
    double* data;
    std::ptrdiff_t stride;  // from a row to the next
    std::ptrdiff_t plane;   // from a part to the next

    double* at(int row, int column) const { return data + row * stride + column; }
    JetRows from(int row, int column) const { return {at(row, column), stride, plane}; }
    JetOf<order> get(int row, int column) const { return JetOf<order>::load(at(row, column), plane); }
    void set(int row, int column, const JetOf<order>& x) const { x.store(at(row, column), plane); }
};

namespace details {

/// Columns of a row in whole packs, counted from the pack of column 0: that pack, ROOT's, and those that columns
/// [begin, end) lie in.
struct Packs {
    int begin, end;
    Packs(int begin_column, int end_column) : begin(begin_column / pack_size * pack_size), end(round_up(end_column)) {}
    template <int width, class Body>
    [[gnu::always_inline]] void each(Body body) const {
        for (int i = 0; begin > 0 && i < pack_size; i += width) body(i);
        for (int i = begin; i < end; i += width) body(i);
    }
};

/// The sum of some columns of a row, one after the other, and then, if wanted, of its first. Only units are found side by side.
template <int width, int order>
[[gnu::always_inline]] inline JetOf<order> sum_of_columns(const JetRows<order>& row, Range columns, bool and_first) {
    JetOf<order> sum;
    double top = sum.exponent[0];
    if (and_first) top = row.get(0, 0).exponent[0];
    for_each_block<width>(columns.size(), [&]<int lanes>(int at) __attribute__((always_inline)) {
        const double* const exponents = row.at(0, columns.begin + at) + row.plane * sum.parts;
        top = std::max(top, largest_lane<double, lanes>(load<lanes>(exponents)));
    });
    sum.exponent[0] = top;
    for (int at = columns.begin / width * width; at < columns.end; at += width) {
        const auto x = Jet<order, width>::load(row.at(0, at), row.plane);
        const auto unit = power_of_two<Vector<double, width>>(x.exponent - spread<width>(top));
        const int first = std::max(columns.begin - at, 0), last = std::min(columns.end - at, width);
        for (int set = 0; set < sum.parts; ++set) {
            alignas(64) double terms[width];
            store(terms, x.part[set] * unit);
            for (int i = first; i < last; ++i) sum.part[set][0] += terms[i];
        }
    }
    if (and_first) {
        const JetOf<order> x = row.get(0, 0);
        for (int set = 0; set < sum.parts; ++set)
            sum.part[set][0] += x.part[set][0] * power_of_two(x.exponent[0] - top);
    }
    return sum;
}

/// Eliminates word k and returns its pivot: its row becomes f = row / pivot, and row i of the live words grows by a[i, k] f.
template <int order>
struct EliminateWord {
    template <class Registers>
    struct Kernel {
        static JetOf<order> run(const JetRows<order>& a, int k, Range live, bool several_roots) {
            constexpr int width = Registers::width;
            using Block = Jet<order, width>;
            const Range columns{1 + live.begin, 1 + live.end};
            const Packs packs(columns.begin, columns.end);
            const JetRows<order> f = a.from(k, 0);
            const JetOf<order> pivot = sum_of_columns<width>(f, columns, several_roots).normalised();
            const Block share = Block::spread(inverse(pivot));
            packs.each<width>([&](int at) __attribute__((always_inline)) {
                (Block::load(f.data + at, a.plane) * share).normalised().store(f.data + at, a.plane);
            });
            for (int i = live.begin; i < live.end; ++i) {
                const JetOf<order> c = a.get(i, 1 + k).normalised();
                if (!is_positive<order>(c)) continue;
                const Block factor = Block::spread(c);
                double* const row = a.at(i, 0);
                packs.each<width>([&](int at) __attribute__((always_inline)) {
                    Block sum = Block::load(row + at, a.plane);
                    sum += factor * Block::load(f.data + at, a.plane);
                    sum.store(row + at, a.plane);
                });
            }
            return pivot;
        }
    };
};

/// `count` columns, whole packs, of f_root + sum over the live words l of f[l] E[l].
template <int order>
struct Substitute {
    template <class Registers>
    struct Kernel {
        static void run(const JetRows<order>& f, Range live, const JetRows<order>& escape, const JetRows<order>& out,
                        int count) {
            using Block = Jet<order, Registers::width>;
            for (int at = 0; at < count; at += Registers::width) {
                Block sum = Block::spread(f.get(0, 0));
                const auto term = [&](int l) __attribute__((always_inline)) {
                    return Block::spread(f.get(0, 1 + l)) * Block::load(escape.at(l, at), escape.plane);
                };
                int l = live.begin;
                for (; l + 4 <= live.end; l += 4) sum.add_all({term(l), term(l + 1), term(l + 2), term(l + 3)});
                for (; l < live.end; ++l) sum += term(l);
                sum.normalised().store(out.data + at, out.plane);
            }
        }
    };
};

/// `count` columns of a row, normalised, to another.
template <int order>
struct NormaliseRow {
    template <class Registers>
    struct Kernel {
        static void run(const JetRows<order>& from, const JetRows<order>& to, int count) {
            constexpr int width = Registers::width;
            int i = 0;
            for (; i + width <= count; i += width)
                Jet<order, width>::load(from.data + i, from.plane).normalised().store(to.data + i, to.plane);
            for (; i < count; ++i) to.set(0, i, from.get(0, i).normalised());
        }
    };
};

/// exp of numbers that are not large, whole packs, to mantissas and exponents.
struct ExpOfRow {
    template <class Registers>
    struct Kernel {
        static void run(const double* x, double* mantissa, double* exponent, int count) {
            constexpr int width = Registers::width;
            using Reals = Vector<double, width>;
            for (int i = 0; i < count; i += width) {
                const Reals given = spantree::load<width>(x + i), lowest = Reals{} - not_large;
                const SplitExp<Reals> y(larger_of(given, lowest));
                const auto value =
                    ExtendedBlock<width>(select<Comparison::less>(given, lowest, Reals{}, y.mantissa), y.exponent)
                        .normalised();
                spantree::store(mantissa + i, value.mantissa);
                spantree::store(exponent + i, value.exponent);
            }
        }
    };
    static constexpr double not_large = 0x1p25;  // SplitExp then has all digits
};

/// From weights w, by head, and E of the words: marginals and their derivatives as doubles, in the place of the weights.
template <int order>
struct FindMarginals {
    template <class Registers>
    struct Kernel {
        static void run(const JetRows<order>& weights, const JetRows<order>& escape, int words) {
            constexpr int width = Registers::width;
            using Block = Jet<order, width>;
            for (int at = 0; at < weights.stride; at += width) {
                Block c;
                for (int h = 0; h <= words; ++h) {
                    Block term = Block::load(weights.at(h, at), weights.plane);
                    if (h > 0) term = (term * Block::load(escape.at(h - 1, at), escape.plane)).normalised();
                    term.store(weights.at(h, at), weights.plane);
                    c.exponent = larger_of(c.exponent, term.exponent);
                }
                for (int h = 0; h <= words; ++h) {
                    const Block term = Block::load(weights.at(h, at), weights.plane);
                    const auto unit = power_of_two<typename Block::Reals>(term.exponent - c.exponent);
                    for (int set = 0; set < c.parts; ++set) c.part[set] += term.part[set] * unit;
                }
                const Block share = inverse(c.normalised());
                for (int h = 0; h <= words; ++h) {
                    typename Block::Reals part[Block::parts];
                    as_doubles(Block::load(weights.at(h, at), weights.plane) * share, part);
                    for (int set = 0; set < c.parts; ++set) store(weights.at(h, at) + set * weights.plane, part[set]);
                }
            }
        }
    };
};

}  // namespace details

/// Scratch for careful solves on one thread. `order`: how many directions to differentiate along.
template <int order>
class CarefulSolve {
public:
    using Number = JetOf<order>;

    /// log_weight(h, d): -inf if impossible, and slope(direction, h, d), for h != d, d = 1..n; of order 2, slope(2, h, d) is
    /// the mixed second derivative. All words can reach ROOT, and, with one root allowed, each other. write(h, d, parts)
    /// receives every marginal and its derivatives: along u and g, and the mixed one. Returns log Z.
    template <class LogWeight, class Slope, class Write>
    double operator()(int words, bool several_roots, StopSignal& stop, LogWeight log_weight, Slope slope, Write write) {
        n_ = words;
        several_roots_ = several_roots;
        partition_ = exp_jet<order>(Extended(1.0), no_slopes);
        const JetRows<order> walk = matrix(walk_, words, words), weights = matrix(weights_, words + 1, words);
        escape_rows_ = zeros(escape_, words);
        weigh(log_weight, slope, weights);
        turn(weights, walk);
        solve(walk, stop);
        dispatch_on_registers<details::FindMarginals<order>>(weights, escape_rows_, words);
        double parts[Number::parts];
        for (int h = 0; h <= words; ++h)
            for (int d = 1; d <= words; ++d)
                if (h != d) {
                    for (int set = 0; set < Number::parts; ++set) parts[set] = weights.at(h, d)[set * weights.plane];
                    write(h, d, parts);
                }
        return log_of<order>(partition_);
    }

    std::size_t bytes() const {
        std::size_t total = walk_.bytes() + weights_.bytes() + escape_.bytes();
        for (const auto& level : levels_) total += level.copy.bytes() + level.kept.bytes();
        return total + row_.bytes();
    }

private:
    static constexpr double no_slopes[Number::parts] = {};

    /// Words offset, ..., offset + count - 1 are live in `walk`, whose rows and columns are theirs.
    struct Frame {
        JetRows<order> walk;
        int offset, count;
        int halves_done;
        bool first_chain;  // all words but the first are eliminated along it
    };

    /// Rows of 1 + words columns and padding.
    static JetRows<order> matrix(AlignedBuffer<double>& memory, int rows, int words) {
        const std::ptrdiff_t stride = round_up(words + 1), plane = stride * rows;
        return {memory.reserve(static_cast<std::size_t>(plane) * Number::planes), stride, plane};
    }
    /// `words` of them, 0 everywhere.
    static JetRows<order> zeros(AlignedBuffer<double>& memory, int words) {
        const JetRows<order> rows = matrix(memory, words, words);
        std::fill_n(rows.data, rows.plane * Number::parts, 0.0);
        std::fill_n(rows.data + rows.plane * Number::parts, rows.plane, Number::exponent_of_zero);
        return rows;
    }

    /// w[h, d] in row h, column d; 0 where h is d, and where there is no word d.
    template <class LogWeight, class Slope>
    void weigh(LogWeight log_weight, Slope slope, const JetRows<order>& weights) {
        constexpr int derivatives = Number::parts - 1;
        double slopes[derivatives + 1] = {};  // (no array of size 0)
        const int columns = static_cast<int>(weights.stride);
        double* const row = row_.reserve(static_cast<std::size_t>(columns));
        for (int h = 0; h <= n_; ++h) {
            double largest = 0.0;
            for (int d = 0; d < columns; ++d) {
                row[d] = d == 0 || d > n_ || h == d ? minus_infinity<double> : log_weight(h, d);
                if (row[d] > minus_infinity<double>) largest = std::max(largest, std::fabs(row[d]));
            }
            double *const mantissa = weights.at(h, 0), *const exponent = mantissa + weights.plane * Number::parts;
            dispatch_on_registers<details::ExpOfRow>(row, mantissa, exponent, columns);
            const bool together = largest < details::ExpOfRow::not_large;
            for (int d = 0; d < columns && !(together && order == 0); ++d) {
                const Extended value = together ? Extended(mantissa[d], exponent[d]) : Extended::exp(row[d]);
                for (int which = 0; which < derivatives && value; ++which) slopes[which] = slope(which, h, d);
                weights.set(h, d, value ? exp_jet<order>(value, slopes) : Number{});
            }
        }
    }

    /// The weights of edges into word d in row d - 1, by head.
    void turn(const JetRows<order>& weights, const JetRows<order>& walk) const {
        for (int set = 0; set < Number::planes; ++set)
            for (int d = 1; d <= n_; ++d) {
                const double* const from = weights.at(0, d) + set * weights.plane;
                double* const to = walk.at(d - 1, 0) + set * walk.plane;
                for (int h = 0; h <= n_; ++h) to[h] = from[h * weights.stride];
                std::fill(to + n_ + 1, to + walk.stride, set < Number::parts ? 0.0 : Number::exponent_of_zero);
            }
    }

    /// Fills escape_rows_: E[i, j] in row i, column 1 + j.
    void solve(const JetRows<order>& walk, StopSignal& stop) {
        std::vector<Frame> stack{{walk, 0, n_, 0, true}};
        while (!stack.empty()) {
            const Frame frame = stack.back();
            if (frame.count == 1) {
                if (frame.first_chain) partition_ = (partition_ * frame.walk.get(0, 0)).normalised();
                stack.pop_back();
                continue;
            }
            stop.check();
            const std::size_t level = stack.size() - 1;
            while (levels_.size() <= level) levels_.emplace_back();
            const Range low{0, frame.count / 2}, high{frame.count / 2, frame.count};
            const JetRows<order> copy = matrix(levels_[level].copy, frame.count, frame.count);
            if (frame.halves_done > 0)
                back_substitute(copy, frame.halves_done == 1 ? low : high, frame.halves_done == 1 ? high : low,
                                frame.offset);
            if (frame.halves_done == 2) {
                stack.pop_back();
                continue;
            }
            const bool to_low = frame.halves_done == 0, first_chain = frame.first_chain && to_low;
            ++stack.back().halves_done;
            std::copy_n(frame.walk.data, copy.plane * Number::planes, copy.data);
            const Range keep = to_low ? low : high;
            eliminate(copy, keep, to_low ? high : low, first_chain);
            const JetRows<order> kept = zeros(levels_[level].kept, keep.size());
            for (int i = 0; i < keep.size(); ++i) {
                kept.set(i, 0, copy.get(keep.begin + i, 0).normalised());
                normalise(copy.from(keep.begin + i, 1 + keep.begin), kept.from(i, 1), keep.size());
            }
            stack.push_back({kept, frame.offset + keep.begin, keep.size(), 0, first_chain});
        }
    }

    static void normalise(const JetRows<order>& from, const JetRows<order>& to, int count) {
        dispatch_on_registers<details::NormaliseRow<order>>(from, to, count);
    }

    /// Rows of dropped words become f. Columns of words that are gone take part, for the packs' sake; nobody reads them.
    void eliminate(const JetRows<order>& a, Range keep, Range drop, bool in_product) {
        const DropOrder order_of(keep, drop);
        for (int t = 0; t < drop.size(); ++t) {
            const int k = order_of.first + t * order_of.step;
            const Range live = order_of.step < 0 ? Range{keep.begin, k} : Range{k + 1, keep.end};
            const Number pivot = dispatch_on_registers<details::EliminateWord<order>>(a, k, live, several_roots_);
            if (in_product) partition_ = (partition_ * pivot).normalised();
        }
    }

    /// E[k, j] = f_root[k] + sum over the words l live after k of f[k, l] E[l, j], for dropped k and kept j.
    void back_substitute(const JetRows<order>& f, Range keep, Range drop, int offset) {
        const DropOrder order_of(keep, drop);
        // Packs at the ends hold columns of other words too: the row is made elsewhere, and only kept words' columns of
        // it go to E.
        const int begin = 1 + offset + keep.begin, first = begin / pack_size * pack_size;
        const int count = round_up(1 + offset + keep.end - first);
        const JetRows<order> row{row_.reserve(static_cast<std::size_t>(count) * Number::planes), 0, count};
        for (int t = drop.size() - 1; t >= 0; --t) {
            const int k = order_of.first + t * order_of.step;
            const Range live = order_of.step < 0 ? Range{keep.begin, k} : Range{k + 1, keep.end};
            dispatch_on_registers<details::Substitute<order>>(f.from(k, 0), live, escape_rows_.from(offset, first), row,
                                                              count);
            for (int set = 0; set < Number::planes; ++set)
                std::copy_n(row.at(0, begin - first) + set * row.plane, keep.size(),
                            escape_rows_.at(offset + k, begin) + set * escape_rows_.plane);
        }
    }

    /// A half's walk before and after elimination.
    struct SavedHalf {
        AlignedBuffer<double> copy, kept;
    };

    int n_ = 0;
    bool several_roots_ = false;
    Number partition_;
    AlignedBuffer<double> walk_, weights_, escape_, row_;
    JetRows<order> escape_rows_{};
    std::vector<SavedHalf> levels_;
};

}  // namespace spantree
