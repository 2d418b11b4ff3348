// Two distributions over the trees of the same sentences: cross-entropy and Kullback-Leibler divergence.
//
// With s the relative scores of a distribution and z the logarithm of their sum over trees (kept_solve.hpp),
//
//     cross-entropy  =  z_q - E_p[s_q]                       gradient by p:  hessian_p(-s_q)          by q:  M_q - M_p
//     divergence     =  z_q - z_p + E_p[s_p - s_q]           gradient by p:  hessian_p(s_p - s_q)     by q:  the same
#include <cmath>
#include <vector>

#include "kept_solve.hpp"

namespace spantree {

using namespace library;

namespace {

/// Numbers of all edges of a batch in memory of our own, [head, dep, label].
class OwnEdges {
public:
    template <class T>
    OwnEdges(const Sentences<T>& sentences, double fill) {
        std::size_t size = 0;
        for (const Sentence<T>& sentence : sentences.all()) size += cells(sentence);
        numbers_.assign(size, fill);
        double* at = numbers_.data();
        for (const Sentence<T>& sentence : sentences.all()) {
            const std::ptrdiff_t cell = std::max(sentence.labels, 1);
            all_.push_back(
                {at, sentence.words, cell * (sentence.words + 1), cell, sentence.labels, sentence.labels ? 1 : 0});
            at += cells(sentence);
        }
    }
    OwnEdges(const OwnEdges&) = delete;
    OwnEdges& operator=(const OwnEdges&) = delete;

    const std::vector<Sentence<double>>& all() const { return all_; }
    double* edge(std::size_t i, int head, int dep) {
        return numbers_.data() + (all_[i].edge(head, dep) - numbers_.data());
    }
    std::vector<EdgeTarget<double>> targets() {
        std::vector<EdgeTarget<double>> result;
        for (std::size_t i = 0; i < all_.size(); ++i)
            result.push_back({edge(i, 0, 0), all_[i].head_stride, all_[i].dep_stride, all_[i].words + 1});
        return result;
    }

private:
    template <class T>
    static std::size_t cells(const Sentence<T>& sentence) {
        return static_cast<std::size_t>(sentence.words + 1) * (sentence.words + 1) * std::max(sentence.labels, 1);
    }

    std::vector<double> numbers_;
    std::vector<Sentence<double>> all_;
};

/// visit(i, head, dep, label, relative score) for every edge of every sentence that has a tree.
template <class T, class Visit>
void each_relative_score(const Sentences<T>& sentences, const KeptSolve<T>& solve, Visit visit) {
    solve.relative_scores([&](std::size_t i, auto value) {
        for (int head = 0; head <= sentences[i].words; ++head)
            for (int dep = 1; dep <= sentences[i].words; ++dep)
                for (int label = 0; label < std::max(sentences[i].labels, 1) && head != dep; ++label)
                    visit(i, head, dep, label, value(head, dep, label));
    });
}

void check_comparable(const ScoresView& p, const ScoresView& q) {
    if (p.batch != q.batch || p.nodes != q.nodes || p.labels != q.labels)
        throw InvalidInput("the two distributions are over the trees of different sentences");
}

/// With `divergence`, less the entropy of p.
template <class P, class Q>
void compare(const ScoresView& p, const ScoresView& q, const Options& options, bool divergence, void* value,
             const EdgesOut& gradient_p, const EdgesOut& gradient_q, Status status_p, Status status_q) {
    const Sentences<P> of_p(p);
    const Sentences<Q> of_q(q);
    for (std::size_t i = 0; i < of_p.size(); ++i)
        if (of_p[i].words != of_q[i].words) throw InvalidInput("the two distributions have other lengths");
    StopSignal stop = stop_signal_of(options);
    KeptSolve<P> solve_p(of_p, options, stop);
    KeptSolve<Q> solve_q(of_q, options, stop);
    OwnEdges values(of_p, 0.0), marginals_p(of_p, 0.0), marginals_q(of_q, 0.0);
    const bool by_q = gradient_q.data != nullptr;
    const auto targets_if = [](bool wanted, OwnEdges& numbers) {
        return wanted ? numbers.targets() : std::vector<EdgeTarget<double>>();
    };
    solve_p.solve(true, targets_if(by_q, marginals_p));
    solve_q.solve(true, targets_if(by_q, marginals_q));
    each_relative_score(of_q, solve_q, [&](std::size_t i, int head, int dep, int label, double score) {
        values.edge(i, head, dep)[label] = -score;
    });
    if (divergence)
        each_relative_score(of_p, solve_p, [&](std::size_t i, int head, int dep, int label, double score) {
            double& edge = values.edge(i, head, dep)[label];
            edge = score == minus_infinity<double> ? 0.0 : score + edge;  // p has no mass there
        });

    std::vector<double> totals(of_p.size());
    const ValueSource source{false, values.all()};
    with_type(gradient_p.dtype, [&]<class Out>(Out) {
        const auto to = targets<Out>(gradient_p, p);
        solve_p.expectation(source, totals.data(), to);
        for (std::size_t i = 0; i < to.size(); ++i)
            if (!solve_q.has_tree(i)) clear_edges(to[i], p.labels);
    });
    for (std::size_t i = 0; i < totals.size(); ++i) {
        const SentenceReport &report_p = solve_p.reports()[i], &report_q = solve_q.reports()[i];
        if (report_p.status != 0)
            totals[i] = std::numeric_limits<double>::quiet_NaN();
        else if (report_q.status != 0)
            totals[i] = report_q.status < 0 ? std::numeric_limits<double>::quiet_NaN()
                                            : std::numeric_limits<double>::infinity();
        else
            totals[i] += divergence ? report_q.rest - report_p.rest : report_q.rest;
        if (divergence && totals[i] < 0.0) totals[i] = 0.0;  // a rounding error
    }
    write_numbers(totals, p.dtype, value);
    if (by_q)
        with_type(gradient_q.dtype, [&]<class Out>(Out) {
            const auto to = targets<Out>(gradient_q, q);
            for (std::size_t i = 0; i < to.size(); ++i) {
                clear_edges(to[i], q.labels);
                if (!solve_p.has_tree(i) || !solve_q.has_tree(i)) continue;
                for (int head = 0; head <= of_q[i].words; ++head)
                    for (int dep = 1; dep <= of_q[i].words; ++dep)
                        for (int label = 0; label < std::max(q.labels, 1); ++label)
                            to[i].edge(head, dep)[label] = static_cast<Out>(marginals_q.edge(i, head, dep)[label] -
                                                                            marginals_p.edge(i, head, dep)[label]);
            }
        });
    write_status(solve_p, status_p);
    write_status(solve_q, status_q);
}

void compare(const ScoresView& p, const ScoresView& q, const Options& options, bool divergence, void* value,
             const EdgesOut& gradient_p, const EdgesOut& gradient_q, Status status_p, Status status_q) {
    check(p);
    check(q);
    check_comparable(p, q);
    with_type(p.dtype, [&]<class P>(P) {
        with_type(q.dtype, [&]<class Q>(Q) {
            compare<P, Q>(p, q, options, divergence, value, gradient_p, gradient_q, status_p, status_q);
        });
    });
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
