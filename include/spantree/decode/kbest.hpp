// The k best trees, lazily: O(n^2) each. Camerini, Fratta & Maffioli 1980, as simplified by Zmigrod, Vieira & Cotterell
// 2021.
//
// A problem is the set of trees that have some required edges and none of some forbidden ones. Given its best tree A,
// its second best is the best one without some edge b of A. Finding b needs no new search: b was taken by one node X of
// the contraction, and the best that can be done without b is for X to take its next best edge whose head is not below
// b in A. The loss is
//
//     w(b) - max { w(f) : f enters X, f != b, the head of f is not a descendant of b's word in A },
//
// and b is the edge of A with the least loss. The rest of the problem splits in two: without b (its best tree has just
// been scored), and with b (its best tree is still A). A heap holds the second-best scores of all problems met so far.
//
//     A: ROOT -> 2, 2 -> 1, 2 -> 3. Without 2 -> 1, word 1 may hang on ROOT or on 3, which is not below it; without
//     ROOT -> 2, word 2 may hang on neither 1 nor 3: both are below it, and a cycle would close.
//
// Ties. The problem "with b" must find A again and not another tree of the same score, or trees would come twice or
// never. Weights are whole numbers (weight.hpp), so: multiply all by a power of two above n and add 1 to the edges of A.
// Then A is the only best tree.
//
// Rounded weights. In doubt (weight.hpp) are: decisions of the contraction, which edge has the least loss (the nodes of
// two losses may share words: 2 n units), and which candidate comes first (two sums of n edges: n units).
//
// One root: contraction.hpp compares (root edges, score) pairs; a loss that changes the number of root edges is none we
// want. So a word's edge is only replaced by another from a word, and the root edge by another root edge.
//
// Labels: an edge stands for its best label that is not forbidden; b may also be replaced by its own next best label.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <cstdint>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "../batch/labels.hpp"
#include "../batch/parallel.hpp"
#include "../batch/sentence.hpp"
#include "../batch/tree.hpp"
#include "best_tree.hpp"
#include "contraction.hpp"
#include "own_scores.hpp"
#include "survey.hpp"
#include "tree_stream.hpp"
#include "weight.hpp"

namespace spantree {

namespace details {

/// The largest weight from a word u != skip whose place in the tree's depth-first order is not in [first, first +
/// size).
struct BestFromOutside {
    template <class Weight>
    static Weight run(const Weight* row, const std::uint64_t* order, std::uint64_t first, std::uint64_t size,
                      std::uint64_t skip, int count) {
        constexpr Weight none = WeightTraits<Weight>::barred;
        Weight best = none;
        for (std::uint64_t u = 0; u < static_cast<std::uint64_t>(count); ++u) {
            const bool counts = (order[u] - first >= size) & (u != skip);
            const Weight weight = counts ? row[u] : none;
            best = weight > best ? weight : best;
        }
        return best;
    }
};

}  // namespace details

template <class T, class Weight>
class KBest final : public TreeSearch {
public:
    /// `plain` has the scores of each edge's best label, or is the sentence if that has no labels; first_heads[word] is
    /// the best head among the words; `best` is a best tree, and the first to be given.
    KBest(const Sentence<T>& sentence, const Sentence<T>& plain, Root root, const Rounding<Weight>& rounding,
          const std::vector<int>& first_heads, const std::vector<Heads>& best, StopSignal& stop,
          std::unique_ptr<const OwnScores> own = nullptr)
        : own_(std::move(own)),
          sentence_(sentence),
          words_(sentence.words),
          root_(root),
          width_(static_cast<int>(row_width(words_))),
          rounding_(rounding),
          inexact_(rounding.always_rounds()),
          all_first_(first_heads) {
        read_weights(plain, stop);
        impose(no_constraint);
        remember_tree(no_constraint, [&](int dep) { return static_cast<int>(best[dep]); });
    }

