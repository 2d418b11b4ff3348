// The walk from words to their heads, watched only while it stands in an interval of words: the step of the samplers'
// divide and conquer.
//
// For words S = [begin, end), a matrix with a row for every word x of the sentence and a column for every place where
// the walk can be seen next (a word of S, ROOT at order 0, ROOT at order 1):
//     x outside S:  the probability that the walk standing at x is seen there first;
//     x in S:       the weight of being seen there next after x has been left; what stands in column x means nothing.
// ROOT at order 1 is infinitesimal: with one root allowed, edges from ROOT start there, else at order 0.
//
// To watch only `keep`, one half of S, the other half is eliminated by Grassmann, Taksar and Heyman's way, which only
// adds, multiplies and divides nonnegative numbers. Where the other half's heads are decided already, its rows are
// first replaced by those of the heads: walk/elimination.hpp, whose weights stay what they are, cannot do that. A word
// without a way out at order 0 goes to ROOT for certain. Cost for |S| = 2h in n words: about h^2 n + h^3 multiply-adds.
//
// Range, in doubles. All numbers are 0 or in [least, most] = [2^-500, 2^500], or the sentence is handed back, to be
// done with Extended numbers. A product of two of them, then, is at least 2^-1000, a normal number with all its digits,
// and at most 2^1000; sums of fewer than 2^23 such products do not overflow. So it is enough to look at each number
// once after it has been summed up and before it is multiplied: no digit is lost, and 0 stays "impossible".
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "../number/extended.hpp"
#include "../simd/dispatch.hpp"
#include "../simd/pack.hpp"

namespace spantree::sampling {

template <class Real>
inline constexpr int lanes_of = std::is_same_v<Real, double> ? pack_size : 1;

template <class Real>
constexpr std::ptrdiff_t round_to_lanes(std::ptrdiff_t count) {
    return (count + lanes_of<Real> - 1) / lanes_of<Real> * lanes_of<Real>;
}

template <class Real>
struct WatchedWalk {
    int begin = 0, end = 0;
    Real* data = nullptr;
    std::ptrdiff_t stride = 0;  // from one column to the next; rows of a column lie next to each other

    int size() const { return end - begin; }
    Real* column(int c) const { return data + c * stride; }
    Real* to_word(int word) const { return column(word - begin); }
    Real* to_root(int order) const { return column(size() + order); }
    static std::size_t columns(int words) { return static_cast<std::size_t>(words) + 2; }
};

inline constexpr double least_in_range = 0x1p-500, most_in_range = 0x1p500;

/// Of positive numbers.
inline bool is_in_range(double x) { return x >= least_in_range && x <= most_in_range; }
inline bool is_in_range(Extended) { return true; }

namespace details {

/// Numbers that are worked on at once: one, or a pack of doubles.
template <class Real, class Registers>
struct AtOnce {
    using Numbers = Real;
    [[gnu::always_inline]] static Numbers load(const Real* at) { return *at; }
    [[gnu::always_inline]] static void store(Real* at, const Numbers& x) { *at = x; }
    [[gnu::always_inline]] static Real sum(const Numbers& x) { return x; }

    /// Says afterwards whether all numbers that were looked at were in range.
    struct Watch {
        void look(const Numbers&) {}
        bool none_out_of_range() const { return true; }
    };
};

template <class Registers>
struct AtOnce<double, Registers> {
    using Numbers = PackOf<Registers::width>;
    [[gnu::always_inline]] static Numbers load(const double* at) { return Numbers::load(at); }
    [[gnu::always_inline]] static void store(double* at, const Numbers& x) { x.store(at); }
    [[gnu::always_inline]] static double sum(const Numbers& x) { return spantree::sum(x); }

    class Watch {
    public:
        /// The highest bit of a lane is set where x is neither 0 nor in [least_in_range, most_in_range]: from the bits of
        /// numbers, which are ordered like numbers that are not negative (NaN is beyond all of them). No comparison: its
        /// answers would be taken apart lane by lane.
        [[gnu::always_inline]] void look(const Numbers& x) {
            constexpr auto least = std::bit_cast<std::uint64_t>(least_in_range),
                           most = std::bit_cast<std::uint64_t>(most_in_range);
#pragma GCC unroll 4
            for (int i = 0; i < Numbers::parts; ++i) {
                const Bits bits = reinterpret_cast<Bits>(x.part[i]);
                const Bits negative = bits, too_large = most - bits, too_small = (bits - least) & ~(bits - 1);
                worst_[i] |= negative | too_large | too_small;
            }
        }
        [[gnu::always_inline]] bool none_out_of_range() const {
            std::uint64_t any = 0;
            for (int i = 0; i < Numbers::parts; ++i)
                for (int lane = 0; lane < Registers::width; ++lane) any |= worst_[i][lane];
            return any >> 63 == 0;
        }

