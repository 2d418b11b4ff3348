// A sentence's scores as weights of the walk from words to their heads.
//
// Every tree has one edge into each word, so a constant per word may be taken off: w(h, d) = exp(score(h, d) -
// shift(d)). With one root, so may a constant common to all edges that leave ROOT. Taken off is the highest score; of
// scores too far apart for that (soft masks such as -1e30), those of the best tree.
#pragma once

#include <algorithm>
#include <vector>

#include "../batch/sentence.hpp"
#include "../batch/tree.hpp"
#include "../decode/best_tree.hpp"
#include "../number/extended.hpp"

namespace spantree::sampling {

/// w(h, d), rows of heads; 0 on the diagonal. Words are numbered from 0 here, heads from 0 = ROOT.
template <class Real>
class WalkWeights {
public:
    int words() const { return words_; }
    Root root() const { return root_; }
    std::ptrdiff_t stride() const { return stride_; }
    Real operator()(int head, int word) const { return weights_[head * stride_ + word]; }
    const Real* row(int head) const { return weights_.data() + head * stride_; }

    /// log Z is that of the weights plus this.
    double log_scale() const { return log_scale_; }

    /// Whether every edge that is not forbidden has a weight that a double holds with all its digits.
    bool in_range() const { return in_range_; }

    /// With `root_bonus` added to the score of every edge that leaves ROOT.
    template <class T>
    void read(const Sentence<T>& sentence, Root root, double root_bonus = 0.0) {
        words_ = sentence.words;
        root_ = root;
        root_bonus_ = root_bonus;
        stride_ = (words_ + 7) / 8 * 8;
        find_shifts(sentence);
        weights_.assign(static_cast<std::size_t>(words_ + 1) * stride_, Real{});
        in_range_ = true;
        for (int head = 0; head <= words_; ++head)
            for (int word = 0; word < words_; ++word)
                if (head != word + 1) {
                    const double score = sentence(head, word + 1);
                    const double shift = shift_[word] + (head == 0 ? root_shift_ - root_bonus_ : 0.0);
                    weights_[head * stride_ + word] = exp_of<Real>(score - shift);
                    in_range_ &= !(std::fabs(score - shift) > largest_exponent) || score == minus_infinity<double>;
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
    template <class T>
    void find_shifts(const Sentence<T>& sentence) {
        shift_.assign(words_, minus_infinity<double>);
        const int first = root_ == Root::multi ? 0 : 1;
        double largest = 0.0;
        for (int head = 0; head <= words_; ++head)
            for (int word = 0; word < words_; ++word) {
                const double score = sentence(head, word + 1) + (head == 0 ? root_bonus_ : 0.0);
                if (head == word + 1 || score == minus_infinity<double>) continue;
                largest = std::max(largest, std::fabs(score));
                if (head < first) continue;
                shift_[word] = std::max(shift_[word], score);
            }
        for (double& shift : shift_)
            if (shift == minus_infinity<double>) shift = 0.0;  // only ROOT can be its head, or nothing
        if (largest > largest_plain_score) shift_by_best_tree(sentence);
        root_shift_ = minus_infinity<double>;
        for (int word = 0; root_ == Root::single && word < words_; ++word)
            root_shift_ = std::max(root_shift_, sentence(0, word + 1) + root_bonus_ - shift_[word]);
        if (root_shift_ == minus_infinity<double>) root_shift_ = 0.0;
        CompensatedSum sum;
        for (const double shift : shift_) sum.add(shift);
        sum.add(root_shift_);
        log_scale_ = sum.value();
    }

    template <class T>
    void shift_by_best_tree(const Sentence<T>& sentence) {
        std::vector<Heads> heads(static_cast<std::size_t>(words_) + 1);
        BestTree<T> best_tree;
        if (!best_tree(sentence, root_, heads.data())) return;
        for (int word = 0; word < words_; ++word) shift_[word] = sentence(static_cast<int>(heads[word + 1]), word + 1);
    }

    static constexpr double largest_plain_score = 1e7;  // Extended::exp is exact to there
    static constexpr double largest_exponent = 690.0;

    int words_ = 0;
    Root root_ = Root::single;
    std::ptrdiff_t stride_ = 0;
    std::vector<Real> weights_;
    std::vector<double> shift_;
    double root_bonus_ = 0.0, root_shift_ = 0.0;
    double log_scale_ = 0.0;
    bool in_range_ = true;
};

}  // namespace spantree::sampling