    bool next(Heads* heads, Heads* labels, StopSignal& stop) override {
        stop.check();
        if (given_++ == 0) {
            write(0, heads, labels);
            return true;
        }
        if (given_ == 2 && search(0, stop)) push_second_best(no_constraint, 0, stop);
        if (queue_.empty() || doubtful_) return false;
        const Candidate candidate = queue_.top();
        queue_.pop();
        if (!queue_.empty()) doubt(is_close(candidate.weight, queue_.top().weight, weight_tolerance()));
        if (doubtful_) return false;
        const int tree = branch(candidate, stop);
        if (doubtful_ || tree == no_tree) return false;
        write(tree, heads, labels);
        return !doubtful_;
    }

    bool doubtful() const override { return doubtful_; }

    /// Bits that weights need beyond those of the scores: for sums, and for marking a tree.
    static int more_bits(int words) { return headroom_bits(words) + mark_bits(words); }

private:
    static constexpr int no_constraint = -1;
    static constexpr int no_tree = -1;

    struct OneEdge {
        int dep, head, label;
        friend auto operator<=>(const OneEdge&, const OneEdge&) = default;
    };
    struct Constraint {
        int parent;  // the constraints this one adds to
        OneEdge edge;
        bool required;
    };
    struct Tree {
        std::vector<std::int32_t> heads, labels;
        Weight weight;
    };
    /// The second-best tree of a problem: its best tree without `edge`.
    struct Candidate {
        Weight weight;
        int number;  // among equals, first come first served
        int constraint;
        int best;
        OneEdge edge;
        friend bool operator<(const Candidate& a, const Candidate& b) {
            return a.weight != b.weight ? a.weight < b.weight : a.number > b.number;
        }
    };

    struct Loss {
        Weight weight;
        int dep;
    };

    static int mark_bits(int words) { return std::bit_width(static_cast<unsigned>(words)); }

    bool labelled() const { return sentence_.labels > 0; }
    Weight* row(std::vector<Weight>& rows, int dep) const {
        return rows.data() + static_cast<std::size_t>(dep) * width_;
    }

    void doubt(bool reason) { doubtful_ |= reason; }
    static bool is_close(const Weight& a, const Weight& b, std::int64_t tolerance) {
        if constexpr (WeightTraits<Weight>::rounds)
            return a - b <= tolerance && b - a <= tolerance;
        else
            return false;
    }
    /// For two trees' weights.
    std::int64_t weight_tolerance() const { return inexact_ ? words_ : -1; }
    /// For two sums of weights multiplied to leave room for marks.
    std::int64_t tolerance() const { return inexact_ ? std::int64_t{words_} << mark_bits(words_) : -1; }
    /// For the losses of two nodes, which may share words.
    std::int64_t loss_tolerance() const { return inexact_ ? 2 * tolerance() : -1; }

    /// All weights as rows by dependent, multiplied to leave room for marks.
    void read_weights(const Sentence<T>& plain, StopSignal& stop) {
        const std::size_t nodes = static_cast<std::size_t>(words_) + 1;
        all_rows_.assign(nodes * width_, WeightTraits<Weight>::absent);
        all_root_.assign(nodes, WeightTraits<Weight>::absent);
        for (int dep = 1; dep <= words_; ++dep) {
            check_if_wide<Weight>(stop);
            Weight* weights = row(all_rows_, dep);
            for (int head = 1; head <= words_; ++head)
                weights[head - 1] = head == dep ? WeightTraits<Weight>::barred : scaled(plain(head, dep));
            all_root_[dep] = scaled(plain(0, dep));
        }
    }

    Weight scaled(double score) {
        const Weight weight = rounding_(score, inexact_);
        return WeightTraits<Weight>::is_absent(weight) ? weight : weight << mark_bits(words_);
    }
    Weight edge_weight(const OneEdge& edge) {
        return scaled(labelled() ? sentence_(edge.head, edge.dep, edge.label) : sentence_(edge.head, edge.dep));
    }
    int best_head(const Weight* weights) {
        const auto best = dispatch<details::FindLargest>(weights, width_, tolerance());
        if (WeightTraits<Weight>::is_absent(best.weight)) return 0;
        doubt(best.doubtful);
        return best.at + 1;
    }

