// The solved state of one sentence: its charts, from which all sums over its projective trees follow without another solve.
//
// Unchanged once solved, so any number of threads may ask it. It keeps the centred scores, the marginals, and twelve tables
// of n (n + 8) numbers, of one double each, or of two where doubles do not have the range: about 110 n^2 bytes, or 210.
//
// Labels are parallel edges. The charts see an edge's total weight. With share(y) = w(y) / sum of w, means over labels
// taken by share, and A_g, A_u, A_ug the slopes of the edge's marginal m (slopes.hpp),
//
//     value of an edge         mean(v)                      its mixed derivative     mean(u g) - mean(u) mean(g)
//     marginal                 m share(y)
//     hessian(g)               m share(y) (A_g + g(y) - mean(g))
//     third(u, g)              m share(y) ((A_u + u(y) - mean(u)) (A_g + g(y) - mean(g)) + A_ug - (mean(u g) - mean(u) mean(g)))
//
// Without labels share is 1 and v(y) - mean(v) is 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../batch/centred.hpp"
#include "../batch/edges_out.hpp"
#include "../batch/label_shares.hpp"
#include "../batch/labels.hpp"
#include "../batch/parallel.hpp"
#include "../batch/relative_scores.hpp"
#include "../batch/scratch_pool.hpp"
#include "../batch/sentence.hpp"
#include "../batch/tree.hpp"
#include "edge_values.hpp"
#include "eight_of_edges.hpp"
#include "eight_slopes.hpp"
#include "eisner.hpp"
#include "inside_outside.hpp"
#include "likely_tree.hpp"
#include "mixed_slopes.hpp"
#include "sample.hpp"
#include "slopes.hpp"
#include "sum_product.hpp"

namespace spantree::projective {

/// log Z = total + rest: what all trees have in common, which may be huge, and log Z of what is left.
struct LogPartition {
    double total = 0.0;
    double rest = 0.0;
    double value() const { return rest == minus_infinity<double> ? rest : total + rest; }
};

/// Which questions a solve is for.
enum class Purpose {
    partition,  // log Z, and drawing trees
    marginals   // and everything else
};

/// What questions need beside the solved sentence; reused from sentence to sentence on one thread.
struct QuestionScratch {
    SharesOfLabels labels;
    std::vector<int> likeliest;                                        // by word, its likeliest head
    std::tuple<EdgeNumbers<1>, EdgeNumbers<2>, EightsOfEdges> values;  // of one direction, two, eight
    EdgeNumbers<1> mixed_values;
    std::tuple<ChartSlopes<1>, ChartSlopes<2>, EightSlopes> slopes;
    MixedSlopes mixed;
    LikelyTree likely;
    std::vector<double> of_edges;  // [head, dep]
    ChartSampler draw;

    template <int count>
    auto& values_of() {
        return std::get<std::conditional_t<count == 8, EightsOfEdges, EdgeNumbers<count>>>(values);
    }
    template <int count>
    auto& slopes_of() {
        return std::get<std::conditional_t<count == 8, EightSlopes, ChartSlopes<count>>>(slopes);
    }

    std::size_t bytes() const {
        const auto total = [](const auto&... parts) { return (parts.bytes() + ...); };
        return std::apply(total, values) + std::apply(total, slopes) + mixed_values.bytes() + mixed.bytes() +
               draw.bytes();
    }
};

class SolvedSentence {
public:
    template <class T>
    void solve(const Sentence<T>& sentence, Root root, Purpose purpose, StopSignal& stop) {
        begin(sentence, root, stop);
        if (feasible() && purpose == Purpose::marginals && words_ > 0) find_marginals(stop);
    }

    /// Solves for marginals, and returns the entropy; writes its gradient.
    template <class T, class Out>
    double solve_with_entropy(const Sentence<T>& sentence, Root root, QuestionScratch& scratch,
                              const EdgeTarget<Out>& gradient, StopSignal& stop) {
        begin(sentence, root, stop);
        if (sentence.labels || !feasible() || words_ == 0) {
            if (feasible() && words_ > 0) find_marginals(stop);
            const double result = entropy(sentence, scratch);
            write_entropy_gradient(sentence, scratch, gradient, stop);
            return result;
        }
        auto& r = scratch.values_of<1>();
        auto& slopes = scratch.slopes_of<1>();
        find_marginals(
            [&](auto& sums) {
                take_surprises(scratch.likely.find(sums), r);
                slopes.run_with_outside(sums, r, stop);
            },
            stop);
        write_hessian(sentence, scratch, r, slopes, gradient);
        return entropy_around(scratch.likely.heads());
    }

