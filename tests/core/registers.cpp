// The same bits whatever registers a machine has: every kernel of inference in registers of eight, four and two
// doubles, eight sentences side by side and one alone; those that look at scores to decode; and numbers with an exponent
// of their own, one, several side by side, and with derivatives, up to the steps of a solve in such numbers. Exits non-zero
// if any bit differs.
#define SPANTREE_REGISTERS_OF_ANY_WIDTH

#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "spantree/batch/bad_scores.hpp"
#include "spantree/batch/label_sums.hpp"
#include "spantree/batch/labels.hpp"
#include "spantree/decode/survey.hpp"
#include "spantree/number/extended.hpp"
#include "spantree/number/jet.hpp"
#include "spantree/walk/careful_solve.hpp"
#include "spantree/walk/gradient.hpp"
#include "spantree/walk/group.hpp"
#include "spantree/walk/labelled_edges.hpp"

using namespace spantree;

namespace {

struct Results {
    std::vector<double> numbers;
    void add(const double* from, std::size_t count) { numbers.insert(numbers.end(), from, from + count); }
    bool operator==(const Results& other) const {
        return numbers.size() == other.numbers.size() &&
               std::memcmp(numbers.data(), other.numbers.data(), numbers.size() * sizeof(double)) == 0;
    }
};

/// The group's matrices as doubles[sentence][(words + 1) * (words + 1)].
template <class Format>
struct Inputs {
    int padded;
    std::vector<std::vector<double>> scores, values;
    std::vector<int> words;
    bool several_roots;
};

template <class Format>
Inputs<Format> random_inputs(std::mt19937_64& random, int padded) {
    Inputs<Format> inputs{padded, {}, {}, {}, random() % 2 == 0};
    std::normal_distribution<double> normal;
    const double scale = random() % 3 == 0 ? 60.0 : 2.0;
    for (int s = 0; s < Format::sentences; ++s) {
        inputs.words.push_back(s == 0 ? padded : std::max(1, padded - static_cast<int>(random() % 2)));
        std::vector<double> scores, values;
        for (int i = 0; i < (padded + 1) * (padded + 1); ++i) {
            scores.push_back(random() % 9 == 0 ? minus_infinity<double> : scale * normal(random));
            values.push_back(normal(random));
        }
        inputs.scores.push_back(scores);
        inputs.values.push_back(values);
    }
    return inputs;
}

template <class Format>
EdgeSource<Format> stage(const Inputs<Format>& inputs, const std::vector<std::vector<double>>& edges, double filler,
                         std::vector<AlignedBuffer<double>>& memory) {
    const int n = inputs.padded;
    EdgeSource<Format> source;
    source.padded = n;
    memory.resize(Format::sentences);
    for (int s = 0; s < Format::sentences; ++s) {
        const Sentence<double> sentence{edges[s].data(), inputs.words[s], n + 1, 1};
        double* const to = memory[s].reserve(static_cast<std::size_t>(n + 1) * round_up(n));
        source.sentence[s] = stage_edges(sentence, n, filler, to);
    }
    return source;
}

template <class Format, class Registers>
Results results(const Inputs<Format>& inputs) {
    const int n = inputs.padded;
    std::vector<AlignedBuffer<double>> score_memory, value_memory;
    const auto scores = stage(inputs, inputs.scores, minus_infinity<double>, score_memory);
    const auto values = stage(inputs, inputs.values, 0.0, value_memory);

    WalkBuffer<Format> walk;
    Solve<Format> solve;
    solve.reserve(n);
    AlignedBuffer<double> matrices, shift_memory, rows, work;
    const EdgeMatrices<Format> edges(n, matrices.reserve(2 * EdgeMatrices<Format>::size(n)));
    std::fill_n(matrices.data(), 2 * EdgeMatrices<Format>::size(n), 0.0);
    const std::size_t shift_size = static_cast<std::size_t>(round_up(n)) * Format::element_size;
    double* const shift = shift_memory.reserve(shift_size + pack_size);
    Shifts<Format> shifts{shift, shift + shift_size};

    Results found;
    for (const bool all_pairs : {false, true}) {
        PivotReport<Format> report{inputs.several_roots};
        for (int s = 0; s < Format::sentences; ++s) report.words[s] = inputs.words[s];
        const Walk<Format> weights = walk.reserve(n);
        Weigh<Format>::template Kernel<Registers>::run(scores, inputs.several_roots, all_pairs, shifts, weights,
                                                       edges.weights);
        SolveWalk<Format>::template Kernel<Registers>::run(
            solve, weights, n, all_pairs, {edges.escape.data + edges.escape.stride, edges.escape.stride}, report);
        if (all_pairs) Normalise<Format>::template Kernel<Registers>::run(edges, report, {});
        for (int s = 0; s < Format::sentences; ++s) {
            const Outcome one = outcome(shifts, report, s);
            const double facts[] = {one.log_partition, one.scaled_log_partition, double(one.in_range)};
            found.add(facts, 3);
        }
    }
    // Sentences that left the range of doubles hold anything, in these matrices.
    const Rows gradient{rows.reserve(EdgeMatrices<Format>::size(n)), EdgeMatrices<Format>::stride(n)};
    std::fill_n(gradient.data, EdgeMatrices<Format>::size(n), 0.0);
    Gather<Format>::template Kernel<Registers>::run(values, gradient);
    alignas(64) double total[Format::sentences], error[Format::sentences];
    Expectation<Format>::template Kernel<Registers>::run(edges, gradient, total);
    double* const memory = work.reserve(Gradient<Format>::work_size(n));
    GradientError<Format>::template Kernel<Registers>::run(edges, memory, error);
    Gradient<Format>::template Kernel<Registers>::run(edges, inputs.several_roots, gradient, memory, nullptr);
    found.add(total, Format::sentences);
    found.add(error, Format::sentences);
    for (int h = 0; h <= n; ++h)
        for (int d = 0; d < n; ++d) {
            found.add(gradient.data + h * gradient.stride + d * Format::element_size, Format::sentences);
            found.add(edges.escape.data + h * edges.escape.stride + d * Format::element_size, Format::sentences);
        }
    for (double& x : found.numbers)
        if (x != x) x = 0.0;  // one NaN is as good as another
    return found;
}

template <class Format>
bool agree(std::mt19937_64& random, int words) {
    const Inputs<Format> inputs = random_inputs<Format>(random, words);
    const Results wide = results<Format, Registers<8, 4>>(inputs);
    return wide == results<Format, Registers<4, 2>>(inputs) && wide == results<Format, Registers<2, 2>>(inputs);
}

}  // namespace

