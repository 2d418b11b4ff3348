// Scores that change while they are searched: another thread keeps writing anything at all into the matrix. The trees may
// be anything; reading or writing outside our memory, undefined arithmetic and endless loops may not be.
//
// The race on the scores' bytes is the point. It is built with AddressSanitizer and UBSan, which do not mind a race, and
// not with ThreadSanitizer, which would report just this one. The writer's stores are atomic, so each of them happens.
#include <atomic>
#include <bit>
#include <cstdio>
#include <limits>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "spantree/batch/labels.hpp"
#include "spantree/batch/parallel.hpp"
#include "spantree/batch/tree.hpp"
#include "spantree/chart/eisner.hpp"
#include "spantree/chart/projective_kbest.hpp"
#include "spantree/decode/best_tree.hpp"
#include "spantree/decode/kbest.hpp"

using namespace spantree;

namespace {

template <class T>
T anything(std::mt19937_64& random) {
    using Limits = std::numeric_limits<T>;
    const std::uint64_t bits = random();
    switch (bits % 16) {
        case 0: return Limits::quiet_NaN();
        case 1: return Limits::infinity();
        case 2: return -Limits::infinity();
        case 3: return Limits::lowest();
        case 4: return Limits::max();
        case 5: return Limits::denorm_min();
        case 6: return T(-1e9);
        case 7: return std::bit_cast<T>(static_cast<IndexLike<T>>(bits >> 8));
        case 8: return T(0.1);
        default: return static_cast<T>(static_cast<double>(bits >> 11) * 0x1p-50 - 4.0);
    }
}

/// Writes into the cells until it is destroyed.
template <class T>
class Writer {
public:
    Writer(std::vector<T>& cells, std::uint64_t seed)
        : thread_([this, &cells, seed] {
              std::mt19937_64 random(seed);
              while (!done_.load(std::memory_order_relaxed)) {
                  T& cell = cells[random() % cells.size()];
                  std::atomic_ref<T>(cell).store(anything<T>(random), std::memory_order_relaxed);
                  // Now and then all is well for a moment, so that searches get further than their first look.
                  if (random() % 64 == 0)
                      for (T& each : cells)
                          std::atomic_ref<T>(each).store(T(random() % 1000) * T(0.01), std::memory_order_relaxed);
              }
          }) {}
    ~Writer() {
        done_ = true;
        thread_.join();
    }

private:
    std::atomic<bool> done_ = false;
    std::thread thread_;
};

bool in_range(const std::vector<Heads>& heads, int words) {
    for (int dep = 1; dep <= words; ++dep)
        if (heads[dep] < 0 || heads[dep] > words) return false;
    return true;
}

template <class T>
bool survives(int words, int labels, bool heads_together, std::uint64_t seed) {
    const int nodes = words + 1, cell = labels ? labels : 1;
    std::vector<T> cells(static_cast<std::size_t>(nodes) * nodes * cell);
    const Sentence<T> sentence{
        cells.data(), words,         heads_together ? cell : nodes * cell, heads_together ? nodes * cell : cell,
        labels,       labels ? 1 : 0};
    StopSignal stop([] { return false; });
    std::vector<T> arcs;
    std::vector<Heads> heads(nodes), found_labels(nodes);
    const Writer<T> writer(cells, seed);

    const auto decode = [&](auto best_tree) {
        const Sentence<T> plain = labels ? best_labels(sentence, arcs) : sentence;
        const Feasibility feasible = best_tree(plain, heads.data());
        if (feasible.unattachable < 0 || feasible.unattachable > words) return false;
        if (!feasible) return true;
        if (labels) label_tree(sentence, heads.data(), found_labels.data());
        tree_score(sentence, heads.data(), labels ? found_labels.data() : nullptr);
        return in_range(heads, words);
    };
    const auto enumerate = [&](auto best_trees) {
        Feasibility feasible;
        const auto trees = best_trees(feasible);
        for (int k = 0; trees && k < 6; ++k) {
            if (!trees->next(heads.data(), found_labels.data(), stop)) break;
            if (!in_range(heads, words)) return false;
        }
        return true;
    };
    for (const Root root : {Root::single, Root::multi})
        if (!decode([&](const auto& plain, Heads* row) { return BestTree<T>()(plain, root, row, stop); }) ||
            !decode([&](const auto& plain, Heads* row) {
                return projective::BestProjectiveTree<T>()(plain, root, row, stop);
            }) ||
            !enumerate([&](Feasibility& feasible) { return best_trees(sentence, root, feasible, stop); }) ||
            !enumerate([&](Feasibility& feasible) {
                return projective::best_projective_trees(sentence, root, feasible, stop);
            }))
            return false;
    return true;
}

}  // namespace

int main() {
    for (std::uint64_t round = 0; round < 150; ++round) {
        const int words = round % 50 == 0 ? 270 : round % 5 == 0 ? 40 : static_cast<int>(round % 13) + 1;
        const int labels = words < 100 && round % 3 == 0 ? 1 + static_cast<int>(round % 4) : 0;
        const bool together = round % 2 == 0;
        if (!survives<double>(words, labels, together, round) || !survives<float>(words, labels, together, round)) {
            std::printf("round %d: a head that is no node\n", static_cast<int>(round));
            return 1;
        }
    }
    return 0;
}
