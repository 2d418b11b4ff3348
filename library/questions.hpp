// Every question about a batch, for whoever has sentences and places for results: the entries of spantree.hpp, and bindings.
//
// Numbers go to doubles: one for each sentence, or as many rows of them as is said. All throw `Interrupted` if
// `Options::stop` said so.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "batch.hpp"
#include "spantree/batch/parallel.hpp"
#include "spantree/sample/method.hpp"
#include "spantree/sample/random.hpp"

namespace spantree {
class TreeStream;
}

namespace spantree::library {

struct BadScore {
    std::size_t sentence = 0;
    int head = 0, dep = 0, label = 0;
};

/// The first score that is NaN or +inf. The scores must lie as for `Lie::rows_together`.
std::optional<BadScore> first_bad(const Batch& batch, const Options& options);

// Best trees: decoding.cpp. The scores must lie as for `Lie::rows_together`.

/// `scores` may be null.
Statuses argmax(const Batch& batch, const Options& options, const TreesOut& trees, double* scores);

/// Of one sentence without labels, crossing edges allowed, and nothing about it but the search. Returns a status.
template <class T>
std::int32_t best_tree(const Sentence<T>& sentence, const Options& options, Heads* heads);

/// The k best trees, and k rows of their scores, -inf from where there are no more.
Statuses topk(const Batch& batch, const Options& options, std::int64_t k, const TreesOut& trees, double* scores);

/// From best to worst; `next` is asked with heads[0..words].
class BestTrees {
public:
    /// None if the sentence has no tree.
    static std::unique_ptr<BestTrees> of(const Batch& batch, std::size_t i, const Options& options);
    explicit BestTrees(std::unique_ptr<TreeStream> stream);
    ~BestTrees();

    /// The tree's score; nothing if all trees have been given.
    std::optional<double> next(Heads* heads, Heads* labels, const Options& options);

private:
    std::unique_ptr<TreeStream> stream_;
};

/// scores(t, i): the score of sentence i's tree in row t, less that of its tree in `than` if there is such; -inf where it is
/// no tree (or not projective, if that is asked for) or has a forbidden edge, and allowed(t, i) is then false.
void score(const Batch& batch, const Options& options, std::int64_t trees, const TreesIn& heads, const TreesIn* than,
           double* scores, bool* allowed);

/// Whether each of `count` rows of `width` heads is a tree, padded with -1 at the end.
void are_trees(const Heads* rows, std::size_t count, int width, const Options& options, bool* result);

// Sums over trees: solved.cpp

/// What a solve says about one sentence: log Z = total + rest, rest what is left when all that trees have in common is off.
struct SentenceReport {
    double log_partition = 0.0;
    double rest = 0.0;
    std::int32_t status = 0;
    bool limited = false;  // whether relative scores are not right for all trees
};

/// One solve of a batch that everything is read from, with or without crossing edges allowed. Complete when it has been
/// made, and never changed: any number of threads may ask it. The batch must outlive it.
class Solved {
public:
    enum class For {
        log_partition,  // log Z alone
        draws,          // and, of projective trees, what they are drawn from, and log-probabilities; else log Z alone
        marginals,      // log Z and the marginals, if there is a place for them; they are not kept
        questions       // everything below
    };

    Solved(const Batch& batch, const Options& options, For purpose, const EdgeTargets& marginals = {},
           const LossGradient& loss = {});

    /// For::questions, or with keep = false nothing more, when each sentence has been asked for its entropy while all of it is
    /// near: as `entropy` below, and much faster.
    Solved(const Batch& batch, const Options& options, double* entropies, const EdgeTargets& gradient, bool keep);

    /// For log_probs(t, i) of sentence i's tree in row t, -inf if it is none, and nothing else.
    Solved(const Batch& batch, const Options& options, std::int64_t trees, const TreesIn& rows, double* log_probs,
           const EdgeTargets& marginals = {}, const LossGradient& loss = {});

    /// For relative scores of edges, as below, and nothing else.
    Solved(const Batch& batch, const Options& options, const std::vector<EdgeTarget<double>>& relative_scores);

    /// For::questions, of projective trees, from a solve For::draws.
    Solved(const Solved& begun, const Options& options, const EdgeTargets& marginals = {});
    ~Solved();

    const std::vector<SentenceReport>& reports() const { return reports_; }
    bool has_tree(std::size_t i) const { return reports_[i].status == 0; }
    Statuses statuses() const;

    // After For::questions. Of `Options` only `threads` and `stop` matter.

    void marginals(const Options& options, const EdgeTargets& to) const;

    /// In nats; NaN if there is no tree.
    void entropy(const Options& options, double* totals, const EdgeTargets& gradient) const;

    /// E[sum of values over the tree's edges], a row for each of several values, NaN if there is no tree; and as many
    /// gradients, or none.
    void expectations(const Options& options, std::span<const EdgeValues> values, double* totals,
                      std::span<const EdgeTargets> gradients) const;

    /// What each edge adds to a tree's log-weight when all that trees have in common is taken off; -inf where there is no
    /// edge or no tree. The log-probability of a tree that matters is the sum of it over its edges, less `rest`; with a
    /// larger reach also of those that would if log-probabilities were divided by it. Also, of projective trees, after For::draws.
    void relative_scores(const Options& options, const std::vector<EdgeTarget<double>>& to, double reach = 1.0) const;

