// E[product of signed values over the tree's edges] = Z(w v) / Z(w), where Z(w v) is the determinant of a Laplacian
// with weights of either sign.
//
// Signed weights cancel by nature, so no order of summation is free of subtraction. The determinant is taken by
// elimination with partial pivoting in pairs of doubles (32 digits), columns scaled by their largest |w v|: the
// error is about 1e-30 times the conditioning of the Laplacian, relative to E[product of |values|]. With one root
// allowed, the first row holds the root weights (Koo et al. 2007). The gradient needs the inverse: d Z / d log w[h, d]
// = w v (B[d, d] - B[d, h]) Z. O(n^3).
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "../number/double_double.hpp"
#include "special.hpp"

namespace spantree {

class SignedProduct {
public:
    /// Factorises the Laplacian of w v.
    SignedProduct(const EdgeTable& scores, const EdgeTable& values, Root root, StopSignal& stop)
        : n_(scores.words), weights_(static_cast<std::size_t>(n_ + 1) * (n_ + 1)) {
        for (int d = 1; d <= n_; ++d) scale_column(scores, values, d);
        const auto w = [&](int h, int d) -> DoubleDouble {
            return weights_[static_cast<std::size_t>(h) * (n_ + 1) + d];
        };
        laplacian_.assign(static_cast<std::size_t>(n_) * n_, DoubleDouble{});
        for (int d = 1; d <= n_; ++d) {
            DoubleDouble total = root == Root::multi ? w(0, d) : DoubleDouble{};
            for (int h = 1; h <= n_; ++h) {
                total += w(h, d);
                at(laplacian_, h - 1, d - 1) -= w(h, d);
            }
            at(laplacian_, d - 1, d - 1) += total;
        }
        if (root == Root::single)
            for (int d = 1; d <= n_; ++d) at(laplacian_, 0, d - 1) = w(0, d);
        factorise(stop);
    }

    int sign() const { return sign_; }
    double log_magnitude() const { return log_magnitude_; }

    /// d log |Z(w v)| / d score[h, d]. Z(w v) must not be 0.
    EdgeTable gradient(Root root, StopSignal& stop) const {
        const std::vector<DoubleDouble> inverse = invert(stop);
        const auto b = [&](int d, int h) { return inverse[static_cast<std::size_t>(d - 1) * n_ + h - 1]; };
        EdgeTable result(n_);
        for (int d = 1; d <= n_; ++d)
            for (int h = 0; h <= n_; ++h) {
                if (h == d) continue;
                const bool first_row_is_root = root == Root::single;
                DoubleDouble from_dep = first_row_is_root && d == 1 ? DoubleDouble{} : b(d, d);
                DoubleDouble from_head = h == 0 || (first_row_is_root && h == 1) ? DoubleDouble{} : b(d, h);
                if (first_row_is_root && h == 0) from_dep = b(d, 1);
                result(h, d) =
                    static_cast<double>(weights_[static_cast<std::size_t>(h) * (n_ + 1) + d] * (from_dep - from_head));
            }
        return result;
    }

private:
    DoubleDouble& at(std::vector<DoubleDouble>& m, int i, int j) const {
        return m[static_cast<std::size_t>(i) * n_ + j];
    }

    void scale_column(const EdgeTable& scores, const EdgeTable& values, int d) {
        double largest = minus_infinity<double>;
        const auto log_weight = [&](int h) {
            return h == d || values(h, d) == 0.0 ? minus_infinity<double>
                                                 : scores(h, d) + std::log(std::fabs(values(h, d)));
        };
        for (int h = 0; h <= n_; ++h) largest = std::max(largest, log_weight(h));
        if (largest == minus_infinity<double>) return;
        for (int h = 0; h <= n_; ++h)
            weights_[static_cast<std::size_t>(h) * (n_ + 1) + d] =
                std::copysign(std::exp(log_weight(h) - largest), values(h, d));
        log_magnitude_ += largest;
    }

    void factorise(StopSignal& stop) {
        lu_ = laplacian_;
        order_.resize(n_);
        for (int i = 0; i < n_; ++i) order_[i] = i;
        for (int k = 0; k < n_; ++k) {
            stop.check();
            int best = k;
            for (int i = k + 1; i < n_; ++i)
                if (at(lu_, best, k).magnitude() < at(lu_, i, k).magnitude()) best = i;
            if (best != k) {
                for (int j = 0; j < n_; ++j) std::swap(at(lu_, k, j), at(lu_, best, j));
                std::swap(order_[k], order_[best]);
                sign_ = -sign_;
            }
            const DoubleDouble pivot = at(lu_, k, k);
            if (pivot.is_zero()) {
                sign_ = 0;
                log_magnitude_ = minus_infinity<double>;
                return;
            }
            if (pivot.high < 0.0) sign_ = -sign_;
            log_magnitude_ += std::log(pivot.magnitude().high);
            for (int i = k + 1; i < n_; ++i) {
                const DoubleDouble factor = at(lu_, i, k) /= pivot;
                if (factor.is_zero()) continue;
                for (int j = k + 1; j < n_; ++j) at(lu_, i, j) -= factor * at(lu_, k, j);
            }
        }
    }

    std::vector<DoubleDouble> invert(StopSignal& stop) const {
        std::vector<DoubleDouble> inverse(static_cast<std::size_t>(n_) * n_);
        std::vector<DoubleDouble> column(n_);
        const auto lu = [&](int i, int j) { return lu_[static_cast<std::size_t>(i) * n_ + j]; };
        for (int c = 0; c < n_; ++c) {
            stop.check();
            for (int i = 0; i < n_; ++i) {
                column[i] = order_[i] == c ? 1.0 : 0.0;
                for (int j = 0; j < i; ++j) column[i] -= lu(i, j) * column[j];
            }
            for (int i = n_ - 1; i >= 0; --i) {
                for (int j = i + 1; j < n_; ++j) column[i] -= lu(i, j) * column[j];
                column[i] /= lu(i, i);
                inverse[static_cast<std::size_t>(i) * n_ + c] = column[i];
            }
        }
        return inverse;
    }

    int n_;
    std::vector<double> weights_;
    std::vector<DoubleDouble> laplacian_, lu_;
    std::vector<int> order_;
    int sign_ = 1;
    double log_magnitude_ = 0.0;
};

}  // namespace spantree
