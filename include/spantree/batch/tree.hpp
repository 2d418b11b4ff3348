// What a vector of heads is: a tree, a projective tree, a score.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../number/rounded_sum.hpp"
#include "sentence.hpp"

namespace spantree {

/// Whether every word reaches ROOT. `mark` is scratch; the heads of words must be in [0, words]. O(n).
template <class HeadOf>
bool all_reach_root(int words, HeadOf head_of, std::vector<int>& mark) {
    mark.assign(static_cast<std::size_t>(words) + 1, 0);
    mark[0] = -1;  // -1: known to reach ROOT
    for (int start = 1; start <= words; ++start) {
        int node = start;
        while (mark[node] == 0) {
            mark[node] = start;
            node = static_cast<int>(head_of(node));
        }
        if (mark[node] == start) return false;
        for (node = start; mark[node] == start; node = static_cast<int>(head_of(node))) mark[node] = -1;
    }
    return true;
}

/// Whether heads[0..words] is a tree: heads[0] is -1, every other head is a node, all words reach ROOT, and, if asked,
/// ROOT has one child.
template <class Integer>
bool is_tree(const Integer* heads, int words, Root root, std::vector<int>& mark) {
    if (heads[0] != no_head) return false;
    int roots = 0;
    for (int dep = 1; dep <= words; ++dep) {
        if (heads[dep] < 0 || heads[dep] > words || heads[dep] == dep) return false;
        roots += heads[dep] == 0;
    }
    if (root == Root::single && words > 0 && roots != 1) return false;
    return all_reach_root(words, [&](int dep) { return heads[dep]; }, mark);
}

/// Whether no two arcs of a tree cross, ROOT standing left of the first word: the words below each word fill an
/// interval. O(n).
template <class Integer>
bool is_projective(const Integer* heads, int words) {
    struct Span {
        int first, last, size, open_children;
    };
    std::vector<Span> spans(static_cast<std::size_t>(words) + 1);
    for (int node = 0; node <= words; ++node) spans[node] = {node, node, 1, 0};
    for (int dep = 1; dep <= words; ++dep) ++spans[heads[dep]].open_children;
    for (int leaf = 1; leaf <= words; ++leaf) {
        // Closes the leaf, then every ancestor whose last open child that was.
        for (int node = leaf; node != 0 && spans[node].open_children == 0;) {
            const Span span = spans[node];
            if (span.last - span.first + 1 != span.size) return false;
            spans[node].open_children = -1;
            node = static_cast<int>(heads[node]);
            Span& parent = spans[node];
            parent = {std::min(parent.first, span.first), std::max(parent.last, span.last), parent.size + span.size,
                      parent.open_children - 1};
        }
    }
    return true;
}

/// The score of the edge into a word. `labels` is null where the sentence has none.
template <class T, class Integer>
double edge_score(const Sentence<T>& sentence, int dep, const Integer* heads, const Integer* labels) {
    const int head = static_cast<int>(heads[dep]);
    return labels ? sentence(head, dep, static_cast<int>(labels[dep])) : sentence(head, dep);
}

/// The double nearest to the sum of a tree's edge scores: the same whoever found the tree. -inf if it uses a forbidden
/// edge.
template <class T, class Integer>
double tree_score(const Sentence<T>& sentence, const Integer* heads, const Integer* labels = nullptr) {
    return rounded_sum(sentence.words, [&](int i) { return edge_score(sentence, i + 1, heads, labels); });
}

/// The double nearest to the difference of two trees' scores, however large these are. The second tree must be allowed.
template <class T, class Integer>
double score_difference(const Sentence<T>& sentence, const Integer* heads, const Integer* labels,
                        const Integer* other_heads, const Integer* other_labels) {
    const int words = sentence.words;
    return rounded_sum(2 * words, [&](int i) {
        return i < words ? edge_score(sentence, i + 1, heads, labels)
                         : -edge_score(sentence, i - words + 1, other_heads, other_labels);
    });
}

}  // namespace spantree
