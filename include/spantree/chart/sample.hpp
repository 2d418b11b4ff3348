// Random projective trees, exactly from their distribution, top down through the inside chart.
//
// An item of the chart is a sum over its last step; the step is drawn in proportion to its terms, and then both factors
// are treated alike. O(width) an item: O(n^2) a tree at worst, less where heads are near. One uniform number per step.
#pragma once

#include <vector>

#include "../batch/sentence.hpp"
#include "../sample/random.hpp"
#include "inside_outside.hpp"

namespace spantree::projective {

/// Scratch memory; reused from tree to tree on one thread.
class ChartSampler {
public:
    /// `sums` after run_inside; writes heads[0..words].
    template <class Ring>
    void operator()(const InsideOutside<Ring>& sums, RandomStream& random, Heads* heads) {
        const Chart<Ring>& chart = sums.inside();
        const int first = chart.first(), last = sums.last();
        heads[0] = no_head;
        stack_.clear();
        if (sums.words() == 0) return;
        if (sums.root() == Root::multi) {
            push(Item::right, 0, last);
        } else {
            const int root = draw(random, last + 1, [&](int node) { return sums.root_marginal(node); });
            heads[root + first] = 0;
            push(Item::left, 0, root);
            push(Item::right, root, last);
        }
        while (!stack_.empty()) {
            const auto [item, i, j] = stack_.back();
            stack_.pop_back();
            if (item == Item::right) {
                const int dep = i + 1 + draw_term(sums, chart.right_terms(i, j), chart.right, i, j, random);
                heads[dep + first] = i + first;
                push(Item::link, i, dep);
                push(Item::right, dep, j);
            } else if (item == Item::left) {
                const int dep = i + draw_term(sums, chart.left_terms(i, j), chart.left, i, j, random);
                heads[dep + first] = j + first;
                push(Item::left, i, dep);
                push(Item::link, dep, j);
            } else {
                const int end = i + draw_term(sums, chart.link_terms(i, j), chart.link, i, j, random);
                push(Item::right, i, end);
                push(Item::left, end + 1, j);
            }
        }
    }

private:
    enum class Item { right, left, link };
    struct Span {
        Item item;
        int i, j;
    };

    void push(Item item, int i, int j) {
        if (i < j) stack_.push_back({item, i, j});
    }

    /// An index below count, with probability share(index). Should rounding leave a gap at the end, the last possible
    /// one.
    template <class Share>
    static int draw(RandomStream& random, int count, Share share) {
        double left = random.uniform();
        int possible = 0;
        for (int index = 0; index < count; ++index) {
            const double x = share(index);
            if (x > 0) possible = index;
            left -= x;
            if (left < 0) break;
        }
        return possible;
    }

    template <class Ring>
    static int draw_term(const InsideOutside<Ring>& sums, const Terms<double>& terms, const Table<Ring>& table, int i,
                         int j, RandomStream& random) {
        if (terms.count == 1) return 0;
        const typename Ring::Scalar::Shares share(terms, sums.plane(), sums.get(table, i, j));
        return draw(random, terms.count, [&, unit = share.unit()[0]](int u) { return share(u)[0] * unit; });
    }

    std::vector<Span> stack_;
};

}  // namespace spantree::projective
