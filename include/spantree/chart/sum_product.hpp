// The semirings of weights: (+, *) over nonnegative numbers, so that every result has a small relative error.
//
//   Linear   doubles. For sentences whose sums stay within a double's range (inside_outside.hpp says when).
//   Ranged   numbers with an exponent of their own (number/extended.hpp). A sum first finds its largest exponent.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

#include "../batch/sentence.hpp"
#include "../number/extended.hpp"
#include "../simd/vector.hpp"
#include "chart.hpp"

namespace spantree::projective {

namespace details {

template <int Lanes>
using Reals = Vector<double, Lanes>;
/// The sum of term(u) over u < count, in two chains so that one need not wait for the other.
template <int Lanes, class Term>
[[gnu::always_inline]] inline Reals<Lanes> sum(int count, Term term) {
    Reals<Lanes> even = {}, odd = {};
    int u = 0;
    for (; u + 1 < count; u += 2) {
        even += term(u);
        odd += term(u + 1);
    }
    if (u < count) even += term(u);
    return even + odd;
}

/// Factor a's slope plus factor b's of term u, in plane `which`.
template <int Lanes>
[[gnu::always_inline]] inline Reals<Lanes> slope_of_product(const Terms<double>& slopes, std::ptrdiff_t plane, int u,
                                                            int which = 0) {
    return spantree::load<Lanes>(slopes.a + u * slopes.step_a + which * plane) +
           spantree::load<Lanes>(slopes.b + u * slopes.step_b + which * plane);
}

/// Log-weights lie between this and the log of a number of labels: so low that it matters to nobody, and a product of as
/// many weights as a sentence has words still has an exponent far above that of zero.
inline constexpr double lowest_log_weight = -1e290;

/// Finite, as SplitExp wants it. NaN too.
template <int Lanes>
[[gnu::always_inline]] inline Reals<Lanes> within_range(Reals<Lanes> x) {
    const Reals<Lanes> lowest = Reals<Lanes>{} + lowest_log_weight;
    return x > lowest ? x : lowest;
}

}  // namespace details

template <int Lanes = spantree::lanes<double>>
struct Linear {
    using Cell = double;
    using Reals = details::Reals<Lanes>;
    using Block = Reals;
    using Scalar = Linear<1>;
    template <int width>
    using In = Linear<width>;
    static constexpr int parts = 1;
    static constexpr int lanes = Lanes;

    static Cell zero(int) { return 0.0; }
    static Cell one(int) { return 1.0; }

    static Block load(const Cell* from, std::ptrdiff_t) { return spantree::load<Lanes>(from); }
    static void store(Cell* to, std::ptrdiff_t, const Block& x) { spantree::store(to, x); }
    static Block times(const Block& a, const Block& b) { return a * b; }
    static Block plus(const Block& a, const Block& b) { return a + b; }
    static Block spread(const auto& x) { return Reals{} + x[0]; }
    /// Lane by lane a / b as doubles, for a <= b; 0 where both are 0.
    static Reals ratio(const Block& a, const Block& b) { return a / (b > Reals{} ? b : Reals{} + 1.0); }
    /// exp(x); x may be -inf.
    static Block exp(const Reals& x) {
        const SplitExp<Reals> y(details::within_range<Lanes>(x));
        return x > Reals{} + minus_infinity<double> ? y.mantissa * power_of_two<Reals>(y.exponent) : Reals{};
    }
    static double log(const Block& x)
        requires(Lanes == 1)
    {
        return std::log(x[0]);
    }
    static double value(const Block& x)
        requires(Lanes == 1)
    {
        return x[0];
    }
    static Block inverse(const Block& x) { return 1.0 / x; }
    static bool is_less(const Block& a, const Block& b)
        requires(Lanes == 1)
    {
        return a[0] < b[0];
    }
    /// 1 / sum; 0 if the sum is 0, or so small that its inverse would not be a number.
    [[gnu::always_inline]] static Reals unit(const Block& sum) {
        return sum > Reals{} + least_divisor ? 1.0 / sum : Reals{};
    }
    /// A term's share of a sum.
    [[gnu::always_inline]] static Reals share(const Block& term, const Block& sum) { return term * unit(sum); }

    static Block sum_of_products(const Terms<Cell>& terms, std::ptrdiff_t) {
        return details::sum<Lanes>(terms.count,
                                   [&](int u) __attribute__((always_inline)) { return product(terms, u); });
    }

    /// A running sum of products, and for each of `count` directions that of the products times the sums of their factors'
    /// slopes.
    template <int count>
    struct Chain {
        Reals sum = {}, of_slopes[count] = {};

        /// slope(k) is the sum of the factors' slopes.
        template <class Slope>
        [[gnu::always_inline]] void add(const Reals& product, Slope slope) {
            sum += product;
#pragma GCC unroll 4
            for (int k = 0; k < count; ++k) of_slopes[k] += product * slope(k);
        }
    };

    /// Terms go to one and the other in turns, as in sum_of_products, so that one need not wait for the other.
    template <int count>
    struct TwoChains {
        static constexpr int numbers = 2 * (1 + count) * Lanes;
        Chain<count> even, odd;

        [[gnu::always_inline]] void add(const Terms<Cell>& terms, const Terms<double>& slopes, std::ptrdiff_t plane) {
            const auto add_to = [&](Chain<count>& chain, int u) __attribute__((always_inline)) {
                chain.add(product(terms, u), [&](int k) __attribute__((always_inline)) {
                    return details::slope_of_product<Lanes>(slopes, plane, u, k);
                });
            };
            int u = 0;
            for (; u + 1 < terms.count; u += 2) {
                add_to(even, u);
                add_to(odd, u + 1);
            }
            if (u < terms.count) add_to(even, u);
        }

