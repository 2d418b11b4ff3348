// The best projective tree: Eisner's algorithm (1996), the chart of chart.hpp over (max, +). O(n^3) time, O(n^2)
// memory.
//
// No back-pointers: on the way back the first best term of each item on the tree is looked for again, O(n) an item.
//
// Precision. Sums of doubles are exact enough (a few units in the last place of n times the largest score) unless
// scores of very different size are added: +1e30 drowns what it is added to. Large negative scores, soft masks, only
// drown sums that lose anyway. So doubles decide, unless a score is large and positive or the tree they find uses a
// large score; then the chart is filled again with wide integers, which are exact.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "../batch/parallel.hpp"
#include "../batch/sentence.hpp"
#include "../decode/weight.hpp"
#include "chart.hpp"
#include "max_plus.hpp"

namespace spantree::projective {

/// The first of the best terms.
template <class Weight>
int best_term(const Terms<Weight>& terms) {
    using Ring = MaxPlus<Weight>;
    Weight best = Ring::zero();
    int at = 0;
    for (int u = 0; u < terms.count; ++u) {
        const Weight x = Ring::times(terms.a[u * terms.step_a], terms.b[u * terms.step_b]);
        if (x > best) {
            best = x;
            at = u;
        }
    }
    return at;
}

/// Best scores of all spans of a sentence, and the best tree from them.
template <class Weight>
class BestChart : public Chart<MaxPlus<Weight>> {
public:
    using Ring = MaxPlus<Weight>;

    /// weigh(head, dep) is the weight of an edge.
    template <class Weigh>
    void fill(int words, Root root, StopSignal& stop, Weigh weigh) {
        this->resize(words, root);
        for_each_arc(this->arc_right, this->arc_left, this->first(),
                     [&](Weight* cell, int head, int dep) { *cell = weigh(head, dep); });
        if (root == Root::single) {
            from_root_.resize(static_cast<std::size_t>(words));
            for (int word = 1; word <= words; ++word) from_root_[word - 1] = weigh(0, word);
        }
        run_inside(*this, stop);
    }

    /// Single root: of the trees whose root is the chart's node `root`, the part up to it with its root edge.
    Weight rooted_left(int root) const { return Ring::times(*this->left.at(0, root), from_root_[root]); }
    Weight from_root(int root) const { return from_root_[root]; }
    Weight rooted(int root) const { return Ring::times(rooted_left(root), *this->right.at(root, this->nodes() - 1)); }

    /// False if no tree exists; heads[1..words] otherwise.
    bool best_tree(Heads* heads) {
        stack_.clear();
        const int last = this->nodes() - 1;
        if (this->first() == 0) {
            if (Ring::is_zero(*this->right.at(0, last))) return false;
            stack_.push_back({Item::right, 0, last});
        } else {
            int root = 0;
            for (int other = 1; other <= last; ++other)
                if (rooted(other) > rooted(root)) root = other;
            if (Ring::is_zero(rooted(root))) return false;
            heads[root + 1] = 0;
            stack_.push_back({Item::left, 0, root});
            stack_.push_back({Item::right, root, last});
        }
        while (!stack_.empty()) {
            const Span span = stack_.back();
            stack_.pop_back();
            if (span.i < span.j) expand(span, heads);
        }
        return true;
    }

private:
    enum class Item { right, left, link };
    struct Span {
        Item item;
        int i, j;
    };

    void expand(const Span& span, Heads* heads) {
        const auto [item, i, j] = span;
        const int first = this->first();
        if (item == Item::link) {
            const int k = i + best_term(this->link_terms(i, j));
            stack_.push_back({Item::right, i, k});
            stack_.push_back({Item::left, k + 1, j});
        } else if (item == Item::right) {
            const int dep = i + 1 + best_term(this->right_terms(i, j));
            heads[dep + first] = i + first;
            stack_.push_back({Item::link, i, dep});
            stack_.push_back({Item::right, dep, j});
        } else {
            const int dep = i + best_term(this->left_terms(i, j));
            heads[dep + first] = j + first;
            stack_.push_back({Item::left, i, dep});
            stack_.push_back({Item::link, dep, j});
        }
    }

    std::vector<Weight> from_root_;
    std::vector<Span> stack_;
};

/// Up to this magnitude, rounding errors of sums of doubles stay below any difference between scores that means
/// something. A larger score is likely to be a soft mask, such as -1e9, whose neighbours' last bits matter.
inline constexpr double largest_ordinary = 2048.0;

/// A word without which the sentence might have a tree: in the tree with the fewest forbidden edges, the first word
/// that hangs on one.
template <class T>
Feasibility find_unattachable(const Sentence<T>& sentence, Root root, StopSignal& stop) {
    BestChart<double> chart;
    std::vector<Heads> heads(static_cast<std::size_t>(sentence.words) + 1);
    const auto forbidden = [&](int head, int dep) { return sentence(head, dep) == minus_infinity<T>; };
    chart.fill(sentence.words, root, stop, [&](int head, int dep) { return forbidden(head, dep) ? -1.0 : 0.0; });
    chart.best_tree(heads.data());
    for (int dep = 1; dep <= sentence.words; ++dep)
        if (forbidden(static_cast<int>(heads[dep]), dep)) return {dep};
    return {};
}

/// Calls use(rounding) with a rounding to integers wide enough to hold sums of scores up to `largest` exactly.
template <class Use>
auto with_exact_weights(double largest, int words, Use use) {
    const auto round = [&]<class Weight>(Weight) {
        return use(Rounding<Weight>(largest, WeightTraits<Weight>::usable_bits - headroom_bits(words)));
    };
    return largest < 0x1p140 ? round(Wide<4>{}) : round(Wide<20>{});
}

/// Decodes unlabelled sentences. Scratch memory; reused from sentence to sentence on one thread.
class BestProjectiveTree {
public:
    /// Writes heads[0..words]. Of the trees with the highest score, always the same one. No score's magnitude is above
    /// `largest`.
    template <class T>
    Feasibility operator()(const Sentence<T>& sentence, double largest, Root root, Heads* heads, StopSignal& stop) {
        heads[0] = no_head;
        if (sentence.words == 0) return {};
        chart_.fill(sentence.words, root, stop,
                    [&](int head, int dep) { return static_cast<double>(sentence(head, dep)); });
        bool found = chart_.best_tree(heads);
        if (largest > largest_ordinary && !(found && is_surely_best(sentence, heads)))
            found = exact(sentence, root, largest, heads, stop);
        return found ? Feasibility{} : find_unattachable(sentence, root, stop);
    }

private:
    /// Whether the tree has only ordinary scores, and no score is large and positive.
    template <class T>
    static bool is_surely_best(const Sentence<T>& sentence, const Heads* heads) {
        for (int dep = 1; dep <= sentence.words; ++dep) {
            if (sentence(static_cast<int>(heads[dep]), dep) < -largest_ordinary) return false;
            for (int head = 0; head <= sentence.words; ++head)
                if (head != dep && sentence(head, dep) > largest_ordinary) return false;
        }
        return true;
    }

    template <class T>
    static bool exact(const Sentence<T>& sentence, Root root, double largest, Heads* heads, StopSignal& stop) {
        return with_exact_weights(largest, sentence.words, [&]<class Weight>(const Rounding<Weight>& rounding) {
            BestChart<Weight> chart;
            chart.fill(sentence.words, root, stop, [&](int head, int dep) { return rounding(sentence(head, dep)); });
            return chart.best_tree(heads);
        });
    }

    BestChart<double> chart_;
};

}  // namespace spantree::projective
