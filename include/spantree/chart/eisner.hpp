// The best projective tree: Eisner's algorithm (1996), the chart of chart.hpp over (max, +). O(n^3) time, O(n^2)
// memory.
//
// No back-pointers: on the way back the first best term of each item on the tree is looked for again, O(n) an item.
//
// Fast weights are whole numbers in doubles (decode/weight.hpp). Whatever is compared on the way back are two sums over
// the edges into the same words; where the best term is not ahead by more than their rounding, the chart is filled
// again with wide integers.
#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>
#include <vector>

#include "../batch/parallel.hpp"
#include "../batch/sentence.hpp"
#include "../decode/own_scores.hpp"
#include "../decode/survey.hpp"
#include "../decode/weight.hpp"
#include "../simd/dispatch.hpp"
#include "../simd/pack.hpp"
#include "chart.hpp"
#include "derivation.hpp"
#include "max_plus.hpp"

namespace spantree::projective {

/// The largest of some weights and where it came first. Doubtful: another is no more than `tolerance` behind.
template <class Weight>
struct BestTerm {
    Weight weight = MaxPlus<Weight>::zero();
    int at = 0;
    Weight next = MaxPlus<Weight>::zero();

    void look(const Weight& x, int here) {
        if (x > weight) {
            next = weight;
            weight = x;
            at = here;
        } else if (x > next) {
            next = x;
        }
    }
    bool is_doubtful(double tolerance) const {
        if constexpr (WeightTraits<Weight>::rounds)
            return weight - next <= tolerance;
        else
            return false;
    }
};

template <class Weight>
BestTerm<Weight> best_term(const Terms<Weight>& terms) {
    BestTerm<Weight> best;
    for (int u = 0; u < terms.count; ++u)
        best.look(MaxPlus<Weight>::times(terms.a[u * terms.step_a], terms.b[u * terms.step_b]), u);
    return best;
}

namespace details {

/// Scores whose rows are contiguous as whole numbers, [head, dep]; -inf in column 0. Returns whether some was rounded.
struct RoundScores {
    template <class Registers>
    struct Kernel {
        template <class T>
        static bool run(const Sentence<T>& sentence, const Rounding<double>& rounding, double* matrix) {
            const int words = sentence.words;
            return with_lanes<Registers::width>(words, [&]<int lanes>() __attribute__((always_inline)) {
                Vector<double, lanes> inexact = {};
                for (int head = 0; head <= words; ++head) {
                    const T* const from = sentence.scores + head * sentence.head_stride;
                    double* const to = matrix + static_cast<std::ptrdiff_t>(head) * (words + 1);
                    *to = minus_infinity<double>;
                    for (int first = 0; first < words; first += lanes) {
                        const int dep = std::min(first, words - lanes) + 1;
                        const auto deps = iota<double, lanes>() + static_cast<double>(dep);
                        const auto score = select<Comparison::equal>(deps, spread<lanes>(head), Vector<double, lanes>{},
                                                                     load_as_doubles<lanes>(from + dep));
                        store(to + dep, rounding.whole(score, inexact));
                    }
                }
                return largest_lane<double, lanes>(inexact) > 0.0;
            });
        }
    };
};

}  // namespace details

/// Best scores of all spans of a sentence, and the best tree from them.
template <class Weight>
class BestChart : public Chart<MaxPlus<Weight>> {
public:
    using Ring = MaxPlus<Weight>;

    /// weigh(head, dep) is the weight of an edge.
    template <class Weigh>
    void fill(int words, Root root, StopSignal& stop, Weigh weigh) {
        weights_.resize(static_cast<std::size_t>(words + 1) * (words + 1));
        for (int head = 0; head <= words; ++head) {
            Weight* const row = weights_.data() + static_cast<std::size_t>(head) * (words + 1);
            row[0] = Ring::zero();
            for (int dep = 1; dep <= words; ++dep) row[dep] = head == dep ? Ring::zero() : weigh(head, dep);
        }
        fill(words, root, stop);
    }

    /// The weights of an unlabelled sentence, rounded.
    template <class T>
    void fill(const Sentence<T>& sentence, const Rounding<Weight>& rounding, Root root, StopSignal& stop) {
        std::int64_t inexact = rounding.always_rounds();
        bool filled = false;
        if constexpr (std::is_same_v<Weight, double>)
            if (sentence.dep_stride == 1 && sentence.words > 0) {
                weights_.resize(static_cast<std::size_t>(sentence.words + 1) * (sentence.words + 1));
                inexact |= dispatch_on_registers<details::RoundScores>(sentence, rounding, weights_.data());
                fill(sentence.words, root, stop);
                filled = true;
            }
        if (!filled)
            fill(sentence.words, root, stop,
                 [&](int head, int dep) { return rounding(static_cast<double>(sentence(head, dep)), inexact); });
        if (inexact) tolerance_ = sentence.words;
    }

    /// How close two sums of weights must come to be in doubt; -1: never.
    double tolerance() const { return tolerance_; }

    /// Single root: of the trees whose root is the chart's node `root`, the part up to it with its root edge.
    Weight rooted_left(int root) const { return Ring::times(*this->left.at(0, root), from_root_[root]); }
    Weight from_root(int root) const { return from_root_[root]; }
    /// The weight of an edge of the sentence.
    Weight edge(int head, int dep) const {
        return weights_[static_cast<std::size_t>(head) * (this->nodes() + this->first()) + dep];
    }
    Weight rooted(int root) const { return Ring::times(rooted_left(root), *this->right.at(root, this->nodes() - 1)); }

