// The intervals of words that divide and conquer goes through, and a watched walk for each.
#pragma once

#include <vector>

#include "walk_weights.hpp"
#include "watched_walk.hpp"

namespace spantree::sampling {

/// Halves of halves down to single words, in preorder: parents before children, and by first word.
template <class Real>
class IntervalTree {
public:
    struct Node {
        WatchedWalk<Real> walk;
        int parent = -1;
    };

    /// The first node watches all words: the walk itself.
    void start(const WalkWeights<Real>& weights) {
        const int words = weights.words();
        nodes_.clear();
        leaf_.assign(words, 0);
        std::size_t size = 0;
        const std::ptrdiff_t stride = round_to_lanes<Real>(words);
        add(0, words, -1, stride, size);
        storage_.assign(size, Real{});
        Real* at = storage_.data();
        for (Node& node : nodes_) {
            node.walk.data = at;
            at += WatchedWalk<Real>::columns(node.walk.size()) * stride;
        }
        const WatchedWalk<Real>& all = nodes_[0].walk;
        for (int word = 0; word < words; ++word) std::copy_n(weights.row(word + 1), words, all.to_word(word));
        std::copy_n(weights.row(0), words, all.to_root(weights.root() == Root::single ? 1 : 0));
    }

    int count() const { return static_cast<int>(nodes_.size()); }
    const Node& operator[](int i) const { return nodes_[i]; }
    int leaf(int word) const { return leaf_[word]; }

private:
    void add(int begin, int end, int parent, std::ptrdiff_t stride, std::size_t& size) {
        const int index = count();
        nodes_.push_back({{begin, end, nullptr, stride}, parent});
        size += WatchedWalk<Real>::columns(end - begin) * stride;
        if (end - begin == 1) {
            leaf_[begin] = index;
            return;
        }
        const int middle = begin + (end - begin) / 2;
        add(begin, middle, index, stride, size);
        add(middle, end, index, stride, size);
    }

    std::vector<Node> nodes_;
    std::vector<int> leaf_;
    std::vector<Real> storage_;
};

/// shares[h], h = 0..words: w(h, word) times the probability of reaching ROOT from h without passing `word`, at the
/// lowest order at which any is positive, which is returned; their sum is `total`.
template <class Real>
int head_shares(const WalkWeights<Real>& weights, const WatchedWalk<Real>& leaf, int word, Real* shares, Real& total) {
    const int words = weights.words();
    const int root_order = weights.root() == Root::single ? 1 : 0;
    int order = 0;
    for (; order < 2; ++order) {
        const Real* const escape = leaf.to_root(order);
        total = shares[0] = order == root_order ? weights(0, word) : Real{};
        for (int head = 1; head <= words; ++head) {
            shares[head] = head == word + 1 ? Real{} : weights(head, word) * escape[head - 1];
            total += shares[head];
        }
        if (is_positive(total)) break;
    }
    return order;
}

}  // namespace spantree::sampling
