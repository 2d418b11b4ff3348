// The double nearest to a sum of doubles, in exact real arithmetic: independent of their order.
//
// Every addition is followed by its own rounding error, which is a double (Knuth's TwoSum). The errors are added up in
// plain arithmetic. That sum of errors is off by less than `slack`, and mostly both ends of its range lead to the same
// double. Where they do not, nearly always the sum lies halfway between two doubles, and the errors, of like size, add up
// without rounding: one last addition then rounds. Else, or where a partial sum overflows, the terms are added again as wide
// integers.
#pragma once

#include <cmath>
#include <limits>

#include "exact_sum.hpp"
#include "wide.hpp"

namespace spantree {

namespace details {

template <class Term>
double sum_in_integers(int count, Term term) {
    Wide<limbs_of_any_sum> sum;
    for (int i = 0; i < count; ++i) {
        const double x = term(i);
        if (!std::isfinite(x)) return -std::numeric_limits<double>::infinity();
        sum = sum + Wide<limbs_of_any_sum>::of(x, BitRange::lowest);
    }
    return sum.value(BitRange::lowest);
}

/// The same, unless the sum of rounding errors is rounded: then NaN.
template <class Term>
double sum_with_exact_errors(int count, Term term) {
    double sum = 0.0, error = 0.0, beyond = 0.0;
    for (int i = 0; i < count; ++i) {
        const TwoPart<double> total = exact_sum(sum, term(i)), of_errors = exact_sum(error, total.low);
        sum = total.high;
        error = of_errors.high;
        beyond += std::fabs(of_errors.low);
    }
    const bool exact = beyond == 0.0 && std::isfinite(sum);
    return exact ? sum + error : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace details

/// Of term(0) + ... + term(count - 1), each finite or -inf. Infinite beyond the largest double, never NaN.
template <class Term>
double rounded_sum(int count, Term term) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double sum = 0.0, error = 0.0, size_of_errors = 0.0;
    for (int i = 0; i < count; ++i) {
        const double x = term(i);
        if (x == -infinity) return x;
        const double total = sum + x, added = total - sum;
        const double rounded_off = (sum - (total - added)) + (x - added);
        error += rounded_off;
        size_of_errors += std::fabs(rounded_off);
        sum = total;
    }
    // Each of `count` additions to `error` rounds by at most 2^-53 of the errors so far, and so do the two additions
    // around it here; the rest is room for the rounding of `slack` itself.
    const double slack = size_of_errors * (static_cast<double>(count) + 4.0) * 0x1p-52;
    const double low = sum + (error - slack), high = sum + (error + slack);
    if (low == high) return low;
    const double rounded = details::sum_with_exact_errors(count, term);
    return std::isnan(rounded) ? details::sum_in_integers(count, term) : rounded;
}

}  // namespace spantree
