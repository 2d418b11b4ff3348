#include "relative_to_best.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "likeliest_edges.hpp"
#include "run.hpp"
#include "spantree/batch/certificate.hpp"
#include "spantree/number/rounded_sum.hpp"

namespace spantree::library {

namespace {

constexpr double rounding_of_marginals = 1e-13;  // and of sums of them
constexpr double moderate = 1e4;                 // numbers that do no harm, as in batch/centred.hpp

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
            if (elsewhere[set] - not_there[set] <= rounding_of_marginals * elsewhere[set])
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
    template <class Visit>
    void each_set(int head, int dep, Visit visit) const {
        certificate_.each_set(head, dep, visit);
    }

    Certificate certificate_;
    std::vector<double> taken_off_;
};

/// Of one sentence, whose best tree by p has these heads and labels.
template <class T>
class RelativeScoresOf {
public:
    RelativeScoresOf(const Sentence<T>& q, const Sentence<double>& marginals, const Heads* heads, const Heads* labels,
                     Root root, StopSignal& stop)
        : q_(q),
          marginals_(marginals),
          sets_(q, marginals, heads, root, stop),
          // Those of the best tree, and with one root one more.
          likeliest_(q.words, root, [&](int dep, auto visit) {
              for (int head = 0; head <= q.words; ++head)
                  for (int label = 0; label < std::max(q.labels, 1) && head != dep; ++label) {
                      const bool best = heads[dep] == head && (q.labels == 0 || labels[dep] == label);
                      visit(head, label, best ? 2.0 : marginals(head, dep, label));
                  }
          }) {
        std::vector<double> terms;
        for (const double number : sets_.all()) terms.push_back(-number);
        likeliest_.each_of_tree([&](const LikeliestEdges::Edge& edge, double sign) {
            sets_.each_entered(edge.head, edge.dep, [&](double number) { terms.push_back(sign * number); });
        });
        common_ = sum_of_terms(terms);
    }

    void write(const EdgeTarget<double>& to, StopSignal& stop) const {
        std::vector<double> terms;
        const auto add = [&](int head, int dep, int label, double sign) {
            terms.push_back(sign * q_(head, dep, label));
            sets_.each_entered(head, dep, [&](double number) { terms.push_back(sign * number); });
        };
        for (int head = 0; head <= q_.words; ++head) {
            stop.check();
            for (int dep = 0; dep <= q_.words; ++dep)
                for (int label = 0; label < std::max(q_.labels, 1); ++label) {
                    double& number = to.edge(head, dep)[label];
                    number = minus_infinity<double>;
                    if (dep == 0 || head == dep || q_(head, dep, label) == minus_infinity<T>) continue;
                    terms.clear();
                    add(head, dep, label, 1.0);
                    likeliest_.each_taken_off(head, dep, [&](const LikeliestEdges::Edge& edge, double sign) {
                        add(edge.head, edge.dep, edge.label, -sign);
                    });
                    for (const Unit& unit : units_) {
                        const int times = unit.times[index(head, dep, label)];
                        terms.insert(terms.end(), static_cast<std::size_t>(std::abs(times)),
                                     times > 0 ? -unit.size : unit.size);
                    }
                    number = sum_of_terms(terms);
                }
        }
    }

