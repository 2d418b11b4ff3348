// Random trees without replacement.
#include <vector>

#include "solved_state.hpp"
#include "spantree/sample/label_draws.hpp"
#include "spantree/sample/projective_without_replacement.hpp"
#include "spantree/sample/without_replacement.hpp"
#include "view.hpp"

namespace spantree::library {

using namespace sampling;

namespace {

/// What one thread needs.
template <class Trees>
struct Scratch {
    Trees trees;
    TreeWriter writer;
};

template <class Trees>
class StreamOf final : public DistinctTreesOf {
public:
    /// start(trees, own solution) says whether there is a tree.
    template <class Start>
    explicit StreamOf(Start start) : feasible_(start(trees_, own_)) {}

    std::optional<DistinctTree> next(Heads* heads, Heads* labels, const Options& options) override {
        StopSignal stop = stop_signal_of(options);
        return unless_stopped([&] { return feasible_ ? trees_.next(heads, labels, stop) : std::nullopt; });
    }
    bool bad() const override { return feasible_.bad_score || (feasible_ && trees_.saw_bad_label()); }

private:
    Solution own_;  // that trees are drawn from, if none is kept
    Trees trees_;
    Feasibility feasible_;
};

// By name: clang leaves out the virtual functions of what it first sees inside of a lambda with a template's parameters.
template class StreamOf<DistinctTrees<float>>;
template class StreamOf<DistinctTrees<double>>;
template class StreamOf<DistinctProjectiveTrees<float>>;
template class StreamOf<DistinctProjectiveTrees<double>>;

}  // namespace

std::unique_ptr<DistinctTreesOf> DistinctTreesOf::sentence(const Batch& batch, std::size_t i, const Options& options,
                                                           const SentenceStreams& streams, const Solved* solved) {
    StopSignal stop = stop_signal_of(options);
    const auto method = DistinctMethod::automatic;
    return unless_stopped([&] {
        return batch.visit([&]<class T>(const std::vector<Sentence<T>>& all) -> std::unique_ptr<DistinctTreesOf> {
            const Sentence<T>& sentence = all.at(i);
            if (options.projective)
                return std::make_unique<StreamOf<DistinctProjectiveTrees<T>>>([&](auto& trees, Solution&) {
                    return trees.start(sentence, Kept::charts(solved, i), options.root, method, 0, streams, stop);
                });
            return std::make_unique<StreamOf<DistinctTrees<T>>>([&](auto& trees, Solution& own) {
                const Solution* const kept = Kept::walk(solved);
                if (!kept) {
                    own.solve(std::vector{sentence}, options.root, 1, stop, true, std::vector<EdgeTarget<double>>{});
                    if (stop.stopped()) throw Stopped{};
                }
                const SolvedWalk walk = kept ? kept->sentences()[i] : own.sentences()[0];
                return trees.start(sentence, walk, options.root, method, 0, streams, stop);
            });
        });
    });
}

Statuses sample_without_replacement(const Batch& batch, const Options& options, DistinctMethod method, std::int64_t k,
                                    const Seeds& seeds, const TreesOut& to, const DistinctNumbers& numbers,
                                    const Solved* solved) {
    if (k < 0) throw InvalidInput("a negative number of trees");
    StopSignal stop = stop_signal_of(options);
    Statuses statuses(batch.size());
    // start(): whether there is a tree.
    const auto run = [&](auto& trees, TreeWriter& writer, const auto& sentence, std::size_t i, auto start) {
        writer.start(i, sentence.words, sentence.labels > 0);
        Feasibility feasible = start();
        for (std::int64_t rank = 0; rank < k; ++rank) {
            stop.check();
            std::optional<DistinctTree> tree;
            if (feasible) tree = trees.next(writer.heads(rank), writer.labels(rank), stop);
            writer.finish(rank, tree.has_value());
            const std::size_t at = static_cast<std::size_t>(rank) * batch.size() + i;
            numbers.log_probs[at] = tree ? tree->log_probability : minus_infinity<double>;
            numbers.keys[at] = tree ? tree->key : minus_infinity<double>;
        }
        numbers.log_left[i] = feasible ? trees.log_left() : minus_infinity<double>;
        numbers.threshold[i] = feasible ? trees.next_key() : minus_infinity<double>;
        if (feasible) feasible.bad_score = trees.saw_bad_label();
        statuses[i] = status_of(feasible);
    };
    batch.visit([&]<class T>(const std::vector<Sentence<T>>& sentences) {
        if (options.projective)
            for_each_sentence(
                sentences, threads_of(options), stop,
                [&] { return Scratch<DistinctProjectiveTrees<T>>{{}, TreeWriter(to)}; },
                [&](auto& scratch, const Sentence<T>& sentence, std::size_t i) {
                    run(scratch.trees, scratch.writer, sentence, i, [&] {
                        return scratch.trees.start(sentence, Kept::charts(solved, i), options.root, method, k, seeds[i],
                                                   stop);
                    });
                });
        else
            for_each_solved(
                sentences, batch, options, solved, stop, [&] { return Scratch<DistinctTrees<T>>{{}, TreeWriter(to)}; },
                [&](auto& scratch, const Sentence<T>& sentence, std::size_t i, const SolvedWalk& walk) {
                    run(scratch.trees, scratch.writer, sentence, i,
                        [&] { return scratch.trees.start(sentence, walk, options.root, method, k, seeds[i], stop); });
                });
    });
    return statuses;
}

}  // namespace spantree::library

namespace spantree {

using namespace library;

void sample_without_replacement(const ScoresView& scores, const Options& options, std::int64_t k,
                                const std::uint64_t* keys, const DistinctOut& out, Status status) {
    const Batch batch(scores);
    if (!keys && batch.size() > 0) throw InvalidInput("random trees need keys");
    const std::size_t count = batch.size(), all = numbers_of_trees(k, batch);
    std::vector<double> log_probs(all), gumbel_keys(all), threshold(count), log_left(count);
    write_statuses(
        library::sample_without_replacement(batch, options, sampling::DistinctMethod::automatic, k,
                                            Seeds(keys, count, true, 0), {out.heads, out.labels, scores.nodes},
                                            {log_probs.data(), gumbel_keys.data(), threshold.data(), log_left.data()}),
        status);
    write_numbers(log_probs, scores.dtype, out.log_probs);
    write_numbers(gumbel_keys, scores.dtype, out.keys);
    write_numbers(threshold, scores.dtype, out.threshold);
    write_numbers(log_left, scores.dtype, out.log_left);
}

}  // namespace spantree