    private:
        using Bits = Vector<std::uint64_t, Registers::width>;
        Bits worst_[Numbers::parts] = {};
    };
};

/// Rows of the words to be eliminated: columns are those words, then the kept ones, then ROOT at both orders.
template <class Real>
struct DropRows {
    Real* data;
    std::ptrdiff_t stride;
    int count, kept;

    Real* row(int i) const { return data + i * stride; }
    int columns() const { return count + kept + 2; }
};

/// Turns rows into the probabilities of where, among the kept words and ROOT, the walk is seen first. Returns whether
/// all numbers stayed in range.
template <class Real>
struct FirstPassage {
    template <class Registers>
    struct Kernel {
        using At = AtOnce<Real, Registers>;
        static constexpr int step = lanes_of<Real>;

        static bool run(const DropRows<Real>& rows) {
            const std::ptrdiff_t width = rows.stride;
            const int root_0 = rows.count + rows.kept, root_1 = root_0 + 1;
            typename At::Watch watch;
            bool in_range = true;
            for (int k = rows.count - 1; k >= 0; --k) {
                Real* const pivot_row = rows.row(k);
                pivot_row[k] = Real{};
                look_at(watch, pivot_row, width);
                const Real at_order_1 = pivot_row[root_1];
                pivot_row[root_1] = Real{};
                const Real pivot = sum_of(pivot_row, width);
                if (is_positive(pivot)) {
                    pivot_row[root_1] = at_order_1;
                    const Real inverse = Real(1.0) / pivot;
                    for (std::ptrdiff_t c = 0; c < width; c += step)
                        At::store(pivot_row + c, At::load(pivot_row + c) * inverse);
                    look_at(watch, pivot_row, width);
                } else {
                    pivot_row[root_0] = Real(1.0);
                }
                for (int i = 0; i < k; ++i) {
                    const Real c = rows.row(i)[k];
                    if (!is_positive(c)) continue;
                    in_range &= is_in_range(c);
                    add_multiple(c, pivot_row, rows.row(i), width);
                    rows.row(i)[k] = Real{};
                }
            }
            for (int k = 1; k < rows.count; ++k) {
                for (int l = 0; l < k; ++l) {
                    const Real c = rows.row(k)[l];
                    rows.row(k)[l] = Real{};
                    if (is_positive(c)) add_multiple(c, rows.row(l), rows.row(k), width);
                }
                look_at(watch, rows.row(k), width);
            }
            return in_range & watch.none_out_of_range();
        }

    private:
        // Of x[0..count), count a multiple of the lanes.

        [[gnu::always_inline]] static void look_at(typename At::Watch& watch, const Real* x, std::ptrdiff_t count) {
            for (std::ptrdiff_t i = 0; i < count; i += step) watch.look(At::load(x + i));
        }
        [[gnu::always_inline]] static Real sum_of(const Real* x, std::ptrdiff_t count) {
            typename At::Numbers total{};
            for (std::ptrdiff_t i = 0; i < count; i += step) total += At::load(x + i);
            return At::sum(total);
        }
        /// y += a * x
        [[gnu::always_inline]] static void add_multiple(Real a, const Real* x, Real* y, std::ptrdiff_t count) {
            for (std::ptrdiff_t i = 0; i < count; i += step) At::store(y + i, At::load(y + i) + At::load(x + i) * a);
        }
    };
};

/// to(x, c) = from(x, kept c) + sum over dropped d of from(x, d) * passage(d, c), for rows x in [first, last),
/// multiples of the lanes. Returns whether all numbers stayed in range.
template <class Real>
struct PassThrough {
    template <class Registers>
    struct Kernel {
        using At = AtOnce<Real, Registers>;
        static constexpr int block =
            4;  // columns at once, so that what dropped words lead to is read a quarter as often

        static bool run(const WatchedWalk<Real>& from, const WatchedWalk<Real>& to, const DropRows<Real>& rows,
                        int drop_begin, std::ptrdiff_t first, std::ptrdiff_t last) {
            const int outputs = rows.kept + 2;
            typename At::Watch watch;
            int c = 0;
            for (; c + block <= outputs; c += block) columns<block>(from, to, rows, drop_begin, first, last, c, watch);
            for (; c < outputs; ++c) columns<1>(from, to, rows, drop_begin, first, last, c, watch);
            return watch.none_out_of_range();
        }

