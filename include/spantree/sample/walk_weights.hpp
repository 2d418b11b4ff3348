// Weights w(h, d) of the walk from words to their heads, in numbers that eliminations can be done with.
//
// What is in all weights of a column, or in all that leave ROOT with one root, does not matter: all are near 1 where they
// matter.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "../batch/sentence.hpp"
#include "../number/extended.hpp"
#include "watched_walk.hpp"

namespace spantree::sampling {

/// Rows of heads; 0 on the diagonal. Words are numbered from 0 here, heads from 0 = ROOT.
template <class Real>
class WalkWeights {
public:
    int words() const { return words_; }
    Root root() const { return root_; }
    Real operator()(int head, int word) const { return weights_[head * stride_ + word]; }
    const Real* row(int head) const { return weights_.data() + head * stride_; }

    /// Whether the weights of all edges that are not forbidden are in the range of watched_walk.hpp.
    bool in_range() const { return in_range_; }

    /// exp(score(head, word)), word from 1.
    template <class Score>
    void read_scores(int words, Root root, Score score) {
        reset(words, root);
        for (int head = 0; head <= words_; ++head)
            for (int word = 1; word <= words_; ++word)
                if (const double x = score(head, word); x > minus_infinity<double>)
                    set(head, word - 1, exp_of<Real>(x));
    }

    /// weight(head, word), word from 1, times powers of two: the largest of each column becomes about 1, with one root the
    /// largest from a word, and then the largest from ROOT.
    template <class Weight>
    void read_weights(int words, Root root, Weight weight) {
        reset(words, root);
        const int first = root == Root::single ? 1 : 0;
        std::vector<double> scale(static_cast<std::size_t>(words) + 1, 1.0);
        double largest_of_root = 0.0;
        for (int word = 1; word <= words; ++word) {
            double largest = 0.0;
            for (int head = first; head <= words; ++head) largest = std::max(largest, weight(head, word));
            if (largest > 0.0) scale[word] = std::ldexp(1.0, -std::ilogb(largest));
            largest_of_root = std::max(largest_of_root, weight(0, word) * scale[word]);
        }
        if (first == 1 && largest_of_root > 0.0) scale[0] = std::ldexp(1.0, -std::ilogb(largest_of_root));
        for (int head = 0; head <= words; ++head)
            for (int word = 1; word <= words; ++word)
                if (const double x = weight(head, word); x > 0.0)
                    set(head, word - 1, Real(head == 0 ? x * scale[word] * scale[0] : x * scale[word]));
    }

    /// The same walk with word `root_word` attached to ROOT, and no other.
    void condition_on_root(const WalkWeights& other, int root_word) {
        *this = other;
        for (int word = 0; word < words_; ++word) {
            if (word != root_word) weights_[word] = Real{};
            weights_[(word + 1) * stride_ + root_word] = Real{};
        }
    }

private:
    void reset(int words, Root root) {
        words_ = words;
        root_ = root;
        stride_ = words;
        weights_.assign(static_cast<std::size_t>(words + 1) * stride_, Real{});
        in_range_ = true;
    }

    void set(int head, int word, Real weight) {
        weights_[head * stride_ + word] = weight;
        in_range_ &= is_in_range(weight);
    }

    int words_ = 0;
    Root root_ = Root::single;
    std::ptrdiff_t stride_ = 0;
    std::vector<Real> weights_;
    bool in_range_ = true;
};

}  // namespace spantree::sampling
