// Random batches through inference, for the sanitizers to watch: sparse, soft-masked, sharp, labelled and bad sentences
// side by side. Exits non-zero if what comes out cannot be right, or if a sentence's company changes a bit of it.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "spantree/decode/best_tree.hpp"
#include "spantree/walk/solution.hpp"

using namespace spantree;

namespace {

constexpr double tolerance = 1e-9;

/// A sentence, and room for one result per edge. Buffers are exactly as long as they have to be, so that reading or
/// writing beyond them is caught.
template <class T>
struct Example {
    std::vector<T> cells;
    std::vector<double> values, results;
    Sentence<T> sentence;
    Sentence<double> value;
    EdgeTarget<double> target;
    bool bad = false, feasible = true;

    double result(int head, int dep, int label) const {
        return results[head * target.head_stride + dep * target.dep_stride + label];
    }
};

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

class Fuzz {
public:
    template <class T>
    bool try_batch() {
        const Root root = random_() % 2 ? Root::single : Root::multi;
        const int labels = random_() % 4 ? 0 : 1 + static_cast<int>(random_() % 3);
        const bool heads_together = random_() % 2;
        threads_ = random_() % 4 ? 1 : 3;
        std::vector<Example<T>> batch;
        for (const int words : lengths()) batch.push_back(example<T>(words, labels, heads_together, root));
        return try_log_partition(batch, root) && try_solve(batch, root) && try_expectations(batch, root);
    }

    /// Another thread writes other scores, NaN and infinity among them, while they are read: whatever comes out, nothing
    /// is touched that is not ours, and there is an end. (A race on the scores' bytes alone, and on purpose.)
    template <class T>
    void survive_changing_bytes() {
        const Root root = random_() % 2 ? Root::single : Root::multi;
        const int labels = random_() % 2 ? 0 : 3;
        std::vector<Example<T>> batch;
        for (const int words : lengths()) batch.push_back(example<T>(words, labels, random_() % 2, root));
        const auto given = sentences(batch);
        std::atomic<bool> done = false;
        std::thread vandal([&, random = std::mt19937_64(random_())]() mutable {
            const T hostile[] = {std::numeric_limits<T>::quiet_NaN(),
                                 std::numeric_limits<T>::infinity(),
                                 minus_infinity<T>,
                                 T(-1e30),
                                 T(3),
                                 std::numeric_limits<T>::max()};
            while (!done)
                for (auto& example : batch)
                    if (!example.cells.empty()) {
                        volatile T* const cell = &example.cells[random() % example.cells.size()];
                        *cell = hostile[random() % 6];
                    }
        });
        for (int round = 0; round < 4; ++round) {
            Solution::log_partition(given, root, 1, stop_);
            Solution solution;
            solution.solve(given, root, 2, stop_, true, targets(batch));
            ValueSource source{true, {}};
            std::vector<double> totals(batch.size());
            solution.expectation(given, source, 1, stop_, totals.data(), targets(batch));
            solution.relative_scores(given, 1.0, 1, stop_, [&](std::size_t i, auto&& scores) {
                const int nodes = given[i].words + 1, cell = std::max(given[i].labels, 1);
                std::vector<double> relative(static_cast<std::size_t>(nodes) * nodes * cell);
                scores.write({relative.data(), nodes * cell, cell, nodes});
            });
        }
        done = true;
        vandal.join();
    }

private:
    int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
    double normal() { return normal_(random_); }

    /// Alike, so that sentences share lanes, or not.
    std::vector<int> lengths() {
        std::vector<int> result(1 + below(20));
        const int longest = below(8) ? 1 + below(20) : 1 + below(40), spread = below(3) ? 1 + longest / 8 : longest;
        for (int& words : result) words = below(16) ? longest - below(spread + 1) : 0;
        return result;
    }

    enum Kind { plain, forbidden, masked, sharp, sharp_and_forbidden, kinds };

    double mask() { return std::array{-1e4, -1e9, -1e30}[below(3)]; }

    /// In rows of a `barren` head, all edges are masked alike.
    double score(int kind, std::optional<double> barren) {
        switch (kind) {
            case plain: return normal();
            case forbidden: return below(3) && !barren ? normal() : minus_infinity<double>;
            case masked: return barren ? *barren : below(3) ? normal() : mask();
            case sharp: return 2000.0 * normal();
            default: return below(6) ? 300.0 * normal() : minus_infinity<double>;
        }
    }