/// Labels summed out, and what an edge has shared among them.
template <class Registers>
std::vector<double> label_results(const Sentence<float>& sentence) {
    const std::size_t padded = round_up(sentence.words), labels = round_up(sentence.labels);
    std::vector<double> scratch(label_block_size(sentence.labels)), rows((4 + labels) * padded), all;
    std::vector<float> out(static_cast<std::size_t>(sentence.words) * sentence.labels);
    double* const at = rows.data();
    double* const log_total = at + padded;
    const LabelRow row{at, at + 2 * padded, at + 4 * padded, at + 3 * padded};
    std::vector<double> edges, totals, shift(static_cast<std::size_t>(sentence.words) + 1);
    for (int h = 0; h <= sentence.words; ++h) {
        SumLabels::Kernel<Registers>::run(sentence, h, nullptr, scratch.data(), row);
        edges.insert(edges.end(), row.largest, row.largest + padded);
        totals.insert(totals.end(), row.totals, row.totals + padded);
        std::copy_n(row.totals, sentence.words, log_total);
        LogTotals::Kernel<Registers>::run(log_total, sentence.words);
        all.insert(all.end(), rows.begin(), rows.end());
        const auto add = [&] { all.insert(all.end(), out.begin(), out.end()); };
        ShareAmongLabels::Kernel<Registers>::run(sentence.words, sentence.labels, h, log_total, row, out.data(),
                                                 std::ptrdiff_t{sentence.labels});
        add();
        ShareGradientAmongLabels::Kernel<Registers>::run(sentence, h, log_total, row.mean, nullptr, row, out.data(),
                                                         std::ptrdiff_t{sentence.labels});
        add();
    }
    CentreLabelled::Kernel<Registers>::run(edges.data(), padded, totals.data(), padded, sentence.words, Root::single,
                                           shift.data());
    for (int h = 0; h <= sentence.words; ++h)
        all.insert(all.end(), edges.begin() + h * padded, edges.begin() + h * padded + sentence.words);
    all.insert(all.end(), shift.begin(), shift.end());
    return all;
}