    /// What `Contraction` reads.
    struct ConstrainedWeights {
        KBest& self;
        StopSignal& stop;
        std::int64_t tolerance() const { return self.tolerance(); }
        void start_row(Weight* row, int dep, const Weight& choice) const {
            check_if_wide<Weight>(stop);
            details::SubtractRow::run(row, self.row(self.rows_, dep), choice, self.width_);
        }
        void merge_row(Weight* row, int dep, const Weight& choice) const {
            check_if_wide<Weight>(stop);
            details::MergeRows::run(row, self.row(self.rows_, dep), choice, self.width_);
        }
        Weight weight(int head, int dep) const { return self.get_weight(head, dep); }
        int first_choice(int dep) const { return self.first_choice_[dep]; }
        void from_root(Weight* weights) const { std::copy_n(self.root_weights_.data() + 1, self.words_, weights); }
        void from_first_choice(Weight* weights) const {
            for (int dep = 1; dep <= self.words_; ++dep)
                if (const int head = first_choice(dep)) weights[dep - 1] = weight(head, dep);
        }
    };

    /// Finds the best tree under the constraints imposed last; `marked` is the one to prefer among equals. There always
    /// is one, unless scores change while they are read.
    bool search(int marked, StopSignal& stop) {
        if (marked != no_tree) mark(trees_[marked]);
        const ConstrainedWeights weights{*this, stop};
        const Feasibility feasible = contraction_.run(weights, words_, root_, true);
        if (feasible && !contraction_.doubtful()) contraction_.expand(weights);
        doubt(contraction_.doubtful());
        return feasible && !doubtful_;
    }

    void set_weight(int head, int dep, const Weight& weight) {
        (head == 0 ? root_weights_[dep] : row(rows_, dep)[head - 1]) = weight;
    }
    Weight get_weight(int head, int dep) const {
        return head == 0 ? root_weights_[dep] : rows_[static_cast<std::size_t>(dep) * width_ + head - 1];
    }

    /// Sets the weights to those of the sentence under the constraints.
    void impose(int constraint) {
        rows_ = all_rows_;
        root_weights_ = all_root_;
        first_choice_ = all_first_;
        required_.assign(static_cast<std::size_t>(words_) + 1, false);
        forbidden_.clear();
        for (int at = constraint; at != no_constraint; at = constraints_[at].parent) {
            const auto& [parent, edge, required] = constraints_[at];
            if (!required) {
                forbidden_.push_back(edge);
                continue;
            }
            required_[edge.dep] = true;
            const Weight weight = edge_weight(edge);
            std::fill_n(row(rows_, edge.dep), words_, WeightTraits<Weight>::absent);
            row(rows_, edge.dep)[edge.dep - 1] = WeightTraits<Weight>::barred;
            root_weights_[edge.dep] = WeightTraits<Weight>::absent;
            set_weight(edge.head, edge.dep, weight);
            first_choice_[edge.dep] = edge.head;
        }
        std::sort(forbidden_.begin(), forbidden_.end());
        for (std::size_t i = 0; i < forbidden_.size(); ++i) {
            const auto& [dep, head, forbidden_label] = forbidden_[i];
            const bool last_of_dep = i + 1 == forbidden_.size() || forbidden_[i + 1].dep != dep;
            const bool last_of_edge = last_of_dep || forbidden_[i + 1].head != head;
            if (required_[dep] || !last_of_edge) continue;
            const int label = allowed_label(head, dep, no_label);
            set_weight(head, dep,
                       label == no_label ? WeightTraits<Weight>::absent : scaled(sentence_(head, dep, label)));
            if (last_of_dep) first_choice_[dep] = best_head(row(rows_, dep));
        }
    }

    static constexpr int no_label = -1;

