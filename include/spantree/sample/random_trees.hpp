// Random trees of one sentence, exactly from their distribution, by the method that suits it.
//
//   wilson-marginal   the root word from its marginal, then Wilson's algorithm towards it
//   wilson-reject     Wilson's algorithm with several roots allowed, until there is one. The weights of edges from ROOT
//                     are reduced, all by the same factor, such that the expected number of steps is small
//   ancestral         word by word
//   automatic         wilson-marginal where a tree costs less that way than by the ancestral method, which is known
//                     beforehand
//
// With several roots allowed both Wilsons are the same. A walk has a budget of steps. If it is used up, what was drawn is
// thrown away, but for the root word, and the tree is drawn by the ancestral method: given the root word, the cycles
// popped are independent of the tree, so its distribution is right, also among those that fell back and among those that
// did not.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "../batch/parallel.hpp"
#include "ancestral.hpp"
#include "method.hpp"
#include "random.hpp"
#include "walk_facts.hpp"
#include "wilson.hpp"

namespace spantree::sampling {

/// Streams with these bits in the tree's number are for other purposes than its first draw.
inline constexpr std::uint64_t fallback_stream = std::uint64_t{1} << 63, label_stream = std::uint64_t{1} << 62;

/// What a tree costs by the ancestral method, in steps of a walk, of about 1 ns each: for every word an overhead of about
/// 16 of them, and an elimination of n^2 multiplications and additions, of which 16 are done in the time of one.
inline double ancestral_cost(int words) { return words * (16.0 + words * (words / 16.0)); }

class RandomTrees {
public:
    /// A sentence that has words and a tree. What `solved` looks at must stay where it is. `budget`: steps a walk may take,
    /// 0 for the usual number.
    void start(const SolvedWalk& solved, int words, Root root, SamplingMethod method, std::int64_t budget = 0) {
        most_edges_ = std::max(most_edges_, static_cast<std::size_t>(words + 1) * (words + 1));
        setup_.start(solved, words, root);
        choose(method, budget);
    }

    const WalkFacts& facts() const { return setup_.facts(); }
    bool by_walks() const { return method_ != SamplingMethod::ancestral; }

    /// No more memory than this is held: 24 bytes an edge in each of the log2 n levels of two interval trees, one with doubles
    /// and one with Extended numbers, and 300 in all other tables.
    std::size_t bytes() const { return most_edges_ * (300 + 24 * std::bit_width(most_edges_) / 2); }

    /// Draws trees first, first + 1, ... (`count` of them): row(i) gives place for heads[0..words] of the i-th. Calls
    /// fell_back(i) for those that had to be drawn by the ancestral method after all.
    template <class Row, class FellBack>
    void operator()(const SentenceStreams& streams, std::uint64_t first, std::int64_t count, StopSignal& stop, Row row,
                    FellBack fell_back) {
        if (method_ == SamplingMethod::ancestral) {
            for (std::int64_t i = 0; i < count; i += at_once) {
                std::vector<Fallback> part;
                for (std::int64_t j = i; j < std::min(count, i + at_once); ++j)
                    part.push_back({first + static_cast<std::uint64_t>(j), 0, row(j)});
                draw_ancestral(streams, part.data(), part.data() + part.size(), stop);
            }
            return;
        }
        std::vector<Fallback> fallbacks;
        const auto fall_back = [&](std::int64_t i, int root_word) {
            fallbacks.push_back({(first + static_cast<std::uint64_t>(i)) | fallback_stream, root_word, row(i)});
            fell_back(i);
        };
        walk_(
            count, budget_, numbers_per_tree(),
            [&](std::int64_t i, RandomBits& random) {
                if (i % 256 == 0) stop.check();
                random.start(streams.key, streams.sentence, first + static_cast<std::uint64_t>(i));
                if (setup_.root() == Root::multi || method_ == SamplingMethod::wilson_reject) return 0;
                const int root_word = 1 + roots_.draw(0, random.next(), [&] { return random.next_64(); });
                if (facts().steps_by_root[root_word - 1] <= too_long_) return root_word;
                fall_back(i, root_word);
                return -1;
            },
            [&](std::int64_t i, int root_word, const std::uint16_t* head) {
                if (!head) {
                    fall_back(i, root_word);
                    return false;
                }
                if (method_ == SamplingMethod::wilson_reject && std::count(head + 1, head + words() + 1, 0) != 1)
                    return true;
                Heads* const to = row(i);
                for (int word = 1; word <= words(); ++word) to[word] = head[word];
                to[0] = no_head;
                return false;
            });
        std::sort(fallbacks.begin(), fallbacks.end(),
                  [](const auto& a, const auto& b) { return a.root_word < b.root_word; });
        for (auto begin = fallbacks.begin(); begin != fallbacks.end();) {
            const auto end =
                std::find_if(begin, fallbacks.end(), [&](const auto& x) { return x.root_word != begin->root_word; });
            draw_ancestral(streams, &*begin, &*begin + (end - begin), stop);
            begin = end;
        }
    }

private:
    static constexpr std::int64_t at_once = 4096;  // trees that share eliminations; more would share little more

    /// By Markov's inequality no more than one tree in so many runs out of budget where walks are expected to be cheaper.
    static constexpr double patience = 32.0;

    /// Who asks for walks by name gets them, up to about a millisecond a tree.
    static constexpr std::int64_t least_named_budget = 1 << 20;