    /// The same sentence solved for marginals, from one that was solved for log Z.
    void complete(const SolvedSentence& begun, StopSignal& stop) {
        words_ = begun.words_;
        root_ = begun.root_;
        found_ = begun.found_;
        scores_ = begun.scores_;
        rest_ = begun.rest_;
        if (!feasible()) return;
        draws_in_doubles_ = begun.draws_in_doubles_;
        every_tree_in_doubles_ = begun.every_tree_in_doubles_;
        draws_in_doubles_ ? doubles_.copy_inside(begun.doubles_) : extended_.copy_inside(begun.extended_);
        if (words_ > 0) find_marginals(stop);
    }

    int words() const { return words_; }
    Root root() const { return root_; }
    bool feasible() const { return rest_ > minus_infinity<double>; }
    const Feasibility& found() const { return found_; }
    LogPartition log_partition() const { return {scores_.total(), rest_}; }
    const CentredScores& scores() const { return scores_; }
    double marginal(int head, int dep) const {
        return marginals_[static_cast<std::size_t>(head) * (words_ + 1) + static_cast<std::size_t>(dep)];
    }

    /// Calls use(sums) with the charts for drawing trees.
    template <class Use>
    decltype(auto) with_inside(Use use) const {
        return draws_in_doubles_ ? use(doubles_) : use(extended_);
    }

    /// From now on no tree, however unlikely, is lost from those charts.
    void make_room_for_every_tree(StopSignal& stop) {
        if (has_room_for_every_tree()) return;
        extended_.run_inside(scores_, root_, true, stop);
        draws_in_doubles_ = false;
    }
    bool has_room_for_every_tree() const { return every_tree_in_doubles_ && draws_in_doubles_; }
    bool draws_in_doubles() const { return draws_in_doubles_; }

    template <class T, class Out>
    void write_marginals(const Sentence<T>& sentence, QuestionScratch& scratch, const EdgeTarget<Out>& to,
                         double weight = 1.0) const {
        if (!sentence.labels && feasible())
            return write_edges(sentence, to, [&](int head, int dep) { return weight * marginal(head, dep); });
        clear_edges(to, sentence.labels);
        for_each_possible_edge(sentence, scratch.labels, [&](int head, int dep) {
            Out* const out = to.edge(head, dep);
            for (int label = 0; label < scratch.labels.count(); ++label)
                out[label] = static_cast<Out>(weight * marginal(head, dep) * scratch.labels[label]);
        });
    }

    /// E[sum of values(head, dep, label) over the tree's edges]; NaN if there is no tree.
    template <class T, class Values>
    double expectation(const Sentence<T>& sentence, QuestionScratch& scratch, Values values) const {
        if (!feasible()) return std::numeric_limits<double>::quiet_NaN();
        double sum = 0.0;
        for_each_possible_edge(sentence, scratch.labels, [&](int head, int dep) {
            sum += marginal(head, dep) * scratch.labels.mean([&](int label) { return values(head, dep, label); });
        });
        return sum;
    }

    /// In nats; NaN if there is no tree. With t a tree that has most of the mass if any has, the entropy is
    ///     (log Z - score(t)) + E[score(t) - score(tree)] + E[entropy of the labels]:
    /// small numbers where one tree has nearly all the mass.
    template <class T>
    double entropy(const Sentence<T>& sentence, QuestionScratch& scratch) const {
        if (!feasible()) return std::numeric_limits<double>::quiet_NaN();
        if (words_ == 0) return 0.0;
        double of_labels = 0.0;
        if (sentence.labels)
            for_each_possible_edge(sentence, scratch.labels, [&](int head, int dep) {
                of_labels += marginal(head, dep) * scratch.labels.entropy();
            });
        with_outside([&](const auto& sums) { scratch.likely.find(sums); });
        return entropy_around(scratch.likely.heads()) + of_labels;
    }

