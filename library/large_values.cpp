#include "large_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "likeliest_edges.hpp"
#include "own_edges.hpp"
#include "run.hpp"
#include "spantree/number/exact_sum.hpp"

namespace spantree::library {

namespace {

// Relative to the mean magnitude of a tree's values, or to 1 where that is less.
constexpr double large = 0x1p20;     // rounding errors of anything smaller leave 2e-10
constexpr double moderate = 0x1p10;  // what stays leaves 2e-13
constexpr double nothing = 0x1p-70;  // less than a rounding error of all others

double at(const Sentence<double>& numbers, int head, int dep, int label) {
    return values_of(numbers)(head, dep, label);
}

/// Whether there is a finite number above `large`. (An infinite one is that of an edge in no tree, or makes all infinite.) Along
/// the axis whose numbers lie together, so that it takes next to no time; where all do, without a look at which edges they are.
bool any_large(const Sentence<double>& values) {
    const int nodes = values.words + 1, labels = std::max(values.labels, 1);
    const auto any_in = [](const double* numbers, std::ptrdiff_t count, std::ptrdiff_t step) {
        std::int64_t found = 0;
        if (step == 1)
            for (std::ptrdiff_t i = 0; i < count; ++i) found |= finite_above(large, numbers[i]) ? 1 : 0;
        else
            for (std::ptrdiff_t i = 0; i < count; ++i) found |= finite_above(large, numbers[i * step]) ? 1 : 0;
        return found != 0;
    };
    const bool labels_together = values.labels == 0 || values.label_stride == 1;
    if (labels_together && values.dep_stride == labels && values.head_stride == std::ptrdiff_t{labels} * nodes)
        return any_in(values.edge(0, 0), std::ptrdiff_t{labels} * nodes * nodes, 1);
    bool found = false;
    if (values.labels) {
        for (int head = 0; head < nodes; ++head)
            for (int dep = 1; dep < nodes; ++dep)
                found |= any_in(values.edge(head, dep), values.labels, values.label_stride);
    } else if (values.dep_stride == 1) {
        for (int head = 0; head < nodes; ++head) found |= any_in(values.edge(head, 1), values.words, 1);
    } else {
        for (int dep = 1; dep < nodes; ++dep) found |= any_in(values.edge(0, dep), nodes, values.head_stride);
    }
    return found;
}

/// Whether several values of each of sentence i's edges lie next to each other.
bool lie_side_by_side(std::span<const EdgeValues> values, std::size_t i) {
    if (values.size() < 2 || values[0][i].labels) return false;
    for (std::size_t k = 1; k < values.size(); ++k)
        if (values[k][i].scores != values[0][i].scores + k) return false;
    return true;
}

/// All numbers, [head, dep, label].
std::vector<double> copy_of(const Sentence<double>& values) {
    std::vector<double> result;
    for (int head = 0; head <= values.words; ++head)
        for (int dep = 0; dep <= values.words; ++dep)
            for (int label = 0; label < std::max(values.labels, 1); ++label)
                result.push_back(at(values, head, dep, label));
    return result;
}

/// visit(head, label) for the edges into a word that some tree has.
template <class Visit>
void each_possible(const Sentence<double>& marginals, int dep, Visit visit) {
    for (int head = 0; head <= marginals.words; ++head)
        for (int label = 0; label < std::max(marginals.labels, 1) && head != dep; ++label)
            if (at(marginals, head, dep, label) > 0.0) visit(head, label);
}

/// Values less what trees have in common of them.
class RelativeValues {
public:
    RelativeValues(const Sentence<double>& values, const Sentence<double>& marginals, Root root)
        : values_(values), likeliest_(values.words, root, [&](int dep, auto visit) {
              each_possible(marginals, dep,
                            [&](int head, int label) { visit(head, label, at(marginals, head, dep, label)); });
          }) {}

    double operator()(int head, int dep, int label) const {
        TwoPart<double> rest{at(values_, head, dep, label), 0.0};
        likeliest_.each_taken_off(head, dep, [&](const auto& edge, double sign) { rest += -sign * value(edge); });
        return rest.value();
    }

    /// Of a tree.
    double common() const {
        std::vector<double> terms;
        likeliest_.each_of_tree([&](const auto& edge, double sign) { terms.push_back(sign * value(edge)); });
        return sum_of(terms);
    }

    /// Magnitude of what is in common to a word's edges, or to those from ROOT.
    double most_in_common() const {
        double most = 0.0;
        likeliest_.each_of_tree([&](const auto& edge, double) { most = std::max(most, std::fabs(value(edge))); });
        return most;
    }

private:
    double value(const LikeliestEdges::Edge& edge) const { return at(values_, edge.head, edge.dep, edge.label); }