    struct Fallback {
        std::uint64_t stream;
        int root_word;  // from 1; 0 if it is to be drawn too
        Heads* heads;
    };

    int words() const { return setup_.words(); }

    void choose(SamplingMethod method, std::int64_t budget) {
        const double expected = facts().expected_steps, other_way = ancestral_cost(words());
        method_ = method != SamplingMethod::automatic ? method
                  : expected <= other_way             ? SamplingMethod::wilson_marginal
                                                      : SamplingMethod::ancestral;
        if (words() > WilsonWalk::most_words) method_ = SamplingMethod::ancestral;
        if (setup_.root() == Root::multi && method_ == SamplingMethod::wilson_reject)
            method_ = SamplingMethod::wilson_marginal;
        budget_ = static_cast<std::int64_t>(patience * other_way);
        if (method != SamplingMethod::automatic) budget_ = std::max(budget_, least_named_budget);
        if (budget > 0) budget_ = budget;
        too_long_ = budget > 0 ? std::numeric_limits<double>::infinity() : static_cast<double>(budget_);
        if (method_ == SamplingMethod::wilson_reject && !set_up_reject()) method_ = SamplingMethod::ancestral;
        if (setup_.root() == Root::multi && expected > too_long_) method_ = SamplingMethod::ancestral;
        if (method_ == SamplingMethod::wilson_marginal) set_up_marginal();
    }

    /// Made ahead, because many at once are cheapest: one a word, and 1.4 times as many as are drawn again on average.
    /// That is enough for most trees, as long as redraws are few; beyond three a word their number varies too much to
    /// be guessed, and what is missing is made when it is needed.
    int numbers_per_tree() const {
        const double redraws = std::clamp(facts().expected_steps - words(), 0.0, 3.0 * words());
        return words() + 1 + static_cast<int>(1.4 * redraws);
    }

    void set_up_marginal() {
        walk_.set_up(words(), setup_.root() == Root::multi, setup_.steps());
        if (setup_.root() == Root::multi) return;
        roots_.reset(1, words());
        roots_.set(0, words(), [&](int word) { return facts().root_marginals[word]; }, [](int word) { return word; });
    }

    /// With ROOT's weights 4^-i of what they are, for the i that takes the fewest steps: as many as one walk takes, over
    ///
    ///     P(one root)  =  Z with one root / Z with any number of roots.
    ///
    /// Returns false if they are too many, or doubles do not have the range.
    bool set_up_reject() {
        if (!setup_.in_doubles()) return false;
        const WalkWeights<double>& weights = setup_.weights<double>();
        EdgeTable scores(words());
        for (int head = 0; head <= words(); ++head)
            for (int word = 0; word < words(); ++word) scores(head, word + 1) = std::log(weights(head, word));
        Outcome one = alone_.solve(scores, false, memory_, edges_);
        if (!one.log_in_range) return false;
        int best = 0;
        double least_steps = std::numeric_limits<double>::infinity();
        for (int i = 0; i <= 8; ++i) {
            const Outcome several = alone_.solve(scores, true, memory_, edges_);
            WalkFacts facts;
            facts.find({edges_.weights.data, edges_.weights.stride}, {edges_.escape.data, edges_.escape.stride},
                       words(), Root::multi);
            const double steps = facts.expected_steps / std::exp(one.log_partition - several.log_partition);
            if (!several.in_range || !(steps < least_steps)) break;
            least_steps = steps;
            best = i;
            constexpr double quarter = -2.0 * std::numbers::ln2;
            one.log_partition += quarter;
            for (int word = 1; word <= words(); ++word) scores(0, word) += quarter;
        }
        if (!(least_steps < std::numeric_limits<double>::infinity()) || least_steps > too_long_) return false;
        const double factor = std::ldexp(1.0, -2 * best);
        walk_.set_up(words(), true,
                     [&](int head, int word) { return head == 0 ? factor * weights(0, word) : weights(head, word); });
        return true;
    }

    /// All with the same root word.
    void draw_ancestral(const SentenceStreams& streams, Fallback* begin, Fallback* end, StopSignal& stop) {
        stop.check();
        const auto make = [&] {
            std::vector<TreeDraw> draws;
            for (const Fallback* tree = begin; tree != end; ++tree)
                draws.push_back({streams.tree(tree->stream), tree->heads});
            return draws;
        };
        const auto run = [&]<class Real>(const WalkWeights<Real>& weights, AncestralSampler<Real>& sampler) {
            WalkWeights<Real> conditioned;
            if (begin->root_word) conditioned.condition_on_root(weights, begin->root_word - 1);
            sampler.start(begin->root_word ? conditioned : weights);
            auto draws = make();
            return sampler(draws, stop);
        };
        if (setup_.in_doubles() && run(setup_.weights<double>(), ancestral_)) return;
        run(setup_.weights<Extended>(), ancestral_extended_);
    }

    std::size_t most_edges_ = 0;  // of a sentence so far
    WalkSetup setup_;
    SamplingMethod method_ = SamplingMethod::automatic;
    std::int64_t budget_ = 0;
    double too_long_ = 0.0;  // no walk is tried that is expected to take more steps
    AliasTables roots_;
    WilsonWalk walk_;
    AloneSolver alone_;  // for wilson-reject, and the memory of its V and E
    AlignedBuffer<double> memory_;
    EdgeMatrices<Alone> edges_;
    AncestralSampler<double> ancestral_;
    AncestralSampler<Extended> ancestral_extended_;
};

}  // namespace spantree::sampling
