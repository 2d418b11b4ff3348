// How likely trees are: log-probabilities, and the loss of a tree CRF with its gradient.
//
// With s the relative scores and z the logarithm of their sum over trees (`Solved`), the loss of a tree is
//
//     z - sum of s over its edges                      gradient:  M - 1 at its edges
//
// Where some heads or labels are not known, the gradient is M - M', M' the marginals of the trees that have what is known;
// and with t the best of these, the loss is log p(t | known) - log p(t): nothing large is subtracted.
#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "questions.hpp"
#include "run.hpp"
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

/// sums += numbers, and numbers *= weight: in one pass over what may have left the caches.
template <class Out>
void add_and_weigh(Out* __restrict numbers, int count, double* __restrict sums, double weight) {
    for (int i = 0; i < count; ++i) {
        sums[i] += numbers[i];
        numbers[i] = static_cast<Out>(weight * numbers[i]);
    }
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
            add_and_weigh(row + 1, words, others.data() + 1, weight);
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
    GivenTree& operator[](std::size_t i) { return trees_[i]; }
    TreesIn rows() const {
        return {{heads_.data(), IntType::i64, nodes_}, {labels_.data(), IntType::i64, nodes_}, nodes_};
    }

private:
    std::vector<GivenTree> trees_;
    std::vector<Heads> heads_, labels_;
    int nodes_;
};

/// The loss of a tree of which not everything is known, and its gradient, [head, dep, label]: by the sentence as it is and with
/// what contradicts the known parts forbidden, solved side by side. Nothing if no tree has what is known.
template <class T>
std::optional<double> partial_loss(const GivenTree& tree, const Sentence<T>& sentence, const Options& options,
                                   std::vector<double>& gradient) {
    const int nodes = sentence.words + 1, cell = std::max(sentence.labels, 1);
    const std::ptrdiff_t size = std::ptrdiff_t{nodes} * nodes * cell;
    std::vector<double> both(2 * static_cast<std::size_t>(size), minus_infinity<double>), marginals_of(both.size());
    double *all = both.data(), *known = all + size;
    for (int head = 0; head < nodes; ++head)
        for (int dep = 0; dep < nodes; ++dep)
            for (int label = 0; label < cell; ++label, ++all, ++known) {
                if (dep == 0 || head == dep) continue;
                *all = sentence(head, dep, label);
                if ((tree.head(dep) == unknown || tree.head(dep) == head) &&
                    (tree.label(dep) == unknown || tree.label(dep) == label))
                    *known = *all;
            }
    ScoresView view;
    view.data = both.data();
    view.batch = 2;
    view.nodes = nodes;
    view.labels = sentence.labels;
    view.batch_stride = size;
    view.head_stride = std::ptrdiff_t{cell} * nodes;
    view.dep_stride = cell;
    view.label_stride = 1;
    std::int32_t found[2];
    marginals(view, options, nullptr,
              {marginals_of.data(), DType::f64, view.batch_stride, view.head_stride, view.dep_stride}, {found});
    gradient.clear();
    if (found[1] != 0) return std::nullopt;
    for (std::ptrdiff_t at = 0; at < size; ++at) gradient.push_back(marginals_of[at] - marginals_of[size + at]);

    ScoresView agreeing = view;
    agreeing.data = both.data() + size;
    agreeing.batch = 1;
    std::vector<Heads> best(2 * static_cast<std::size_t>(nodes));
    argmax(agreeing, options, {best.data()}, {best.data() + nodes}, nullptr, {});
    double log_probs[2];  // without and with what is known
    log_prob(view, options, 1, {best.data()}, {best.data() + nodes}, log_probs, {});
    return std::max(log_probs[1] - log_probs[0], 0.0);
}

}  // namespace

void crf_loss(const ScoresView& scores, const Options& options, HeadsView heads, HeadsView labels, void* loss,
              EdgesOut gradient, Status status, bool partial, std::optional<double> weight) {
    const Batch batch(scores);
    check_trees(scores, heads, labels);
    OwnTrees trees({heads, labels, scores.nodes}, batch);
    const EdgeTargets to = targets(gradient, scores);
    std::vector<double> losses(batch.size());
    const Solved solved(batch, options, 1, trees.rows(), losses.data(), to);
    for (double& number : losses) number = std::max(-number, 0.0);

    Statuses statuses = solved.statuses();
    std::vector<double> slopes, others;
    batch.visit([&](const auto& sentences) {
        for (std::size_t i = 0; i < batch.size(); ++i) {
            const int words = batch.words(i), cell = std::max(scores.labels, 1);
            const bool is_partial = partial && !trees[i].complete(words) && makes_sense(trees[i], words, scores.labels);
            if (statuses[i] == 0 && is_partial) {
                const std::optional<double> found = partial_loss(trees[i], sentences[i], options, slopes);
                losses[i] = found.value_or(infinity);
                if (!found) statuses[i] = Status::not_a_tree;
            } else if (statuses[i] == 0 && !trees[i].is_tree_of(sentences[i], options.root, options.projective)) {
                statuses[i] = Status::not_a_tree;
            }
            std::visit(
                [&]<class Out>(const std::vector<EdgeTarget<Out>>& all) {
                    if (all.empty()) return;
                    const double* slope = slopes.data();
                    if (statuses[i] != 0)
                        clear_edges(all[i], scores.labels);
                    else if (!is_partial)
                        take_off_tree(all[i], trees[i], words, scores.labels, weight.value_or(1.0), others);
                    else
                        for (int head = 0; head <= words; ++head)
                            for (int dep = 0; dep <= words; ++dep)
                                for (int label = 0; label < cell; ++label)
                                    all[i].edge(head, dep)[label] = static_cast<Out>(weight.value_or(1.0) * *slope++);
                },
                to);
        }
    });
    if (weight)
        write_numbers({*weight * std::accumulate(losses.begin(), losses.end(), 0.0)}, scores.dtype, loss);
    else
        write_numbers(losses, scores.dtype, loss);
    write_statuses(statuses, status);
}

void log_prob(const ScoresView& scores, const Options& options, std::int64_t trees, HeadsView heads, HeadsView labels,
              void* log_probs, Status status) {
    if (trees < 0) throw InvalidInput("a negative number of trees");
    const Batch batch(scores);
    check_trees(scores, heads, labels);
    std::vector<double> result(static_cast<std::size_t>(trees) * batch.size());
    const Solved solved(batch, options, trees, {heads, labels, scores.nodes}, result.data());
    for (double& number : result) number = std::min(number, 0.0);
    write_numbers(result, scores.dtype, log_probs);
    write_statuses(solved.statuses(), status);
}

}  // namespace spantree
