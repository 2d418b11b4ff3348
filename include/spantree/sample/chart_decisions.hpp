// A projective tree as the sequence of choices that derive it from the inside chart, top down, then its labels word by
// word.
//
// Which item is opened next follows from the choices before, so they are replayed: O(n) for each decision.
#pragma once

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

#include "../chart/inside_outside.hpp"
#include "../chart/sum_product.hpp"
#include "decisions.hpp"

namespace spantree::sampling {

/// Labels of type T in the scores.
template <class T>
class ChartDecisions {
public:
    /// `labelled` is null without labels; `sums`, after run_inside, must stay where it is.
    template <class Ring>
    void start(const projective::InsideOutside<Ring>& sums, const Sentence<T>* labelled) {
        sums_ = &sums;
        words_ = sums.words();
        root_ = sums.root();
        labelled_ = labelled != nullptr;
        if (labelled) labels_.start(*labelled);
        heads_.resize(static_cast<std::size_t>(words_) + 1);
    }

    /// Two for each edge of the chart, and with one root the choice of the root word.
    int structural() const { return root_ == Root::multi ? 2 * words_ : words_ > 0 ? 2 * words_ - 1 : 0; }
    int count() const { return structural() + (labelled_ ? words_ : 0); }

    Shares<Extended> operator()(int index, const int* path) {
        replay(path, std::min(index, structural()));
        if (index >= structural()) {
            const int dep = index - structural() + 1;
            return labels_(static_cast<int>(heads_[dep]), dep);
        }
        return std::visit([&](const auto* sums) { return shares(*sums, index); }, sums_);
    }

    static constexpr bool left_range() { return false; }

    void tree_of(const int* path, Heads* heads, Heads* labels) {
        replay(path, structural());
        heads[0] = no_head;
        for (int word = 1; word <= words_; ++word) heads[word] = heads_[word];
        if (!labelled_) return;
        labels[0] = no_head;
        for (int word = 1; word <= words_; ++word) labels[word] = path[structural() + word - 1];
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

    /// Makes path[0..count): heads_ and the items still to be opened.
    void replay(const int* path, int count) {
        const int first = projective::first_node(root_), last = words_ - first;
        stack_.clear();
        if (root_ == Root::multi) push(Item::right, 0, last);
        for (int index = 0; index < count; ++index) {
            if (root_ == Root::single && index == 0) {
                heads_[path[0] + first] = 0;
                push(Item::left, 0, path[0]);
                push(Item::right, path[0], last);
                continue;
            }
            const auto [item, i, j] = stack_.back();
            stack_.pop_back();
            if (item == Item::right) {
                const int dep = i + 1 + path[index];
                heads_[dep + first] = i + first;
                push(Item::link, i, dep);
                push(Item::right, dep, j);
            } else if (item == Item::left) {
                const int dep = i + path[index];
                heads_[dep + first] = j + first;
                push(Item::left, i, dep);
                push(Item::link, dep, j);
            } else {
                push(Item::right, i, i + path[index]);
                push(Item::left, i + path[index] + 1, j);
            }
        }
    }

    template <class Ring>
    Shares<Extended> shares(const projective::InsideOutside<Ring>& sums, int index) {
        using Scalar = typename Ring::Scalar;
        const auto& chart = sums.inside();
        shares_.clear();
        if (root_ == Root::single && index == 0) {
            for (int node = 0; node <= sums.last(); ++node)
                add(Scalar::times(sums.seed_right(node), sums.get(chart.right, node, sums.last())));
        } else {
            const auto [item, i, j] = stack_.back();
            const auto terms = item == Item::right  ? chart.right_terms(i, j)
                               : item == Item::left ? chart.left_terms(i, j)
                                                    : chart.link_terms(i, j);
            for (int u = 0; u < terms.count; ++u)
                add(Scalar::times(Scalar::load(terms.a + u * terms.step_a, sums.plane()),
                                  Scalar::load(terms.b + u * terms.step_b, sums.plane())));
        }
        Shares<Extended> result{shares_.data(), static_cast<int>(shares_.size()), Extended()};
        for (const Extended& share : shares_) result.total += share;
        return result;
    }

    void add(const projective::Linear<1>::Block& x) { shares_.emplace_back(x[0]); }
    void add(const projective::Ranged<1>::Block& x) {
        shares_.push_back(x.mantissa[0] > 0.0 ? Extended(x.mantissa[0], static_cast<std::int64_t>(x.exponent[0]))
                                              : Extended());
    }

    std::variant<const projective::InsideOutside<projective::Linear<>>*,
                 const projective::InsideOutside<projective::Ranged<>>*>
        sums_;
    int words_ = 0;
    Root root_ = Root::single;
    bool labelled_ = false;
    LabelShares<Extended, T> labels_;
    std::vector<Heads> heads_;
    std::vector<Span> stack_;
    std::vector<Extended> shares_;
};

}  // namespace spantree::sampling
