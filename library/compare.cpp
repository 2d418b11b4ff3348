// Two distributions over the trees of the same sentences: cross-entropy and Kullback-Leibler divergence.
//
// With s the relative scores of a distribution and z the logarithm of their sum over trees (`Solved`),
//
//     cross-entropy  =  z_q - E_p[s_q]                       gradient by p:  hessian_p(-s_q)          by q:  M_q - M_p
//     divergence     =  z_q - z_p + E_p[s_p - s_q]           gradient by p:  hessian_p(s_p - s_q)     by q:  the same
//
// Where these are large, q's scores are read again, relative to a tree of p: relative_to_best.hpp.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "large_values.hpp"
#include "own_edges.hpp"
#include "questions.hpp"
#include "relative_to_best.hpp"
#include "spantree/simd/dispatch.hpp"
#include "view.hpp"

namespace spantree {

namespace library {

namespace {

constexpr const char* other_sentences = "the two distributions are over the trees of different sentences";

void check_comparable(const Batch& p, const Batch& q) {
    if (p.size() != q.size() || p.labels() != q.labels()) throw InvalidInput(other_sentences);
    for (std::size_t i = 0; i < p.size(); ++i)
        if (p.words(i) != q.words(i)) throw InvalidInput("the two distributions have other lengths");
}

/// values = scores - values, or minus values if there are no scores; 0 where a score is -inf, which p has no mass on.
struct TakeDifferences {
    static void run(std::span<double> values, const double* scores) {
        double* __restrict const value = values.data();
        if (!scores)
            for (std::size_t i = 0; i < values.size(); ++i) value[i] = -value[i];
        else
            for (std::size_t i = 0; i < values.size(); ++i)
                value[i] = scores[i] == minus_infinity<double> ? 0.0 : scores[i] - value[i];
    }
};

/// Beyond that, the rounding error of a cross-entropy is more than 1e-12, and that of its gradient may be a thousand times that.
constexpr double far = 0x1p13;
/// Sums of numbers below that are far from the largest double.
constexpr double huge = 0x1p900;

class Comparison {
public:
    /// As of `compare` below; q's scores, and all that is found, are in units.
    Comparison(const Batch& p, const Solved& solved_p, const Batch& q, const Solved* solved_q, const Options& options,
               bool divergence, double unit = 1.0)
        : p_(p),
          solved_p_(solved_p),
          q_(q),
          options_(options),
          divergence_(divergence),
          unit_(unit),
          solved_q_(solved_q) {
        if (solved_q)
            solved_q->relative_scores(options, values_.targets());
        else
            solved_here_ = std::make_unique<Solved>(q, options, values_.targets());
        std::vector<std::size_t> limited;
        for (std::size_t i = 0; i < q.size(); ++i) {
            common_.push_back(-report(i).rest);
            if (report(i).limited) limited.push_back(i);
        }
        if (divergence) {
            solved_p.relative_scores(options, scores_p_.targets());
            if (unit != 1.0)
                for (double& x : scores_p_.numbers()) x /= unit;
        }
        dispatch<TakeDifferences>(values_.numbers(), divergence ? scores_p_.numbers().data() : nullptr);
        relate_to_best(limited);
    }

    void run(double* totals, const EdgeTargets& gradient) {
        run_if_not_huge(totals, gradient);
        for (std::size_t i = 0; i < p_.size(); ++i)
            if (have_trees(i) && !(std::fabs(totals[i]) <= huge)) return run_in_larger_unit(totals, gradient);
    }

    const SentenceReport& report(std::size_t i) const { return (solved_q_ ? *solved_q_ : *solved_here_).reports()[i]; }
    std::unique_ptr<Solved> solved_here() { return std::move(solved_here_); }

private:
    bool have_trees(std::size_t i) const { return solved_p_.has_tree(i) && report(i).status == 0; }

    void run_if_not_huge(double* totals, const EdgeTargets& gradient) {
        expect(totals, gradient);
        std::vector<std::size_t> more;
        for (std::size_t i = 0; i < p_.size(); ++i)
            if (!report(i).limited && finite_above(far, totals[i])) more.push_back(i);
        if (!more.empty()) {
            relate_to_best(more);
            expect(totals, gradient);
        }
    }

