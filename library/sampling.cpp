// Random trees.
#include <tuple>
#include <vector>

#include "run.hpp"
#include "solved_state.hpp"
#include "spantree/batch/scratch_pool.hpp"
#include "spantree/sample/label_draws.hpp"
#include "spantree/sample/random_trees.hpp"
#include "view.hpp"

namespace spantree::library {

using namespace sampling;

namespace {

struct Samplers {
    RandomTrees trees;
    std::tuple<LabelTable<float>, LabelTable<double>> labels;

    std::size_t bytes() const { return trees.bytes() + std::get<0>(labels).bytes() + std::get<1>(labels).bytes(); }
};

ScratchPool<Samplers> samplers;

/// Trees drawn before they are passed on, if they cannot be written where they belong: RandomTrees shares eliminations
/// among as many.
constexpr std::int64_t at_once = 4096;

}  // namespace

Seeds::Seeds(const std::uint64_t* words, std::size_t keys, bool one_each, std::uint64_t first_sentence) : keys_(keys) {
    for (std::size_t i = 0; i < keys; ++i) keys_[i] = {words[2 * i], words[2 * i + 1]};
    streams_ = {keys_.data(), one_each, first_sentence};
}

Statuses sample(const Batch& batch, const Options& options, const Draws& draws, const Seeds& seeds,
                const TreesOut& trees, const Solved* solved) {
    if (draws.trees < 0 || draws.first < 0) throw InvalidInput("a negative number of trees");
    const auto number = [&](std::int64_t tree) { return static_cast<std::uint64_t>(draws.first + tree); };
    StopSignal stop = stop_signal_of(options);
    Statuses statuses(batch.size());
    const auto make_scratch = [&] {
        return std::tuple(samplers.borrow(), projective::solved_pool.borrow(), projective::question_pool.borrow(),
                          TreeWriter(trees, std::min(draws.trees, at_once)));
    };
    // Of sentence i: draw(first, count) writes the heads of some of its trees.
    const auto write = [&]<class T>(Samplers& scratch, TreeWriter& writer, const Sentence<T>& sentence, std::size_t i,
                                    auto draw) {
        const bool drawn = statuses[i] == 0 && sentence.words > 0;
        auto& table = std::get<LabelTable<T>>(scratch.labels);
        if (drawn && sentence.labels) table.start(sentence);
        for (std::int64_t first = 0; first < draws.trees; first += at_once) {
            const std::int64_t count = std::min(at_once, draws.trees - first);
            if (drawn) draw(first, count);
            for (std::int64_t tree = first; tree < first + count; ++tree) {
                if (tree % 256 == 0) stop.check();
                if (drawn && sentence.labels)
                    table.draw(writer.heads(tree), seeds[i].tree(number(tree) | label_stream), writer.labels(tree));
                writer.finish(tree, drawn);
            }
        }
        if (drawn && sentence.labels) statuses[i] = status_of({0, table.bad()});
    };
    if (options.projective) {
        for_each_sentence(
            batch, threads_of(options), stop, make_scratch, [&](auto& scratch, const auto& sentence, std::size_t i) {
                auto& [samplers_loan, solved_loan, questions_loan, writer_of_thread] = scratch;
                TreeWriter& writer = writer_of_thread;  // a name that clang before 16 lets lambdas capture
                projective::ChartSampler& draw = (*questions_loan).draw;
                const projective::SolvedSentence* charts = Kept::charts(solved, i);
                if (!charts) {
                    (*solved_loan).solve(sentence, options.root, projective::Purpose::partition, stop);
                    charts = &*solved_loan;
                }
                statuses[i] = status_of(charts->found());
                writer.start(i, sentence.words, sentence.labels > 0);
                if (statuses[i] == 0 && sentence.words > 0) draw.start(sentence.words, options.root);
                write(*samplers_loan, writer, sentence, i, [&](std::int64_t first, std::int64_t count) {
                    charts->with_inside([&](const auto& sums) {
                        for (std::int64_t tree = first; tree < first + count; ++tree) {
                            if (tree % 256 == 0) stop.check();
                            RandomStream random = seeds[i].tree(number(tree));
                            draw(sums, random, writer.heads(tree));
                        }
                    });
                });
            });
        return statuses;
    }
    for_each_solved(batch, options, solved, stop, make_scratch,
                    [&](auto& scratch, const auto& sentence, std::size_t i, const SolvedWalk& walk) {
                        TreeWriter& writer = std::get<TreeWriter>(scratch);
                        Samplers& of_thread = *std::get<0>(scratch);
                        RandomTrees& random_trees = of_thread.trees;
                        writer.start(i, sentence.words, sentence.labels > 0);
                        if (sentence.words > 0) {
                            statuses[i] = status_of(walk.state().feasible);
                            if (walk.has_tree())
                                random_trees.start(walk, sentence.words, options.root, draws.method, draws.budget);
                        }
                        write(of_thread, writer, sentence, i, [&](std::int64_t first, std::int64_t count) {
                            random_trees(
                                seeds[i], number(first), count, stop,
                                [&](std::int64_t tree) { return writer.heads(first + tree); },
                                [&](std::int64_t tree) {
                                    if (draws.fell_back)
                                        draws.fell_back[static_cast<std::size_t>(first + tree) * batch.size() + i] = 1;
                                });
                        });
                    });
    return statuses;
}

void conditional_log_probs(const Batch& batch, const Options& options, const TreesIn& trees, double* log_probs) {
    StopSignal stop = stop_signal_of(options);
    for_each_solved(
        batch, options, nullptr, stop,
        [] { return std::tuple<WalkSetup, Conditionals<double>, Conditionals<Extended>>(); },
        [&](auto& scratch, const auto& sentence, std::size_t i, const SolvedWalk& walk) {
            auto& [setup, plain, extended] = scratch;
            GivenTree tree;
            tree.read(trees, i, 0, sentence.words, false);
            const auto run = [&](auto& conditionals, const auto& weights) {
                conditionals.start(weights);
                log_probs[i] = 0.0;
                for (int word = 0; word < sentence.words; ++word) {
                    std::remove_cvref_t<decltype(weights(0, 0))> total;
                    const auto* shares = conditionals(word, total);
                    const auto head = static_cast<int>(tree.head(word + 1));
                    log_probs[i] += log_of(shares[head] / total);
                    conditionals.decide(word, head);
                }
                return !conditionals.left_range();
            };
            log_probs[i] = 0.0;
            if (sentence.words == 0) return;
            log_probs[i] = minus_infinity<double>;
            if (!walk.has_tree()) return;
            setup.start(walk, sentence.words, options.root);
            if (!setup.in_doubles() || !run(plain, setup.template weights<double>()))
                run(extended, setup.template weights<Extended>());
        });
}

}  // namespace spantree::library

namespace spantree {

using namespace library;

void sample(const ScoresView& scores, const Options& options, std::int64_t k, const std::uint64_t* keys, HeadsOut heads,
            HeadsOut labels, Status status) {
    const Batch batch(scores);
    if (!keys && batch.size() > 0) throw InvalidInput("random trees need keys");
    Draws draws;
    draws.trees = k;
    write_statuses(
        library::sample(batch, options, draws, Seeds(keys, batch.size(), true, 0), {heads, labels, scores.nodes}),
        status);
}

}  // namespace spantree
