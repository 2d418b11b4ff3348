// A projective tree as the choices that derive it from the chart, top down.
//
// An item of the chart is a sum over its last step (chart.hpp). A choice says which term is taken; then both factors are
// opened alike, the second before the first. With one root, the root word is chosen before everything else. A tree of n
// words takes 2 n choices, or 2 n - 1 with one root: each edge one for its own item and one for its link.
//
//     words 1 2 3, one root, heads 2 0 2    choice
//     root word                             1: the second node
//     right(2, 3)                           0: its only dependent, 3
//     link(2, 3)                            0: the only split
//     left(1, 2)                            0: its only dependent, 1
//     link(1, 2)                            0
#pragma once

#include <vector>

#include "../batch/sentence.hpp"
#include "chart.hpp"

namespace spantree::projective {

class Derivation {
public:
    enum class Kind { right, left, link, root };

    /// An item of the chart, i < j; or all nodes, one of which is the root word.
    struct Item {
        Kind kind;
        int i, j;
        int choices() const { return kind == Kind::root ? j - i + 1 : j - i; }
    };

    static int length(int words, Root root) { return root == Root::multi || words == 0 ? 2 * words : 2 * words - 1; }

    void start(int words, Root root) {
        first_ = first_node(root);
        count_ = 0;
        open_.resize(static_cast<std::size_t>(words) +
                     2);  // no two items that are open share a word, but for their ends
        if (words > 0) open_[count_++] = {root == Root::multi ? Kind::right : Kind::root, 0, words - first_};
    }

    bool done() const { return count_ == 0; }

    /// What is to be chosen next.
    const Item& item() const { return open_[static_cast<std::size_t>(count_) - 1]; }

    /// heads[1..words] is known when all is done. Which kind an item is nobody can foresee, so there are no branches.
    void choose(int choice, Heads* heads) {
        struct Factors {
            Kind a, b;
            int first, gap;  // choice 0 splits the item behind so many nodes; between the factors are so many
        };
        static constexpr Factors factors[] = {{Kind::link, Kind::right, 1, 0},
                                              {Kind::left, Kind::link, 0, 0},
                                              {Kind::right, Kind::left, 0, 1},
                                              {Kind::left, Kind::right, 0, 0}};
        const auto [kind, i, j] = item();
        const Factors& of = factors[static_cast<int>(kind)];
        const int split = i + of.first + choice;
        const int head = kind == Kind::right ? i + first_ : kind == Kind::left ? j + first_ : 0;
        Heads nobody;
        *(kind == Kind::link ? &nobody : heads + split + first_) = head;
        --count_;
        open(of.a, i, split);
        open(of.b, split + of.gap, j);
    }

private:
    void open(Kind kind, int i, int j) {
        open_[static_cast<std::size_t>(count_)] = {kind, i, j};
        count_ += i < j;
    }

    int first_ = 0;
    int count_ = 0;
    std::vector<Item> open_;  // the first `count_`
};

/// The terms of an item that is no choice of a root word.
template <class Ring>
Terms<typename Ring::Cell> terms_of(const Chart<Ring>& chart, const Derivation::Item& item) {
    return item.kind == Derivation::Kind::right  ? chart.right_terms(item.i, item.j)
           : item.kind == Derivation::Kind::left ? chart.left_terms(item.i, item.j)
                                                 : chart.link_terms(item.i, item.j);
}

}  // namespace spantree::projective
