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
        open_.clear();
        if (words > 0) open_.push_back({root == Root::multi ? Kind::right : Kind::root, 0, words - first_});
    }

    bool done() const { return open_.empty(); }

    /// What is to be chosen next.
    const Item& item() const { return open_.back(); }

    /// heads[1..words] is known when all is done.
    void choose(int choice, Heads* heads) {
        const auto [kind, i, j] = open_.back();
        open_.pop_back();
        if (kind == Kind::root) {
            heads[choice + first_] = 0;
            open(Kind::left, i, choice);
            open(Kind::right, choice, j);
        } else if (kind == Kind::right) {
            const int dep = i + 1 + choice;
            heads[dep + first_] = i + first_;
            open(Kind::link, i, dep);
            open(Kind::right, dep, j);
        } else if (kind == Kind::left) {
            const int dep = i + choice;
            heads[dep + first_] = j + first_;
            open(Kind::left, i, dep);
            open(Kind::link, dep, j);
        } else {
            open(Kind::right, i, i + choice);
            open(Kind::left, i + choice + 1, j);
        }
    }

private:
    void open(Kind kind, int i, int j) {
        if (i < j) open_.push_back({kind, i, j});
    }

    int first_ = 0;
    std::vector<Item> open_;
};

/// The terms of an item that is no choice of a root word.
template <class Ring>
Terms<typename Ring::Cell> terms_of(const Chart<Ring>& chart, const Derivation::Item& item) {
    return item.kind == Derivation::Kind::right  ? chart.right_terms(item.i, item.j)
           : item.kind == Derivation::Kind::left ? chart.left_terms(item.i, item.j)
                                                 : chart.link_terms(item.i, item.j);
}

}  // namespace spantree::projective
