// The divide and conquer of solve.hpp on any kind of nonnegative numbers, one sentence, plain loops.
//
// For numbers with their own exponent (Extended) and for numbers that carry a derivative (Sloped): there, accuracy is
// worth more than speed. Same recursion, about 1.3 n^3 operations, depth log2 n.
#pragma once

#include <vector>

#include "elimination.hpp"

namespace spantree {

template <class Number>
class CarefulSolve {
public:
    /// a[i * n + l]: step from word i to word l; root[i]: step to ROOT. All words can reach ROOT, and, with one root
    /// allowed, each other.
    CarefulSolve(std::vector<Number> a, std::vector<Number> root, bool several_roots)
        : n_(static_cast<int>(root.size())), several_roots_(several_roots), escape_(a.size()) {
        solve({std::move(a), std::move(root)}, 0, true);
    }

    /// P(walk from i reaches ROOT before j).
    const Number& escape(int i, int j) const { return escape_[i * n_ + j]; }
    const Number& partition() const { return partition_; }

private:
    struct Chain {
        std::vector<Number> a, root;
        int size() const { return static_cast<int>(root.size()); }
        Number& at(int i, int l) { return a[i * size() + l]; }
    };

    void solve(Chain chain, int offset, bool first_chain) {
        const int m = chain.size();
        if (m == 1) {
            if (first_chain) partition_ = first_chain_started_ ? partition_ * chain.root[0] : chain.root[0];
            return;
        }
        branch(chain, {0, m / 2}, {m / 2, m}, offset, first_chain);
        branch(std::move(chain), {m / 2, m}, {0, m / 2}, offset, false);
    }

    void branch(Chain chain, Range keep, Range drop, int offset, bool in_product) {
        const DropOrder order(keep, drop);
        for (int t = 0; t < drop.size(); ++t) {
            const int k = order.first + t * order.step;
            const Range live = order.step < 0 ? Range{keep.begin, k} : Range{k + 1, keep.end};
            Number pivot = several_roots_ ? chain.root[k] : Number{};
            for (int l = live.begin; l < live.end; ++l) pivot += chain.at(k, l);
            if (in_product) {
                partition_ = first_chain_started_ ? partition_ * pivot : pivot;
                first_chain_started_ = true;
            }
            for (int l = live.begin; l < live.end; ++l) chain.at(k, l) = chain.at(k, l) / pivot;
            chain.root[k] = chain.root[k] / pivot;
            for (int i = live.begin; i < live.end; ++i) {
                const Number c = chain.at(i, k);
                if (!c) continue;
                for (int l = live.begin; l < live.end; ++l)
                    if (l != i && chain.at(k, l)) chain.at(i, l) += c * chain.at(k, l);
                chain.root[i] += c * chain.root[k];
            }
        }
        Chain kept;
        kept.root.assign(chain.root.begin() + keep.begin, chain.root.begin() + keep.end);
        for (int i = keep.begin; i < keep.end; ++i)
            for (int l = keep.begin; l < keep.end; ++l) kept.a.push_back(chain.at(i, l));
        solve(std::move(kept), offset + keep.begin, in_product);

        for (int t = drop.size() - 1; t >= 0; --t) {
            const int k = order.first + t * order.step;
            const Range live = order.step < 0 ? Range{keep.begin, k} : Range{k + 1, keep.end};
            for (int j = keep.begin; j < keep.end; ++j) {
                Number x = chain.root[k];
                for (int l = live.begin; l < live.end; ++l)
                    if (l != j && chain.at(k, l)) x += chain.at(k, l) * escape_[(offset + l) * n_ + offset + j];
                escape_[(offset + k) * n_ + offset + j] = x;
            }
        }
    }

    int n_;
    bool several_roots_;
    bool first_chain_started_ = false;
    std::vector<Number> escape_;
    Number partition_{};
};

}  // namespace spantree