bool labels_agree(std::mt19937_64& random, int words, int labels) {
    std::normal_distribution<float> normal;
    std::vector<float> cells(static_cast<std::size_t>(words + 1) * (words + 1) * labels);
    for (float& cell : cells) cell = random() % 9 ? 20.0f * normal(random) : minus_infinity<float>;
    const Sentence<float> sentence{cells.data(), words, std::ptrdiff_t{words + 1} * labels, labels, labels, 1};
    const auto narrow = label_results<Registers<2, 2>>(sentence);
    return narrow == label_results<Registers<4, 2>>(sentence) && narrow == label_results<Registers<8, 4>>(sentence);
}

/// What is seen of scores before they are decoded: by heads, by words, in tiles; the best labels; whether any is bad.
template <class Registers, class T>
std::vector<T> looks(const std::vector<T>& cells, int words) {
    const int nodes = words + 1;
    const std::ptrdiff_t stride = turned_stride<T>(words);
    std::vector<T> best(nodes), turned(static_cast<std::size_t>(nodes) * stride), maxima(cells.size()), all;
    std::vector<IndexLike<T>> head(nodes);
    T largest = 0;
    bool bad = false;
    const auto add = [&] {
        all.insert(all.end(), best.begin() + 1, best.end());
        all.insert(all.end(), head.begin() + 1, head.end());
        all.insert(all.end(), {largest, T(bad)});
    };
    details::SurveyByHeads::Kernel<Registers>::run(cells.data(), nodes, words, best.data(), head.data(), largest, bad);
    add();
    details::SurveyByWords::Kernel<Registers>::run(cells.data(), nodes, words, best.data(), head.data(), largest, bad);
    add();
    if (words >= lanes<T>) {
        details::SurveyAndTurn::Kernel<Registers>::run(cells.data(), nodes, words, best.data(), head.data(), largest,
                                                       bad, turned.data(), stride);
        add();
        for (int dep = 1; dep <= words; ++dep)
            all.insert(all.end(), turned.begin() + dep * stride, turned.begin() + dep * stride + nodes);
    }
    all.push_back(
        T(details::LargestOfLabels<true>::Kernel<Registers>::run(cells.data(), nodes, nodes, nodes, maxima.data())));
    all.insert(all.end(), maxima.begin(), maxima.end());
    const std::vector<Sentence<T>> sentences = {{cells.data(), words, nodes, 1}};
    all.push_back(T(details::FirstSuspect::Kernel<Registers>::run(sentences, 0, 1)));
    for (T& x : all)
        if (x != x) x = 0;
    return all;
}

template <class T>
bool looks_agree(std::mt19937_64& random, int words) {
    std::vector<T> cells(static_cast<std::size_t>(words + 1) * (words + 1));
    for (T& cell : cells) cell = random() % 9 ? T(random() % 7) - T(3) : minus_infinity<T>;
    if (words % 3 == 0) cells[random() % cells.size()] = std::numeric_limits<T>::quiet_NaN();
    const auto narrow = looks<Registers<2, 2>>(cells, words);
    return narrow == looks<Registers<4, 2>>(cells, words) && narrow == looks<Registers<8, 4>>(cells, words);
}

/// Rows of numbers of a wide range, with slopes; some are 0.
template <int order>
struct RandomJets {
    std::vector<double> memory;
    int rows;
    std::ptrdiff_t stride;

    RandomJets(std::mt19937_64& random, int rows, int columns)
        : memory(static_cast<std::size_t>(rows) * round_up(columns) * JetOf<order>::planes),
          rows(rows),
          stride(round_up(columns)) {
        std::normal_distribution<double> normal;
        for (int i = 0; i < rows; ++i)
            for (int j = 0; j < stride; ++j) {
                JetOf<order> x;
                if (random() % 5 > 0) {
                    for (int set = 1; set < x.parts; ++set) x.part[set][0] = normal(random);
                    x.part[0][0] = 1.0 + std::generate_canonical<double, 53>(random);
                    x.exponent[0] = std::nearbyint(random() % 3 == 0 ? 1e4 * normal(random) : 20.0 * normal(random));
                }
                view().set(i, j, x);
            }
    }
    JetRows<order> view() { return {memory.data(), stride, stride * rows}; }
};

