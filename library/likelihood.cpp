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

/// Makes marginals the gradient of a tree's loss. M - 1 at its edges is minus the sum of all other marginals into the same
/// word, which loses no digit where the tree is all but certain; `others` is that of those from other heads.
template <class Out>
void take_off_tree(const EdgeTarget<Out>& marginals, const GivenTree& tree, int words, int labels,
                   const double* others) {
    constexpr int ahead = 8;  // words whose edges are on their way from memory meanwhile
    constexpr int in_a_line = 64 / sizeof(Out);
    const auto labels_of = [&](int dep) { return marginals.edge(static_cast<int>(tree.head(dep)), dep); };
    for (int dep = 1; dep <= words; ++dep) {
        if (dep + ahead <= words)
            for (int label = 0; label < labels; label += in_a_line)
                __builtin_prefetch(labels_of(dep + ahead) + label, 1);
        Out* const edge = labels_of(dep);
        Out& gold = edge[tree.label(dep)];
        gold = Out{0};
        gold = static_cast<Out>(-(others[dep] + sum_of_labels(edge, std::max(labels, 1))));
    }
}

void check_trees(const ScoresView& scores, const HeadsView& heads, const HeadsView& labels) {
    if (scores.batch == 0) return;
    if (!heads.data) throw InvalidInput("no heads");
    if (scores.labels && !labels.data) throw InvalidInput("labelled scores: no labels");
}

/// Where each of the rows begins.
template <class Numbers>
auto rows_of(Numbers& numbers, std::size_t width) {
    std::vector<decltype(numbers.data())> rows;
    for (std::size_t at = 0; at < numbers.size(); at += width) rows.push_back(numbers.data() + at);
    return rows;
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
    std::size_t nodes() const { return static_cast<std::size_t>(nodes_); }
    std::vector<const Heads*> heads() const { return rows_of(heads_, nodes()); }
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
    std::vector<double> losses(batch.size()), others(wanted(to) ? batch.size() * trees.nodes() : 0);
    const Solved solved(batch, options, 1, trees.rows(), losses.data(), to,
                        {weight.value_or(1.0), trees.heads(), rows_of(others, trees.nodes())});
    for (double& number : losses) number = std::max(-number, 0.0);

    Statuses statuses = solved.statuses();
    std::vector<double> slopes;
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
                        take_off_tree(all[i], trees[i], words, scores.labels, others.data() + i * trees.nodes());
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
    const Batch batch(scores);
    check_trees(scores, heads, labels);
    std::vector<double> result(numbers_of_trees(trees, batch));
    const Solved solved(batch, options, trees, {heads, labels, scores.nodes}, result.data());
    for (double& number : result) number = std::min(number, 0.0);
    write_numbers(result, scores.dtype, log_probs);
    write_statuses(solved.statuses(), status);
}

}  // namespace spantree