    /// The best label of an edge that is neither forbidden by the constraints imposed last nor `besides`.
    int allowed_label(int head, int dep, int besides) {
        const auto is_allowed = [&](int label) {
            return label != besides &&
                   !std::binary_search(forbidden_.begin(), forbidden_.end(), OneEdge{dep, head, label});
        };
        if (!labelled()) return no_label;
        const auto [first, second] = best_two_labels(head, dep);
        if (first == no_label || is_allowed(first)) return first;
        if (second == no_label || is_allowed(second)) return second;
        int best = no_label;
        T best_score = minus_infinity<T>;
        for (int label = 0; label < sentence_.labels; ++label) {
            const T score = sentence_(head, dep, label);
            if (!(score > best_score) || !is_allowed(label)) continue;
            best = label;
            best_score = score;
        }
        return best;
    }

    struct TwoLabels {
        std::int32_t best = not_asked, next = not_asked;
        static constexpr std::int32_t not_asked = -2;
    };

    /// The best label of an edge and the best besides; found when first asked for.
    TwoLabels best_two_labels(int head, int dep) {
        const std::size_t nodes = static_cast<std::size_t>(words_) + 1;
        if (two_labels_.empty()) two_labels_.resize(nodes * nodes);
        TwoLabels& two = two_labels_[dep * nodes + head];
        if (two.best != TwoLabels::not_asked) return two;
        two = {no_label, no_label};
        T best_score = minus_infinity<T>, next_score = minus_infinity<T>;
        for (int label = 0; label < sentence_.labels; ++label) {
            const T score = sentence_(head, dep, label);
            if (score > best_score) {
                two = {label, two.best};
                next_score = best_score;
                best_score = score;
            } else if (score > next_score) {
                two.next = label;
                next_score = score;
            }
        }
        return two;
    }

    void mark(const Tree& tree) {
        for (int dep = 1; dep <= words_; ++dep) {
            const int head = tree.heads[dep];
            const Weight marked = get_weight(head, dep) + WeightTraits<Weight>::one;
            set_weight(head, dep, marked);
            const int first = first_choice_[dep];
            if (head == 0 || head == first) continue;
            const Weight other = get_weight(first, dep);
            doubt(is_close(marked, other, tolerance()));
            if (marked > other) first_choice_[dep] = head;
        }
    }

    /// Keeps a tree under the constraints imposed last, `constraint`, with the best labels they allow.
    template <class HeadOf>
    int remember_tree(int constraint, HeadOf head_of) {
        Tree tree;
        tree.heads.resize(static_cast<std::size_t>(words_) + 1, no_head);
        tree.labels.resize(labelled() ? tree.heads.size() : 0, no_head);
        tree.weight = Weight{};
        for (int dep = 1; dep <= words_; ++dep) {
            const int head = head_of(dep);
            tree.heads[dep] = head;
            tree.weight = tree.weight + (get_weight(head, dep) >> mark_bits(words_));
            if (labelled()) {
                const int label = required_[dep] ? required_label(constraint, dep) : allowed_label(head, dep, no_label);
                tree.labels[dep] = std::max(label, 0);  // none is allowed: scores change while they are read
            }
        }
        trees_.push_back(std::move(tree));
        return static_cast<int>(trees_.size()) - 1;
    }

    int required_label(int constraint, int dep) const {
        int at = constraint;
        while (!(constraints_[at].required && constraints_[at].edge.dep == dep)) at = constraints_[at].parent;
        return constraints_[at].edge.label;
    }

    int add_constraint(int parent, const OneEdge& edge, bool required) {
        constraints_.push_back({parent, edge, required});
        return static_cast<int>(constraints_.size()) - 1;
    }

    /// Splits the candidate's problem at its edge; returns the tree without it.
    int branch(const Candidate& candidate, StopSignal& stop) {
        const int without = add_constraint(candidate.constraint, candidate.edge, false);
        impose(without);
        if (!search(no_tree, stop)) return no_tree;
        const int tree = remember_tree(without, [&](int dep) { return contraction_.node(dep).choice.head; });
        push_second_best(without, tree, stop);

        stop.check();
        const int with = add_constraint(candidate.constraint, candidate.edge, true);
        impose(with);
        if (search(candidate.best, stop)) push_second_best(with, candidate.best, stop);
        return tree;
    }

