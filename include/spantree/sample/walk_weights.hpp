// A sentence's centred scores as weights of the walk from words to their heads: w(h, d) = exp(centred(h, d)).
//
// The heaviest edge into a word weighs 1 (with one root: the heaviest from another word, and the heaviest from ROOT).
#pragma once

#include <algorithm>
#include <vector>

#include "../batch/centred.hpp"
#include "../number/extended.hpp"
#include "watched_walk.hpp"

namespace spantree::sampling {

/// Which trees may be drawn: those that matter, or also those that only come when all others are gone.
enum class Reach { likely, all };

/// The score that an edge is drawn by.
inline double drawing_score(const CentredScores& scores, int head, int dep, Reach reach) {
    return reach == Reach::all ? scores.value(head, dep, scores.every_tree()) : scores.if_it_matters(head, dep);
}

/// w(h, d), rows of heads; 0 on the diagonal. Words are numbered from 0 here, heads from 0 = ROOT.
template <class Real>
class WalkWeights {
public:
    int words() const { return words_; }
    Root root() const { return root_; }
    Real operator()(int head, int word) const { return weights_[head * stride_ + word]; }
    const Real* row(int head) const { return weights_.data() + head * stride_; }

    /// Whether the weights of all edges that are not forbidden are in the range of watched_walk.hpp.
    bool in_range() const { return in_range_; }

    /// With `root_bonus` added to the score of every edge that leaves ROOT.
    void read(const CentredScores& scores, Root root, Reach reach, double root_bonus = 0.0) {
        words_ = scores.words();
        root_ = root;
        stride_ = words_;
        weights_.assign(static_cast<std::size_t>(words_ + 1) * stride_, Real{});
        in_range_ = true;
        for (int head = 0; head <= words_; ++head)
            for (int word = 0; word < words_; ++word) {
                const double score = drawing_score(scores, head, word + 1, reach);
                if (score == minus_infinity<double>) continue;
                Real& weight = weights_[head * stride_ + word] = exp_of<Real>(head == 0 ? score + root_bonus : score);
                in_range_ &= is_in_range(weight);
            }
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
    int words_ = 0;
    Root root_ = Root::single;
    std::ptrdiff_t stride_ = 0;
    std::vector<Real> weights_;
    bool in_range_ = true;
};

}  // namespace spantree::sampling