    /// Minus the score of an edge with a label, relative to what all trees have in common: what the entropy is the
    /// expectation of, up to a constant. To be asked about the edge that `scratch.labels` looks at.
    auto surprise(const QuestionScratch& scratch) const {
        return [this, &labels = scratch.labels](int head, int dep, int label) {
            return labels.count() == 1 ? -scores_(head, dep) : -scores_(head, dep) - std::log(labels[label]);
        };
    }

    /// The entropy's gradient; 0 where there is no tree.
    template <class T, class Out>
    void write_entropy_gradient(const Sentence<T>& sentence, QuestionScratch& scratch, const EdgeTarget<Out>& to,
                                StopSignal& stop) const {
        if (sentence.labels) return hessian<1>(sentence, scratch, [&](int) { return surprise(scratch); }, &to, 1, stop);
        if (!feasible() || words_ == 0) return clear_edges(to, 0);
        auto& r = scratch.values_of<1>();
        auto& slopes = scratch.slopes_of<1>();
        with_outside([&](const auto& sums) {
            sums.fetch();
            take_surprises(scratch.likely.find(sums), r);
            slopes.run(sums, r, stop);
        });
        write_hessian(sentence, scratch, r, slopes, to);
    }

    /// The second derivative of log Z contracted with up to `count` directions, `used` of them: the covariance of every edge
    /// with the sum of values(k)(head, dep, label) over the tree, which is the gradient of its expectation. 0 where there is
    /// no tree.
    template <int count, class T, class Values, class Out>
    void hessian(const Sentence<T>& sentence, QuestionScratch& scratch, Values values, const EdgeTarget<Out>* to,
                 int used, StopSignal& stop) const {
        for (int k = 0; k < used; ++k) clear_edges(to[k], sentence.labels);
        if (!feasible() || words_ == 0) return;
        auto& r = scratch.template values_of<count>();
        auto& slopes = scratch.template slopes_of<count>();
        take_means<count>(sentence, scratch, values, used, r);
        with_outside([&](const auto& sums) {
            sums.fetch();
            slopes.run(sums, r, stop);
        });
        for_each_possible_edge(sentence, scratch.labels, [&](int head, int dep) {
            for (int k = 0; k < used; ++k) {
                const auto value = [&](int label) { return values(k)(head, dep, label); };
                const LabelSlope<decltype(value)> along(scratch.labels, value, slopes.of_marginal(r, head, dep, k));
                Out* const out = to[k].edge(head, dep);
                for (int label = 0; label < scratch.labels.count(); ++label)
                    if (const double share = scratch.labels[label]; share > 0.0)
                        out[label] = static_cast<Out>(marginal(head, dep) * share * along(label));
            }
        });
    }

    /// Of a sentence without labels, `used` values per edge, at most eight: what `expectation` says of each of them, and
    /// `hessian`. They are read, and gradients written, all eight of an edge after each other: fastest where they lie side by
    /// side.
    template <class Out>
    void expectations_of_eight(QuestionScratch& scratch, const EightOfEdges<const double>& values,
                               const EightOfEdges<Out>& gradients, double (&totals)[8], StopSignal& stop) const {
        std::fill_n(totals, 8, feasible() ? 0.0 : std::numeric_limits<double>::quiet_NaN());
        if (!feasible() || words_ == 0) return gradients.for_each_target(clear_edges<Out>);
        auto& r = scratch.values_of<8>();
        auto& slopes = scratch.slopes_of<8>();
        take_eight(scratch, values, r, totals);
        with_outside([&](const auto& sums) {
            sums.fetch();
            slopes.run(sums, r, stop);
        });
        if (words_ + 1 < gradients.width()) gradients.for_each_target(clear_edges<Out>);
        for (int head = 0; head <= words_; ++head)
            for (int dep = 0; dep <= words_; ++dep) {
                double gradient[8] = {};
                if (const double m = marginal(head, dep); m > 0.0) {
                    slopes.of_marginals(r, head, dep, gradient);
                    for (double& x : gradient) x *= m;
                }
                gradients.set(head, dep, gradient);
            }
    }

