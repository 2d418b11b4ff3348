// Random projective trees, exactly from their distribution, top down through the inside chart.
//
// Each choice of a derivation (derivation.hpp) is drawn in proportion to the item's terms. The terms' running sums are kept
// when an item is first opened, so the first tree costs O(n^2) at worst, and later ones, which mostly open the same items, a
// look-up per choice. One uniform number per choice that is one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "../batch/sentence.hpp"
#include "../sample/random.hpp"
#include "../simd/vector.hpp"
#include "derivation.hpp"
#include "inside_outside.hpp"

namespace spantree::projective {

/// Scratch memory; reused from sentence to sentence on one thread.
class ChartSampler {
public:
    /// To be called before the first tree of a sentence.
    void start(int words, Root root) {
        words_ = words;
        root_ = root;
        nodes_ = words + 1 - first_node(root);
        place_.assign(4 * static_cast<std::size_t>(nodes_) * nodes_, nowhere);
        kept_.clear();
    }

    /// `sums`, after run_inside, are those of the sentence; writes heads[0..words].
    template <class Ring>
    void operator()(const InsideOutside<Ring>& sums, RandomStream& random, Heads* heads) {
        heads[0] = no_head;
        choices_.clear();
        for (derivation_.start(words_, root_); !derivation_.done();) {
            const Derivation::Item item = derivation_.item();
            const int count = item.choices();
            const int choice = count == 1 ? 0 : draw(running_sums(sums, item, count), count, random.uniform());
            choices_.push_back(choice);
            derivation_.choose(choice, heads);
        }
    }

    /// That the last tree was derived by.
    const std::vector<int>& choices() const { return choices_; }

    std::size_t bytes() const {
        return place_.capacity() * sizeof(std::int32_t) + (kept_.capacity() + passing_.capacity()) * sizeof(double);
    }

private:
    static constexpr std::int32_t nowhere = -1;
    static constexpr std::size_t most_kept = std::size_t{1} << 20;  // 8 MB: all items of a sentence of 100 words
    static constexpr int step = 8;                                  // sums are looked at so many at a time

    /// An index below count, with probability proportional to the steps of the running sums: one whose step is 0 is never
    /// drawn.
    static int draw(const double* running, int count, double uniform) {
        const double target = uniform * running[count - 1];
        std::int64_t below = 0;
        if (count > 8 * step) {  // halving then takes fewer steps, though each waits for the one before
            below = std::upper_bound(running, running + count, target) - running;
        } else {
            constexpr int lanes = 2;  // that every machine has
            Vector<std::int64_t, lanes> minus_below{};
            for (int u = 0; u < count; u += step)
#pragma GCC unroll 4
                for (int some = u; some < u + step; some += lanes)
                    minus_below += spantree::load<lanes>(running + some) <= target;
            below -= minus_below[0] + minus_below[1];
        }
        return static_cast<int>(std::min<std::int64_t>(below, count - 1));
    }

    /// Behind the last, infinities up to a multiple of `step`.
    template <class Ring>
    const double* running_sums(const InsideOutside<Ring>& sums, const Derivation::Item& item, int count) {
        std::int32_t& place =
            place_[(static_cast<std::size_t>(item.kind) * nodes_ + item.i) * nodes_ + static_cast<std::size_t>(item.j)];
        if (place != nowhere) return kept_.data() + place;
        const std::size_t size = static_cast<std::size_t>((count + step - 1) / step * step);
        const bool room = kept_.size() + size <= most_kept;
        std::vector<double>& to = room ? kept_ : passing_;
        if (!room) passing_.clear();
        const std::size_t start = to.size();
        if (room) place = static_cast<std::int32_t>(start);
        to.resize(start + size, std::numeric_limits<double>::infinity());
        double* const running = to.data() + start;
        double sum = 0.0;
        if (item.kind == Derivation::Kind::root) {
            for (int node = 0; node < count; ++node) running[node] = sum += sums.root_marginal(node);
        } else {
            const auto terms = terms_of(sums.inside(), item);
            const auto& table = item.kind == Derivation::Kind::right  ? sums.inside().right
                                : item.kind == Derivation::Kind::left ? sums.inside().left
                                                                      : sums.inside().link;
            const typename Ring::Scalar::Shares share(terms, sums.plane(), sums.get(table, item.i, item.j));
            for (int u = 0; u < count; ++u) running[u] = sum += share(u)[0];
        }
        return running;
    }

    int words_ = 0, nodes_ = 0;
    Root root_ = Root::single;
    Derivation derivation_;
    std::vector<int> choices_;
    std::vector<std::int32_t> place_;  // by item: where its running sums are kept
    std::vector<double> kept_, passing_;
};

}  // namespace spantree::projective
