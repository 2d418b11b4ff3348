// How likely trees are: log-probabilities, and the loss of a tree CRF with its gradient.
//
// With s the relative scores and z the logarithm of their sum over trees (`Solved`), the loss of a tree is
//
//     z - sum of s over its edges                      gradient:  M - 1 at its edges
//
// Where some heads or labels are not known, it is z - z', with z' the sum over the trees that have what is known, of the
// same relative scores; the gradient is M - M'.
#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "own_edges.hpp"
#include "questions.hpp"
#include "spantree/batch/tree.hpp"
#include "view.hpp"

namespace spantree {

using namespace library;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr Heads unknown = GivenTree::unknown;

/// Whether every entry is a node (a label), or not known.
bool makes_sense(const GivenTree& tree, int words, int labels) {
    for (int dep = 1; dep <= words; ++dep) {
        const Heads head = tree.head(dep), label = tree.label(dep);
        if (head != unknown && (head < 0 || head > words || head == dep)) return false;
        if (label != unknown && (label < 0 || label >= std::max(labels, 1))) return false;
    }
    return true;
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

/// Makes marginals the gradient of a tree's loss, times `weight`. M - 1 at its edges is minus the sum of all other marginals
/// into the same word, which loses no digit where the tree is all but certain.
template <class Out>
void take_off_tree(const EdgeTarget<Out>& marginals, const GivenTree& tree, int words, int labels, double weight,
                   std::vector<double>& others) {
    const auto edge_of_tree = [&](int dep) -> Out& {
        return marginals.edge(static_cast<int>(tree.head(dep)), dep)[tree.label(dep)];
    };
    const auto weigh = [weight](Out& number) { number = static_cast<Out>(weight * number); };
    for (int dep = 1; dep <= words; ++dep) edge_of_tree(dep) = Out{0};
    others.assign(static_cast<std::size_t>(words) + 1, 0.0);
    for (int head = 0; head <= words; ++head) {
        Out* const row = marginals.edge(head, 0);
        if (labels > 1) {
            for (int dep = 1; dep <= words; ++dep) {
                Out* const edge = row + dep * marginals.dep_stride;
                others[dep] += sum_of_labels(edge, labels);
                if (weight != 1.0) std::for_each(edge, edge + labels, weigh);
            }
        } else if (marginals.dep_stride == 1) {
            for (int dep = 1; dep <= words; ++dep) others[dep] += row[dep];
            if (weight != 1.0) std::for_each(row + 1, row + words + 1, weigh);
        } else {
            for (int dep = 1; dep <= words; ++dep) {
                others[dep] += row[dep * marginals.dep_stride];
                weigh(row[dep * marginals.dep_stride]);
            }
        }
    }
    for (int dep = 1; dep <= words; ++dep) edge_of_tree(dep) = static_cast<Out>(weight * -others[dep]);
}

void check_trees(const ScoresView& scores, const HeadsView& heads, const HeadsView& labels) {
    if (scores.batch == 0) return;
    if (!heads.data) throw InvalidInput("no heads");
    if (scores.labels && !labels.data) throw InvalidInput("labelled scores: no labels");
}

/// One tree for each sentence, read once: what a caller changes afterwards is not seen.
class OwnTrees {
public:
    OwnTrees(const TreesIn& from, const Batch& batch) : trees_(batch.size()), nodes_(from.nodes) {
        const bool labelled = batch.labels() > 0;
        heads_.resize(batch.size() * static_cast<std::size_t>(nodes_));
        if (labelled) labels_.resize(heads_.size());
        for (std::size_t i = 0; i < batch.size(); ++i) {
            const auto first = static_cast<std::ptrdiff_t>(i) * nodes_;
            trees_[i].read(from, i, 0, batch.words(i), labelled);
            std::copy(trees_[i].heads.begin(), trees_[i].heads.end(), heads_.begin() + first);
            std::copy(trees_[i].labels.begin(), trees_[i].labels.end(), labels_.begin() + (labelled ? first : 0));
        }
    }
    const GivenTree& operator[](std::size_t i) const { return trees_[i]; }
    TreesIn rows() const {
        return {{heads_.data(), IntType::i64, nodes_}, {labels_.data(), IntType::i64, nodes_}, nodes_};
    }

private:
    std::vector<GivenTree> trees_;
    std::vector<Heads> heads_, labels_;
    int nodes_;
};

/// The loss of a tree of which not everything is known, and its gradient: of relative scores, [head, dep,
/// label], as they are and with what contradicts the known parts forbidden, solved side by side. inf, and no gradient, if there
/// is no tree that has what is known.
double partial_loss(const GivenTree& tree, int words, int labels, const Options& options, const double* scores,
                    std::vector<double>& gradient) {
    const int nodes = words + 1, cell = std::max(labels, 1);
    const std::ptrdiff_t size = std::ptrdiff_t{nodes} * nodes * cell;
    std::vector<double> both(scores, scores + size), marginals_of(2 * static_cast<std::size_t>(size)), log_z(2);
    for (int head = 0; head < nodes; ++head)
        for (int dep = 0; dep < nodes; ++dep)
            for (int label = 0; label < cell; ++label, ++scores) {
                const bool may_be = dep > 0 && (tree.head(dep) == unknown || tree.head(dep) == head) &&
                                    (tree.label(dep) == unknown || tree.label(dep) == label);
                both.push_back(may_be ? *scores : minus_infinity<double>);
            }
    ScoresView view;
    view.data = both.data();
    view.batch = 2;
    view.nodes = nodes;
    view.labels = labels;
    view.batch_stride = size;
    view.head_stride = std::ptrdiff_t{cell} * nodes;
    view.dep_stride = cell;
    view.label_stride = 1;
    std::int32_t found[2];
    marginals(view, options, log_z.data(),
              {marginals_of.data(), DType::f64, view.batch_stride, view.head_stride, view.dep_stride}, {found});
    gradient.clear();
    if (found[1] != 0) return infinity;
    for (std::ptrdiff_t at = 0; at < size; ++at) gradient.push_back(marginals_of[at] - marginals_of[size + at]);
    return std::max(log_z[0] - log_z[1], 0.0);
}

}  // namespace

void crf_loss(const ScoresView& scores, const Options& options, HeadsView heads, HeadsView labels, void* loss,
              EdgesOut gradient, Status status, bool partial, std::optional<double> weight) {
    const Batch batch(scores);
    check_trees(scores, heads, labels);
    const OwnTrees trees({heads, labels, scores.nodes}, batch);
    const EdgeTargets to = targets(gradient, scores);
    const Solved solved(batch, options, Solved::For::questions, to);
    std::vector<double> losses(batch.size());
    solved.log_probs(options, 1, trees.rows(), losses.data());
    for (double& number : losses) number = std::max(-number, 0.0);

    std::vector<char> is_partial(batch.size(), 0);
    for (std::size_t i = 0; i < batch.size(); ++i) {
        const int words = batch.words(i);
        is_partial[i] =
            partial && !trees[i].complete(words) && makes_sense(trees[i], words, scores.labels) && solved.has_tree(i);
    }
    OwnEdges relative(batch, std::find(is_partial.begin(), is_partial.end(), 1) != is_partial.end());
    if (!relative.targets().empty()) solved.relative_scores(options, relative.targets());
    std::vector<double> slopes, others;
    for (std::size_t i = 0; i < batch.size(); ++i) {
        const int words = batch.words(i), cell = std::max(scores.labels, 1);
        if (is_partial[i])
            losses[i] = partial_loss(trees[i], words, scores.labels, options, relative.edge(i, 0, 0), slopes);
        std::visit(
            [&]<class Out>(const std::vector<EdgeTarget<Out>>& all) {
                if (all.empty()) return;
                const double* slope = slopes.data();
                if (losses[i] == infinity)
                    clear_edges(all[i], scores.labels);
                else if (!is_partial[i])
                    take_off_tree(all[i], trees[i], words, scores.labels, weight.value_or(1.0), others);
                else
                    for (int head = 0; head <= words; ++head)
                        for (int dep = 0; dep <= words; ++dep)
                            for (int label = 0; label < cell; ++label)
                                all[i].edge(head, dep)[label] = static_cast<Out>(weight.value_or(1.0) * *slope++);
            },
            to);
    }
    if (weight)
        write_numbers({*weight * std::accumulate(losses.begin(), losses.end(), 0.0)}, scores.dtype, loss);
    else
        write_numbers(losses, scores.dtype, loss);
    Statuses statuses = solved.statuses();
    for (std::size_t i = 0; i < losses.size(); ++i)
        if (statuses[i] == 0 && losses[i] == infinity) statuses[i] = Status::not_a_tree;
    write_statuses(statuses, status);
}

void log_prob(const ScoresView& scores, const Options& options, std::int64_t trees, HeadsView heads, HeadsView labels,
              void* log_probs, Status status) {
    if (trees < 0) throw InvalidInput("a negative number of trees");
    const Batch batch(scores);
    check_trees(scores, heads, labels);
    const Solved solved(batch, options, Solved::For::questions);
    std::vector<double> result(static_cast<std::size_t>(trees) * batch.size());
    solved.log_probs(options, trees, {heads, labels, scores.nodes}, result.data());
    for (double& number : result) number = std::min(number, 0.0);
    write_numbers(result, scores.dtype, log_probs);
    write_statuses(solved.statuses(), status);
}

}  // namespace spantree