    /// False if no tree exists; heads[1..words] otherwise. They may be wrong if `doubtful` is set.
    bool best_tree(Heads* heads, bool& doubtful) {
        const int first = this->first(), last = this->nodes() - 1;
        doubtful = false;
        const auto decide = [&](const BestTerm<Weight>& best) {
            doubtful |= best.is_doubtful(tolerance_);
            return best.at;
        };
        derivation_.start(last + first, first == 0 ? Root::multi : Root::single);
        if (first == 0) {
            if (Ring::is_zero(*this->right.at(0, last))) return false;
        } else {
            BestTerm<Weight> best;
            for (int root = 0; root <= last; ++root) best.look(rooted(root), root);
            if (Ring::is_zero(best.weight)) return false;
            derivation_.choose(decide(best), heads);
        }
        while (!derivation_.done()) derivation_.choose(decide(best_term(terms_of(*this, derivation_.item()))), heads);
        return true;
    }

private:
    /// From weights_.
    void fill(int words, Root root, StopSignal& stop) {
        tolerance_ = -1.0;
        this->resize(words, root);
        lay_out_edges(weights_.data(), words, this->first(), this->arc_right, this->arc_left);
        if (root == Root::single) from_root_.assign(weights_.begin() + 1, weights_.begin() + 1 + words);
        run_inside(*this, this->arc_right, this->arc_left, stop);
    }

    std::vector<Weight> weights_;  // [head, dep]
    std::vector<Weight> from_root_;
    Derivation derivation_;
    double tolerance_ = -1.0;
};

/// A word without which the sentence might have a tree: in the tree with the fewest forbidden edges, the first word
/// that hangs on one.
template <class T>
Feasibility find_unattachable(const Sentence<T>& sentence, Root root, StopSignal& stop) {
    BestChart<double> chart;
    std::vector<Heads> heads(static_cast<std::size_t>(sentence.words) + 1);
    const auto forbidden = [&](int head, int dep) { return !(sentence(head, dep) > minus_infinity<T>); };
    chart.fill(sentence.words, root, stop, [&](int head, int dep) { return forbidden(head, dep) ? -1.0 : 0.0; });
    bool doubtful = false;
    chart.best_tree(heads.data(), doubtful);
    for (int dep = 1; dep <= sentence.words; ++dep)
        if (forbidden(static_cast<int>(heads[dep]), dep)) return {dep};
    return {1};  // scores change while they are read
}

/// Bits that weights need beyond those of the scores: sums of one score per word.
constexpr int more_bits(int words) { return std::bit_width(static_cast<unsigned>(words)); }

template <class T>
Rounding<double> fast_rounding(const Sentence<T>& sentence, const Survey<T>& survey, bool other_labels = false) {
    return {survey.largest, reach(sentence, survey, other_labels),
            WeightTraits<double>::usable_bits - more_bits(sentence.words)};
}

namespace details {

/// Whether the weights were good enough to tell if there is a tree, and which is the best. Writes heads[1..words].
template <class T, class Weight>
bool is_settled(BestChart<Weight>& chart, const Sentence<T>& sentence, const Rounding<Weight>& rounding, Root root,
                Heads* heads, bool& found, StopSignal& stop) {
    chart.fill(sentence, rounding, root, stop);
    bool doubtful = false;
    found = chart.best_tree(heads, doubtful);
    for (int dep = 1; found && dep <= sentence.words; ++dep)
        doubtful |= !rounding.reaches(sentence(static_cast<int>(heads[dep]), dep));
    return !doubtful;
}

}  // namespace details

/// Decodes unlabelled sentences. Scratch memory; reused from sentence to sentence on one thread.
template <class T>
class BestProjectiveTree {
public:
    /// Takes in a sentence. Its survey is good until the next one.
    const Survey<T>& read(const Sentence<T>& sentence) {
        best_.resize(static_cast<std::size_t>(sentence.words) + 1);
        head_.resize(static_cast<std::size_t>(sentence.words) + 1);
        sentence_ = sentence;
        return survey_ = survey(sentence, best_.data(), head_.data());
    }

    /// Writes heads[0..words] for the sentence read. Of the trees with the highest score, always the same one.
    Feasibility write(Root root, Heads* heads, StopSignal& stop) {
        heads[0] = no_head;
        if (sentence_.words == 0) return {};
        if (survey_.bad) return {0, true};
        bool found = false;
        if (!details::is_settled(fast_, sentence_, fast_rounding(sentence_, survey_), root, heads, found, stop)) {
            const OwnScores scores(sentence_);
            with_wide_weights(scores.bits(), more_bits(sentence_.words),
                              [&]<class Weight>(const Rounding<Weight>& rounding) {
                                  BestChart<Weight> wide;
                                  details::is_settled(wide, scores.sentence(), rounding, root, heads, found, stop);
                              });
        }
        return found ? Feasibility{} : find_unattachable(sentence_, root, stop);
    }

    Feasibility operator()(const Sentence<T>& sentence, Root root, Heads* heads, StopSignal& stop) {
        read(sentence);
        return write(root, heads, stop);
    }

private:
    std::vector<T> best_;
    std::vector<IndexLike<T>> head_;
    Sentence<T> sentence_;
    Survey<T> survey_;
    BestChart<double> fast_;
};

}  // namespace spantree::projective
