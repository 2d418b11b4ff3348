// How likely trees are: log-probabilities, and the loss of a tree CRF with its gradient.
//
// With s the relative scores and z the logarithm of their sum over trees (kept_solve.hpp), the loss of a tree is
//
//     z - sum of s over its edges                      gradient:  M - 1 at its edges
//
// Where some heads or labels are not known, it is z - z', with z' the sum over the trees that have what is known, of the
// same relative scores; the gradient is M - M'.
#include <algorithm>
#include <mutex>
#include <vector>

#include "kept_solve.hpp"
#include "spantree/number/exact_sum.hpp"

namespace spantree {

using namespace library;

namespace {

constexpr Heads unknown = -2;

/// Heads and labels given for one sentence, in memory of our own.
struct GivenTree {
    std::vector<Heads> heads, labels;

    void read(const HeadsView& from_heads, const HeadsView& from_labels, std::int64_t sentence, std::int64_t tree,
              int words, bool labelled) {
        read_row(from_heads, sentence, tree, words, heads);
        if (labelled) read_row(from_labels, sentence, tree, words, labels);
    }

    Heads head(int dep) const { return heads[static_cast<std::size_t>(dep)]; }
    Heads label(int dep) const { return labels.empty() ? 0 : labels[static_cast<std::size_t>(dep)]; }

