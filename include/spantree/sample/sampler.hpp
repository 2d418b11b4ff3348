// Random trees of one sentence, exactly from their distribution, by the method that suits it.
//
//   wilson-marginal  the root word from its marginal, then Wilson's algorithm towards it
//   wilson-reject    Wilson's algorithm with several roots allowed, until there is one; edges from ROOT are reweighted,
//   all by the same factor,
//                    such that the expected number of steps is small
//   ancestral        word by word
//   automatic        wilson-marginal where a tree costs less that way than by the ancestral method, which is known
//   beforehand
//
// With several roots allowed both Wilsons are the same. A walk has a budget of steps. If it is used up, what was drawn
// is thrown away, but for the root word, and the tree is drawn by the ancestral method: given the root word, the cycles
// popped are independent of the tree, so its distribution is right, also among those that fell back and among those
// that did not.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../batch/parallel.hpp"
#include "ancestral.hpp"
#include "random.hpp"
#include "walk_facts.hpp"
#include "wilson.hpp"

namespace spantree::sampling {

enum class SamplingMethod { automatic, wilson_marginal, wilson_reject, ancestral };

/// Streams with these bits in the tree's number are for other purposes than its first draw.
inline constexpr std::uint64_t fallback_stream = std::uint64_t{1} << 63, label_stream = std::uint64_t{1} << 62;

/// Where the random numbers of a sentence's trees come from.
struct SentenceStreams {
    Key key;
    std::uint64_t sentence;
    RandomStream tree(std::uint64_t tree) const { return {key, sentence, tree}; }
};

template <class T>
class TreeSampler {
public:
    /// `sentence` must stay where it is. `budget`: steps a walk may take, 0 for the usual number.
    Feasibility start(const Sentence<T>& sentence, Root root, SamplingMethod method, std::int64_t budget = 0) {
        sentence_ = sentence;
        if (const Feasibility feasible = setup_(sentence, root); !feasible) return feasible;
        const double ancestral_cost =
            sentence.words * (16.0 + sentence.words * (sentence.words / 16.0));  // in steps of a walk
        const double expected = facts().expected_steps;
        method_ = method != SamplingMethod::automatic ? method
                  : expected <= ancestral_cost        ? SamplingMethod::wilson_marginal
                                                      : SamplingMethod::ancestral;
        if (root == Root::multi && method_ == SamplingMethod::wilson_reject) method_ = SamplingMethod::wilson_marginal;
        budget_ = static_cast<std::int64_t>(32.0 * std::min(ancestral_cost, 1e12));
        if (method != SamplingMethod::automatic) budget_ = std::max(budget_, least_named_budget);
        if (budget > 0) budget_ = budget;
        too_long_ = budget > 0 ? std::numeric_limits<double>::infinity() : static_cast<double>(budget_);
        if (method_ == SamplingMethod::wilson_reject && set_up_reject() > too_long_)
            method_ = SamplingMethod::ancestral;
        if (root == Root::multi && expected > too_long_) method_ = SamplingMethod::ancestral;
        if (method_ == SamplingMethod::wilson_marginal) set_up_marginal();
        return {};
    }

    const WalkFacts& facts() const { return setup_.facts(); }
    WalkSetup& setup() { return setup_; }
    bool by_walks() const { return method_ != SamplingMethod::ancestral; }

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
        RandomBits random(numbers_per_tree());
        for (std::int64_t i = 0; i < count; ++i) {
            if (i % 256 == 0) stop.check();
            random.start(streams.key, streams.sentence, first + static_cast<std::uint64_t>(i));
            const int root_word = draw_by_walk(random, row(i));
            if (root_word == drawn) continue;
            fallbacks.push_back({(first + static_cast<std::uint64_t>(i)) | fallback_stream, root_word, row(i)});
            fell_back(i);
        }
        std::stable_sort(fallbacks.begin(), fallbacks.end(),
                         [](const auto& a, const auto& b) { return a.root_word < b.root_word; });
        for (auto begin = fallbacks.begin(); begin != fallbacks.end();) {
            const auto end =
                std::find_if(begin, fallbacks.end(), [&](const auto& x) { return x.root_word != begin->root_word; });
            draw_ancestral(streams, &*begin, &*begin + (end - begin), stop);
            begin = end;
        }
    }

private:
    static constexpr std::int64_t at_once = 4096;
    static constexpr std::int64_t least_named_budget = 1 << 20;
    static constexpr int drawn = -1;