    /// The third derivative of log Z contracted with u and g: the derivative of hessian(g) along u. 0 where there is no
    /// tree.
    template <class T, class U, class G, class Out>
    void third(const Sentence<T>& sentence, QuestionScratch& scratch, U u, G g, const EdgeTarget<Out>& to,
               StopSignal& stop) const {
        clear_edges(to, sentence.labels);
        if (!feasible() || words_ == 0) return;
        auto& r = scratch.values_of<2>();
        auto& slopes = scratch.slopes_of<2>();
        take_means<2>(
            sentence, scratch,
            [&](int k) {
                return
                    [&, k](int head, int dep, int label) { return k == 0 ? u(head, dep, label) : g(head, dep, label); };
            },
            2, r);
        take_covariances_of_labels(sentence, scratch, u, g);
        with_outside([&](const auto& sums) {
            sums.fetch();
            slopes.run(sums, r, stop);
            scratch.mixed.run(sums, slopes, r, scratch.mixed_values, stop);
        });
        for_each_possible_edge(sentence, scratch.labels, [&](int head, int dep) {
            const auto value_u = [&](int label) { return u(head, dep, label); };
            const auto value_g = [&](int label) { return g(head, dep, label); };
            const LabelSlope<decltype(value_u)> along_u(scratch.labels, value_u, slopes.of_marginal(r, head, dep, 0));
            const LabelSlope<decltype(value_g)> along_g(scratch.labels, value_g, slopes.of_marginal(r, head, dep, 1));
            const double mixed =
                scratch.mixed.of_marginal(scratch.mixed_values, head, dep) - scratch.mixed_values(head, dep);
            Out* const out = to.edge(head, dep);
            for (int label = 0; label < scratch.labels.count(); ++label)
                if (const double share = scratch.labels[label]; share > 0.0)
                    out[label] =
                        static_cast<Out>(marginal(head, dep) * share * (along_u(label) * along_g(label) + mixed));
        });
    }

    std::size_t bytes() const { return doubles_.bytes() + extended_.bytes() + marginals_.capacity() * sizeof(double); }

private:
    template <class T>
    void begin(const Sentence<T>& sentence, Root root, StopSignal& stop) {
        words_ = sentence.words;
        root_ = root;
        scores_.read(sentence, root, true, stop, [&](const Sentence<double>& centred, Heads* heads) {
            return static_cast<bool>(best_tree(centred, root, heads, stop));
        });
        found_ = {0, scores_.bad()};
        rest_ = minus_infinity<double>;
        if (found_.bad_score) return;
        find_total(stop);
        if (feasible()) return;
        std::vector<Heads> heads(static_cast<std::size_t>(words_) + 1);
        found_ = best_tree(scores_.sentence(), root, heads.data(), stop);
    }

    /// The slope of an edge's marginal with a label: the edge's and what the label is ahead of the others.
    template <class Value>
    class LabelSlope {
    public:
        LabelSlope(const SharesOfLabels& labels, Value value, double edge)
            : value_(value), edge_(edge), several_(labels.count() > 1), mean_(several_ ? labels.mean(value) : 0.0) {}
        double operator()(int label) const { return several_ ? edge_ + (value_(label) - mean_) : edge_; }

    private:
        Value value_;
        double edge_;
        bool several_;
        double mean_;
    };

    static Feasibility best_tree(const Sentence<double>& scores, Root root, Heads* heads, StopSignal& stop) {
        return BestProjectiveTree<double>()(scores, root, heads, stop);
    }

    void find_total(StopSignal& stop) {
        const RangeOfSums range(scores_);
        every_tree_in_doubles_ = range.holds_every_tree();
        draws_in_doubles_ = range.can_fit();
        if (draws_in_doubles_) {
            doubles_.run_inside(scores_, root_, false, stop);
            rest_ = doubles_.log_total();
            draws_in_doubles_ = range.holds_total(rest_);
        }
        if (draws_in_doubles_) return;
        extended_.run_inside(scores_, root_, false, stop);
        rest_ = extended_.log_total();
    }

    void find_marginals(StopSignal& stop) {
        find_marginals([&](auto& sums) { sums.run_outside(stop); }, stop);
    }