    /// After `search` has found `tree`: the edge whose loss is least.
    void push_second_best(int constraint, int tree, StopSignal& stop) {
        number_subtrees(trees_[tree]);
        losses_.clear();
        for (int index = 1; index <= contraction_.last_node(); ++index) {
            check_if_wide<Weight>(stop);
            const auto& node = contraction_.node(index);
            if (!node.kept || required_[node.choice.dep]) continue;
            const Weight other = second_best_into(index, trees_[tree]);
            if (!WeightTraits<Weight>::is_absent(other)) losses_.push_back({node.taken - other, node.choice.dep});
        }
        if (losses_.empty()) return;
        const auto smaller = [](const Loss& a, const Loss& b) { return a.weight < b.weight; };
        const Loss least = *std::min_element(losses_.begin(), losses_.end(), smaller);
        for (const Loss& loss : losses_)
            doubt(loss.dep != least.dep && is_close(loss.weight, least.weight, loss_tolerance()));
        const Tree& best = trees_[tree];
        const OneEdge edge{least.dep, best.heads[least.dep], labelled() ? best.labels[least.dep] : no_label};
        queue_.push({best.weight - (least.weight >> mark_bits(words_)), pushed_++, constraint, tree, edge});
    }

    /// The weight of the second-best edge into a node, counted like node.taken.
    Weight second_best_into(int index, const Tree& tree) {
        const auto& node = contraction_.node(index);
        const auto [head, dep] = node.choice;
        Weight best = WeightTraits<Weight>::barred;
        if (root_ == Root::multi || head != 0) {
            const Weight* weights = index <= words_ ? row(rows_, index) : node.row;
            best = dispatch<details::BestFromOutside>(weights, order_.data(), order_[dep - 1], size_[dep],
                                                      static_cast<std::uint64_t>(head - 1), width_);
        }
        if (root_ == Root::multi && head != 0) best = std::max(best, node.from_root);
        best = std::max(best, same_head_elsewhere(index));
        if (labelled()) {
            const int label = allowed_label(head, dep, tree.labels[dep]);
            if (label != no_label)
                best = std::max(
                    best, node.taken - (edge_weight({dep, head, tree.labels[dep]}) - edge_weight({dep, head, label})));
        }
        return best;
    }

    /// The best edge from the same head into another word of the node: a row keeps only the best from each head.
    Weight same_head_elsewhere(int index) const {
        const auto [head, dep] = contraction_.node(index).choice;
        Weight best = WeightTraits<Weight>::absent;
        for (int inner = dep; inner != index; inner = contraction_.node(inner).parent) {
            best = best - contraction_.node(inner).taken;
            const int cycle = contraction_.node(inner).parent;
            for (int other = contraction_.node(cycle).first_member; other != 0;
                 other = contraction_.node(other).next_member) {
                if (other == inner) continue;
                const auto& it = contraction_.node(other);
                const Weight& weight = head == 0        ? it.from_root
                                       : other > words_ ? it.row[head - 1]
                                                        : rows_[static_cast<std::size_t>(other) * width_ + head - 1];
                best = std::max(best, weight - it.taken);
            }
        }
        return best;
    }

    /// order_[u - 1]: place of word u in a depth-first walk of the tree; it and its descendants take the next size_[u]
    /// places.
    void number_subtrees(const Tree& tree) {
        const std::size_t nodes = static_cast<std::size_t>(words_) + 1;
        first_child_.assign(nodes, 0);
        next_child_.assign(nodes, 0);
        for (int dep = words_; dep >= 1; --dep) {
            next_child_[dep] = first_child_[tree.heads[dep]];
            first_child_[tree.heads[dep]] = dep;
        }
        order_.assign(static_cast<std::size_t>(width_), 0);
        size_.resize(nodes);
        std::uint64_t place = 0;
        int node = 0;
        for (;;) {
            if (first_child_[node] != 0) {
                node = first_child_[node];
                order_[node - 1] = place++;
                continue;
            }
            while (node != 0 && next_child_[node] == 0) {
                size_[node] = place - order_[node - 1];
                node = tree.heads[node];
            }
            if (node == 0) break;
            size_[node] = place - order_[node - 1];
            node = next_child_[node];
            order_[node - 1] = place++;
        }
    }