        [[gnu::always_inline]] Block sum() const { return even.sum + odd.sum; }
        [[gnu::always_inline]] Reals of_slope(int k) const { return even.of_slopes[k] + odd.of_slopes[k]; }

        /// Calls visit(number, where it is to be kept).
        template <class Visit>
        [[gnu::always_inline]] void for_each(double* memory, Visit visit) {
            for (Chain<count>* chain : {&even, &odd}) {
                visit(chain->sum, memory);
                memory += Lanes;
                for (int k = 0; k < count; ++k, memory += Lanes) visit(chain->of_slopes[k], memory);
            }
        }
    };

    /// shares(u) * unit() is what term u contributes to a sum: nonnegative numbers that add up to 1. Or to 0, if the sum
    /// is 0, or so small that its inverse would not be a number.
    class Shares {
    public:
        Shares(const Terms<Cell>& terms, std::ptrdiff_t, const Block& sum) : terms_(terms), unit_(Linear::unit(sum)) {}
        [[gnu::always_inline]] Reals operator()(int u) const { return product(terms_, u); }
        Reals unit() const { return unit_; }

    private:
        const Terms<Cell>& terms_;
        Reals unit_;
    };

private:
    static constexpr double least_divisor = 0x1p-1000;

    [[gnu::always_inline]] static Block product(const Terms<Cell>& terms, int u) {
        return spantree::load<Lanes>(terms.a + u * terms.step_a) * spantree::load<Lanes>(terms.b + u * terms.step_b);
    }
};

template <int Lanes = spantree::lanes<double>>
struct Ranged {
    using Cell = double;
    using Reals = details::Reals<Lanes>;
    using Block = ExtendedBlock<Lanes>;
    using Scalar = Ranged<1>;
    template <int width>
    using In = Ranged<width>;
    static constexpr int parts = 2;
    static constexpr int lanes = Lanes;

    static Cell zero(int part) { return part == 0 ? 0.0 : Block::exponent_of_zero; }
    static Cell one(int part) { return part == 0 ? 1.0 : 0.0; }

    static Block load(const Cell* from, std::ptrdiff_t plane) {
        return {spantree::load<Lanes>(from), spantree::load<Lanes>(from + plane)};
    }
    static void store(Cell* to, std::ptrdiff_t plane, const Block& x) {
        spantree::store(to, x.mantissa);
        spantree::store(to + plane, x.exponent);
    }
    static Block times(const Block& a, const Block& b) { return a * b; }
    static Block plus(const Block& a, const Block& b) { return a + b; }
    static Block spread(const auto& x) { return {Reals{} + x.mantissa[0], Reals{} + x.exponent[0]}; }
    static Reals ratio(const Block& a, const Block& b) {
        return a.mantissa / (b.mantissa > Reals{} ? b.mantissa : Reals{} + 1.0) * power(a.exponent - b.exponent);
    }
    static Block exp(const Reals& x) {
        const SplitExp<Reals> y(details::within_range<Lanes>(x));
        const auto present = x > Reals{} + minus_infinity<double>;
        return Block(present ? y.mantissa : Reals{}, y.exponent).normalised();
    }
    static double log(const Block& x)
        requires(Lanes == 1)
    {
        return Extended(x.mantissa[0], x.exponent[0]).log();
    }
    static double value(const Block& x)
        requires(Lanes == 1)
    {
        return (x.mantissa * power(x.exponent))[0];
    }
    static Block inverse(const Block& x) { return Block(1.0 / x.mantissa, -x.exponent).normalised(); }
    static bool is_less(const Block& a, const Block& b)
        requires(Lanes == 1)
    {
        return a.exponent[0] < b.exponent[0] || (a.exponent[0] == b.exponent[0] && a.mantissa[0] < b.mantissa[0]);
    }
    [[gnu::always_inline]] static Reals share(const Block& term, const Block& sum) { return ratio(term, sum); }

    static Block sum_of_products(const Terms<Cell>& terms, std::ptrdiff_t plane) {
        Reals top = Reals{} + 2 * Block::exponent_of_zero;
        for (int u = 0; u < terms.count; ++u) {
            const Reals e = exponent(terms, plane, u);
            top = e > top ? e : top;
        }
        const Reals sum = details::sum<Lanes>(terms.count, [&](int u) __attribute__((always_inline)) {
            return mantissa(terms, u) * power(exponent(terms, plane, u) - top);
        });
        return Block(sum, top).normalised();
    }

    class Shares {
    public:
        Shares(const Terms<Cell>& terms, std::ptrdiff_t plane, const Block& sum)
            : terms_(terms),
              plane_(plane),
              unit_(1.0 / (sum.mantissa > Reals{} ? sum.mantissa : Reals{} + 1.0)),
              top_(sum.exponent) {}
        [[gnu::always_inline]] Reals operator()(int u) const {
            return mantissa(terms_, u) * power(exponent(terms_, plane_, u) - top_);
        }
        Reals unit() const { return unit_; }

    private:
        const Terms<Cell>& terms_;
        std::ptrdiff_t plane_;
        Reals unit_, top_;
    };

private:
    static Reals power(const Reals& k) { return power_of_two_anywhere<Reals>(k); }
    [[gnu::always_inline]] static Reals mantissa(const Terms<Cell>& terms, int u) {
        return spantree::load<Lanes>(terms.a + u * terms.step_a) * spantree::load<Lanes>(terms.b + u * terms.step_b);
    }
    [[gnu::always_inline]] static Reals exponent(const Terms<Cell>& terms, std::ptrdiff_t plane, int u) {
        return spantree::load<Lanes>(terms.a + u * terms.step_a + plane) +
               spantree::load<Lanes>(terms.b + u * terms.step_b + plane);
    }
};

}  // namespace spantree::projective