    /// What stands on the diagonal and in column 0 may be anything at all, and so may the values of forbidden edges.
    template <class T>
    Example<T> example(int words, int labels, bool heads_together, Root root) {
        const int nodes = words + 1, cell = std::max(labels, 1), kind = below(kinds), width = nodes + below(3);
        const auto stride = [&](bool together, int across) { return together ? 1 : across; };
        Example<T> made;
        made.cells.resize(static_cast<std::size_t>(nodes) * nodes * cell);
        made.values.resize(static_cast<std::size_t>(width) * width * cell);
        made.results.resize(made.values.size());
        made.sentence = {made.cells.data(),
                         words,
                         stride(heads_together, nodes) * cell,
                         stride(!heads_together, nodes) * cell,
                         labels,
                         1};
        made.value = {made.values.data(),
                      words,
                      stride(heads_together, width) * cell,
                      stride(!heads_together, width) * cell,
                      labels,
                      1};
        made.target = {made.results.data(), stride(heads_together, width) * cell, stride(!heads_together, width) * cell,
                       width};
        std::fill(made.values.begin(), made.values.end(), std::numeric_limits<double>::quiet_NaN());
        for (int head = 0; head < nodes; ++head) {
            const std::optional<double> barren = below(8) ? std::nullopt : std::optional(mask());
            for (int dep = 0; dep < nodes; ++dep)
                for (int label = 0; label < cell; ++label) {
                    T& score = made.cells[made.sentence.edge(head, dep) - made.cells.data() + label];
                    const std::uint64_t bits = random_();
                    std::memcpy(&score, &bits, sizeof score);
                    if (head == dep || dep == 0) continue;
                    score = static_cast<T>(this->score(kind, barren));
                    if (score > minus_infinity<T>)
                        made.values[made.value.edge(head, dep) - made.values.data() + label] = normal();
                }
        }
        made.bad = words > 0 && below(12) == 0;
        if (made.bad) {
            const int dep = 1 + below(words), head = (dep + 1 + below(words)) % nodes;
            made.cells[made.sentence.edge(head, dep) - made.cells.data()] =
                below(2) ? std::numeric_limits<T>::quiet_NaN() : std::numeric_limits<T>::infinity();
        }
        if (!made.bad) made.feasible = has_tree(made, root);
        return made;
    }

    template <class T>
    bool has_tree(const Example<T>& example, Root root) {
        const int words = example.sentence.words;
        EdgeTable best(words, minus_infinity<double>);
        for (int head = 0; head <= words; ++head)
            for (int dep = 1; dep <= words; ++dep)
                for (int label = 0; label < std::max(example.sentence.labels, 1) && head != dep; ++label)
                    best(head, dep) =
                        std::max(best(head, dep), static_cast<double>(example.sentence(head, dep, label)));
        std::vector<Heads> heads(static_cast<std::size_t>(words) + 1);
        return static_cast<bool>(BestTree<double>()(best.sentence(), root, heads.data(), stop_));
    }

    template <class T>
    static std::vector<Sentence<T>> sentences(const std::vector<Example<T>>& batch) {
        std::vector<Sentence<T>> result;
        for (const auto& example : batch) result.push_back(example.sentence);
        return result;
    }

    /// To be filled with what nobody may take for a result.
    template <class T>
    static std::vector<EdgeTarget<double>> targets(std::vector<Example<T>>& batch) {
        std::vector<EdgeTarget<double>> result;
        for (auto& example : batch) {
            std::fill(example.results.begin(), example.results.end(), -7.0);
            result.push_back(example.target);
        }
        return result;
    }

    template <class T>
    static std::vector<std::vector<double>> results(const std::vector<Example<T>>& batch) {
        std::vector<std::vector<double>> result;
        for (const auto& example : batch) result.push_back(example.bad ? std::vector<double>() : example.results);
        return result;
    }

    /// Calls body(head, dep, label) for every edge until one is not as it should be.
    template <class T, class Body>
    static bool every_edge(const Example<T>& example, Body body) {
        const Sentence<T>& sentence = example.sentence;
        for (int head = 0; head <= sentence.words; ++head)
            for (int dep = 1; dep <= sentence.words; ++dep)
                for (int label = 0; label < std::max(sentence.labels, 1) && head != dep; ++label)
                    if (!body(head, dep, label)) return false;
        return true;
    }

    static bool fail(const char* what, int words) {
        std::printf("%s (%d words)\n", what, words);
        return false;
    }

    template <class T>
    static bool right_state(const Example<T>& example, const SentenceState& state) {
        const int words = example.sentence.words;
        if (state.feasible.bad_score != example.bad) return fail("a bad score is not noticed, or a good one is", words);
        if (example.bad) return true;
        const int unattachable = state.feasible.unattachable;
        if ((unattachable == 0) != example.feasible || unattachable < 0 || unattachable > words)
            return fail("wrong about there being a tree", words);
        return (example.feasible ? std::isfinite(state.log_partition)
                                 : state.log_partition == minus_infinity<double>) ||
               fail("log Z out of range", words);
    }