    const OwnEdges& marginals() {
        if (!marginals_) solved_p_.marginals(options_, marginals_.emplace(p_).targets());
        return *marginals_;
    }

    /// Whether p has mass on an edge that q forbids: as it was read, there is nothing to take off from that.
    bool is_infinite(std::size_t i) {
        bool found = false;
        each_number(values_.targets(), i, [&](double& value, int head, int dep, int label) {
            found |= value == std::numeric_limits<double>::infinity() &&
                     marginals().targets()[i].edge(head, dep)[label] > 0.0;
        });
        return found;
    }

    void relate_to_best(std::vector<std::size_t> which) {
        std::erase_if(which, [&](std::size_t i) { return !have_trees(i) || q_.words(i) == 0 || is_infinite(i); });
        if (which.empty()) return;
        std::optional<OwnEdges> own;
        const bool own_scores = !divergence_ || unit_ != 1.0;
        if (own_scores) solved_p_.relative_scores(options_, own.emplace(p_).targets());
        const OwnEdges& scores_p = own_scores ? *own : scores_p_;
        write_relative_to_best(marginals().values(), scores_p.values(), q_, options_, which, values_.targets(),
                               common_.data());
        for (const std::size_t i : which)
            if (common_[i] > minus_infinity<double>)
                dispatch<TakeDifferences>(values_.numbers_of(i), divergence_ ? scores_p_.edge(i, 0, 0) : nullptr);
    }

    /// E_p[values] and what all trees have in common, and the gradient.
    void expect(double* totals, const EdgeTargets& gradient) {
        solved_p_.expectations(options_, {&values_.values(), 1}, totals,
                               {&gradient, wanted(gradient) ? std::size_t{1} : 0});
        for (std::size_t i = 0; i < p_.size(); ++i)
            totals[i] -= divergence_ ? common_[i] + solved_p_.reports()[i].rest / unit_ : common_[i];
    }

    /// For sentences beyond `huge`, where partial sums may be beyond the largest double: log Z is a rounding error then, so that
    /// scores may be read in a larger unit. (Unless it is infinite because q has no such tree.)
    void run_in_larger_unit(double* totals, const EdgeTargets& gradient) {
        constexpr double unit = 0x1p200;
        bool any_large = false;
        OwnEdges scores(q_), own_gradient(p_, wanted(gradient));
        q_.visit([&](const auto& sentences) {
            for (std::size_t i = 0; i < sentences.size(); ++i)
                each_number(scores.targets(), i, [&](double& number, int head, int dep, int label) {
                    number = sentences[i](head, dep, label) / unit;
                    any_large |= finite_above(0x1p800 / unit, number);
                });
        });
        if (!any_large) return;
        const Batch in_units(scores.values());
        std::vector<double> found(p_.size());
        Comparison(p_, solved_p_, in_units, nullptr, options_, divergence_, unit)
            .run_if_not_huge(found.data(), wanted(gradient) ? EdgeTargets(own_gradient.targets()) : EdgeTargets{});
        for (std::size_t i = 0; i < p_.size(); ++i) {
            if (!have_trees(i) || std::fabs(totals[i]) <= huge) continue;
            totals[i] = found[i] * unit;
            if (wanted(gradient))
                std::visit(
                    [&]<class Out>(const std::vector<EdgeTarget<Out>>& to) {
                        each_number(to, i, [&](Out& number, int head, int dep, int label) {
                            number = static_cast<Out>(own_gradient.edge(i, head, dep)[label] * unit);
                        });
                    },
                    gradient);
        }
    }

    /// visit(number, head, dep, label) for all edges of sentence i.
    template <class Out, class Visit>
    void each_number(const std::vector<EdgeTarget<Out>>& targets, std::size_t i, Visit visit) const {
        for (int head = 0; head <= p_.words(i); ++head)
            for (int dep = 0; dep <= p_.words(i); ++dep)
                for (int label = 0; label < std::max(p_.labels(), 1); ++label)
                    visit(targets[i].edge(head, dep)[label], head, dep, label);
    }