    private:
        template <int count>
        [[gnu::always_inline]] static void columns(const WatchedWalk<Real>& from, const WatchedWalk<Real>& to,
                                                   const DropRows<Real>& rows, int drop_begin, std::ptrdiff_t first,
                                                   std::ptrdiff_t last, int c, typename At::Watch& watch) {
            const Real* source[count];
            Real* target[count];
            for (int u = 0; u < count; ++u) {
                const int column = c + u;
                source[u] = column < rows.kept ? from.to_word(to.begin + column) : from.to_root(column - rows.kept);
                target[u] = to.column(column);
            }
            const Real* const dropped = from.to_word(drop_begin);
            for (std::ptrdiff_t x = first; x < last; x += lanes_of<Real>) {
                const Real* passage = rows.data + rows.count + c;
                typename At::Numbers sum[count];
#pragma GCC unroll 4
                for (int u = 0; u < count; ++u) sum[u] = At::load(source[u] + x);
                for (int d = 0; d < rows.count; ++d, passage += rows.stride) {
                    const auto from_x = At::load(dropped + d * from.stride + x);
#pragma GCC unroll 4
                    for (int u = 0; u < count; ++u) sum[u] += from_x * passage[u];
                }
#pragma GCC unroll 4
                for (int u = 0; u < count; ++u) {
                    At::store(target[u] + x, sum[u]);
                    watch.look(sum[u]);
                }
            }
        }
    };
};

}  // namespace details

/// Watches less of a walk. Holds scratch memory.
template <class Real>
class Narrowing {
public:
    /// Fills `to`, which watches the first or the second half of what `from` watches, in a sentence of `words` words.
    /// With `heads`, the words of the other half are decided: word x's head is heads[x] (0: ROOT, h: word h - 1).
    /// Returns whether all numbers stayed in range.
    bool operator()(const WatchedWalk<Real>& from, const WatchedWalk<Real>& to, int words, const int* heads) {
        const int drop_begin = to.begin == from.begin ? to.end : from.begin;
        const int drop_end = to.begin == from.begin ? from.end : to.begin;
        details::DropRows<Real> rows{nullptr, 0, drop_end - drop_begin, to.size()};
        rows.stride = round_to_lanes<Real>(rows.columns());
        storage_.assign(static_cast<std::size_t>(rows.count) * rows.stride, Real{});
        rows.data = storage_.data();
        if (heads)
            fill_decided(from, to, rows, drop_begin, heads);
        else
            fill(from, to, rows, drop_begin);
        bool in_range = run<details::FirstPassage<Real>>(rows);
        const std::ptrdiff_t before = round_to_lanes<Real>(drop_begin);
        const std::ptrdiff_t after = drop_end / lanes_of<Real> * lanes_of<Real>;
        const std::ptrdiff_t all = round_to_lanes<Real>(words);
        if (after < before) {
            in_range &= run<details::PassThrough<Real>>(from, to, rows, drop_begin, std::ptrdiff_t{0}, all);
        } else {
            if (before > 0)
                in_range &= run<details::PassThrough<Real>>(from, to, rows, drop_begin, std::ptrdiff_t{0}, before);
            if (after < all) in_range &= run<details::PassThrough<Real>>(from, to, rows, drop_begin, after, all);
        }
        for (int c = 0; c < rows.kept + 2; ++c)
            for (int i = 0; i < rows.count; ++i) to.column(c)[drop_begin + i] = rows.row(i)[rows.count + c];
        return in_range;
    }

private:
    template <class Family, class... Args>
    static bool run(const Args&... args) {
        if constexpr (std::is_same_v<Real, double>)
            return dispatch_on_registers<Family>(args...);
        else
            return Family::template Kernel<void>::run(args...);
    }

    static int column_of(const WatchedWalk<Real>& from, const WatchedWalk<Real>& to,
                         const details::DropRows<Real>& rows, int c) {
        if (c >= from.size()) return c;
        const int word = from.begin + c;
        if (word >= to.begin && word < to.end) return rows.count + word - to.begin;
        return to.begin == from.begin ? word - to.end : word - from.begin;
    }

    static void fill(const WatchedWalk<Real>& from, const WatchedWalk<Real>& to, const details::DropRows<Real>& rows,
                     int drop_begin) {
        for (int c = 0; c < from.size() + 2; ++c) {
            Real* const out = rows.data + column_of(from, to, rows, c);
            const Real* const in = from.column(c) + drop_begin;
            for (int i = 0; i < rows.count; ++i) out[i * rows.stride] = in[i];
        }
    }

    static void fill_decided(const WatchedWalk<Real>& from, const WatchedWalk<Real>& to,
                             const details::DropRows<Real>& rows, int drop_begin, const int* heads) {
        for (int i = 0; i < rows.count; ++i) {
            const int word = heads[drop_begin + i] - 1;
            Real* const out = rows.row(i);
            if (word < 0)
                out[rows.count + rows.kept] = Real(1.0);
            else if (word >= from.begin && word < from.end)
                out[column_of(from, to, rows, word - from.begin)] = Real(1.0);
            else
                for (int c = 0; c < from.size() + 2; ++c) out[column_of(from, to, rows, c)] = from.column(c)[word];
        }
    }

    std::vector<Real> storage_;
};

}  // namespace spantree::sampling
