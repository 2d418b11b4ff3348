// Trees of one sentence one by one, none twice, each in proportion to its probability among those left.
//
// Drawing with replacement and dropping repeats has the same distribution as drawing without. While little mass is gone
// that is cheapest: the next new tree takes 1 / (1 - mass drawn) draws, and a walk is much cheaper than anything else.
// When that has become dear, the trees drawn so far go into a prefix trie. Given the trees so far, in order, the i-th
// Gumbel key is that of a race (beam.hpp): its exp(-key) is later than the one before by an exponential time whose rate
// is the mass that was left.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "beam.hpp"
#include "method.hpp"
#include "random_trees.hpp"
#include "tree_set.hpp"
#include "trie.hpp"

namespace spantree::sampling {

/// The keys of trees drawn in order: each arrives later than the one before by an exponential time whose rate is the
/// mass that was left.
class RaceKeys {
public:
    void start(const SentenceStreams& streams) {
        random_ = streams.tree(key_stream);
        last_ = -minus_infinity<double>;
    }

    double next(double log_left) {
        if (log_left == minus_infinity<double>) return log_left;
        return last_ = -log_add_exp(-last_, log_exponential(random_) - log_left);
    }

private:
    static constexpr std::uint64_t key_stream = std::uint64_t{1} << 60;

    RandomStream random_{{}, 0, 0};
    double last_ = 0.0;
};

/// Weights of all trees, also of those that only come when all others are gone; made when they are asked for.
class EveryTree {
public:
    /// `special`, if the sentence is, has its centred scores.
    void start(const SpecialSolution* special) {
        scores_ = special ? &special->scores() : nullptr;
        std::get<0>(kept_).is_read = std::get<1>(kept_).is_read = false;
    }

    template <class T>
    const CentredScores& scores(const Sentence<T>& sentence, Root root, StopSignal& stop) {
        if (scores_) return *scores_;
        centre(sentence, root, stop, own_);
        return *(scores_ = &own_);
    }

    template <class Real, class T>
    const WalkWeights<Real>& weights(const Sentence<T>& sentence, Root root, StopSignal& stop) {
        auto& kept = std::get<MadeWeights<Real>>(kept_);
        if (kept.is_read) return kept.weights;
        const CentredScores& from = scores(sentence, root, stop);
        kept.weights.read_scores(sentence.words, root,
                                 [&](int head, int dep) { return from.of_every_tree(head, dep); });
        kept.is_read = true;
        return kept.weights;
    }

private:
    template <class Real>
    struct MadeWeights {
        WalkWeights<Real> weights;
        bool is_read = false;
    };

    const CentredScores* scores_ = nullptr;
    CentredScores own_;
    std::tuple<MadeWeights<double>, MadeWeights<Extended>> kept_;
};

template <class T>
class DistinctTrees {
public:
    /// The sentence's scores, and what `solved` looks at, must stay where they are. `size`: how many trees are to
    /// be found; 0: as many as are asked for, but by `beam`.
    Feasibility start(const Sentence<T>& sentence, const SolvedWalk& solved, Root root, DistinctMethod method,
                      std::int64_t size, const SentenceStreams& streams, StopSignal& stop) {
        sentence_ = sentence;
        solved_ = solved;
        root_ = root;
        streams_ = streams;
        method_ = method;
        size_ = size;
        keys_.start(streams);
        stop_ = &stop;
        ended_ = false;
        last_key_ = -minus_infinity<double>;
        trie_plain_.reset();
        trie_extended_.reset();
        beam_plain_.reset();
        beam_extended_.reset();
        empty_tree_left_ = sentence.words == 0;
        if (sentence.words == 0) return {};
        if (solved.has_tree()) begin(stop);
        return solved.state().feasible;
    }

    /// Whether a label's score was bad when labels were drawn, of a sentence that has a tree: it has changed since the solve.
    bool saw_bad_label() const { return sentence_.labels && sentence_.words > 0 && labels_.bad(); }

