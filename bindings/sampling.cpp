#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <tuple>

#include "batch.hpp"
#include "spantree/batch/scratch_pool.hpp"
#include "spantree/sample/label_draws.hpp"
#include "spantree/sample/projective_without_replacement.hpp"
#include "spantree/sample/random_trees.hpp"
#include "spantree/sample/without_replacement.hpp"
#include "streams.hpp"
#include "trees.hpp"

namespace spantree::bindings {

namespace {

using namespace spantree::sampling;

using Labels = std::optional<FlatHeads>;

struct Samplers {
    RandomTrees trees;
    std::tuple<LabelTable<float>, LabelTable<double>> labels;

    std::size_t bytes() const { return trees.bytes() + std::get<0>(labels).bytes() + std::get<1>(labels).bytes(); }
};

ScratchPool<Samplers> samplers;

/// Draws k trees for each sentence: k arrays of heads, and of labels, one after the other (-1 where there is no tree).
/// Tree t of sentence i depends on its scores, on streams[i] and on t only. fell_back, if given, tells which trees took
/// more steps than `budget` (0: the usual one). Returns how many sentences have no tree, or `bad_scores`.
std::int64_t sample(const Batch& batch, Root root, SamplingMethod method, std::int64_t k, const Keys& keys,
                    std::uint64_t first_sentence, std::int64_t budget, int threads, FlatHeads heads, Labels labels,
                    std::optional<FlatHeads> fell_back, FlatHeads unattachable) {
    const auto count = static_cast<std::int64_t>(batch.size());
    const KeptStreams streams(keys, first_sentence, batch);
    std::atomic<bool> bad = false;
    for_each_sentence(
        batch, threads, [] { return samplers.borrow(); },
        [&]<class T>(auto& loan, const Sentence<T>& sentence, const Place& place, std::size_t i, StopSignal& stop) {
            auto& [trees, tables] = *loan;
            const auto row = [&](FlatHeads& rows, std::int64_t tree) {
                return rows.data() + tree * batch.row_size + place.row;
            };
            Feasibility feasible;
            if (sentence.words > 0) {
                feasible = trees.start(sentence, root, method, stop, budget);
                if (trees.bad()) bad = true;
                if (feasible)
                    trees(
                        streams[i], 0, k, stop, [&](std::int64_t tree) { return row(heads, tree); },
                        [&](std::int64_t tree) {
                            if (fell_back) (*fell_back)(tree* count + static_cast<std::int64_t>(i)) = 1;
                        });
            }
            unattachable(i) = feasible.unattachable;
            const int written = feasible && sentence.words > 0 ? sentence.words + 1 : 0;
            if (written && labels) {
                auto& table = std::get<LabelTable<T>>(tables);
                table.start(sentence);
                for (std::int64_t tree = 0; tree < k; ++tree) {
                    if (tree % 256 == 0) stop.check();
                    draw_labels(table, sentence.words, row(heads, tree),
                                streams[i].tree(static_cast<std::uint64_t>(tree) | label_stream), row(*labels, tree));
                }
                if (table.bad()) bad = true;
            }
            for (FlatHeads* const rows : {&heads, labels ? &*labels : nullptr})
                for (std::int64_t tree = 0; rows && written < place.width && tree < k; ++tree)
                    std::fill(row(*rows, tree) + written, row(*rows, tree) + place.width, no_head);
        });
    return bad ? bad_scores : count_infeasible(unattachable);
}

/// Draws labels for k trees per sentence given their heads; -1 where those are. Returns 0, or `bad_scores`.
std::int64_t sample_labels(const Batch& batch, std::int64_t k, const Keys& keys, std::uint64_t first_sentence,
                           int threads, const FlatHeads& heads, FlatHeads labels) {
    const KeptStreams streams(keys, first_sentence, batch);
    std::atomic<bool> bad = false;
    for_each_sentence(
        batch, threads, [] { return std::tuple<LabelTable<float>, LabelTable<double>>(); },
        [&]<class T>(auto& scratch, const Sentence<T>& sentence, const Place& place, std::size_t i, StopSignal& stop) {
            auto& table = std::get<LabelTable<T>>(scratch);
            table.start(sentence);
            for (std::int64_t tree = 0; tree < k; ++tree) {
                if (tree % 256 == 0) stop.check();
                const Heads* const row = heads.data() + tree * batch.row_size + place.row;
                Heads* const label_row = labels.data() + tree * batch.row_size + place.row;
                const bool drawn = sentence.words > 0 && row[1] != no_head;
                if (drawn)
                    draw_labels(table, sentence.words, row,
                                streams[i].tree(static_cast<std::uint64_t>(tree) | label_stream), label_row);
                std::fill(label_row + (drawn ? sentence.words + 1 : 0), label_row + place.width, no_head);
            }
            if (table.bad()) bad = true;
        });
    return bad ? bad_scores : 0;
}

/// Draws up to k different trees for each sentence, in the layout of `sample`; log_probs and keys are k rows of one
/// number per sentence, -inf where there is no tree left. threshold and log_left have one number per sentence: the key
/// of the tree after the last, -inf if there is none, and the log of the mass of all trees not drawn.
struct DistinctRows {
    TreeRows trees;  // scores are log-probabilities
    Flat64 keys, threshold, log_left;
};

/// Whether what was read had a bad score in it; who does not say has left that to others.
template <class Distinct>
bool is_bad(const Distinct& trees) {
    if constexpr (requires { trees.bad(); })
        return trees.bad();
    else
        return false;
}

template <template <class> class Distinct>
std::int64_t write_distinct(const Batch& batch, Root root, DistinctMethod method, std::int64_t k,
                            const KeptStreams& streams, int threads, const DistinctRows& rows) {
    const auto count = static_cast<std::int64_t>(batch.size());
    std::atomic<std::int64_t> infeasible = 0;
    std::atomic<bool> bad = false;
    for_each_sentence(
        batch, threads, [] { return std::tuple<Distinct<float>, Distinct<double>>(); },
        [&]<class T>(auto& scratch, const Sentence<T>& sentence, const Place& place, std::size_t i, StopSignal& stop) {
            auto& trees = std::get<Distinct<T>>(scratch);
            const Feasibility feasible = trees.start(sentence, root, method, k, streams[i], stop);
            rows.trees.note(i, feasible, infeasible);
            for (std::int64_t rank = 0; rank < k; ++rank) {
                stop.check();
                std::optional<DistinctTree> tree;
                if (feasible)
                    tree = trees.next(rows.trees.head_row(batch, place, rank), rows.trees.label_row(batch, place, rank),
                                      stop);
                const std::optional<double> log_prob = tree ? std::optional(tree->log_probability) : std::nullopt;
                rows.trees.finish(batch, place, i, sentence.words, rank, log_prob);
                rows.keys.data()[rank * count + static_cast<std::int64_t>(i)] =
                    tree ? tree->key : minus_infinity<double>;
            }
            rows.log_left.data()[i] = feasible ? trees.log_left() : minus_infinity<double>;
            rows.threshold.data()[i] = feasible ? trees.next_key() : minus_infinity<double>;
            if (is_bad(trees)) bad = true;
        });
    return bad ? bad_scores : infeasible.load();
}

std::int64_t sample_distinct(const Batch& batch, Root root, bool projective, DistinctMethod method, std::int64_t k,
                             const Keys& keys, std::uint64_t first_sentence, int threads, FlatHeads heads,
                             Labels labels, Flat64 log_probs, Flat64 gumbel_keys, Flat64 threshold, Flat64 log_left,
                             FlatHeads unattachable) {
    const DistinctRows rows{{heads, labels, log_probs, unattachable}, gumbel_keys, threshold, log_left};
    const KeptStreams streams(keys, first_sentence, batch);
    return projective ? write_distinct<DistinctProjectiveTrees>(batch, root, method, k, streams, threads, rows)
                      : write_distinct<DistinctTrees>(batch, root, method, k, streams, threads, rows);
}

/// One sentence's trees until none is left.
class DistinctStream {
public:
    virtual ~DistinctStream() = default;
    virtual std::optional<DistinctTree> next(Heads* heads, Heads* labels, StopSignal& stop) = 0;
    virtual bool bad() const = 0;
};

template <class Distinct>
class DistinctStreamOf final : public DistinctStream {
public:
    template <class T>
    DistinctStreamOf(const Sentence<T>& sentence, Root root, const SentenceStreams& streams, StopSignal& stop) {
        feasible_ = static_cast<bool>(trees_.start(sentence, root, DistinctMethod::automatic, 0, streams, stop));
    }
    std::optional<DistinctTree> next(Heads* heads, Heads* labels, StopSignal& stop) override {
        return feasible_ ? trees_.next(heads, labels, stop) : std::nullopt;
    }
    bool bad() const override { return is_bad(trees_); }

private:
    Distinct trees_;
    bool feasible_ = false;
};

std::unique_ptr<DistinctStream> iter_distinct(const Batch& batch, std::size_t index, Root root, bool projective,
                                              const Keys& keys, std::uint64_t first_sentence) {
    const KeptStreams kept_streams(keys, first_sentence, batch);
    StopSignal stop = python_stop_signal();
    std::unique_ptr<DistinctStream> stream;
    try {
        const nb::gil_scoped_release released;
        std::visit(
            [&]<class T>(const std::vector<Sentence<T>>& sentences) {
                const Sentence<T>& sentence = sentences.at(index);
                const SentenceStreams streams = kept_streams[0];
                if (projective)
                    stream =
                        std::make_unique<DistinctStreamOf<DistinctProjectiveTrees<T>>>(sentence, root, streams, stop);
                else
                    stream = std::make_unique<DistinctStreamOf<DistinctTrees<T>>>(sentence, root, streams, stop);
            },
            batch.sentences);
    } catch (const Stopped&) {
    }
    raise_if_stopped(stop);
    return stream;
}

std::optional<std::tuple<double, double>> next_distinct(DistinctStream& stream, FlatHeads heads, Labels labels) {
    StopSignal stop = python_stop_signal();
    std::optional<DistinctTree> tree;
    try {
        const nb::gil_scoped_release released;
        tree = stream.next(heads.data(), labels ? labels->data() : nullptr, stop);
    } catch (const Stopped&) {
    }
    raise_if_stopped(stop);
    if (!tree) return std::nullopt;
    return std::tuple(tree->log_probability, tree->key);
}

/// The log-probability of one tree per sentence as the product of its words' conditional distributions, in word order;
/// nothing else is used of the solve.
void conditional_log_probs(const Batch& batch, Root root, const FlatHeads& heads, Flat64 log_probs) {
    for_each_sentence(
        batch, 1, [] { return std::tuple<RandomTrees, Conditionals<double>, Conditionals<Extended>>(); },
        [&]<class T>(auto& scratch, const Sentence<T>& sentence, const Place& place, std::size_t i, StopSignal& stop) {
            auto& [trees, plain, extended] = scratch;
            const Heads* const row = heads.data() + place.row;
            const auto run = [&](auto& conditionals, const auto& weights) {
                conditionals.start(weights);
                log_probs(i) = 0.0;
                for (int word = 0; word < sentence.words; ++word) {
                    std::remove_cvref_t<decltype(weights(0, 0))> total;
                    const auto* shares = conditionals(word, total);
                    log_probs(i) += log_of(shares[row[word + 1]] / total);
                    conditionals.decide(word, static_cast<int>(row[word + 1]));
                }
                return !conditionals.left_range();
            };
            log_probs(i) = 0.0;
            if (sentence.words == 0) return;
            trees.start(sentence, root, SamplingMethod::ancestral, stop);
            WalkSetup& setup = trees.setup();
            if (!setup.in_doubles() || !run(plain, setup.weights<double>())) run(extended, setup.weights<Extended>());
        });
}

}  // namespace

void bind_sampling(nb::module_& module) {
    using namespace spantree::sampling;
    nb::enum_<SamplingMethod>(module, "SamplingMethod")
        .value("automatic", SamplingMethod::automatic)
        .value("wilson_marginal", SamplingMethod::wilson_marginal)
        .value("wilson_reject", SamplingMethod::wilson_reject)
        .value("ancestral", SamplingMethod::ancestral);
    module.def("sample", &sample, nb::arg("batch"), nb::arg("root"), nb::arg("method"), nb::arg("k"), nb::arg("keys"),
               nb::arg("first_sentence"), nb::arg("budget"), nb::arg("threads"), nb::arg("heads"),
               nb::arg("labels").none(), nb::arg("fell_back").none(), nb::arg("unattachable"));
    module.def("sample_labels", &sample_labels, nb::arg("batch"), nb::arg("k"), nb::arg("keys"),
               nb::arg("first_sentence"), nb::arg("threads"), nb::arg("heads"), nb::arg("labels"));
    nb::enum_<DistinctMethod>(module, "DistinctMethod")
        .value("automatic", DistinctMethod::automatic)
        .value("trie", DistinctMethod::trie)
        .value("beam", DistinctMethod::beam);
    nb::class_<DistinctStream>(module, "DistinctStream")
        .def("next", &next_distinct, nb::arg("heads"), nb::arg("labels").none())
        .def("bad", &DistinctStream::bad);
    module.def("sample_distinct", &sample_distinct, nb::arg("batch"), nb::arg("root"), nb::arg("projective"),
               nb::arg("method"), nb::arg("k"), nb::arg("keys"), nb::arg("first_sentence"), nb::arg("threads"),
               nb::arg("heads"), nb::arg("labels").none(), nb::arg("log_probs"), nb::arg("gumbel_keys"),
               nb::arg("threshold"), nb::arg("log_left"), nb::arg("unattachable"));
    module.def("iter_distinct", &iter_distinct, nb::arg("batch"), nb::arg("index"), nb::arg("root"),
               nb::arg("projective"), nb::arg("keys"), nb::arg("first_sentence"), nb::keep_alive<0, 1>());
    module.def("conditional_log_probs", &conditional_log_probs, nb::arg("batch"), nb::arg("root"), nb::arg("heads"),
               nb::arg("log_probs"));
}

}  // namespace spantree::bindings