    template <class T>
    bool try_log_partition(const std::vector<Example<T>>& batch, Root root) {
        const auto together = Solution::log_partition(sentences(batch), root, threads_, stop_);
        for (std::size_t i = 0; i < batch.size(); ++i) {
            if (!right_state(batch[i], together[i])) return false;
            const auto alone = Solution::log_partition(std::vector{batch[i].sentence}, root, 1, stop_);
            if (alone[0].feasible.bad_score != batch[i].bad ||
                !same_bits(alone[0].log_partition, together[i].log_partition))
                return fail("log Z depends on the company", batch[i].sentence.words);
        }
        return true;
    }

    /// Marginals of one solve, kept or not, asked for at once or later, among others or alone.
    template <class T>
    bool try_solve(std::vector<Example<T>>& batch, Root root) {
        const auto given = sentences(batch);
        const auto log_z = Solution::log_partition(given, root, threads_, stop_);
        Solution kept, passing;
        kept.solve(given, root, threads_, stop_, true, targets(batch));
        const auto at_once = results(batch);
        for (std::size_t i = 0; i < batch.size(); ++i) {
            const int words = given[i].words;
            if (!right_state(batch[i], kept.states[i])) return false;
            if (!same_bits(kept.states[i].log_partition, log_z[i].log_partition))
                return fail("the two ways to log Z differ", words);
            if (!batch[i].bad && !right_marginals(batch[i])) return fail("these are no marginals", words);
        }
        kept.marginals(given, threads_, stop_, targets(batch));
        if (results(batch) != at_once) return fail("marginals change when asked for again", given[0].words);
        passing.solve(given, root, threads_, stop_, false, targets(batch));
        if (results(batch) != at_once) return fail("marginals change when nothing is kept", given[0].words);
        for (std::size_t i = 0; i < batch.size(); ++i) {
            Solution alone;
            std::fill(batch[i].results.begin(), batch[i].results.end(), -7.0);
            alone.solve(std::vector{given[i]}, root, 1, stop_, false, std::vector{batch[i].target});
            if (!batch[i].bad && batch[i].results != at_once[i])
                return fail("marginals depend on the company", given[i].words);
        }
        return true;
    }

    template <class T>
    static bool right_marginals(const Example<T>& example) {
        std::vector<double> sums(static_cast<std::size_t>(example.sentence.words) + 1);
        double all = 0.0;
        const bool in_range = every_edge(example, [&](int head, int dep, int label) {
            sums[dep] += example.result(head, dep, label);
            all += example.result(head, dep, label);
            return example.result(head, dep, label) >= 0.0;
        });
        if (!in_range) return false;
        for (int dep = 1; dep <= example.sentence.words; ++dep)
            if (!(std::fabs(sums[dep] - (example.feasible ? 1.0 : 0.0)) <= tolerance)) return false;
        double everything = 0.0;  // column 0, diagonal and padding included
        for (const double result : example.results) everything += std::fabs(result);
        return std::fabs(everything - all) <= tolerance;
    }

    /// The entropy and the expectation of given values, which is also a sum over marginals.
    template <class T>
    bool try_expectations(std::vector<Example<T>>& batch, Root root) {
        const auto given = sentences(batch);
        Solution solution;
        solution.solve(given, root, threads_, stop_, true, targets(batch));
        const auto marginals = results(batch);
        for (const bool minus_scores : {true, false}) {
            ValueSource source{minus_scores, {}};
            for (const auto& example : batch) source.given.push_back(example.value);
            std::vector<double> totals(batch.size()), totals_again(batch.size());
            solution.expectation(given, source, threads_, stop_, totals.data(), std::vector<EdgeTarget<double>>());
            solution.expectation(given, source, threads_, stop_, totals_again.data(), targets(batch));
            for (std::size_t i = 0; i < batch.size(); ++i) {
                const int words = given[i].words;
                if (batch[i].bad) continue;
                if (!batch[i].feasible) {
                    if (!std::isnan(totals[i]) || !std::isnan(totals_again[i]))
                        return fail("an expectation of nothing", words);
                    continue;
                }
                const double size = magnitude(batch[i], marginals[i], minus_scores);
                if (!(std::fabs(totals[i] - totals_again[i]) <= tolerance * size))
                    return fail("the gradient changes the expectation", words);
                if (minus_scores && !(totals[i] >= -tolerance * size)) return fail("a negative entropy", words);
                if (!minus_scores && !(std::fabs(totals[i] - expected(batch[i], marginals[i])) <= tolerance * size))
                    return fail("the expectation is not that of the marginals", words);
                if (!right_gradient(batch[i], size)) return fail("this is no gradient", words);
            }
        }
        return true;
    }