    /// log_probs(t, i): of sentence i's tree in row t; -inf if it is none. Also, of projective trees, after For::draws.
    void log_probs(const Options& options, std::int64_t trees, const TreesIn& rows, double* log_probs) const;

    /// The same where large numbers are involved too, by way of the best tree: the difference of two scores has no error.
    /// allowed(t, i), may be null: whether it is a tree. The scores must lie as for `Lie::rows_together`.
    void exact_log_probs(const Options& options, std::int64_t trees, const TreesIn& rows, double* log_probs,
                         bool* allowed) const;

private:
    friend struct Kept;
    struct State;
    template <class T, class Relative>
    void write_log_probs(std::size_t i, const Sentence<T>& sentence, double rest, std::int64_t trees,
                         const TreesIn& rows, StopSignal& stop, Relative relative, double* log_probs) const;
    /// The same if no values are too large for it (large_values.hpp).
    void moderate_expectations(const Options& options, std::span<const EdgeValues> values, double* totals,
                               std::span<const EdgeTargets> gradients) const;
    template <class Ask>
    void ask_charts(const Options& options, Ask ask) const;

    const Batch* batch_;
    Root root_;
    bool projective_;
    std::unique_ptr<State> state_;
    std::vector<SentenceReport> reports_;
};

/// Cross-entropy of p relative to q or, with `divergence`, that less the entropy of p: NaN where p has no tree, infinite where
/// q lacks one that p has; and its gradient by p's scores, 0 where it is not finite. The same sentences make both batches.
/// `solved_q` may be null: what is needed of it is then solved, `for_q`, and returned.
std::unique_ptr<Solved> compare(const Batch& p, const Solved& solved_p, const Batch& q, const Solved* solved_q,
                                const Options& for_q, bool divergence, double* totals, const EdgeTargets& gradient);

/// The third derivative of log Z contracted with each pair of u and g.
Statuses third(const Batch& batch, const Options& options, std::span<const EdgeValues> u, std::span<const EdgeValues> g,
               std::span<const EdgeTargets> to);

/// For unlabelled batches: sign and log-magnitude of Z with every edge's weight multiplied by its value, of either sign, and
/// the gradient of the log-magnitude.
void signed_product(const Batch& batch, const Options& options, const EdgeValues& values, double* sign,
                    double* log_magnitude, const EdgeTargets& gradient);

// Random trees: sampling.cpp, distinct.cpp

/// Where random numbers come from: one key for all sentences, which are told apart by their numbers, counted from
/// `first_sentence`; or one key each.
class Seeds {
public:
    /// Two words a key; `keys` is 1 or the number of sentences.
    Seeds(const std::uint64_t* words, std::size_t keys, bool one_each, std::uint64_t first_sentence);
    SentenceStreams operator[](std::size_t i) const { return streams_[i]; }

private:
    std::vector<Key> keys_;
    BatchStreams streams_;
};

struct Draws {
    std::int64_t trees = 0;  // for each sentence
    std::int64_t first = 0;  // the number of the first of them
    sampling::SamplingMethod method = sampling::SamplingMethod::automatic;
    std::int64_t budget = 0;            // steps a walk may take; 0: the usual number
    std::int64_t* fell_back = nullptr;  // if given, 1 is written at (t, i) for every tree that would have taken more
};

/// Tree t of sentence i depends on its scores, on seeds[i] and on draws.first + t only. `solved`, if given, is read instead of
/// solving again: a solve For::questions, or, of projective trees, For::draws.
Statuses sample(const Batch& batch, const Options& options, const Draws& draws, const Seeds& seeds,
                const TreesOut& trees, const Solved* solved = nullptr);

/// Numbers of trees drawn without replacement: log-probabilities and Gumbel keys, as many rows as trees, -inf where none is
/// left; and for each sentence the key of the tree that would be next, -inf if there is none, and the logarithm of the
/// probability of all trees not drawn.
struct DistinctNumbers {
    double *log_probs = nullptr, *keys = nullptr, *threshold = nullptr, *log_left = nullptr;
};
Statuses sample_without_replacement(const Batch& batch, const Options& options, sampling::DistinctMethod method,
                                    std::int64_t k, const Seeds& seeds, const TreesOut& trees,
                                    const DistinctNumbers& numbers, const Solved* solved = nullptr);

/// One sentence's different trees until none is left.
class DistinctTreesOf {
public:
    /// The batch, and `solved` if given, must outlive it.
    static std::unique_ptr<DistinctTreesOf> sentence(const Batch& batch, std::size_t i, const Options& options,
                                                     const SentenceStreams& streams, const Solved* solved = nullptr);
    virtual ~DistinctTreesOf() = default;
    virtual std::optional<sampling::DistinctTree> next(Heads* heads, Heads* labels, const Options& options) = 0;
    virtual bool bad() const = 0;  // some score was NaN or +inf
};

/// The log-probability of one tree for each sentence as the product of its words' conditional distributions, in word order;
/// nothing else is used of the solve.
void conditional_log_probs(const Batch& batch, const Options& options, const TreesIn& trees, double* log_probs);

}  // namespace spantree::library
