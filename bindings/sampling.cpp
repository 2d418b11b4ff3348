#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <tuple>

#include "batch.hpp"

namespace spantree::bindings {

namespace {

using namespace spantree::sampling;
using library::DistinctTreesOf;
using library::Seeds;
using library::Solved;

using Labels = std::optional<FlatHeads>;

Seeds seeds_of(const Keys& keys, std::uint64_t first_sentence, const FlatBatch& batch) {
    const std::size_t count = keys.shape(0);
    if (count != 1 && count != batch.places.size()) throw std::invalid_argument("one key, or one a sentence");
    return Seeds(keys.data(), count, count != 1, first_sentence);
}

/// Draws k trees for each sentence: k arrays of heads, and of labels, one after the other (-1 where there is no tree).
std::optional<Words> sample(const FlatBatch& batch, Root root, bool projective, SamplingMethod method, std::int64_t k,
                            const Keys& keys, std::uint64_t first_sentence, std::int64_t budget, int threads,
                            FlatHeads heads, Labels labels, std::optional<FlatHeads> fell_back, const Solved* solved,
                            std::int64_t first_tree) {
    const Seeds seeds = seeds_of(keys, first_sentence, batch);
    return unattachable(call({root, projective, threads, {}}, [&](const Options& options) {
        return library::sample(batch.batch, options, {k, first_tree, method, budget, data_of(fell_back)}, seeds,
                               batch.trees(heads.data(), data_of(labels)), solved);
    }));
}

/// Draws up to k different trees for each sentence, likewise; log_probs and gumbel_keys are k rows of one number per sentence.
std::optional<Words> sample_distinct(const FlatBatch& batch, Root root, bool projective, DistinctMethod method,
                                     std::int64_t k, const Keys& keys, std::uint64_t first_sentence, int threads,
                                     FlatHeads heads, Labels labels, Flat64 log_probs, Flat64 gumbel_keys,
                                     Flat64 threshold, Flat64 log_left, const Solved* solved) {
    const Seeds seeds = seeds_of(keys, first_sentence, batch);
    return unattachable(call({root, projective, threads, {}}, [&](const Options& options) {
        return library::sample_without_replacement(
            batch.batch, options, method, k, seeds, batch.trees(heads.data(), data_of(labels)),
            {log_probs.data(), gumbel_keys.data(), threshold.data(), log_left.data()}, solved);
    }));
}

std::unique_ptr<DistinctTreesOf> iter_distinct(const FlatBatch& batch, std::size_t index, Root root, bool projective,
                                               const Keys& keys, std::uint64_t first_sentence, const Solved* solved) {
    const Seeds seeds = seeds_of(keys, first_sentence, batch);
    return call({root, projective, 1, {}}, [&](const Options& options) {
        return DistinctTreesOf::sentence(batch.batch, index, options, seeds[index], solved);
    });
}

std::optional<std::tuple<double, double>> next_distinct(DistinctTreesOf& trees, FlatHeads heads, Labels labels) {
    const std::optional<DistinctTree> tree =
        call({}, [&](const Options& options) { return trees.next(heads.data(), data_of(labels), options); });
    if (!tree) return std::nullopt;
    return std::tuple(tree->log_probability, tree->key);
}

void conditional_log_probs(const FlatBatch& batch, Root root, const FlatHeads& heads, Flat64 log_probs) {
    const Heads* const rows = heads.data();
    call({root, false, 1, {}}, [&](const Options& options) {
        library::conditional_log_probs(batch.batch, options, batch.trees(rows, nullptr), log_probs.data());
    });
}

}  // namespace

void bind_sampling(nb::module_& module) {
    nb::enum_<SamplingMethod>(module, "SamplingMethod")
        .value("automatic", SamplingMethod::automatic)
        .value("wilson_marginal", SamplingMethod::wilson_marginal)
        .value("wilson_reject", SamplingMethod::wilson_reject)
        .value("ancestral", SamplingMethod::ancestral);
    module.def("sample", &sample, nb::arg("batch"), nb::arg("root"), nb::arg("projective"), nb::arg("method"),
               nb::arg("k"), nb::arg("keys"), nb::arg("first_sentence"), nb::arg("budget"), nb::arg("threads"),
               nb::arg("heads"), nb::arg("labels").none(), nb::arg("fell_back").none(), nb::arg("solved").none(),
               nb::arg("first_tree") = 0);
    nb::enum_<DistinctMethod>(module, "DistinctMethod")
        .value("automatic", DistinctMethod::automatic)
        .value("trie", DistinctMethod::trie)
        .value("beam", DistinctMethod::beam);
    nb::class_<DistinctTreesOf>(module, "DistinctTrees")
        .def("next", &next_distinct, nb::arg("heads"), nb::arg("labels").none())
        .def("bad", &DistinctTreesOf::bad);
    module.def("sample_distinct", &sample_distinct, nb::arg("batch"), nb::arg("root"), nb::arg("projective"),
               nb::arg("method"), nb::arg("k"), nb::arg("keys"), nb::arg("first_sentence"), nb::arg("threads"),
               nb::arg("heads"), nb::arg("labels").none(), nb::arg("log_probs"), nb::arg("gumbel_keys"),
               nb::arg("threshold"), nb::arg("log_left"), nb::arg("solved").none());
    module.def("iter_distinct", &iter_distinct, nb::arg("batch"), nb::arg("index"), nb::arg("root"),
               nb::arg("projective"), nb::arg("keys"), nb::arg("first_sentence"), nb::arg("solved").none(),
               nb::keep_alive<0, 1>(), nb::keep_alive<0, 7>());
    module.def("conditional_log_probs", &conditional_log_probs, nb::arg("batch"), nb::arg("root"), nb::arg("heads"),
               nb::arg("log_probs"));
    module.def("philox", &philox, nb::arg("counter"), nb::arg("key"));
}

}  // namespace spantree::bindings