    Sentence<double> values_;
    LikeliestEdges likeliest_;
};

}  // namespace

LargeValues::LargeValues(const Solved& solved, const Batch& batch, const Options& options,
                         std::span<const EdgeValues> values)
    : sentences_(batch.size()), labels_(batch.labels()) {
    const std::vector<Candidate> found = candidates(values);
    if (found.empty()) return;
    OwnEdges marginals(batch), scores(batch);
    solved.marginals(options, marginals.targets());
    solved.relative_scores(options, scores.targets());
    for (const Candidate& candidate : found)
        if (const std::size_t i = candidate.sentence; solved.has_tree(i))
            take_out(candidate, values[candidate.values][i], marginals.values()[i], scores.values()[i], options);
    if (!any()) return;
    rest_.assign(values.begin(), values.end());
    const auto lie_in = [](const std::vector<double>& numbers, Sentence<double>& values) {
        const std::ptrdiff_t cell = std::max(values.labels, 1);
        values = {numbers.data(), values.words, cell * (values.words + 1), cell, values.labels, values.labels ? 1 : 0};
    };
    for (const TakenOut& part : taken_out_) {
        const bool as_it_was = rest_[0][part.sentence].scores == values[0][part.sentence].scores;
        for (std::size_t k = 0; k < values.size() && as_it_was; ++k) {
            copies_.push_back(copy_of(values[k][part.sentence]));
            lie_in(copies_.back(), rest_[k][part.sentence]);
        }
        lie_in(part.rest, rest_[part.values][part.sentence]);
    }
}

std::vector<LargeValues::Candidate> LargeValues::candidates(std::span<const EdgeValues> values) {
    std::vector<Candidate> found;
    for (std::size_t i = 0; !values.empty() && i < values[0].size(); ++i) {
        if (lie_side_by_side(values, i)) {
            Sentence<double> all = values[0][i];
            all.labels = static_cast<int>(values.size());
            all.label_stride = 1;
            if (!any_large(all)) continue;
        }
        for (std::size_t k = 0; k < values.size(); ++k)
            if (any_large(values[k][i])) found.push_back({k, i});
    }
    return found;
}

void LargeValues::take_out(const Candidate& candidate, const Sentence<double>& values,
                           const Sentence<double>& marginals, const Sentence<double>& scores, const Options& options) {
    const int words = values.words, cell = std::max(values.labels, 1);
    const auto index = [&](int head, int dep, int label) {
        return (static_cast<std::size_t>(head) * (words + 1) + dep) * cell + label;
    };
    const RelativeValues relative(values, marginals, options.root);
    double mean = 0.0, largest = relative.most_in_common();
    for (int dep = 1; dep <= words; ++dep)
        each_possible(marginals, dep, [&](int head, int label) {
            const double size = std::fabs(relative(head, dep, label));
            mean += at(marginals, head, dep, label) * size;
            largest = std::max(largest, size);
        });
    const double unit = std::max(mean, 1.0);
    if (!std::isfinite(mean) || !(largest > large * unit)) return;

    const std::size_t size = index(words, words, cell);
    TakenOut part{candidate.values, candidate.sentence, std::vector<double>(size), relative.common(),
                  std::vector<double>(size)};
    std::vector<double> weighted(size);
    OwnEdges tilted(Batch(std::vector<Sentence<double>>{scores}));
    for (int dep = 1; dep <= words; ++dep) {
        each_possible(marginals, dep, [&](int head, int label) {
            const double value = relative(head, dep, label);
            part.rest[index(head, dep, label)] = std::fabs(value) > moderate * unit ? 0.0 : value;
        });
        for (const double sign : {1.0, -1.0}) {
            double expected = 0.0;
            for (int head = 0; head <= words; ++head)
                for (int d = 0; d <= words; ++d)
                    for (int label = 0; label < cell; ++label)
                        weighted[index(head, d, label)] =
                            d == dep || d == 0 ? minus_infinity<double> : at(scores, head, d, label);
            each_possible(marginals, dep, [&](int head, int label) {
                const double value = sign * relative(head, dep, label);
                if (!(value > moderate * unit)) return;
                expected += at(marginals, head, dep, label) * value;
                weighted[index(head, dep, label)] = at(scores, head, dep, label) + std::log(value);
            });
            if (!(expected > nothing * unit)) continue;
            const Batch batch(std::vector<Sentence<double>>{{weighted.data(), words, std::ptrdiff_t{cell} * (words + 1),
                                                             cell, scores.labels, scores.labels ? 1 : 0}});
            const Solved solved(batch, options, Solved::For::marginals, tilted.targets());
            if (!solved.has_tree(0)) continue;
            part.total += sign * expected;
            for (int head = 0; head <= words; ++head)
                for (int d = 1; d <= words; ++d)
                    for (int label = 0; label < cell && head != d; ++label)
                        part.gradient[index(head, d, label)] +=
                            sign * expected * (tilted.edge(0, head, d)[label] - at(marginals, head, d, label));
        }
    }
    taken_out_.push_back(std::move(part));
}

void LargeValues::add_to(double* totals, std::span<const EdgeTargets> gradients) const {
    const int cell = std::max(labels_, 1);
    for (const TakenOut& part : taken_out_) {
        totals[part.values * sentences_ + part.sentence] += part.total;
        std::visit(
            [&]<class Out>(const std::vector<EdgeTarget<Out>>& targets) {
                const int words = rest_[part.values][part.sentence].words;
                const double* from = part.gradient.data();
                for (int head = 0; head <= words; ++head)
                    for (int dep = 0; dep <= words; ++dep)
                        for (int label = 0; label < cell; ++label) {
                            Out& to = targets[part.sentence].edge(head, dep)[label];
                            to = static_cast<Out>(to + *from++);
                        }
            },
            gradients[part.values]);
    }
}

}  // namespace spantree::library
