// Everything projective on random sentences: sparse, soft-masked, labelled, sharp, of all small sizes, with scratch
// memory reused throughout.
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "spantree/batch/tree.hpp"
#include "spantree/chart/eisner.hpp"
#include "spantree/chart/projective_kbest.hpp"
#include "spantree/chart/sample.hpp"
#include "spantree/chart/solved_sentence.hpp"
#include "spantree/sample/projective_without_replacement.hpp"

using namespace spantree;
using namespace spantree::projective;
using sampling::DistinctMethod;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Kind {
    double scale;
    double masked;              // the share of edges that are masked
    std::vector<double> masks;  // each as likely as the others
    int labels;
};
const Kind kinds[] = {{1, 0, {}, 0},
                      {1, 0.4, {-infinity}, 0},
                      {100, 0.2, {-infinity}, 0},
                      {1, 0.3, {-1e30}, 0},
                      {3e5, 0, {}, 0},
                      {1, 0.2, {-infinity}, 3},
                      {1, 0.2, {-1e30}, 2},
                      {60, 0, {}, 0},
                      {300, 0, {}, 4},
                      {1, 1, {-1e9, -2e9, -1e30, -1.7e308}, 0},
                      {1, 1, {-1e9, 1e9, 3e9, 0.5e9, -infinity}, 0},
                      {1, 1, {0, -1e30, -1.7e308}, 2},
                      {1e30, 0.2, {-infinity}, 0}};

bool fail(const char* what, int words) {
    std::printf("%s, %d words\n", what, words);
    return false;
}

class Fuzz {
public:
    bool run() {
        for (const Kind& kind : kinds)
            for (int words = 0; words <= 19; words += words < 10 ? 1 : 3)
                for (const Root root : {Root::single, Root::multi})
                    if (!try_sentence(kind, words, root)) return false;
        // Several blocks of items, and more widths than are gone through between two looks at the stop signal.
        for (const int words : {17, 26, 33, 40, 75})
            for (const Root root : {Root::single, Root::multi})
                if (!entropy_is_the_same(words, root)) return false;
        return true;
    }

private:
    bool try_sentence(const Kind& kind, int words, Root root) {
        const int nodes = words + 1, cell = kind.labels > 0 ? kind.labels : 1;
        std::vector<double> scores(static_cast<std::size_t>(nodes) * nodes * cell);
        for (double& score : scores)
            score = uniform_(random_) < kind.masked ? kind.masks[random_() % kind.masks.size()]
                                                    : kind.scale * normal_(random_);
        const Sentence<double> sentence{scores.data(), words, nodes * cell, cell, kind.labels, kind.labels > 0 ? 1 : 0};
        std::vector<Heads> heads(static_cast<std::size_t>(nodes)), labels(static_cast<std::size_t>(nodes));
        const auto valid = [&] {
            return is_tree(heads.data(), words, root, mark_) && is_projective(heads.data(), words);
        };

        Feasibility feasible;
        const auto trees = best_projective_trees(sentence, root, feasible, stop_);
        for (int rank = 0; trees && rank < 20 && trees->next(heads.data(), labels.data(), stop_); ++rank)
            if (!valid()) return fail("a tree among the best that is none", words);
        if (!kind.labels) {
            if (!best_tree_(sentence, root, heads.data(), stop_) != !trees)
                return fail("two views on whether there is a tree", words);
            if (trees && !valid()) return fail("a best tree that is none", words);
        }
        return sums_are_fine(sentence, root, trees != nullptr);
    }