    /// run_outside(sums) finds the outside of charts whose inside is known.
    template <class RunOutside>
    void find_marginals(RunOutside run_outside, StopSignal& stop) {
        sums_in_doubles_ = draws_in_doubles_;
        if (sums_in_doubles_) {
            run_outside(doubles_);
            sums_in_doubles_ = doubles_.in_range();
            if (!sums_in_doubles_) extended_.run_inside(scores_, root_, false, stop);
        }
        if (!sums_in_doubles_) run_outside(extended_);
        with_outside([&](const auto& sums) { sums.find_marginals(marginals_); });
    }

    template <class Use>
    void with_outside(Use use) const {
        sums_in_doubles_ ? use(doubles_) : use(extended_);
    }

    /// Edges that some tree has, as far as doubles can tell.
    template <class Body>
    void for_each_possible_edge(Body body) const {
        for (int head = 0; feasible() && head <= words_; ++head)
            for (int dep = 1; dep <= words_; ++dep)
                if (marginal(head, dep) > 0.0) body(head, dep);
    }

    /// The same, when the labels of each have been looked at.
    template <class T, class Body>
    void for_each_possible_edge(const Sentence<T>& sentence, SharesOfLabels& labels, Body body) const {
        if (!sentence.labels) labels.look_at(sentence, 0, 0);  // once: all edges are alike
        for_each_possible_edge([&](int head, int dep) {
            if (sentence.labels) labels.look_at(sentence, head, dep, marginal(head, dep));
            body(head, dep);
        });
    }

    void find_likeliest(std::vector<int>& heads) const {
        const auto nodes = static_cast<std::size_t>(words_) + 1;
        heads.assign(nodes, 0);
        std::vector<double> highest(nodes, 0.0);
        for (int head = 0; head <= words_; ++head)
            for (std::size_t dep = 1; dep < nodes; ++dep) {
                const double probability = marginals_[static_cast<std::size_t>(head) * nodes + dep];
                const bool higher = probability > highest[dep];
                highest[dep] = higher ? probability : highest[dep];
                heads[dep] = higher ? head : heads[dep];
            }
    }

    /// log Z less the score of the tree heads[1..words].
    double log_total_over(const std::vector<Heads>& heads) const {
        TwoPart<double> score;
        for (int dep = 1; dep <= words_; ++dep)
            score += scores_(static_cast<int>(heads[static_cast<std::size_t>(dep)]), dep);
        // exp of both parts: that of the second is 1 + itself.
        using Number = Ranged<1>;
        const Number::Block weight =
            Number::times(Number::exp(Vector<double, 1>{score.high}), Number::exp(Vector<double, 1>{score.low}));
        return with_inside([&](const auto& sums) { return sums.log_total_over(weight); });
    }

    /// (log Z - score(t)) + E[score(t) - score(tree)].
    double entropy_around(const std::vector<Heads>& t) const {
        const auto nodes = static_cast<std::size_t>(words_) + 1;
        std::vector<double> of_word(2 * nodes, 0.0);
        double* const best = of_word.data() + nodes;
        for (int dep = 1; dep <= words_; ++dep)
            best[dep] = scores_(static_cast<int>(t[static_cast<std::size_t>(dep)]), dep);
        const double* score = scores_.sentence().scores;
        const double* marginal = marginals_.data();
        for (std::size_t head = 0; head < nodes; ++head, score += nodes, marginal += nodes)
            for (std::size_t dep = 1; dep < nodes; ++dep) {
                const double behind = score[dep] > minus_infinity<double> ? best[dep] - score[dep] : 0.0;
                of_word[dep] += marginal[dep] * behind;
            }
        double sum = log_total_over(t);
        for (std::size_t dep = 1; dep < nodes; ++dep) sum += of_word[dep];
        return std::max(sum, 0.0);
    }

    /// Minus the score of every edge, less that of the edge of the tree t into the same word; 0 for edges that are forbidden.
    void take_surprises(const std::vector<Heads>& t, EdgeNumbers<1>& r) const {
        r.resize(words_, root_);
        const auto nodes = static_cast<std::size_t>(words_) + 1;
        std::vector<double> best(nodes);
        for (int dep = 1; dep <= words_; ++dep)
            best[static_cast<std::size_t>(dep)] = scores_(static_cast<int>(t[static_cast<std::size_t>(dep)]), dep);
        const double* const scores = scores_.sentence().scores;
        r.set([&](int head, int dep) {
            const double score = scores[static_cast<std::size_t>(head) * nodes + static_cast<std::size_t>(dep)];
            return score > minus_infinity<double> ? best[static_cast<std::size_t>(dep)] - score : 0.0;
        });
    }