    /// The next tree, if there is one left.
    std::optional<DistinctTree> next(Heads* heads, Heads* labels, StopSignal& stop) {
        if (sentence_.words == 0) return next_without_words(heads, labels);
        stop_ = &stop;
        plain_.listen_to(stop);
        extended_.listen_to(stop);
        if (by_walks_) {
            const double log_left = std::log1p(-std::min(mass_, 1.0));
            if (const auto log_probability = draw_new(heads, labels, stop))
                return DistinctTree{*log_probability, at_most_last(keys_.next(log_left))};
            switch_to_trie();
        }
        if (beam_plain_ || beam_extended_) return next_of_beam(heads, labels);
        const Extended left = trie_plain_ ? trie_plain_->left() : trie_extended_->left();
        if (!left) return std::nullopt;
        RandomStream random = streams_.tree(static_cast<std::uint64_t>(drawn_.size()) | trie_stream);
        if (trie_plain_) {
            const int* path = trie_plain_->draw(random);
            if (!plain_.left_range()) {
                plain_.tree_of(path, heads, labels);
                return found(heads, labels, left.log());
            }
            extend_trie();
            random = streams_.tree(static_cast<std::uint64_t>(drawn_.size()) | trie_stream);
        }
        const Extended exactly_left = trie_extended_->left();
        if (!exactly_left) return std::nullopt;
        extended_.tree_of(trie_extended_->draw(random), heads, labels);
        return found(heads, labels, exactly_left.log());
    }

    /// log of the mass of the trees not drawn, and the key of the one that would come next; -inf if there is none. Whoever
    /// asks has no more trees coming.
    double log_left() {
        end();
        return log_left_;
    }
    double next_key() {
        end();
        return next_key_;
    }

private:
    static constexpr std::uint64_t trie_stream = std::uint64_t{1} << 61;
    static constexpr double exactly_complemented = 0.9;  // up to here, 1 - mass has all its digits but one

    template <class Real>
    using Source = Decisions<Real, T>;

    LabelTable<T>* label_table() { return sentence_.labels ? &labels_ : nullptr; }

    void begin(StopSignal& stop) {
        drawn_.reset(sentence_.words, sentence_.labels > 0);
        mass_ = 0.0;
        attempts_ = at_ = 0;
        found_by_beam_ = 0;
        block_.clear();
        log_shares_.emplace(sentence_);
        const std::size_t nodes = static_cast<std::size_t>(sentence_.words) + 1;
        relative_edges_.assign(sentence_.labels ? 0 : nodes * nodes, std::numeric_limits<double>::quiet_NaN());
        every_tree_.start(solved_.state().special.get());
        trees_.start(solved_, sentence_.words, root_, SamplingMethod::automatic);
        by_walks_ = method_ == DistinctMethod::automatic && trees_.by_walks();
        if (sentence_.labels) labels_.start(sentence_);
        plain_.listen_to(stop);
        extended_.listen_to(stop);
        if (method_ == DistinctMethod::beam)
            start_beam();
        else if (!by_walks_)
            switch_to_trie();
    }

    /// A sentence without words has one tree.
    std::optional<DistinctTree> next_without_words(Heads* heads, Heads* labels) {
        if (!empty_tree_left_) return std::nullopt;
        empty_tree_left_ = false;
        heads[0] = no_head;
        if (labels) labels[0] = no_head;
        return DistinctTree{0.0, keys_.next(0.0)};
    }

    // By walks

    /// Draws until a tree is new, and says its log-probability; nothing if that is not the cheapest way any more.
    std::optional<double> draw_new(Heads* heads, Heads* labels, StopSignal& stop) {
        const int words = sentence_.words;
        const double left = 1.0 - mass_;
        // How many walks cost as much as a tree by the trie, which costs what one by the ancestral method does. A new
        // tree takes 1 / left of them; of so many with P(new) >= 1 / draws, all are repeats once in exp(64).
        const double draws = std::max(1.0, ancestral_cost(words) / std::max(1.0, trees_.facts().expected_steps));
        if (left * draws < 1.0 || mass_ > exactly_complemented) return std::nullopt;
        for (double tries = 0.0; tries < 64.0 * draws; ++tries) {
            if (at_ == block_.size()) fill_block(stop);
            const Heads* const tree = block_[at_].data();
            std::copy_n(tree, words + 1, heads);
            if (sentence_.labels) labels_.draw(heads, streams_.tree((attempts_ + at_) | label_stream), labels);
            ++at_;
            if (!drawn_.insert(heads, labels)) continue;
            const double result = log_probability(heads, labels);
            mass_ += std::exp(result);
            return result;
        }
        return std::nullopt;
    }

