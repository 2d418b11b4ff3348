// What a kept solve holds: groups of the matrix-tree solve, or the charts of each sentence; and drawing from it.
#pragma once

#include <vector>

#include "questions.hpp"
#include "run.hpp"
#include "spantree/chart/solved_sentence.hpp"
#include "spantree/walk/solution.hpp"

namespace spantree::library {

struct Solved::State {
    Solution walk;
    std::vector<projective::KeptSentence> charts;
};

/// What is kept of a solve, if there is one.
struct Kept {
    /// Null if not kept.
    static const Solution* walk(const Solved* solved) {
        return solved && solved->state_->walk.is_kept() ? &solved->state_->walk : nullptr;
    }
    static const projective::SolvedSentence* charts(const Solved* solved, std::size_t i) {
        return solved && !solved->state_->charts.empty() ? &*solved->state_->charts[i] : nullptr;
    }
};

/// Calls body(scratch, sentence, i, solved sentence) for every sentence. If `solved` has kept nothing, the sentences are solved
/// here, with the same bits, some at a time: as many as fill the groups whose memory is lent (walk/kept_group.hpp), and whose
/// V and E are no more than 4 MB, which caches hold; but one for each thread.
template <class T, class MakeScratch, class Body>
void for_each_solved(const std::vector<Sentence<T>>& sentences, const Batch& batch, const Options& options,
                     const Solved* solved, StopSignal& stop, MakeScratch make_scratch, Body body) {
    constexpr std::size_t most_sentences = 512, most_edges = 1 << 18;
    const int threads = threads_of(options);
    const auto run = [&](const Solution& solution, std::size_t first, std::size_t count) {
        const std::vector<SolvedWalk> walks = solution.sentences();
        parallel_for(count, 1, threads, stop, make_scratch,
                     [&](auto& scratch, std::size_t i) { body(scratch, sentences[first + i], first + i, walks[i]); });
        throw_if_stopped(stop);
    };
    if (const Solution* const kept = Kept::walk(solved)) return run(*kept, 0, sentences.size());
    for (std::size_t first = 0, last; first < sentences.size(); first = last) {
        std::size_t edges = 0;
        for (last = first; last < sentences.size() && last - first < most_sentences; ++last) {
            edges += static_cast<std::size_t>(sentences[last].words + 1) *
                     static_cast<std::size_t>(sentences[last].words + 1);
            if (edges > most_edges && last - first >= static_cast<std::size_t>(threads)) break;
        }
        const auto begin = sentences.begin() + static_cast<std::ptrdiff_t>(first);
        const std::vector<Sentence<T>> some(begin, begin + static_cast<std::ptrdiff_t>(last - first));
        Solution solution;
        solution.solve(some, options.root, threads_to_solve(batch, options), stop, true,
                       std::vector<EdgeTarget<double>>{});
        throw_if_stopped(stop);
        run(solution, first, last - first);
    }
}

template <class MakeScratch, class Body>
void for_each_solved(const Batch& batch, const Options& options, const Solved* solved, StopSignal& stop,
                     MakeScratch make_scratch, Body body) {
    batch.visit(
        [&](const auto& sentences) { for_each_solved(sentences, batch, options, solved, stop, make_scratch, body); });
}

}  // namespace spantree::library