    /// Of an unlabelled sentence, along the one direction of `slopes`.
    template <class T, class Out>
    void write_hessian(const Sentence<T>& sentence, QuestionScratch& scratch, const EdgeNumbers<1>& r,
                       const ChartSlopes<1>& slopes, const EdgeTarget<Out>& to) const {
        const auto nodes = static_cast<std::size_t>(words_) + 1;
        scratch.of_edges.resize(nodes * nodes);
        for (int head = 0; head <= words_; ++head)
            slopes.of_marginals(r, head, scratch.of_edges.data() + static_cast<std::size_t>(head) * nodes);
        write_edges(sentence, to, [&](int head, int dep) {
            const std::size_t edge = static_cast<std::size_t>(head) * nodes + static_cast<std::size_t>(dep);
            return marginals_[edge] > 0.0 ? marginals_[edge] * scratch.of_edges[edge] : 0.0;
        });
    }

    /// Values of edges, less that of each word's likeliest head; 0 for edges that no tree has.
    template <int count, class T, class Values, class Numbers>
    void take_means(const Sentence<T>& sentence, QuestionScratch& scratch, Values values, int used, Numbers& r) const {
        r.resize(words_, root_);
        find_likeliest(scratch.likeliest);
        const auto mean = [&](int head, int dep, int k) {
            return scratch.labels.mean([&](int label) { return values(k)(head, dep, label); });
        };
        std::vector<double> off(static_cast<std::size_t>(count) * (words_ + 1));
        const auto off_of = [&](int dep, int k) -> double& { return off[static_cast<std::size_t>(dep * count + k)]; };
        scratch.labels.look_at(sentence, 0, 0);
        for (int dep = 1; dep <= words_; ++dep) {
            const int head = scratch.likeliest[static_cast<std::size_t>(dep)];
            if (sentence.labels) scratch.labels.look_at(sentence, head, dep, marginal(head, dep));
            for (int k = 0; k < used; ++k) off_of(dep, k) = mean(head, dep, k);
        }
        r.for_each_edge([&](int head, int dep) {
            const bool possible = marginal(head, dep) > 0.0;
            if (possible && sentence.labels) scratch.labels.look_at(sentence, head, dep, marginal(head, dep));
            for (int k = 0; k < count; ++k)
                r(head, dep, k) = possible && k < used ? mean(head, dep, k) - off_of(dep, k) : 0.0;
        });
    }

    /// The same of eight values of a sentence without labels, and their expectations.
    void take_eight(QuestionScratch& scratch, const EightOfEdges<const double>& values, EightsOfEdges& r,
                    double (&totals)[8]) const {
        r.resize(words_, root_);
        find_likeliest(scratch.likeliest);
        std::vector<double> off(8 * (static_cast<std::size_t>(words_) + 1));
        for (int dep = 1; dep <= words_; ++dep)
            values.get(scratch.likeliest[static_cast<std::size_t>(dep)], dep, &off[8 * static_cast<std::size_t>(dep)]);
        for (int head = 0; head <= words_; ++head)
            for (int dep = 1; dep <= words_; ++dep) {
                double* const to = r.at(head, dep);
                const double m = marginal(head, dep);
                if (!(m > 0.0)) {
                    std::fill_n(to, 8, 0.0);
                    continue;
                }
                double value[8];
                values.get(head, dep, value);
                for (int k = 0; k < 8; ++k) totals[k] += m * value[k];
                for (int k = 0; k < 8; ++k) to[k] = value[k] - off[8 * static_cast<std::size_t>(dep) + k];
            }
    }