    /// Takes off what all trees of p have in common by other reasons: `written` is what was written so far, and
    /// variance(times, mean) that of p's trees of numbers of edges. Whether there was anything.
    template <class Variance>
    bool take_off_unit(const EdgeTarget<double>& written, Variance variance) {
        while (units_.size() < most_units) {
            double least = std::numeric_limits<double>::infinity();
            each_possible([&](int head, int dep, int label) {
                const double size = std::fabs(written.edge(head, dep)[label]);
                if (size > looked_at_ && size < least) least = size;
            });
            if (least == std::numeric_limits<double>::infinity()) return false;
            Unit unit{least, std::vector<int>(index(q_.words, q_.words, std::max(q_.labels, 1)), 0)};
            std::vector<double> numbers(unit.times.size(), 0.0);
            double noise = 0.0;
            each_possible([&](int head, int dep, int label) {
                const double times = std::round(written.edge(head, dep)[label] / least);
                if (!(std::fabs(times) <= most_times)) return;
                unit.times[index(head, dep, label)] = static_cast<int>(times);
                numbers[index(head, dep, label)] = times;
                noise += marginals_(head, dep, label) * times * times;
            });
            double mean = 0.0;
            const bool small_on_average = noise * least <= 1.0;  // so what is subtracted is small already
            if (!small_on_average && variance(numbers, mean) <= rounding_of_marginals * noise) {
                common_ += std::round(mean) * unit.size;
                units_.push_back(std::move(unit));
                looked_at_ = moderate;  // smaller ones may have hidden behind it
                return true;
            }
            looked_at_ = (most_times + 0.5) * least;
        }
        return false;
    }

    /// What log q of any tree is more than that of the best one, besides the sum over its edges.
    double common() const { return common_; }

private:
    /// A magnitude that all trees of p have as many times.
    struct Unit {
        double size;
        std::vector<int> times;  // by edge
    };
    static constexpr std::size_t most_units = 32;  // an end also if scores change while they are read
    static constexpr int most_times = 8;           // of the edge's own mask, and of those that are taken off it

    std::size_t index(int head, int dep, int label) const {
        return (static_cast<std::size_t>(head) * (q_.words + 1) + dep) * std::max(q_.labels, 1) + label;
    }

    template <class Visit>
    void each_possible(Visit visit) const {
        for (int head = 0; head <= q_.words; ++head)
            for (int dep = 1; dep <= q_.words; ++dep)
                for (int label = 0; label < std::max(q_.labels, 1) && head != dep; ++label)
                    if (marginals_(head, dep, label) > 0.0 && q_(head, dep, label) > minus_infinity<T>)
                        visit(head, dep, label);
    }

    const Sentence<T>& q_;
    const Sentence<double>& marginals_;
    SetsEnteredOnce sets_;
    LikeliestEdges likeliest_;
    std::vector<Unit> units_;
    double looked_at_ = moderate;  // magnitudes up to that, since a unit was taken off
    double common_;
};

/// Of the numbers of a tree's edges, [head, dep, label] of the only sentence.
double variance_of(const Solved& solved, const Sentence<double>& sentence, const Options& options,
                   std::vector<double>& numbers, double& mean) {
    const std::ptrdiff_t cell = std::max(sentence.labels, 1), row = cell * (sentence.words + 1);
    std::vector<double> slopes(numbers.size());
    const EdgeValues values{{numbers.data(), sentence.words, row, cell, sentence.labels, sentence.labels ? 1 : 0}};
    const EdgeTargets gradient = std::vector<EdgeTarget<double>>{{slopes.data(), row, cell, sentence.words + 1}};
    solved.expectations(options, {&values, 1}, &mean, {&gradient, 1});
    double sum = 0.0;
    for (std::size_t i = 0; i < numbers.size(); ++i) sum += numbers[i] * slopes[i];
    return sum;
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
                RelativeScoresOf<T> relative(of_q[k], marginals[i], heads.data() + row,
                                             q.labels() ? labels.data() + row : nullptr, options.root, stop);
                relative.write(to[i], stop);
                std::optional<Batch> alone;
                std::optional<Solved> solved_p;
                while (relative.take_off_unit(to[i], [&](std::vector<double>& numbers, double& mean) {
                    if (!solved_p)
                        solved_p.emplace(alone.emplace(EdgeValues{scores_of_p[k]}), options, Solved::For::questions);
                    return variance_of(*solved_p, scores_of_p[k], options, numbers, mean);
                }))
                    relative.write(to[i], stop);
                of_best[i] += relative.common();
            }
        } catch (const Stopped&) {
        }
    });
    throw_if_stopped(stop);
}

}  // namespace spantree::library
