// Reals with 106 bits: high + low, |low| at most half a unit in the last place of high (Dekker 1971).
//
// For determinants of matrices with entries of either sign, where digits are lost by nature. A product's error is about
// 2^-104 of it. Only IEEE additions and multiplications, so the same bits on every machine.
#pragma once

#include <cmath>

#include "exact_sum.hpp"

namespace spantree {

struct DoubleDouble {
    double high = 0.0, low = 0.0;

    DoubleDouble() = default;
    DoubleDouble(double x) : high(x) {}
    DoubleDouble(const TwoPart<double>& x) : high(x.high), low(x.low) {}

    TwoPart<double> parts() const { return {high, low}; }
    explicit operator double() const { return high + low; }

    friend DoubleDouble operator-(const DoubleDouble& a) { return TwoPart<double>{-a.high, -a.low}; }
    friend DoubleDouble operator+(const DoubleDouble& a, const DoubleDouble& b) { return a.parts() + b.parts(); }
    friend DoubleDouble operator-(const DoubleDouble& a, const DoubleDouble& b) { return a + -b; }
    friend DoubleDouble operator*(const DoubleDouble& a, const DoubleDouble& b) {
        const TwoPart<double> product = exact_product(a.high, b.high);
        return exact_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
    }
    friend DoubleDouble operator/(const DoubleDouble& a, const DoubleDouble& b) {
        const double first = a.high / b.high;
        const double second = static_cast<double>(a - b * first) / b.high;
        return exact_sum(first, second);
    }
    DoubleDouble& operator+=(const DoubleDouble& b) { return *this = *this + b; }
    DoubleDouble& operator-=(const DoubleDouble& b) { return *this = *this - b; }
    DoubleDouble& operator/=(const DoubleDouble& b) { return *this = *this / b; }

    DoubleDouble magnitude() const { return high < 0.0 ? -*this : *this; }
    friend bool operator<(const DoubleDouble& a, const DoubleDouble& b) {
        return a.high < b.high || (a.high == b.high && a.low < b.low);
    }
    bool is_zero() const { return high == 0.0; }

private:
    /// a b without error: both factors are cut in halves of 26 bits (Veltkamp).
    static TwoPart<double> exact_product(double a, double b) {
        const auto upper_half = [](double x) {
            const double shifted = x * 0x1.0000002p27;
            return shifted - (shifted - x);
        };
        const double product = a * b;
        const double a1 = upper_half(a), a2 = a - a1, b1 = upper_half(b), b2 = b - b1;
        return {product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2};
    }
};

}  // namespace spantree