    template <class T, class U, class G>
    void take_covariances_of_labels(const Sentence<T>& sentence, QuestionScratch& scratch, U u, G g) const {
        EdgeNumbers<1>& mixed = scratch.mixed_values;
        mixed.resize(words_, root_);
        mixed.for_each_edge([&](int head, int dep) {
            mixed(head, dep) = 0.0;
            if (!sentence.labels || !(marginal(head, dep) > 0.0)) return;
            scratch.labels.look_at(sentence, head, dep, marginal(head, dep));
            const double mean_u = scratch.labels.mean([&](int label) { return u(head, dep, label); });
            const double mean_g = scratch.labels.mean([&](int label) { return g(head, dep, label); });
            mixed(head, dep) = scratch.labels.mean(
                [&](int label) { return (u(head, dep, label) - mean_u) * (g(head, dep, label) - mean_g); });
        });
    }

    int words_ = 0;
    Root root_ = Root::single;
    Feasibility found_;
    CentredScores scores_;
    double rest_ = 0.0;                                        // log Z of the centred scores
    bool draws_in_doubles_ = false, sums_in_doubles_ = false;  // which charts are for drawing, and for all else
    bool every_tree_in_doubles_ = false;
    InsideOutside<Linear<>> doubles_;
    InsideOutside<Ranged<>> extended_;
    std::vector<double> marginals_;  // [head, dep]
};

inline ScratchPool<SolvedSentence> solved_pool;
inline ScratchPool<QuestionScratch> question_pool;

/// A sentence that stays with its solution. In small batches its memory is on loan, for the next batch to use afterwards.
class KeptSentence {
public:
    explicit KeptSentence(std::size_t sentences) {
        sentences <= most_sentences_lent ? void(loan_.emplace(solved_pool.borrow()))
                                         : void(own_ = std::make_unique<SolvedSentence>());
    }
    SolvedSentence& operator*() const { return loan_ ? **loan_ : *own_; }

private:
    static constexpr std::size_t most_sentences_lent = 64;  // 11 MB of sentences of 40 words
    std::optional<ScratchPool<SolvedSentence>::Loan> loan_;
    std::unique_ptr<SolvedSentence> own_;
};

/// Calls solve(solved, scratch, i) for each sentence of a batch: it solves the sentence and asks what is to be asked. Returns the
/// solved sentences, all of them or, if `keep` is not set or the call was stopped, none.
template <class Solve>
std::vector<KeptSentence> solve_batch(std::size_t sentences, bool keep, int threads, StopSignal& stop, Solve solve) {
    std::vector<std::optional<KeptSentence>> solved(keep ? sentences : 0);
    const auto make_scratch = [&] { return std::pair(solved_pool.borrow(), question_pool.borrow()); };
    parallel_for(sentences, 1, threads, stop, make_scratch, [&](auto& scratch, std::size_t i) {
        if (keep) solved[i].emplace(sentences);
        solve(keep ? **solved[i] : *scratch.first, *scratch.second, i);
    });
    std::vector<KeptSentence> all;
    if (stop.stopped()) return all;
    for (auto& sentence : solved) all.push_back(std::move(*sentence));
    return all;
}

/// Goes on from sentences that were solved for log Z, and calls ask(solved, scratch, i) for each.
template <class Ask>
std::vector<KeptSentence> complete_batch(const std::vector<KeptSentence>& begun, int threads, StopSignal& stop,
                                         Ask ask) {
    std::vector<std::optional<KeptSentence>> solved(begun.size());
    const auto make_scratch = [] { return question_pool.borrow(); };
    parallel_for(begun.size(), 1, threads, stop, make_scratch, [&](auto& scratch, std::size_t i) {
        SolvedSentence& sentence = *solved[i].emplace(begun.size());
        sentence.complete(*begun[i], stop);
        ask(std::as_const(sentence), *scratch, i);
    });
    std::vector<KeptSentence> all;
    if (stop.stopped()) return all;
    for (auto& sentence : solved) all.push_back(std::move(*sentence));
    return all;
}

/// Calls ask(solved, scratch, i) for every sentence solved before.
template <class Ask>
void ask_batch(const std::vector<KeptSentence>& solved, int threads, StopSignal& stop, Ask ask) {
    parallel_for(
        solved.size(), 1, threads, stop, [] { return question_pool.borrow(); },
        [&](auto& scratch, std::size_t i) { ask(std::as_const(*solved[i]), *scratch, i); });
}

}  // namespace spantree::projective