    /// Whether every entry is a node (a label), or not known.
    bool makes_sense(int words, int number_of_labels) const {
        for (int dep = 1; dep <= words; ++dep) {
            if (head(dep) != unknown && (head(dep) < 0 || head(dep) > words || head(dep) == dep)) return false;
            if (label(dep) != unknown && (label(dep) < 0 || label(dep) >= std::max(number_of_labels, 1))) return false;
        }
        return true;
    }
    bool complete(int words) const {
        for (int dep = 1; dep <= words; ++dep)
            if (head(dep) == unknown || label(dep) == unknown) return false;
        return true;
    }
    bool is_tree(int words, const Options& options, std::vector<int>& mark) const {
        return spantree::is_tree(heads.data(), words, options.root, mark) &&
               (!options.projective || is_projective(heads.data(), words));
    }
};

/// -inf if the tree has an edge that is forbidden.
template <class Value>
double relative_score_of(const GivenTree& tree, int words, Value value) {
    TwoPart<double> sum;
    for (int dep = 1; dep <= words; ++dep) {
        const double edge = value(static_cast<int>(tree.head(dep)), dep, static_cast<int>(tree.label(dep)));
        if (edge == minus_infinity<double>) return edge;
        sum += edge;
    }
    return sum.value();
}

/// In eight running sums, so that it need not wait for each addition.
template <class Out>
double sum_of_labels(const Out* numbers, int count) {
    double part[8] = {};
    int i = 0;
    for (; i + 8 <= count; i += 8)
        for (int lane = 0; lane < 8; ++lane) part[lane] += numbers[i + lane];
    for (; i < count; ++i) part[0] += numbers[i];
    return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

/// Makes marginals the gradient of a tree's loss. M - 1 at its edges is minus the sum of all other marginals into the same
/// word, which loses no digit where the tree is all but certain.
template <class Out>
void take_off_tree(const EdgeTarget<Out>& marginals, const GivenTree& tree, int words, int labels,
                   std::vector<double>& others) {
    const auto edge_of_tree = [&](int dep) -> Out& {
        return marginals.edge(static_cast<int>(tree.head(dep)), dep)[tree.label(dep)];
    };
    for (int dep = 1; dep <= words; ++dep) edge_of_tree(dep) = Out{0};
    others.assign(static_cast<std::size_t>(words) + 1, 0.0);
    for (int head = 0; head <= words; ++head) {
        const Out* const row = marginals.edge(head, 0);
        if (labels > 1)
            for (int dep = 1; dep <= words; ++dep)
                others[dep] += sum_of_labels(row + dep * marginals.dep_stride, labels);
        else if (marginals.dep_stride == 1)
            for (int dep = 1; dep <= words; ++dep) others[dep] += row[dep];
        else
            for (int dep = 1; dep <= words; ++dep) others[dep] += row[dep * marginals.dep_stride];
    }
    for (int dep = 1; dep <= words; ++dep) edge_of_tree(dep) = static_cast<Out>(-others[dep]);
}

void check_trees(const ScoresView& scores, const HeadsView& heads, const HeadsView& labels) {
    if (scores.batch == 0) return;
    if (!heads.data) throw InvalidInput("no heads");
    if (scores.labels && !labels.data) throw InvalidInput("labelled scores: no labels");
}

/// Sentences of which not everything is known: relative scores as they are, and with what contradicts the known parts
/// forbidden, solved side by side.
class PartialTrees {
public:
    template <class Value>
    void add(std::size_t sentence, int words, int labels, const GivenTree& tree, Value value) {
        const std::size_t cell = static_cast<std::size_t>(std::max(labels, 1)),
                          nodes = static_cast<std::size_t>(words) + 1;
        std::vector<double> all(nodes * nodes * cell, minus_infinity<double>), known = all;
        for (int head = 0; head <= words; ++head)
            for (int dep = 1; dep <= words; ++dep)
                for (int label = 0; label < static_cast<int>(cell) && head != dep; ++label) {
                    const std::size_t at =
                        (static_cast<std::size_t>(head) * nodes + static_cast<std::size_t>(dep)) * cell +
                        static_cast<std::size_t>(label);
                    all[at] = value(head, dep, label);
                    const bool may_be = (tree.head(dep) == unknown || tree.head(dep) == head) &&
                                        (tree.label(dep) == unknown || tree.label(dep) == label);
                    if (may_be) known[at] = all[at];
                }
        which_.push_back(sentence);
        nodes_.push_back(words + 1);
        scores_.push_back(std::move(all));
        scores_.push_back(std::move(known));
    }

    /// Calls done(sentence, loss, gradient), the gradient as [head, dep, label] of all edges; no gradient if there is no tree
    /// that has what is known.
    template <class Done>
    void solve(const ScoresView& scores, const Options& options, Done done) const {
        for (std::size_t k = 0; k < which_.size(); ++k) {
            const std::size_t size = scores_[2 * k].size();
            std::vector<double> both(scores_[2 * k]);
            both.insert(both.end(), scores_[2 * k + 1].begin(), scores_[2 * k + 1].end());
            const int cell = std::max(scores.labels, 1);
            const int nodes = nodes_[k];
            ScoresView view{both.data(),
                            DType::f64,
                            2,
                            nodes,
                            scores.labels,
                            static_cast<std::ptrdiff_t>(size),
                            std::ptrdiff_t{cell} * nodes,
                            cell,
                            1};
            std::vector<double> marginals_of(2 * size), log_z(2);
            std::int32_t found[2];
            marginals(view, options, log_z.data(),
                      {marginals_of.data(), DType::f64, view.batch_stride, view.head_stride, view.dep_stride}, {found});
            if (found[1] != 0) {
                done(which_[k], std::numeric_limits<double>::infinity(), nullptr);
                continue;
            }
            for (std::size_t at = 0; at < size; ++at) marginals_of[at] -= marginals_of[size + at];
            done(which_[k], std::max(log_z[0] - log_z[1], 0.0), marginals_of.data());
        }
    }

private:
    std::vector<std::size_t> which_;
    std::vector<int> nodes_;
    std::vector<std::vector<double>> scores_;  // all, and known, one after the other
};

}  // namespace

void crf_loss(const ScoresView& scores, const Options& options, HeadsView heads, HeadsView labels, void* loss,
              EdgesOut gradient, Status status) {
    check(scores);
    check_trees(scores, heads, labels);
    with_type(scores.dtype, [&]<class T>(T) {
        const Sentences<T> sentences(scores);
        StopSignal stop = stop_signal_of(options);
        KeptSolve<T> solve(sentences, options, stop);
        std::vector<GivenTree> trees(sentences.size());
        std::vector<char> is_known(sentences.size(), 0), is_wrong(sentences.size(), 0);
        std::vector<int> mark;
        for (std::size_t i = 0; i < sentences.size(); ++i) {
            const int words = sentences[i].words;
            trees[i].read(heads, labels, static_cast<std::int64_t>(i), 0, words, scores.labels > 0);
            is_known[i] = trees[i].complete(words);
            is_wrong[i] =
                !trees[i].makes_sense(words, scores.labels) || (is_known[i] && !trees[i].is_tree(words, options, mark));
        }
        std::vector<double> losses(sentences.size(), std::numeric_limits<double>::infinity());
        std::vector<double> others;
        PartialTrees partial;
        std::mutex partial_lock;
        with_type(gradient.dtype, [&]<class Out>(Out) {
            const std::vector<EdgeTarget<Out>> to = targets<Out>(gradient, scores);
            solve.solve(true, to);
            solve.relative_scores([&](std::size_t i, auto value) {
                const int words = sentences[i].words;
                if (is_wrong[i]) return;
                if (!is_known[i]) {
                    const std::lock_guard lock(partial_lock);
                    return partial.add(i, words, scores.labels, trees[i], value);
                }
                const double tree = relative_score_of(trees[i], words, value);
                losses[i] = std::max(solve.reports()[i].rest - tree, 0.0);
            });
            for (std::size_t i = 0; i < sentences.size(); ++i)
                if (sentences[i].words == 0 && solve.has_tree(i)) losses[i] = 0.0;
            partial.solve(scores, options, [&](std::size_t i, double found, const double* slopes) {
                losses[i] = found;
                const int nodes = sentences[i].words + 1, cell = std::max(scores.labels, 1);
                for (int head = 0; slopes && !to.empty() && head < nodes; ++head)
                    for (int dep = 0; dep < nodes; ++dep)
                        for (int label = 0; label < cell; ++label)
                            to[i].edge(head, dep)[label] = static_cast<Out>(*slopes++);
            });
            for (std::size_t i = 0; i < to.size(); ++i) {
                if (losses[i] == std::numeric_limits<double>::infinity()) {
                    clear_edges(to[i], scores.labels);
                } else if (is_known[i]) {
                    take_off_tree(to[i], trees[i], sentences[i].words, scores.labels, others);
                }
            }
        });
        write_numbers(losses, scores.dtype, loss);
        write_status(solve, status);
        for (std::size_t i = 0; status.per_sentence && i < losses.size(); ++i)
            if (solve.has_tree(i) && losses[i] == std::numeric_limits<double>::infinity())
                status.per_sentence[i] = Status::not_a_tree;
    });
}

void log_prob(const ScoresView& scores, const Options& options, std::int64_t trees, HeadsView heads, HeadsView labels,
              void* log_probs, Status status) {
    if (trees < 0) throw InvalidInput("a negative number of trees");
    check(scores);
    check_trees(scores, heads, labels);
    with_type(scores.dtype, [&]<class T>(T) {
        const Sentences<T> sentences(scores);
        StopSignal stop = stop_signal_of(options);
        KeptSolve<T> solve(sentences, options, stop);
        solve.solve(true, std::vector<EdgeTarget<double>>());
        std::vector<double> result(static_cast<std::size_t>(trees) * sentences.size(), minus_infinity<double>);
        for (std::size_t i = 0; i < sentences.size(); ++i)
            for (std::int64_t tree = 0; tree < trees && sentences[i].words == 0 && solve.has_tree(i); ++tree)
                result[static_cast<std::size_t>(tree) * sentences.size() + i] = 0.0;
        solve.relative_scores([&](std::size_t i, auto value) {
            GivenTree given;
            std::vector<int> mark;
            const int words = sentences[i].words;
            for (std::int64_t tree = 0; tree < trees; ++tree) {
                given.read(heads, labels, static_cast<std::int64_t>(i), tree, words, scores.labels > 0);
                if (given.complete(words) && given.makes_sense(words, scores.labels) &&
                    given.is_tree(words, options, mark))
                    result[static_cast<std::size_t>(tree) * sentences.size() + i] =
                        std::min(relative_score_of(given, words, value) - solve.reports()[i].rest, 0.0);
            }
        });
        write_numbers(result, scores.dtype, log_probs);
        write_status(solve, status);
    });
}

}  // namespace spantree
