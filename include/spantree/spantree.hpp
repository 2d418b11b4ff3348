// spantree as a C++ library: exact inference over dependency trees, one function for each question about a batch.
//
// Scores are seen where they lie; results go to memory of the caller's, in the type of the scores, at the caller's strides.
// scores(h, d) is the log-weight of the edge head h -> dependent d; node 0 is ROOT, words are 1..n. Column 0 and the
// diagonal are never looked at. -inf forbids an edge.
//
//     spantree::ScoresView scores{.data = logits, .dtype = spantree::DType::f32, .batch = 32, .nodes = 41,
//                                 .batch_stride = 41 * 41, .head_stride = 41, .dep_stride = 1};
//     std::vector<float> log_z(32), marginals(32 * 41 * 41);
//     spantree::marginals(scores, {}, log_z.data(),
//                         {marginals.data(), scores.dtype, 41 * 41, 41, 1}, {});
//
// Computation is in double, rounded once at the end, exact at any scale of the scores. A sentence's results do not depend
// on the rest of the batch, nor on threads.
//
// Thrown are `InvalidInput`, for a view that makes no sense, `Interrupted`, if `Options::stop` said so, and std::bad_alloc.
// What is wrong with single sentences is no exception: it goes to `Status`, and the batch goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>

#include "root.hpp"

