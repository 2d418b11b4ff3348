// Drawing without replacement from a sequence of decisions, with a prefix trie of what has been drawn (Shi, Bieber &
// Sutton 2020).
//
// Every node knows which part of the trees below it has not been drawn, as a fraction of its probability:
//
//     left(node) = sum over its children c of p(c | node) left(c)
//
// where left is 1 of a child that was never visited, and 0 of a drawn tree. It is always summed up from the children,
// never found as 1 minus something: when all trees but a mass of 1e-300 are gone, the next ones still come in the right
// proportions. Numbers have their own exponent. Children never visited are kept as one number, the sum of their
// probabilities; their distribution is computed anew when one of them is to be visited.
#pragma once

#include <cstdint>
#include <vector>

#include "../number/extended.hpp"
#include "decisions.hpp"
#include "random.hpp"

namespace spantree::sampling {

template <class Source>
class PrefixTrie {
public:
    explicit PrefixTrie(Source& decisions)
        : decisions_(decisions), path_(decisions.count()), visited_(decisions.count() + 1) {
        nodes_.push_back({});
        nodes_[0].unvisited = Extended(1.0);
        nodes_[0].left = Extended(1.0);
    }

    /// The mass of the trees not drawn yet.
    Extended left() const { return nodes_[0].left; }

    /// Marks a tree, given as its decisions, as drawn.
    void insert(const int* path) {
        int node = 0;
        visited_[0] = 0;
        std::copy_n(path, path_.size(), path_.begin());
        for (std::size_t i = 0; i < path_.size(); ++i) {
            int child = find(node, path[i]);
            if (child == none) child = visit(node, static_cast<int>(i), [&](const auto&) { return path[i]; });
            visited_[i + 1] = node = child;
        }
        finish();
    }

    /// Draws a tree that was not drawn before, in proportion to its probability, and marks it; `left()` must not be 0.
    /// Returns its decisions.
    const int* draw(RandomStream& random) {
        int node = 0;
        visited_[0] = 0;
        for (std::size_t i = 0; i < path_.size(); ++i) {
            int child = choose_visited(node, random);
            if (child == none)
                child = visit(node, static_cast<int>(i),
                              [&](const auto& shares) { return draw_unvisited(shares, random); });
            path_[i] = nodes_[child].choice;
            visited_[i + 1] = node = child;
        }
        finish();
        return path_.data();
    }

private:
    static constexpr int none = -1;

    struct Node {
        Extended left;         // fraction of its probability not drawn
        Extended unvisited;    // the part of that in children never visited
        Extended probability;  // given its parent
        int choice = none;
        int first_child = none, next_sibling = none;
    };

    int find(int node, int choice) const {
        int child = nodes_[node].first_child;
        while (child != none && nodes_[child].choice != choice) child = nodes_[child].next_sibling;
        return child;
    }

    /// A visited child of `node`, in proportion to what is left below it, or none: one never visited.
    int choose_visited(int node, RandomStream& random) const {
        const Node& parent = nodes_[node];
        if (parent.first_child == none) return none;
        double target = random.uniform() - value_of(parent.unvisited / parent.left);
        if (target < 0.0) return none;
        int possible = none;
        for (int child = parent.first_child; child != none; child = nodes_[child].next_sibling) {
            const Extended mass = nodes_[child].probability * nodes_[child].left;
            if (!mass) continue;
            possible = child;
            target -= value_of(mass / parent.left);
            if (target < 0.0) break;
        }
        return possible;
    }

    /// Makes a node of a child never visited, choose(shares).
    template <class Choose>
    int visit(int node, int index, Choose choose) {
        const auto shares = decisions_(index, path_.data());
        taken_.assign(shares.count, 0);
        for (int child = nodes_[node].first_child; child != none; child = nodes_[child].next_sibling)
            taken_[nodes_[child].choice] = 1;
        const int choice = choose(shares);
        taken_[choice] = 1;
        std::remove_cvref_t<decltype(shares.total)> unvisited{};
        for (int i = 0; i < shares.count; ++i)
            if (!taken_[i]) unvisited += shares.data[i];
        Node child;
        child.left = child.unvisited = Extended(1.0);
        child.probability = Extended(shares.data[choice] / shares.total);
        child.choice = choice;
        child.next_sibling = nodes_[node].first_child;
        nodes_[node].first_child = static_cast<int>(nodes_.size());
        nodes_[node].unvisited = Extended(unvisited / shares.total);
        nodes_.push_back(child);
        return nodes_[node].first_child;
    }

    template <class SomeShares>
    int draw_unvisited(const SomeShares& shares, RandomStream& random) const {
        std::remove_cvref_t<decltype(shares.total)> total{};
        for (int i = 0; i < shares.count; ++i)
            if (!taken_[i]) total += shares.data[i];
        double target = random.uniform();
        int possible = 0;
        for (int i = 0; i < shares.count; ++i) {
            if (taken_[i] || !is_positive(shares.data[i])) continue;
            possible = i;
            target -= value_of(shares.data[i] / total);
            if (target < 0.0) break;
        }
        return possible;
    }

    /// The tree at the end of visited_ is drawn: brings what is left up to date along its path.
    void finish() {
        nodes_[visited_.back()].left = nodes_[visited_.back()].unvisited = Extended();
        for (std::size_t i = path_.size(); i-- > 0;) {
            Node& node = nodes_[visited_[i]];
            node.left = node.unvisited;
            for (int child = node.first_child; child != none; child = nodes_[child].next_sibling)
                node.left += nodes_[child].probability * nodes_[child].left;
        }
    }

    Source& decisions_;
    std::vector<Node> nodes_;
    std::vector<int> path_;
    std::vector<int> visited_;  // nodes along the path
    std::vector<char> taken_;
};

}  // namespace spantree::sampling