    struct Fallback {
        std::uint64_t stream;
        int root_word;  // from 1; 0 if it is to be drawn too
        Heads* heads;
    };

    /// Enough for most trees; making them all at once is cheapest.
    int numbers_per_tree() const {
        const double redraws = std::clamp(facts().expected_steps - sentence_.words, 0.0, 3.0 * sentence_.words);
        return sentence_.words + 1 + static_cast<int>(1.4 * redraws);
    }

    /// Returns `drawn`, or the root word (0: any) given which the tree is to be drawn by the other method.
    int draw_by_walk(RandomBits& random, Heads* heads) {
        if (method_ == SamplingMethod::wilson_reject) return draw_with_rejection(random, heads) ? drawn : 0;
        int root_word = 0;
        if (setup_.root() == Root::single) {
            const auto more_bits = [&] { return random.next_64(); };
            root_word = 1 + roots_.draw(0, random.next(), more_bits);
            if (facts().steps_by_root[root_word - 1] > too_long_) return root_word;
        }
        std::int64_t left = budget_;
        return walk_(root_word, left, random, heads) ? drawn : root_word;
    }

    bool draw_with_rejection(RandomBits& random, Heads* heads) {
        for (std::int64_t left = budget_; walk_(0, left, random, heads);)
            if (std::count(heads + 1, heads + sentence_.words + 1, Heads{0}) == 1) return true;
        return false;
    }

    void set_up_marginal() {
        set_up_walk(setup_, setup_.root() == Root::multi);
        if (setup_.root() == Root::multi) return;
        roots_.reset(1, sentence_.words);
        roots_.set(
            0, sentence_.words, [&](int word) { return facts().root_marginals[word]; }, [](int word) { return word; });
    }

    /// P(one root) = exp(log Z with one root + bonus - log Z with any number). Returns the expected number of steps:
    /// that of one walk over it.
    double set_up_reject() {
        double best_bonus = 0.0, least_steps = std::numeric_limits<double>::infinity();
        for (int i = 0; i <= 8; ++i) {
            const double bonus = -i * 2.0 * std::numbers::ln2;
            several_roots_(sentence_, Root::multi, bonus);
            const WalkFacts& several = several_roots_.facts();
            const double steps =
                several.expected_steps / std::exp(facts().log_partition + bonus - several.log_partition);
            if (!(steps < least_steps)) break;
            least_steps = steps;
            best_bonus = bonus;
        }
        several_roots_(sentence_, Root::multi, best_bonus);
        set_up_walk(several_roots_, true);
        return least_steps;
    }

    void set_up_walk(const WalkSetup& setup, bool with_root) {
        if (setup.in_doubles()) {
            const auto& weights = setup.template weights<double>();
            walk_.set_up(sentence_.words, with_root, [&](int head, int word) { return weights(head, word); });
            return;
        }
        const auto& weights = setup.template weights<Extended>();
        std::vector<Extended> largest(sentence_.words);
        for (int word = 0; word < sentence_.words; ++word)
            for (int head = with_root ? 0 : 1; head <= sentence_.words; ++head)
                largest[word] = std::max(largest[word], weights(head, word));
        walk_.set_up(sentence_.words, with_root, [&](int head, int word) {
            return largest[word] ? value_of(weights(head, word) / largest[word]) : 0.0;
        });
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
            return sampler(draws);
        };
        if (setup_.in_doubles() && run(setup_.template weights<double>(), ancestral_)) return;
        run(setup_.extend(sentence_), ancestral_extended_);
    }

    Sentence<T> sentence_{};
    WalkSetup setup_, several_roots_;
    SamplingMethod method_ = SamplingMethod::automatic;
    std::int64_t budget_ = 0;
    double too_long_ = 0.0;  // no walk is tried that is expected to take more steps
    AliasTables roots_;
    WilsonWalk walk_;
    AncestralSampler<double> ancestral_;
    AncestralSampler<Extended> ancestral_extended_;
};

}  // namespace spantree::sampling