    /// As many draws as trees are wanted, or more and more if nobody said how many. Which trees they are does not depend on it.
    void fill_block(StopSignal& stop) {
        attempts_ += block_.size();
        const std::int64_t wanted = size_ > 0 ? size_ - drawn_.size() : 2 * static_cast<std::int64_t>(block_.size());
        block_.resize(static_cast<std::size_t>(std::clamp<std::int64_t>(wanted, 8, 64)));
        at_ = 0;
        for (auto& tree : block_) tree.resize(static_cast<std::size_t>(sentence_.words) + 1);
        trees_(
            streams_, attempts_, static_cast<std::int64_t>(block_.size()), stop,
            [&](std::int64_t i) { return block_[i].data(); }, [](std::int64_t) {});
    }

    // By the trie

    void switch_to_trie() {
        by_walks_ = false;
        if (!weights<double>().in_range()) return extend_trie();
        plain_.start(weights<double>(), label_table());
        trie_plain_ = std::make_unique<PrefixTrie<Source<double>>>(plain_);
        insert_drawn(*trie_plain_, plain_);
        if (plain_.left_range()) extend_trie();
    }

    void extend_trie() {
        trie_plain_.reset();
        extended_.start(weights<Extended>(), label_table());
        trie_extended_ = std::make_unique<PrefixTrie<Source<Extended>>>(extended_);
        insert_drawn(*trie_extended_, extended_);
    }

    /// In the order of decisions, so that what trees have in common is computed once.
    template <class Trie, class SomeSource>
    void insert_drawn(Trie& trie, const SomeSource& source) {
        const int words = sentence_.words, depth = source.count();
        std::vector<int> paths(static_cast<std::size_t>(drawn_.size()) * depth);
        std::vector<const int*> order;
        for (std::int64_t i = 0; i < drawn_.size(); ++i) {
            int* path = paths.data() + i * depth;
            order.push_back(path);
            for (int word = 0; word < words; ++word) {
                *path++ = drawn_[i][word];
                if (sentence_.labels) *path++ = drawn_[i][words + word];
            }
        }
        std::sort(order.begin(), order.end(), [depth](const int* a, const int* b) {
            return std::lexicographical_compare(a, a + depth, b, b + depth);
        });
        for (const int* path : order) trie.insert(path);
    }

    // By the beam

    void start_beam() {
        beam_random_.emplace(streams_.tree(0));
        if (weights<double>().in_range()) {
            plain_.start(weights<double>(), label_table());
            beam_plain_ = std::make_unique<RacingBeam<Source<double>>>(plain_, size_, *beam_random_);
        } else {
            extended_.start(weights<Extended>(), label_table());
            beam_extended_ = std::make_unique<RacingBeam<Source<Extended>>>(extended_, size_, *beam_random_);
        }
    }

    std::optional<DistinctTree> next_of_beam(Heads* heads, Heads* labels) {
        if (beam_plain_) {
            const double key = beam_plain_->next_key();
            if (key == minus_infinity<double>) return std::nullopt;
            const int* path = beam_plain_->next();
            if (!plain_.left_range()) {
                plain_.tree_of(path, heads, labels);
                ++found_by_beam_;
                return described(heads, labels, key);
            }
            // The same random numbers again, in a wider range, up to where it stood.
            beam_plain_.reset();
            beam_random_.emplace(streams_.tree(0));
            extended_.start(weights<Extended>(), label_table());
            beam_extended_ = std::make_unique<RacingBeam<Source<Extended>>>(extended_, size_, *beam_random_);
            for (std::int64_t i = 0; i < found_by_beam_; ++i) beam_extended_->next();
        }
        const double key = beam_extended_->next_key();
        if (key == minus_infinity<double>) return std::nullopt;
        extended_.tree_of(beam_extended_->next(), heads, labels);
        return described(heads, labels, key);
    }

    // What is known about a tree

    double log_probability(const Heads* heads, const Heads* labels) {
        if (sentence_.labels || solved_.state().special)
            return solved_.relative_score(sentence_, *log_shares_, heads, labels) - solved_.state().rest;
        return SolvedWalk::sum_over_tree(sentence_.words, heads, [&](int h, int d) { return relative_edge(h, d); }) -
               solved_.state().rest;
    }

    double relative_edge(int h, int d) {
        double& known = relative_edges_[static_cast<std::size_t>(h) * (sentence_.words + 1) + d];
        if (std::isnan(known)) known = solved_.relative_edge(sentence_, h, d, 0);
        return known;
    }

