// What trees have in common: numbers of edges are best taken relative to those of one edge into each word, a likely one.
//
// With one root, edges from ROOT have something in common of their own. Numbers of the edges into a word are then relative to
// that of an edge from another word, and those of edges from ROOT, besides, to that of one of them: with a = those of edges,
// r the word that it leads to,
//
//     relative(h, d)  =  a(h, d) - a(into(d), d)  -  (a(ROOT, r) - a(into(r), r) if h is ROOT)
//
// A tree's sum of them is its sum of a, less what is the same for all trees.
#pragma once

#include <vector>

#include "spantree/root.hpp"

namespace spantree::library {

struct LikeliestEdges {
    struct Edge {
        int head = 0, dep = 0, label = 0;
        double likelihood = 0.0;
    };
    std::vector<Edge> into;  // [0] unused; one of likelihood 0 if the word has none
    Edge from_root;          // with one root; else, dep is 0

    /// each_edge(dep, visit): visit(head, label, likelihood) for edges into a word.
    template <class EachEdge>
    LikeliestEdges(int words, Root root, EachEdge each_edge) : into(static_cast<std::size_t>(words) + 1) {
        for (int dep = 1; dep <= words; ++dep) {
            Edge own_from_root;
            each_edge(dep, [&](int head, int label, double likelihood) {
                Edge& likeliest = head == 0 && root == Root::single ? own_from_root : into[dep];
                if (likelihood > likeliest.likelihood) likeliest = {head, dep, label, likelihood};
            });
            if (own_from_root.likelihood > from_root.likelihood) from_root = own_from_root;
            if (into[dep].likelihood == 0.0) into[dep] = own_from_root;
        }
    }

    /// add(edge, sign) for the edges whose numbers are taken off that of h -> d.
    template <class Add>
    void each_taken_off(int head, int dep, Add add) const {
        add(into[dep], 1.0);
        if (head == 0) each_of_root(add);
    }

    /// The same for those whose numbers add up to what is taken off every tree.
    template <class Add>
    void each_of_tree(Add add) const {
        for (std::size_t dep = 1; dep < into.size(); ++dep) add(into[dep], 1.0);
        each_of_root(add);
    }

private:
    template <class Add>
    void each_of_root(Add add) const {
        if (from_root.dep == 0) return;
        add(from_root, 1.0);
        add(into[from_root.dep], -1.0);
    }
};

}  // namespace spantree::library