    const Batch& p_;
    const Solved& solved_p_;
    const Batch& q_;
    Options options_;
    bool divergence_;
    double unit_;
    const Solved* solved_q_;
    std::unique_ptr<Solved> solved_here_;
    OwnEdges values_{q_}, scores_p_{p_, divergence_};
    std::optional<OwnEdges> marginals_;  // of p
    std::vector<double> common_;         // what log q of every tree of p is, besides the sum of values that were read
};

}  // namespace

std::unique_ptr<Solved> compare(const Batch& p, const Solved& solved_p, const Batch& q, const Solved* solved_q,
                                const Options& for_q, bool divergence, double* totals, const EdgeTargets& gradient) {
    check_comparable(p, q);
    Comparison comparison(p, solved_p, q, solved_q, for_q, divergence);
    comparison.run(totals, gradient);
    for (std::size_t i = 0; i < p.size(); ++i) {
        const SentenceReport &report_p = solved_p.reports()[i], &report_q = comparison.report(i);
        if (report_p.status != 0 || report_q.status < 0)
            totals[i] = std::numeric_limits<double>::quiet_NaN();
        else if (report_q.status != 0)
            totals[i] = std::numeric_limits<double>::infinity();
        if (divergence && totals[i] < 0.0) totals[i] = 0.0;  // a rounding error
    }
    std::visit(
        [&](const auto& to) {
            for (std::size_t i = 0; i < to.size(); ++i)
                if (!std::isfinite(totals[i])) clear_edges(to[i], p.labels());
        },
        gradient);
    return comparison.solved_here();
}

}  // namespace library

using namespace library;

namespace {

/// Of the entries below.
void compare(const ScoresView& p, const ScoresView& q, const Options& options, bool divergence, void* value,
             const EdgesOut& gradient_p, const EdgesOut& gradient_q, Status status_p, Status status_q) {
    if (p.nodes != q.nodes) throw InvalidInput(other_sentences);
    const Batch of_p(p), of_q(q);
    check_comparable(of_p, of_q);
    const bool by_q = gradient_q.data != nullptr;
    OwnEdges marginals_p(of_p, by_q), marginals_q(of_q, by_q);
    const Solved solved_p(of_p, options, Solved::For::questions, marginals_p.targets());
    std::unique_ptr<Solved> solved_q;
    if (by_q) solved_q = std::make_unique<Solved>(of_q, options, Solved::For::questions, marginals_q.targets());

    std::vector<double> totals(of_p.size());
    auto for_this = library::compare(of_p, solved_p, of_q, solved_q.get(), options, divergence, totals.data(),
                                     targets(gradient_p, p));
    if (for_this) solved_q = std::move(for_this);
    write_numbers(totals, p.dtype, value);
    std::visit(
        [&]<class Out>(const std::vector<EdgeTarget<Out>>& to) {
            for (std::size_t i = 0; i < to.size(); ++i) {
                clear_edges(to[i], q.labels);
                if (!std::isfinite(totals[i])) continue;
                for (int head = 0; head <= of_q.words(i); ++head)
                    for (int dep = 1; dep <= of_q.words(i); ++dep)
                        for (int label = 0; label < std::max(q.labels, 1); ++label)
                            to[i].edge(head, dep)[label] = static_cast<Out>(marginals_q.edge(i, head, dep)[label] -
                                                                            marginals_p.edge(i, head, dep)[label]);
            }
        },
        targets(gradient_q, q));
    write_statuses(solved_p.statuses(), status_p);
    write_statuses(solved_q->statuses(), status_q);
}

}  // namespace

void cross_entropy(const ScoresView& p, const ScoresView& q, const Options& options, void* value, EdgesOut gradient_p,
                   EdgesOut gradient_q, Status status_p, Status status_q) {
    compare(p, q, options, false, value, gradient_p, gradient_q, status_p, status_q);
}

void kl(const ScoresView& p, const ScoresView& q, const Options& options, void* value, EdgesOut gradient_p,
        EdgesOut gradient_q, Status status_p, Status status_q) {
    compare(p, q, options, true, value, gradient_p, gradient_q, status_p, status_q);
}

}  // namespace spantree