    void write(int tree, Heads* heads, Heads* labels) {
        const Tree& it = trees_[tree];
        std::copy(it.heads.begin(), it.heads.end(), heads);
        if (labelled()) std::copy(it.labels.begin(), it.labels.end(), labels);
        if (tree == 0) return;  // known to be the best
        for (int dep = 1; dep <= words_; ++dep)
            doubt(!rounding_.reaches(labelled() ? sentence_(it.heads[dep], dep, it.labels[dep])
                                                : sentence_(it.heads[dep], dep)));
    }

    std::unique_ptr<const OwnScores> own_;  // where the scores lie, if not in the caller's memory
    Sentence<T> sentence_;
    int words_;
    Root root_;
    int width_;
    Rounding<Weight> rounding_;
    std::int64_t inexact_;  // not zero: a weight used so far was rounded
    bool doubtful_ = false;
    std::vector<Weight> all_rows_, all_root_, rows_, root_weights_;  // of the sentence; under the current constraints
    std::vector<int> all_first_, first_choice_;
    std::vector<std::uint8_t> required_;  // by word: its edge is required
    std::vector<OneEdge> forbidden_;      // by the current constraints
    std::vector<TwoLabels> two_labels_;   // by dependent, then head
    Contraction<Weight> contraction_;
    std::vector<Tree> trees_;
    std::vector<Constraint> constraints_;
    std::priority_queue<Candidate> queue_;
    std::vector<Loss> losses_;
    int pushed_ = 0;
    std::size_t given_ = 0;
    std::vector<int> first_child_, next_child_;
    std::vector<std::uint64_t> order_, size_;
};

/// The trees of a sentence from best to worst. The first is the one that `BestTree` gives; null if there is none. The
/// scores must stay where they are.
template <class T>
std::unique_ptr<TreeStream> best_trees(const Sentence<T>& sentence, Root root, Feasibility& feasible,
                                       StopSignal& stop) {
    std::vector<T> arcs;
    const Sentence<T> plain = sentence.labels ? best_labels(sentence, arcs) : sentence;
    const std::size_t nodes = static_cast<std::size_t>(sentence.words) + 1;
    std::vector<Heads> best(nodes);
    BestTree<T> best_tree;
    const Survey<T>& survey = best_tree.read(plain);
    feasible = best_tree.write(root, best.data(), stop);
    if (!feasible) return nullptr;

    std::vector<int> first_heads(nodes);
    if (sentence.words > 0) std::copy_n(survey.head + 1, sentence.words, first_heads.begin() + 1);
    const int more_bits = KBest<T, std::int64_t>::more_bits(sentence.words);
    const Rounding<std::int64_t> rounding(survey.largest, reach(plain, survey, sentence.labels > 0),
                                          WeightTraits<std::int64_t>::usable_bits - more_bits);
    auto fast = std::make_unique<KBest<T, std::int64_t>>(sentence, plain, root, rounding, first_heads, best, stop);
    auto make_wide = [sentence, root, more_bits, first_heads = std::move(first_heads),
                      best = std::move(best)](StopSignal& stop) -> std::unique_ptr<TreeSearch> {
        auto own = std::make_unique<const OwnScores>(sentence);
        return with_wide_weights(
            own->bits(), more_bits, [&]<class Weight>(const Rounding<Weight>& rounding) -> std::unique_ptr<TreeSearch> {
                const OwnScores& scores = *own;
                return std::make_unique<KBest<double, Weight>>(scores.sentence(), scores.plain(), root, rounding,
                                                               first_heads, best, stop, std::move(own));
            });
    };
    return std::make_unique<DoubtingTreeStream<T, decltype(make_wide)>>(sentence, std::move(fast),
                                                                        std::move(make_wide));
}

}  // namespace spantree