    /// Every question to a solved sentence, with values that are rubbish where they do not matter.
    bool sums_are_fine(const Sentence<double>& sentence, Root root, bool has_tree) {
        const int words = sentence.words, nodes = words + 1, cell = std::max(sentence.labels, 1);
        const std::size_t size = static_cast<std::size_t>(nodes) * nodes * cell;
        solved_.solve(sentence, root, Purpose::marginals, stop_);
        if (solved_.feasible() != has_tree)
            return fail("a sum over trees where there are none, or none where there are", words);
        std::vector<double> marginals(size, 7.0), values(5 * size), out(5 * size, 7.0);
        const auto place = [&](std::vector<double>& flat, int at) {
            return EdgeTarget<double>{flat.data() + at * size, nodes * cell, cell, nodes};
        };
        solved_.write_marginals(sentence, scratch_, place(marginals, 0));
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = marginals[i % size] > 0 ? normal_(random_) : std::numeric_limits<double>::quiet_NaN();
        const auto value = [&](int k) {
            return [&, k](int head, int dep, int label) {
                return values[k * size + (static_cast<std::size_t>(head) * nodes + dep) * cell + label];
            };
        };
        const EdgeTarget<double> to[] = {place(out, 0), place(out, 1), place(out, 2), place(out, 3)};
        solved_.hessian<8>(sentence, scratch_, value, to, 4, stop_);
        solved_.third(sentence, scratch_, value(0), value(4), place(out, 4), stop_);
        bool fine = true;
        for (const double x : marginals) fine &= x >= 0 && x <= 1;
        for (const double x : out) fine &= std::isfinite(x);
        fine &= std::isfinite(solved_.entropy(sentence, scratch_)) == has_tree;
        fine &= std::isfinite(solved_.expectation(sentence, scratch_, value(0))) == has_tree;
        std::vector<double> alone(size);
        const EdgeTarget<double> to_alone = place(alone, 0);
        solved_.hessian<1>(sentence, scratch_, [&](int) { return value(2); }, &to_alone, 1, stop_);
        fine &= std::equal(alone.begin(), alone.end(), out.begin() + 2 * size);
        if (!fine) return fail("marginals, expectations or derivatives", words);
        for (const bool side_by_side : {false, true})
            for (const int used : {3, 8})
                if (!sentence.labels && !eight_are_those_alone(sentence, values, side_by_side, used))
                    return fail("expectations of eight values at once that are not those of one", words);
        std::vector<Heads> heads(static_cast<std::size_t>(nodes));
        scratch_.draw.start(words, root);
        for (std::uint64_t tree = 0; has_tree && tree < 5; ++tree) {
            RandomStream stream({1, 2}, 3, tree);
            solved_.with_inside([&](const auto& sums) { scratch_.draw(sums, stream, heads.data()); });
            if (!is_tree(heads.data(), words, root, mark_) || !is_projective(heads.data(), words))
                return fail("a random tree that is none", words);
        }
        return distinct_trees_are_fine(sentence, root, has_tree);
    }

    /// values[k % 5] is what there is of value k.
    bool eight_are_those_alone(const Sentence<double>& sentence, const std::vector<double>& values, bool side_by_side,
                               int used) {
        const int nodes = sentence.words + 1, edges = nodes * nodes;
        const int edge = side_by_side ? used : 1, direction = side_by_side ? 1 : edges;
        std::vector<double> given(static_cast<std::size_t>(used) * edges), out(given.size(), 7.0);
        const double* from[8];
        double *to[8], totals[8];
        for (int k = 0; k < used; ++k) {
            from[k] = given.data() + k * direction;
            to[k] = out.data() + k * direction;
            for (int e = 0; e < edges; ++e) given[k * direction + e * edge] = values[k % 5 * edges + e];
        }
        const auto count = static_cast<std::size_t>(used);
        solved_.expectations_of_eight(scratch_, EightOfEdges<const double>({from, count}, nodes * edge, edge, nodes),
                                      EightOfEdges<double>({to, count}, nodes * edge, edge, nodes), totals, stop_);
        bool same = true;
        std::vector<double> alone(static_cast<std::size_t>(edges));
        const EdgeTarget<double> target{alone.data(), nodes, 1, nodes};
        for (int k = 0; k < used; ++k) {
            const auto value = [&](int head, int dep, int) { return values[k % 5 * edges + head * nodes + dep]; };
            const double total = solved_.expectation(sentence, scratch_, value);
            same &= totals[k] == total || (std::isnan(totals[k]) && std::isnan(total));
            solved_.hessian<1>(sentence, scratch_, [&](int) { return value; }, &target, 1, stop_);
            for (int e = 0; e < edges; ++e) same &= alone[e] == out[k * direction + e * edge];
        }
        return same;
    }