/// The steps of a solve of `words` words in numbers with an exponent of their own.
template <class Registers, int order>
Results careful_steps(RandomJets<order> walk, RandomJets<order> weights, RandomJets<order> escape, int words,
                      bool several_roots) {
    Results results;
    const auto add = [&](const JetOf<order>& x) {
        for (int set = 0; set < x.parts; ++set) results.numbers.push_back(x.part[set][0]);
        results.numbers.push_back(x.exponent[0]);
    };
    const auto with_weight = [&](int k, int l) {
        JetOf<order> one;
        one.part[0][0] = 1.0;
        one.exponent[0] = 0.0;
        walk.view().set(k, 1 + l, one);
    };
    for (int k = words - 1; k > words / 2; --k) {
        with_weight(k, 0);
        add(details::EliminateWord<order>::template Kernel<Registers>::run(walk.view(), k, Range{0, k}, several_roots));
    }
    for (int k = 0; k < words / 2; ++k) {
        with_weight(k, words / 2);
        add(details::EliminateWord<order>::template Kernel<Registers>::run(walk.view(), k, Range{k + 1, words / 2 + 1},
                                                                           several_roots));
    }
    results.add(walk.memory.data(), walk.memory.size());
    const int columns = static_cast<int>(escape.stride);
    std::vector<double> row(static_cast<std::size_t>(columns) * JetOf<order>::planes);
    const JetRows<order> out{row.data(), 0, columns};
    details::Substitute<order>::template Kernel<Registers>::run(walk.view().from(words - 1, 0), Range{0, words - 1},
                                                                escape.view(), out, columns);
    results.add(row.data(), row.size());
    // The terms one after the other give the same number.
    for (int j = 0; order == 0 && j < columns; ++j) {
        JetOf<order> sum = walk.view().get(words - 1, 0);
        for (int l = 0; l < words - 1; ++l) sum += walk.view().get(words - 1, 1 + l) * escape.view().get(l, j);
        sum = sum.normalised();
        if (sum.part[0][0] != out.get(0, j).part[0][0] || sum.exponent[0] != out.get(0, j).exponent[0])
            results.numbers.push_back(Registers::width);
    }
    details::FindMarginals<order>::template Kernel<Registers>::run(weights.view(), escape.view(), words);
    for (int h = 0; h <= words; ++h)
        for (int d = 1; d <= words; ++d)
            for (int set = 0; set < JetOf<order>::parts; ++set)
                results.add(weights.view().at(h, d) + set * weights.view().plane, 1);
    for (double& x : results.numbers)
        if (x != x) x = 0;
    return results;
}

template <int order>
bool careful_steps_agree(std::mt19937_64& random, int words) {
    const RandomJets<order> walk(random, words, 1 + words), weights(random, words + 1, 1 + words),
        escape(random, words, 1 + words);
    const bool several_roots = random() % 2 == 0;
    const auto steps = [&]<class Registers>() {
        return careful_steps<Registers, order>(walk, weights, escape, words, several_roots);
    };
    const Results narrow = steps.template operator()<Registers<2, 2>>();
    return narrow == steps.template operator()<Registers<4, 2>>() &&
           narrow == steps.template operator()<Registers<8, 4>>();
}

int main() {
    std::mt19937_64 random(1);
    for (int words = 1; words < 60; ++words)
        if (!looks_agree<float>(random, words) || !looks_agree<double>(random, words)) {
            std::printf("%d words: not the same looks\n", words);
            return 1;
        }
    for (int round = 0; round < 30; ++round)
        if (!labels_agree(random, 1 + round % 11, 1 + round)) {
            std::printf("%d labels: not the same bits\n", 1 + round);
            return 1;
        }
    for (int words = 2; words < 40; ++words)
        if (!careful_steps_agree<0>(random, words) || !careful_steps_agree<1>(random, words) ||
            !careful_steps_agree<2>(random, words)) {
            std::printf("%d words: not the same bits with exponents of their own\n", words);
            return 1;
        }
    for (int round = 0; round < 60; ++round) {
        const int words = 1 + round % 30;
        if (!agree<Together>(random, words) || !agree<Alone>(random, words)) {
            std::printf("%d words: not the same bits\n", words);
            return 1;
        }
    }
    return 0;
}
