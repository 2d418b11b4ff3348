// Every sampler on random sentences: sparse, soft-masked, labelled, sharp, of all small sizes, with scratch memory
// reused throughout; and on scores that another thread changes all the while, to anything, NaN and +inf included.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "escape_solve.hpp"
#include "spantree/batch/tree.hpp"
#include "spantree/sample/projective_without_replacement.hpp"
#include "spantree/sample/random_trees.hpp"
#include "spantree/sample/without_replacement.hpp"
#include "spantree/walk/solution.hpp"

using namespace spantree;
using namespace spantree::sampling;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Kind {
    double scale;
    double masked;  // the share of edges that are masked
    double mask;
    int labels;
};
constexpr Kind kinds[] = {{1, 0, 0, 0},   {1, 0.5, -infinity, 0}, {100, 0.2, -infinity, 0}, {1, 0.3, -1e30, 0},
                          {500, 0, 0, 0}, {1, 0.3, -infinity, 3}, {300, 0.2, -1e9, 2}};

/// A sentence that has words, solved beside copies of itself: two or more share registers.
struct Solved {
    Solution solution;
    Solved(const Sentence<double>& sentence, Root root, StopSignal& stop, std::size_t copies = 1) {
        solution.solve(std::vector(copies, sentence), root, 1, stop, true, std::vector<EdgeTarget<double>>{});
    }
    SolvedWalk walk(std::size_t i = 0) const { return solution.sentences()[i]; }
};

class Fuzz {
public:
    bool run() {
        for (const Kind& kind : kinds)
            for (int words = 0; words <= 17; ++words)
                for (const Root root : {Root::single, Root::multi})
                    if (!try_sentence(kind, words, root)) {
                        std::printf("%d words, scale %g, %d labels\n", words, kind.scale, kind.labels);
                        return false;
                    }
        return true;
    }

private:
    bool try_sentence(const Kind& kind, int words, Root root) {
        const int nodes = words + 1, cell = kind.labels > 0 ? kind.labels : 1;
        std::vector<double> scores(static_cast<std::size_t>(nodes) * nodes * cell);
        for (double& score : scores)
            score = uniform_(random_) < kind.masked ? kind.mask : kind.scale * normal_(random_);
        const Sentence<double> sentence{scores.data(), words, nodes * cell, cell, kind.labels, kind.labels > 0 ? 1 : 0};
        return (words == 0 || kind.labels > 0 || repeat(sentence, root)) && distinct_crossing(sentence, root) &&
               distinct(projective_trees_, nullptr, sentence, root, true);
    }

    /// All methods find the sentence feasible, or none, and draw trees; a small budget too.
    bool repeat(const Sentence<double>& sentence, Root root) {
        const int nodes = sentence.words + 1;
        std::vector<Heads> best(static_cast<std::size_t>(nodes));
        const bool has_tree = static_cast<bool>(BestTree<double>()(sentence, root, best.data(), stop_));
        const Solved solved(sentence, root, stop_), in_company(sentence, root, stop_, 5);
        if (solved.walk().has_tree() != has_tree) return false;
        if (!has_tree) return true;
        for (const auto method : {SamplingMethod::automatic, SamplingMethod::wilson_marginal,
                                  SamplingMethod::wilson_reject, SamplingMethod::ancestral})
            for (const int budget : {0, nodes}) {
                constexpr int count = 20;
                std::vector<Heads> heads(static_cast<std::size_t>(count) * nodes), others(heads);
                const auto draw = [&](const SolvedWalk& walk, std::vector<Heads>& to) {
                    sampler_.start(walk, sentence.words, root, method, budget);
                    sampler_(
                        {{1, 2}, 3}, 0, count, stop_, [&](std::int64_t i) { return to.data() + i * nodes; },
                        [](std::int64_t) {});
                };
                draw(in_company.walk(2), others);
                const WalkFacts facts = sampler_.facts();
                draw(solved.walk(), heads);
                if (heads != others || facts.expected_steps != sampler_.facts().expected_steps) return false;
                if (!same_facts(sentence, solved.walk(), best, root)) return false;
                for (int i = 0; i < count; ++i)
                    if (!is_tree(heads.data() + i * nodes, sentence.words, root, mark_) ||
                        std::isinf(tree_score(sentence, heads.data() + i * nodes)))
                        return false;
            }
        return true;
    }

    /// What the sampler knows of its sentence is what numbers that have any range say.
    bool same_facts(const Sentence<double>& sentence, const SolvedWalk& walk, const std::vector<Heads>& best,
                    Root root) {
        CentredScores scores;
        centre(sentence, root, stop_, scores);
        WalkWeights<Extended> weights;
        weights.read_scores(sentence.words, root, [&](int h, int d) { return scores.if_it_matters(h, d); });
        const ExactFacts exact = exact_facts_(weights, best.data());
        const auto agree = [](double ours, double other) {
            return ours == other || std::fabs(ours - other) <= 1e-11 * (std::fabs(other) + 1e-200);
        };
        const WalkFacts& facts = sampler_.facts();
        const double log_partition = scores.total() + exact.log_partition;
        if (std::fabs(walk.state().log_partition - log_partition) > 1e-12 * (1 + std::fabs(log_partition)))
            return false;
        const bool known = facts.expected_steps < infinity;
        if (known ? !agree(facts.expected_steps, exact.expected_steps) : !walk.state().special) return false;
        for (std::size_t word = 0; root == Root::single && word < exact.root_marginals.size(); ++word)
            if (!agree(facts.root_marginals[word], exact.root_marginals[word]) ||
                (known && exact.root_marginals[word] > 0 &&
                 !agree(facts.steps_by_root[word], exact.steps_by_root[word])))
                return false;
        return true;
    }

