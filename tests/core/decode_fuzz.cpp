// Random sentences through every decoder of the core, for the sanitizers to watch. Exits non-zero if two decoders
// disagree.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "spantree/batch/bad_scores.hpp"
#include "spantree/batch/labels.hpp"
#include "spantree/batch/parallel.hpp"
#include "spantree/batch/tree.hpp"
#include "spantree/decode/best_tree.hpp"
#include "spantree/decode/kbest.hpp"

using namespace spantree;

namespace {

template <class T>
struct Matrix {
    std::vector<T> cells;  // exactly as long as it has to be, so that reading beyond it is caught
    Sentence<T> sentence;
};

/// A sentence whose diagonal and column 0 hold anything at all.
template <class T>
Matrix<T> random_sentence(std::mt19937_64& random, int words, int labels, bool heads_together) {
    const int nodes = words + 1, cell = labels ? labels : 1;
    Matrix<T> matrix;
    matrix.cells.resize(static_cast<std::size_t>(nodes) * nodes * cell);
    matrix.sentence = {
        matrix.cells.data(), words, heads_together ? cell : nodes * cell, heads_together ? nodes * cell : cell, labels,
        labels ? 1 : 0};
    const T masks[] = {
        minus_infinity<T>, T(-1e4), T(-1e9), T(-1e30), std::numeric_limits<T>::lowest() / 4, T(0), T(1e30)};
    std::normal_distribution<double> normal;
    const int kind = static_cast<int>(random() % 4);
    for (int head = 0; head < nodes; ++head)
        for (int dep = 0; dep < nodes; ++dep)
            for (int label = 0; label < cell; ++label) {
                T& score = matrix.cells[matrix.sentence.edge(head, dep) - matrix.cells.data() + label];
                const std::uint64_t bits = random();
                if (head == dep || dep == 0)
                    std::memcpy(&score, &bits, sizeof score);
                else if (kind == 0)
                    score = static_cast<T>(normal(random));
                else if (kind == 1)
                    score = static_cast<T>(random() % 3);
                else
                    score = random() % 3 ? static_cast<T>(normal(random)) : masks[random() % (kind == 2 ? 1 : 7)];
            }
    return matrix;
}

template <class T>
bool agree(std::mt19937_64& random, int words, Root root, StopSignal& stop) {
    const int labels = random() % 3 ? 0 : 1 + static_cast<int>(random() % 5);
    const Matrix<T> matrix = random_sentence<T>(random, words, labels, random() % 2);
    if (first_bad_sentence(std::vector{matrix.sentence}, 0, 1) != 1) return false;
    std::vector<T> arcs;
    std::vector<int> mark;
    std::vector<Heads> heads(words + 1), other(words + 1), other_labels(words + 1);
    const Sentence<T> plain = labels ? best_labels(matrix.sentence, arcs) : matrix.sentence;
    const Feasibility feasible = BestTree<T>()(plain, root, heads.data(), stop);
    Feasibility also_feasible;
    const auto stream = best_trees(matrix.sentence, root, also_feasible, stop);
    if (bool(feasible) != bool(also_feasible) || bool(feasible) != bool(stream)) return false;
    if (!feasible) return feasible.unattachable >= 1 && feasible.unattachable <= words;
    double last = std::numeric_limits<double>::infinity();
    for (int k = 0; k < 12; ++k) {
        const auto score = stream->next(other.data(), other_labels.data(), stop);
        if (!score) break;
        if (!is_tree(other.data(), words, root, mark) || *score > last) return false;
        if (k == 0 && other != heads) return false;
        is_projective(other.data(), words);
        last = *score;
    }
    return true;
}

/// Beside a score of 1e30 the others are too close for fast weights; the cycle of words 2 and 3 brings on the search in wide
/// ones, which for long sentences takes so long that it listens to whoever wants to stop it.
bool wide_searches_stop() {
    const double scores[] = {0, 1e30, 0.1, 0.1, 0, 0, 0.1, 0.1, 0, 0.1, 0, 0.2, 0, 0.1, 0.2, 0};
    const Sentence<double> sentence{scores, 3, 4, 1};
    StopSignal never([] { return false; });
    Feasibility feasible;
    const auto stream = best_trees(sentence, Root::single, feasible, never);
    const auto stopped = [](auto search) {
        StopSignal at_once([] { return true; });
        std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it is asked a few times a second
        try {
            search(at_once);
        } catch (const Stopped&) {
            return true;
        }
        return false;
    };
    Heads heads[4];
    return stream && stopped([&](StopSignal& stop) { BestTree<double>()(sentence, Root::single, heads, stop); }) &&
           stopped([&](StopSignal& stop) { best_trees(sentence, Root::single, feasible, stop); }) &&
           BestTree<double>()(sentence, Root::single, heads, never);
}

}  // namespace

int main() {
    if (!wide_searches_stop()) {
        std::printf("a search cannot be stopped\n");
        return 1;
    }
    std::mt19937_64 random(1);
    StopSignal stop([] { return false; });
    for (int round = 0; round < 1000; ++round) {
        const int words = round % 200 == 1  ? 250 + static_cast<int>(random() % 50)  // long rows are turned first
                          : round % 40 == 0 ? static_cast<int>(random() % 90)
                                            : static_cast<int>(random() % 12);
        for (const Root root : {Root::single, Root::multi})
            if (!agree<double>(random, words, root, stop) || !agree<float>(random, words, root, stop)) {
                std::printf("round %d: decoders disagree\n", round);
                return 1;
            }
    }
    std::atomic<int> done = 0;
    parallel_for(1000, 7, 4, stop, [] { return 0; }, [&](int&, std::size_t) { ++done; });
    return done == 1000 ? 0 : 2;
}
