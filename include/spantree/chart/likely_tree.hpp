// A tree that has most of the mass, if any tree has: each choice of its derivation (derivation.hpp) is the likeliest, given
// those before. O(n^2) at worst.
//
// A tree with a probability above 1/2 is the one: it is in every choice's likeliest term.
#pragma once

#include <vector>

#include "../batch/sentence.hpp"
#include "derivation.hpp"
#include "inside_outside.hpp"

namespace spantree::projective {

/// Scratch memory; reused from sentence to sentence on one thread.
class LikelyTree {
public:
    /// `sums`, after run_inside, are those of a sentence that has a tree. Valid until the next call: heads by word, [0] means
    /// nothing.
    template <class Ring>
    const std::vector<Heads>& find(const InsideOutside<Ring>& sums) {
        heads_.resize(static_cast<std::size_t>(sums.words()) + 1);
        for (derivation_.start(sums.words(), sums.root()); !derivation_.done();) {
            const Derivation::Item item = derivation_.item();
            derivation_.choose(item.choices() == 1 ? 0 : likeliest(sums, item), heads_.data());
        }
        return heads_;
    }

    const std::vector<Heads>& heads() const { return heads_; }

private:
    template <class Ring>
    static int likeliest(const InsideOutside<Ring>& sums, const Derivation::Item& item) {
        using Scalar = typename Ring::Scalar;
        if (item.kind == Derivation::Kind::root)
            return largest<Ring>(item.choices(), [&](int node) { return sums.rooted(node); });
        const auto terms = terms_of(sums.inside(), item);
        return largest<Ring>(terms.count, [&](int u) {
            return Scalar::times(Scalar::load(terms.a + u * terms.step_a, sums.plane()),
                                 Scalar::load(terms.b + u * terms.step_b, sums.plane()));
        });
    }

    /// The first of the largest.
    template <class Ring, class Number>
    static int largest(int count, Number number) {
        int best = 0;
        auto most = number(0);
        for (int u = 1; u < count; ++u) {
            const auto x = number(u);
            const bool more = Ring::Scalar::is_less(most, x);
            best = more ? u : best;
            most = more ? x : most;
        }
        return best;
    }

    Derivation derivation_;
    std::vector<Heads> heads_;
};

}  // namespace spantree::projective