    /// Found together with the outside's numbers, or afterwards: the same bits.
    bool entropy_is_the_same(int words, Root root) {
        const int nodes = words + 1;
        std::vector<double> scores(static_cast<std::size_t>(nodes) * nodes), together(scores.size()),
            afterwards(scores.size());
        for (double& score : scores) score = uniform_(random_) < 0.1 ? -infinity : 2 * normal_(random_);
        const Sentence<double> sentence{scores.data(), words, nodes, 1, 0, 0};
        const auto to = [&](std::vector<double>& out) { return EdgeTarget<double>{out.data(), nodes, 1, nodes}; };
        const double value = solved_.solve_with_entropy(sentence, root, scratch_, to(together), stop_);
        bool same = solved_.feasible() && value == solved_.entropy(sentence, scratch_);
        solved_.solve(sentence, root, Purpose::marginals, stop_);
        same &= value == solved_.entropy(sentence, scratch_);
        solved_.write_entropy_gradient(sentence, scratch_, to(afterwards), stop_);
        return (same && together == afterwards) || fail("an entropy found in two ways", words);
    }

    /// Without replacement, solved on the way; then once more from the solve there is, the bytes of the scores changing after
    /// they were first read: anything may come out, but nothing may break.
    bool distinct_trees_are_fine(const Sentence<double>& sentence, Root root, bool has_tree) {
        const int words = sentence.words;
        std::vector<Heads> heads(static_cast<std::size_t>(words) + 1), labels(heads.size());
        for (const auto method : {DistinctMethod::automatic, DistinctMethod::trie, DistinctMethod::beam})
            for (const bool changing : {false, true}) {
                std::vector<double> copy(
                    sentence.scores,
                    sentence.scores + static_cast<std::size_t>(words + 1) * (words + 1) * std::max(sentence.labels, 1));
                Sentence<double> view = sentence;
                view.scores = copy.data();
                if (!distinct_.start(view, changing ? &solved_ : nullptr, root, method, 12, {{1, 2}, 3}, stop_) ==
                    has_tree)
                    return fail("distinct trees where there are none, or none where there are", words);
                if (changing)
                    for (double& score : copy)
                        score = uniform_(random_) < 0.3 ? infinity : uniform_(random_) < 0.5 ? -infinity : NAN;
                for (int rank = 0; has_tree && rank < 12 && distinct_.next(heads.data(), labels.data(), stop_); ++rank)
                    if (!is_tree(heads.data(), words, root, mark_)) return fail("a distinct tree that is none", words);
                if (has_tree) (void)distinct_.next_key();
                if (!changing) continue;
                std::vector<double> out(copy.size());
                const EdgeTarget<double> to{out.data(), view.head_stride, view.dep_stride, words + 1};
                solved_.write_marginals(view, scratch_, to);
                solved_.write_entropy_gradient(view, scratch_, to, stop_);
            }
        return true;
    }

    std::mt19937_64 random_{1};
    std::normal_distribution<double> normal_;
    std::uniform_real_distribution<double> uniform_;
    StopSignal stop_{[] { return false; }};
    std::vector<int> mark_;
    BestProjectiveTree<double> best_tree_;
    SolvedSentence solved_;
    QuestionScratch scratch_;
    sampling::DistinctProjectiveTrees<double> distinct_;
};

}  // namespace

int main() { return Fuzz().run() ? 0 : 1; }