    /// Finite; and what is added to all edges into a word changes nothing, so that these gradients sum to 0.
    template <class T>
    static bool right_gradient(const Example<T>& example, double size) {
        std::vector<double> sums(static_cast<std::size_t>(example.sentence.words) + 1);
        const bool finite = every_edge(example, [&](int head, int dep, int label) {
            sums[dep] += example.result(head, dep, label);
            return std::isfinite(example.result(head, dep, label));
        });
        return finite && std::ranges::all_of(sums, [&](double sum) { return std::fabs(sum) <= tolerance * size; });
    }

    template <class T>
    static double expected(const Example<T>& example, const std::vector<double>& marginals) {
        double total = 0.0;
        for (std::size_t i = 0; i < marginals.size(); ++i)
            if (marginals[i] > 0.0) total += marginals[i] * example.values[i];
        return total;
    }

    /// What rounding errors of an expectation are relative to: the size of the terms that are added.
    template <class T>
    static double magnitude(const Example<T>& example, const std::vector<double>& marginals, bool minus_scores) {
        double total = 1.0;
        every_edge(example, [&](int head, int dep, int label) {
            const std::size_t at = head * example.target.head_stride + dep * example.target.dep_stride + label;
            const double value = minus_scores ? example.sentence(head, dep, label) : example.values[at];
            if (marginals[at] > 0.0) total += marginals[at] * std::fabs(value);
            return true;
        });
        return total;
    }

    std::mt19937_64 random_{1};
    std::normal_distribution<double> normal_;
    StopSignal stop_{[] { return false; }};
    int threads_ = 1;
};

/// Whether a question about one long sentence ends early if the caller wants so, which he does when asked a second time.
template <class Ask>
bool can_be_stopped(Ask ask) {
    int looks = 0;
    StopSignal stop([&] { return ++looks == 2; });
    std::this_thread::sleep_for(std::chrono::milliseconds(60));  // it is not asked more often than every 50
    ask(stop);
    return stop.stopped();
}

bool long_sentences_can_be_stopped() {
    constexpr int words = 1300, nodes = words + 1;
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    std::vector<double> cells(nodes * nodes), results(cells.size());
    for (double& score : cells) score = normal(random);
    const std::vector<Sentence<double>> sentences{{cells.data(), words, nodes, 1}};
    const std::vector<EdgeTarget<double>> targets{{results.data(), nodes, 1, nodes}};
    const bool solve = can_be_stopped([&](StopSignal& stop) {
        Solution solution;
        solution.solve(sentences, Root::single, 1, stop, false, targets);
    });
    StopSignal never([] { return false; });
    Solution kept;
    kept.solve(sentences, Root::single, 1, never, true, std::vector<EdgeTarget<double>>{});
    double entropy = 0.0;
    const bool gradient = can_be_stopped(
        [&](StopSignal& stop) { kept.expectation(sentences, ValueSource{true, {}}, 1, stop, &entropy, targets); });
    if (!solve || !gradient) std::printf("a long sentence cannot be stopped: %d %d\n", solve, gradient);
    return solve && gradient;
}

/// Long products: who may be asked is, before every piece, and no piece takes long.
bool pieces_are_asked_about() {
    const Range all{3, 1003};
    int pieces = 0, next = all.begin, largest = 0;
    const auto count = [&](Range piece) {
        if (piece.begin == next) next = piece.end;
        largest = std::max(largest, piece.size());
        ++pieces;
    };
    in_pieces(all, nullptr, count);
    const bool at_once = pieces == 1 && next == all.end;
    StopSignal stop([] { return false; });
    pieces = largest = 0;
    next = all.begin;
    in_pieces(all, &stop, count);
    const bool one_by_one = next == all.end && largest <= 256;
    stop.stop();
    pieces = 0;
    try {
        in_pieces(all, &stop, count);
    } catch (const Stopped&) {
    }
    if (!at_once || !one_by_one || pieces > 0) std::printf("pieces: %d %d %d\n", at_once, one_by_one, pieces);
    return at_once && one_by_one && pieces == 0;
}

}  // namespace

int main() {
    if (!long_sentences_can_be_stopped() || !pieces_are_asked_about()) return 1;
    Fuzz fuzz;
    for (int round = 0; round < 300; ++round)
        if (!fuzz.try_batch<double>() || !fuzz.try_batch<float>()) {
            std::printf("round %d\n", round);
            return 1;
        }
    for (int round = 0; round < 40; ++round) {
        fuzz.survive_changing_bytes<double>();
        fuzz.survive_changing_bytes<float>();
    }
}