    bool distinct_crossing(const Sentence<double>& sentence, Root root) {
        if (sentence.words == 0) return distinct(trees_, SolvedWalk(), sentence, root, false);
        const Solved solved(sentence, root, stop_);
        return distinct(trees_, solved.walk(), sentence, root, false);
    }

    template <class Distinct, class SomeSolve>
    bool distinct(Distinct& trees, const SomeSolve& solved, const Sentence<double>& sentence, Root root,
                  bool projective) {
        const auto nodes = static_cast<std::size_t>(sentence.words) + 1;
        for (const auto method : {DistinctMethod::automatic, DistinctMethod::trie, DistinctMethod::beam}) {
            if (!trees.start(sentence, solved, root, method, 30, {{1, 2}, 3}, stop_)) continue;
            std::set<std::vector<Heads>> seen;
            double last_key = infinity;
            for (int i = 0; i < 30; ++i) {
                std::vector<Heads> tree(2 * nodes);
                const auto found = trees.next(tree.data(), tree.data() + nodes, stop_);
                if (!found) break;
                const bool valid = is_tree(tree.data(), sentence.words, root, mark_) &&
                                   (!projective || is_projective(tree.data(), sentence.words)) &&
                                   found->log_probability < 1e-6 && !(found->key > last_key) &&
                                   seen.insert(tree).second;
                if (!valid) return false;
                last_key = found->key;
            }
            if (seen.empty() || trees.log_left() > 1e-6 || trees.next_key() > last_key) return false;
        }
        return true;
    }

    std::mt19937_64 random_{1};
    std::normal_distribution<double> normal_;
    std::uniform_real_distribution<double> uniform_;
    std::vector<int> mark_;
    StopSignal stop_{[] { return false; }};
    RandomTrees sampler_;
    EscapeSolve exact_facts_;
    DistinctTrees<double> trees_;
    DistinctProjectiveTrees<double> projective_trees_;
};

/// While it lives, a thread writes into the scores whatever doubles there are.
class Scribbler {
public:
    explicit Scribbler(std::vector<double>& scores)
        : thread_([this, &scores] {
              constexpr double wild[] = {
                  std::numeric_limits<double>::quiet_NaN(), infinity, -infinity, 1e308, -1e308, -1e30, 1e-310, 0.0};
              std::mt19937_64 random(7);
              while (!done_) {
                  const std::uint64_t bits = random();
                  const double score = bits & 16 ? wild[bits % 8] : static_cast<double>(bits >> 8 & 0xff) / 16;
                  std::atomic_ref(scores[(bits >> 16) % scores.size()]).store(score, std::memory_order_relaxed);
              }
          }) {}
    ~Scribbler() {
        done_ = true;
        thread_.join();
    }

private:
    std::atomic<bool> done_ = false;
    std::thread thread_;
};

/// Whatever comes out, it is made of nodes and labels, and it comes to an end.
bool survives_changing_scores(int words, int labels) {
    const int nodes = words + 1, cell = labels > 0 ? labels : 1;
    std::vector<double> scores(static_cast<std::size_t>(nodes) * nodes * cell, 1.0);
    const Sentence<double> sentence{scores.data(), words, nodes * cell, cell, labels, labels > 0 ? 1 : 0};
    const Scribbler scribbler(scores);
    StopSignal stop([] { return false; });
    RandomTrees repeated;
    DistinctTrees<double> distinct;
    LabelTable<double> table;
    std::vector<Heads> heads(20 * static_cast<std::size_t>(nodes)), label_row(static_cast<std::size_t>(nodes));
    const auto in_bounds = [&](const Heads* row, const Heads* drawn_labels) {
        for (int dep = 1; dep <= words; ++dep)
            if (row[dep] < 0 || row[dep] > words || (labels && (drawn_labels[dep] < 0 || drawn_labels[dep] >= labels)))
                return false;
        return true;
    };
    for (int round = 0; round < 40; ++round)
        for (const Root root : {Root::single, Root::multi}) {
            for (const auto method : {SamplingMethod::automatic, SamplingMethod::wilson_marginal,
                                      SamplingMethod::wilson_reject, SamplingMethod::ancestral}) {
                const Solved solved(sentence, root, stop);
                if (!solved.walk().has_tree()) continue;
                repeated.start(solved.walk(), words, root, method);
                repeated(
                    {}, 0, 20, stop, [&](std::int64_t i) { return heads.data() + i * nodes; }, [](std::int64_t) {});
                table.start(sentence);
                for (int i = 0; i < 20; ++i) {
                    const Heads* const row = heads.data() + static_cast<std::ptrdiff_t>(i) * nodes;
                    if (labels) table.draw(row, RandomStream({}, 0, 0), label_row.data());
                    if (!in_bounds(row, label_row.data())) return false;
                }
            }
            for (const auto method : {DistinctMethod::automatic, DistinctMethod::trie, DistinctMethod::beam}) {
                const Solved solved(sentence, root, stop);
                if (!distinct.start(sentence, solved.walk(), root, method, 30, {}, stop)) continue;
                for (int i = 0; i < 30 && distinct.next(heads.data(), label_row.data(), stop); ++i)
                    if (!in_bounds(heads.data(), label_row.data())) return false;
                distinct.log_left();
                distinct.next_key();
            }
        }
    return true;
}

}  // namespace

int main() {
    for (const int words : {1, 2, 4, 7, 12})
        for (const int labels : {0, 3})
            if (!survives_changing_scores(words, labels)) {
                std::printf("%d words, %d labels, changing\n", words, labels);
                return 1;
            }
    return Fuzz().run() ? 0 : 1;
}
