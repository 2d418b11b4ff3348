// A batch of sentences solved on several threads, then asked by several threads at once, each of which uses several: every
// answer is complete, and the same bits as from one thread alone. Some sentences are solved side by side, some alone, some
// with care; all share the pools of scratch memory and the worker threads.
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

#include "spantree/walk/solution.hpp"

using namespace spantree;

namespace {

constexpr int words = 6, nodes = words + 1, count = 13;
constexpr std::size_t size = nodes * nodes;

struct Batch {
    std::vector<double> scores = std::vector<double>(count * size), values = scores;
    std::vector<Sentence<double>> sentences;
    ValueSource given, minus_scores;

    Batch() {
        std::mt19937_64 random(1);
        std::normal_distribution<double> normal;
        for (double& score : scores) score = normal(random);
        for (double& value : values) value = normal(random);
        for (int i = 0; i < count; ++i) {
            for (std::size_t edge = 0; edge < size; ++edge) {
                if (i % 4 == 0) scores[i * size + edge] *= 1000.0;                              // with care
                if (i % 4 == 1 && edge % 5 == 0) scores[i * size + edge] = -1e30;               // soft masks
                if (i == 2 && edge % 7 != 0) scores[i * size + edge] = minus_infinity<double>;  // no tree
            }
            sentences.push_back({scores.data() + i * size, words - i % 2, nodes, 1, 0, 0});
            given.given.push_back({values.data() + i * size, words - i % 2, nodes, 1, 0, 0});
        }
        minus_scores.minus_scores = true;
    }
};

/// Marginals, two expectations with gradients, and relative scores of every sentence.
std::vector<double> answers(const Batch& batch, const Solution& solution, int threads) {
    constexpr std::size_t all = count * size;
    std::vector<double> out(4 * all + 2 * count);
    StopSignal stop([] { return false; });
    const auto targets = [&](std::size_t what) {
        std::vector<EdgeTarget<double>> result;
        for (std::size_t i = 0; i < count; ++i) result.push_back({out.data() + what * all + i * size, nodes, 1, nodes});
        return result;
    };
    solution.marginals(batch.sentences, threads, stop, targets(0));
    double* const totals = out.data() + 4 * all;
    solution.expectation(batch.sentences, batch.given, threads, stop, totals, targets(1));
    solution.expectation(batch.sentences, batch.minus_scores, threads, stop, totals + count, targets(2));
    const auto relative = targets(3);
    solution.relative_scores(batch.sentences, 1.0, threads, stop,
                             [&](std::size_t i, auto&& scores) { scores.write(relative[i]); });
    for (double& x : out)
        if (x != x) x = -1.0;  // there is no tree: NaN is not equal to itself
    return out;
}

}  // namespace

int main() {
    const Batch batch;
    for (const Root root : {Root::single, Root::multi}) {
        StopSignal stop([] { return false; });
        const auto solve = [&](Solution& solution, int threads) {
            solution.solve(batch.sentences, root, threads, stop, true, std::vector<EdgeTarget<double>>());
        };
        Solution alone, solved;
        solve(alone, 1);
        solve(solved, 3);
        const std::vector<double> expected = answers(batch, alone, 1);
        bool same[4] = {};
        std::vector<std::thread> threads;
        for (bool& one : same)
            threads.emplace_back([&] {
                one = answers(batch, solved, 2) == expected;
                Solution again;  // while others ask, this one solves
                StopSignal never([] { return false; });
                again.solve(batch.sentences, root, 2, never, true, std::vector<EdgeTarget<double>>());
                one = one && answers(batch, again, 2) == expected;
            });
        for (std::thread& thread : threads) thread.join();
        for (const bool one : same)
            if (!one) return std::printf("other answers on several threads\n"), 1;
    }
    return 0;
}