    DistinctTree found(const Heads* heads, const Heads* labels, double log_left_before) {
        drawn_.insert(heads, labels);
        return described(heads, labels, keys_.next(log_left_before));
    }

    // Walks draw trees that matter. The trie and the beam also have those that only come when all others are gone, with gaps
    // between scores closed (batch/centred.hpp). Trees that matter lost nothing by that; one beyond a gap lost
    // log-probability, and so did its key and the mass that was left when it came: all trees of that mass that are not
    // hopeless beside it lost the same.

    double lost(const Heads* heads) {
        const CentredScores& scores = every_tree_.scores(sentence_, root_, *stop_);
        const double drawn_by = rounded_sum(
            sentence_.words, [&](int i) { return scores.of_every_tree(static_cast<int>(heads[i + 1]), i + 1); });
        return drawn_by - scores.relative_score(heads);
    }

    template <class Real>
    const WalkWeights<Real>& weights() {
        return every_tree_.template weights<Real>(sentence_, root_, *stop_);
    }

    /// Among trees that are hopeless twice over the order of coming may be another than that of their keys; a key never
    /// exceeds the one before.
    DistinctTree described(const Heads* heads, const Heads* labels, double key) {
        return {log_probability(heads, labels), at_most_last(key - lost(heads))};
    }
    double at_most_last(double key) { return last_key_ = std::min(last_key_, key); }

    void end() {
        if (ended_) return;
        ended_ = true;
        log_left_ = closed_log_left();
        next_key_ = beam_plain_      ? beam_plain_->next_key()
                    : beam_extended_ ? beam_extended_->next_key()
                                     : keys_.next(log_left_);
        // Trees beyond a gap have less than exp(-800) of the mass (centred.hpp), so if there is more others are left. (-750: with
        // room for rounding, and exp of it is still 0.)
        if (sentence_.words == 0 || log_left_ == minus_infinity<double> || log_left_ > -750.0) return;
        std::vector<Heads> heads(static_cast<std::size_t>(sentence_.words) + 1), labels(heads.size());
        const double last_key = last_key_;
        if (!next(heads.data(), labels.data(), *stop_)) return;
        const double difference = lost(heads.data());
        log_left_ -= difference;
        next_key_ = std::min(last_key, next_key_ - difference);
    }

    double closed_log_left() {
        if (sentence_.words == 0) return empty_tree_left_ ? 0.0 : minus_infinity<double>;
        if (beam_plain_) return beam_plain_->log_left();
        if (beam_extended_) return beam_extended_->log_left();
        if (by_walks_ && mass_ < exactly_complemented) return std::log1p(-mass_);
        if (by_walks_) switch_to_trie();
        return log_of(trie_plain_ ? trie_plain_->left() : trie_extended_->left());
    }

    Sentence<T> sentence_{};
    SolvedWalk solved_;
    Root root_ = Root::single;
    SentenceStreams streams_{};
    DistinctMethod method_ = DistinctMethod::automatic;
    std::int64_t size_ = 0;
    RandomTrees trees_;
    LabelTable<T> labels_;
    std::optional<LogShares<T>> log_shares_;
    std::vector<double> relative_edges_;  // by head, then word; NaN: not asked for yet
    EveryTree every_tree_;

    TreeSet drawn_;
    double mass_ = 0.0;  // of the trees drawn by walks
    bool by_walks_ = false;
    std::uint64_t attempts_ = 0;  // draws before this block
    std::vector<std::vector<Heads>> block_;
    std::size_t at_ = 0;

    Source<double> plain_;
    Source<Extended> extended_;
    std::unique_ptr<PrefixTrie<Source<double>>> trie_plain_;
    std::unique_ptr<PrefixTrie<Source<Extended>>> trie_extended_;
    std::optional<RandomStream> beam_random_;
    std::unique_ptr<RacingBeam<Source<double>>> beam_plain_;
    std::unique_ptr<RacingBeam<Source<Extended>>> beam_extended_;
    std::int64_t found_by_beam_ = 0;

    RaceKeys keys_;
    bool empty_tree_left_ = false;

    StopSignal* stop_ = nullptr;
    bool ended_ = false;
    double last_key_ = 0.0, log_left_ = 0.0, next_key_ = 0.0;
};

}  // namespace spantree::sampling
