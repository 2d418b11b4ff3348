#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include "batch.hpp"

namespace spantree::bindings {

namespace {

using library::BestTrees;

using Flags = nb::ndarray<bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::optional<Words> argmax(const FlatBatch& batch, Root root, bool projective, int threads, FlatHeads heads,
                            std::optional<FlatHeads> labels, std::optional<Flat64> scores) {
    return unattachable(call({root, projective, threads, {}}, [&](const Options& options) {
        return library::argmax(batch.batch, options, batch.trees(heads.data(), data_of(labels)), data_of(scores));
    }));
}

std::optional<Words> topk(const FlatBatch& batch, Root root, bool projective, std::int64_t k, int threads,
                          FlatHeads heads, std::optional<FlatHeads> labels, Flat64 scores) {
    return unattachable(call({root, projective, threads, {}}, [&](const Options& options) {
        return library::topk(batch.batch, options, k, batch.trees(heads.data(), data_of(labels)), scores.data());
    }));
}

/// None if the sentence has no tree.
std::unique_ptr<BestTrees> iter_best(const FlatBatch& batch, std::size_t index, Root root, bool projective) {
    return call({root, projective, 1, {}},
                [&](const Options& options) { return BestTrees::of(batch.batch, index, options); });
}

std::optional<double> next_tree(BestTrees& trees, FlatHeads heads, std::optional<FlatHeads> labels) {
    return call({}, [&](const Options& options) { return trees.next(heads.data(), data_of(labels), options); });
}

void score(const FlatBatch& batch, Root root, bool projective, int threads, const HeadsIn& heads,
           const std::optional<HeadsIn>& labels, const std::optional<HeadsIn>& than,
           const std::optional<HeadsIn>& than_labels, Matrix64 scores, MatrixOfFlags allowed) {
    const library::TreesIn other = batch.trees(data_of(than), data_of(than_labels));
    call({root, projective, threads, {}}, [&](const Options& options) {
        library::score(batch.batch, options, static_cast<std::int64_t>(heads.shape(0)),
                       batch.trees(heads.data(), data_of(labels)), than ? &other : nullptr, scores.data(),
                       allowed.data());
    });
}

void are_trees(const HeadsIn& heads, Root root, bool projective, Flags result) {
    call({root, projective, 1, {}}, [&](const Options& options) {
        library::are_trees(heads.data(), heads.shape(0), static_cast<int>(heads.shape(1)), options, result.data());
    });
}

}  // namespace

void bind_decode(nb::module_& module) {
    nb::class_<BestTrees>(module, "BestTrees").def("next", &next_tree, nb::arg("heads"), nb::arg("labels").none());
    module.def("argmax", &argmax, nb::arg("batch"), nb::arg("root"), nb::arg("projective"), nb::arg("threads"),
               nb::arg("heads"), nb::arg("labels").none(), nb::arg("scores").none());
    module.def("topk", &topk, nb::arg("batch"), nb::arg("root"), nb::arg("projective"), nb::arg("k"),
               nb::arg("threads"), nb::arg("heads"), nb::arg("labels").none(), nb::arg("scores"));
    module.def("iter_best", &iter_best, nb::arg("batch"), nb::arg("index"), nb::arg("root"), nb::arg("projective"),
               nb::keep_alive<0, 1>());
    module.def("score", &score, nb::arg("batch"), nb::arg("root"), nb::arg("projective"), nb::arg("threads"),
               nb::arg("heads"), nb::arg("labels").none(), nb::arg("than").none(), nb::arg("than_labels").none(),
               nb::arg("scores"), nb::arg("allowed"));
    module.def("are_trees", &are_trees, nb::arg("heads"), nb::arg("root"), nb::arg("projective"), nb::arg("result"));
}

}  // namespace spantree::bindings
