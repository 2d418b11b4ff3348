#include "relative_to_best.hpp"

#include <algorithm>
#include <limits>

#include "likeliest_edges.hpp"
#include "run.hpp"
#include "spantree/batch/certificate.hpp"
#include "spantree/number/rounded_sum.hpp"

namespace spantree::library {

namespace {

double sum_of_terms(const std::vector<double>& terms) {
    constexpr double largest = std::numeric_limits<double>::max();
    return std::clamp(rounded_sum(static_cast<int>(terms.size()), [&](int i) { return terms[i]; }), -largest, largest);
}

/// Sets of words that trees of p enter once, and how much is taken off for each that an edge enters.
class SetsEnteredOnce {
public:
    /// `heads` is a tree of p.
    template <class T>
    SetsEnteredOnce(const Sentence<T>& q, const Sentence<double>& marginals, const Heads* heads, Root root,
                    StopSignal& stop) {
        const int words = q.words, labels = std::max(q.labels, 1);
        // The best of what p has.
        const bool found = certificate_.find(words, root, stop, [&](int h, int d) {
            double best = minus_infinity<double>;
            for (int label = 0; label < labels && h != d; ++label)
                if (marginals(h, d, label) > 0.0) best = std::max(best, static_cast<double>(q(h, d, label)));
            return TwoPart<double>{best, 0.0};
        });
        if (!found) return;
        const auto sets = static_cast<std::size_t>(certificate_.end_of_sets());
        std::vector<int> entry(sets, 0);  // the word where the tree enters
        for (int d = 1; d <= words; ++d)
            each_set(static_cast<int>(heads[d]), d, [&](int set, bool entered) {
                if (entered) entry[set] = d;
            });
        // How often trees enter a set at other words, less how often they do not enter at that one: E[times] - 1.
        std::vector<double> elsewhere(sets, 0.0), not_there(sets, 0.0);
        for (int h = 0; h <= words; ++h)
            for (int d = 1; d <= words; ++d)
                for (int label = 0; label < labels && h != d; ++label)
                    each_set(h, d, [&](int set, bool entered) {
                        if (entered != (entry[set] == d))
                            (entered ? elsewhere : not_there)[set] += marginals(h, d, label);
                    });
        taken_off_.resize(sets, 0.0);
        for (std::size_t set = static_cast<std::size_t>(words) + 1; set < sets; ++set)
            if (elsewhere[set] - not_there[set] <= rounding * elsewhere[set])
                taken_off_[set] = std::max(certificate_.amount(static_cast<int>(set)) - moderate, 0.0);
    }

    /// add(number) for every set that an edge enters.
    template <class Add>
    void each_entered(int head, int dep, Add add) const {
        if (taken_off_.empty()) return;
        each_set(head, dep, [&](int set, bool entered) {
            if (entered) add(taken_off_[set]);
        });
    }

    /// By number of the set; 0 for words.
    const std::vector<double>& all() const { return taken_off_; }

private:
    static constexpr double rounding = 1e-13;  // of sums of marginals
    static constexpr double moderate = 1e4;    // numbers that do no harm, as in batch/centred.hpp

    template <class Visit>
    void each_set(int head, int dep, Visit visit) const {
        certificate_.each_set(head, dep, visit);
    }

    Certificate certificate_;
    std::vector<double> taken_off_;
};

/// What is to be written of one sentence, whose best tree by p has these heads and labels. Returns what is to be added to log q
/// of that tree.
template <class T>
double write_sentence(const Sentence<T>& q, const Sentence<double>& marginals, const Heads* best_heads,
                      const Heads* best_labels, Root root, StopSignal& stop, const EdgeTarget<double>& to) {
    const SetsEnteredOnce sets(q, marginals, best_heads, root, stop);
    const int words = q.words, labels = std::max(q.labels, 1);
    const auto best = [&](int head, int dep, int label) {
        return best_heads[dep] == head && (q.labels == 0 || best_labels[dep] == label);
    };
    // Those of the best tree, and with one root one more.
    const LikeliestEdges likeliest(words, root, [&](int dep, auto visit) {
        for (int head = 0; head <= words; ++head)
            for (int label = 0; label < labels && head != dep; ++label)
                visit(head, label, best(head, dep, label) ? 2.0 : marginals(head, dep, label));
    });
    std::vector<double> terms;
    const auto add = [&](int head, int dep, int label, double sign) {
        terms.push_back(sign * q(head, dep, label));
        sets.each_entered(head, dep, [&](double number) { terms.push_back(sign * number); });
    };
    for (int head = 0; head <= words; ++head) {
        stop.check();
        for (int dep = 0; dep <= words; ++dep)
            for (int label = 0; label < labels; ++label) {
                double& number = to.edge(head, dep)[label];
                number = minus_infinity<double>;
                if (dep == 0 || head == dep || q(head, dep, label) == minus_infinity<T>) continue;
                terms.clear();
                add(head, dep, label, 1.0);
                likeliest.each_taken_off(head, dep, [&](const LikeliestEdges::Edge& edge, double sign) {
                    add(edge.head, edge.dep, edge.label, -sign);
                });
                number = sum_of_terms(terms);
            }
    }
    terms.clear();
    for (const double number : sets.all()) terms.push_back(-number);
    likeliest.each_of_tree([&](const LikeliestEdges::Edge& edge, double sign) {
        sets.each_entered(edge.head, edge.dep, [&](double number) { terms.push_back(sign * number); });
    });
    return sum_of_terms(terms);
}

}  // namespace

void write_relative_to_best(const EdgeValues& marginals, const EdgeValues& relative_scores, const Batch& q,
                            const Options& options, std::span<const std::size_t> which,
                            const std::vector<EdgeTarget<double>>& to, double* of_best) {
    int nodes = 1;
    std::vector<Sentence<double>> scores_of_p;
    for (const std::size_t i : which) {
        nodes = std::max(nodes, q.words(i) + 1);
        scores_of_p.push_back(relative_scores[i]);
    }
    std::vector<Heads> heads(which.size() * static_cast<std::size_t>(nodes)), labels(q.labels() ? heads.size() : 0);
    argmax(Batch(scores_of_p), options,
           {{heads.data(), IntType::i64, nodes}, {labels.data(), IntType::i64, nodes}, nodes}, nullptr);
    StopSignal stop = stop_signal_of(options);
    q.visit([&]<class T>(const std::vector<Sentence<T>>& sentences) {
        std::vector<Sentence<T>> of_q;
        for (const std::size_t i : which) of_q.push_back(sentences[i]);
        std::vector<double> log_probs(which.size());
        const Batch asked(of_q);
        const Solved solved(asked, options, 1,
                            {{heads.data(), IntType::i64, nodes}, {labels.data(), IntType::i64, nodes}, nodes},
                            log_probs.data());
        try {
            for (std::size_t k = 0; k < which.size(); ++k) {
                const std::size_t i = which[k];
                of_best[i] = log_probs[k];
                if (log_probs[k] == minus_infinity<double>) continue;
                const std::size_t row = k * static_cast<std::size_t>(nodes);
                of_best[i] += write_sentence(of_q[k], marginals[i], heads.data() + row,
                                             q.labels() ? labels.data() + row : nullptr, options.root, stop, to[i]);
            }
        } catch (const Stopped&) {
        }
    });
    throw_if_stopped(stop);
}

}  // namespace spantree::library