namespace spantree {

enum class DType : std::uint8_t { f32, f64 };
enum class IntType : std::uint8_t { i32, i64 };

struct InvalidInput : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

struct Interrupted : std::runtime_error {
    Interrupted() : std::runtime_error("stopped by the caller") {}
};

/// The scores of a batch. Strides in numbers; negative ones and 0, which repeats, will do.
struct ScoresView {
    const void* data = nullptr;
    DType dtype = DType::f64;
    std::int64_t batch = 0;  // sentences
    int nodes = 0;           // ROOT, and the words of the longest sentence
    int labels = 0;          // 0: edges have no labels
    std::ptrdiff_t batch_stride = 0, head_stride = 0, dep_stride = 0, label_stride = 0;
    const void* lengths = nullptr;  // words of each sentence; null: nodes - 1
    IntType lengths_type = IntType::i64;
};

/// Numbers of edges, as many as the scores have, `directions` times.
struct EdgesView {
    const void* data = nullptr;
    DType dtype = DType::f64;
    std::ptrdiff_t batch_stride = 0, head_stride = 0, dep_stride = 0, label_stride = 0, direction_stride = 0;
};

/// Where numbers of edges go; labels of an edge lie next to each other. Everything is written: 0 where there is no edge, in
/// the padding, and for a sentence without a tree. No data: they are not wanted.
struct EdgesOut {
    void* data = nullptr;
    DType dtype = DType::f64;
    std::ptrdiff_t batch_stride = 0, head_stride = 0, dep_stride = 0, direction_stride = 0;
};

/// Trees: for each node its head (or its edge's label). What stands at ROOT and in the padding does not matter.
struct HeadsView {
    const void* data = nullptr;
    IntType type = IntType::i64;
    std::ptrdiff_t batch_stride = 0, node_stride = 1, tree_stride = 0;
};

/// -1 goes to ROOT, to the padding, and to where there is no tree. No data: they are not wanted.
struct HeadsOut {
    void* data = nullptr;
    IntType type = IntType::i64;
    std::ptrdiff_t batch_stride = 0, node_stride = 1, tree_stride = 0;
};

/// What became of each sentence; null: nobody wants to know. 0: all is well; positive: there is no tree, and this is a word
/// that cannot be attached.
struct Status {
    static constexpr std::int32_t bad_score = -1;   // NaN or +inf
    static constexpr std::int32_t not_a_tree = -2;  // the heads given are no tree of this sentence
    std::int32_t* per_sentence = nullptr;
};

struct Options {
    Root root{};  // single
    bool projective = false;
    int threads = 0;  // 0: `default_threads()`
    /// Asked a few times a second, on the calling thread: whether to give up.
    std::function<bool()> stop;
};

/// Threads a batch is spread over, unless a call says otherwise: what was set, or SPANTREE_THREADS, or every core.
int default_threads();
/// 0 goes back to the default.
void set_default_threads(int threads);

// Every `void*` result is in the dtype of the scores: one number for each sentence, or as many rows of them as is said.

/// log Z; -inf where there is no tree, NaN where a score is bad.
void log_partition(const ScoresView& scores, const Options& options, void* log_z, Status status);

/// Edge marginals, the gradient of log Z; log_z may be null.
void marginals(const ScoresView& scores, const Options& options, void* log_z, EdgesOut marginals, Status status);

/// The second derivative of log Z times each direction: how the marginals move along it; its own transpose.
void hessian(const ScoresView& scores, const Options& options, int directions, EdgesView g, EdgesOut out,
             Status status);

/// The third derivative of log Z, contracted with each pair of u and g: how hessian(g) moves along u; symmetric in the
/// three.
void third(const ScoresView& scores, const Options& options, int directions, EdgesView u, EdgesView g, EdgesOut out,
           Status status);

/// Entropy in nats, NaN where there is no tree, and its gradient.
void entropy(const ScoresView& scores, const Options& options, void* entropy, EdgesOut gradient, Status status);

/// E[sum of the values of the tree's edges]: `directions` rows, NaN where there is no tree; and their gradients.
void expectation(const ScoresView& scores, const Options& options, int directions, EdgesView values, void* expectations,
                 EdgesOut gradients, Status status);

/// Scores without what all trees have in common, however large: sums of these differ from tree to tree as those of the given
/// ones do, for every tree that matters. -inf where there is no edge, and for a sentence without a tree; NaN for one with a
/// bad score.
void relative_scores(const ScoresView& scores, const Options& options, EdgesOut relative, Status status);

/// -E_p[log q], inf where p has a tree that q has not, and its gradients by the scores of p and of q; views of one shape.
void cross_entropy(const ScoresView& p, const ScoresView& q, const Options& options, void* value, EdgesOut gradient_p,
                   EdgesOut gradient_q, Status status_p, Status status_q);

/// The Kullback-Leibler divergence of q from p, likewise.
void kl(const ScoresView& p, const ScoresView& q, const Options& options, void* value, EdgesOut gradient_p,
        EdgesOut gradient_q, Status status_p, Status status_q);

/// Minus the log-probability of one tree for each sentence, and its gradient: the loss of a tree CRF. A head (or label) of
/// -2 is not known, and summed over, unless `partial` is false: then it is no node. inf, and gradient 0, where the status is
/// not 0. With a weight there is one loss, the sum over the batch times the weight, and the gradient is that of this one.
void crf_loss(const ScoresView& scores, const Options& options, HeadsView heads, HeadsView labels, void* loss,
              EdgesOut gradient, Status status, bool partial = true, std::optional<double> weight = std::nullopt);

/// Log-probabilities of `trees` trees for each sentence, as rows; -inf for what is no tree.
void log_prob(const ScoresView& scores, const Options& options, std::int64_t trees, HeadsView heads, HeadsView labels,
              void* log_probs, Status status);

/// The best tree; of equally good ones always the same. `best`, its score, may be null.
void argmax(const ScoresView& scores, const Options& options, HeadsOut heads, HeadsOut labels, void* best,
            Status status);

/// The k best trees, best first, and their scores (rows; may be null): -inf from where there are no more.
void topk(const ScoresView& scores, const Options& options, std::int64_t k, HeadsOut heads, HeadsOut labels, void* best,
          Status status);

/// k random trees for each sentence. Two 64-bit words of `keys` for each: tree t depends on the sentence's key, its scores
/// and t alone.
void sample(const ScoresView& scores, const Options& options, std::int64_t k, const std::uint64_t* keys, HeadsOut heads,
            HeadsOut labels, Status status);

/// k different random trees for each sentence, drawn without replacement: with their log-probabilities and Gumbel keys (k
/// rows, decreasing; -inf where none is left), and, one number for each sentence, the key of the tree that would be next and
/// the logarithm of the probability of all trees not drawn. Each may be null.
struct DistinctOut {
    HeadsOut heads, labels;
    void* log_probs = nullptr;
    void* keys = nullptr;
    void* threshold = nullptr;
    void* log_left = nullptr;
};
void sample_without_replacement(const ScoresView& scores, const Options& options, std::int64_t k,
                                const std::uint64_t* keys, const DistinctOut& out, Status status);

/// Sentences of any sizes in one array, as columns of lists keep them: sentence i has nodes[i] rows (ROOT's too) of as many
/// edges, times labels, and begins at data[starts[i]]. A row has the edges of a head; if dep_major, of a dependent.
struct FlatScoresView {
    const void* data = nullptr;
    DType dtype = DType::f64;
    std::int64_t size = 0;   // numbers
    std::int64_t batch = 0;  // sentences
    const std::int64_t* starts = nullptr;
    const std::int64_t* nodes = nullptr;
    int labels = 0;  // 0: edges have no labels
    bool dep_major = false;
    /// Or, if there are cuts, only a few heads for each word, and all other edges are forbidden: the candidates of word w, of
    /// all words of all sentences, are entries cuts[w] to cuts[w + 1] of data, heads and edge_labels. No starts.
    const std::int64_t* cuts = nullptr;
    const void *heads = nullptr, *edge_labels = nullptr;
    IntType heads_type = IntType::i64, edge_labels_type = IntType::i64;
};

/// What is wanted of each sentence beside a tree.
struct Annotate {
    double temperature = 1.0;  // scores are divided by it
    bool mbr = false;          // in place of the best tree, the one with the highest expected number of right heads
    bool confidence = false;
    std::int64_t k = 0;  // best trees
};

/// Places for it; what is not asked for may be null. One entry a node stands sentence behind sentence, ROOT first.
struct AnnotationsOut {
    std::int64_t *heads = nullptr, *labels = nullptr;  // one a node; -1 at ROOT and where there is no tree
    void *head_probs = nullptr, *log_odds = nullptr;   // one a node, of its head, in the dtype of the scores; or NaN
    double *log_prob = nullptr, *entropy = nullptr;    // one a sentence; -inf and NaN where there is no tree
    std::int64_t *best_heads = nullptr, *best_labels = nullptr;  // k rows of one a node
    double* best_log_probs = nullptr;                            // k rows of one a sentence; -inf where there is none
};

/// All that a corpus job wants to know, in one call: a word's head's probability and its log-odds against all other heads, the
/// trees' log-probabilities, the entropy. What other entries say, bit for bit; memory does not grow with the batch.
void annotate(const FlatScoresView& scores, const Options& options, const Annotate& asked, const AnnotationsOut& out,
              Status status);

}  // namespace spantree
