// A batch of projective sentences solved on several threads, then asked by several threads at once, each of which uses
// several: every answer is complete, and the same bits as from one thread alone.
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

#include "spantree/chart/solved_sentence.hpp"

using namespace spantree;
using namespace spantree::projective;

namespace {

constexpr int words = 7, nodes = words + 1, count = 12;
constexpr std::size_t size = nodes * nodes;

struct Batch {
    std::vector<double> scores = std::vector<double>(count * size);
    std::vector<Sentence<double>> sentences;

    Batch() {
        std::mt19937_64 random(1);
        std::normal_distribution<double> normal;
        for (double& score : scores) score = normal(random);
        for (int i = 0; i < count; ++i) {
            if (i % 3 == 0)  // these need the extended range
                for (std::size_t edge = 0; edge < size; ++edge) scores[i * size + edge] *= 500.0;
            sentences.push_back({scores.data() + i * size, words, nodes, 1, 0, 0});
        }
    }
};

/// Marginals, a gradient, a third derivative and a tree of every sentence.
std::vector<double> answers(const Batch& batch, const std::vector<KeptSentence>& solved, int threads) {
    std::vector<double> out(4 * count * size);
    StopSignal stop([] { return false; });
    ask_batch(solved, threads, stop, [&](const SolvedSentence& one, QuestionScratch& scratch, std::size_t i) {
        const Sentence<double>& sentence = batch.sentences[i];
        const auto place = [&](int what) {
            return EdgeTarget<double>{out.data() + (4 * i + what) * size, nodes, 1, nodes};
        };
        const auto value = [](int head, int dep, int) { return head - 0.5 * dep; };
        const EdgeTarget<double> gradient = place(1);
        one.write_marginals(sentence, scratch, place(0));
        one.hessian<1>(sentence, scratch, [&](int) { return value; }, &gradient, 1, stop);
        one.third(sentence, scratch, value, one.surprise(scratch), place(2), stop);
        RandomStream random({1, 2}, i, 0);
        std::vector<Heads> heads(nodes);
        scratch.draw.start(words, one.root());
        one.with_inside([&](const auto& sums) { scratch.draw(sums, random, heads.data()); });
        for (int word = 0; word < nodes; ++word) place(3).data[word] = static_cast<double>(heads[word]);
    });
    return out;
}

}  // namespace

int main() {
    const Batch batch;
    for (const Root root : {Root::single, Root::multi}) {
        StopSignal stop([] { return false; });
        const auto solve = [&](int threads) {
            return solve_batch(count, true, threads, stop, [&](SolvedSentence& one, auto&, std::size_t i) {
                one.solve(batch.sentences[i], root, Purpose::marginals, stop);
            });
        };
        const std::vector<double> expected = answers(batch, solve(1), 1);
        const std::vector<KeptSentence> solved = solve(3);
        bool same[4] = {};
        std::vector<std::thread> threads;
        for (bool& one : same) threads.emplace_back([&] { one = answers(batch, solved, 2) == expected; });
        for (std::thread& thread : threads) thread.join();
        for (const bool one : same)
            if (!one) return std::printf("other answers on several threads\n"), 1;
    }
    return 0;
}
