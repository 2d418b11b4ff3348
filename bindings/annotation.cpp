#include <nanobind/stl/optional.h>

#include "batch.hpp"

namespace spantree::bindings {

namespace {

using Scores = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Statuses = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using InTheTypeOfScores = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Sentence i has nodes[i] rows and begins at scores[starts[i]]. The places are as large as spantree.hpp says: `annotate`.
void annotate(const Scores& scores, const Integers& starts, const Integers& nodes, int labels, bool dep_major,
              Root root, bool projective, int threads, double temperature, bool mbr, bool confidence, std::int64_t k,
              FlatHeads heads, std::optional<FlatHeads> tree_labels, std::optional<InTheTypeOfScores> head_probs,
              std::optional<InTheTypeOfScores> log_odds, std::optional<Flat64> log_prob, std::optional<Flat64> entropy,
              std::optional<FlatHeads> best_heads, std::optional<FlatHeads> best_labels,
              std::optional<Flat64> best_log_probs, Statuses status) {
    const bool floats = scores.dtype() == nb::dtype<float>();
    if (!floats && scores.dtype() != nb::dtype<double>())
        throw std::invalid_argument("scores must be float32 or float64");
    if (starts.size() != nodes.size() || status.size() != nodes.size())
        throw std::invalid_argument("starts, nodes and status of the same sentences");
    const FlatScoresView view{scores.data(),
                              floats ? DType::f32 : DType::f64,
                              static_cast<std::int64_t>(scores.size()),
                              static_cast<std::int64_t>(nodes.size()),
                              starts.data(),
                              nodes.data(),
                              labels,
                              dep_major};
    const AnnotationsOut out{heads.data(),        data_of(tree_labels), data_of(head_probs),
                             data_of(log_odds),   data_of(log_prob),    data_of(entropy),
                             data_of(best_heads), data_of(best_labels), data_of(best_log_probs)};
    call({root, projective, threads, {}}, [&](const Options& options) {
        spantree::annotate(view, options, {temperature, mbr, confidence, k}, out, {status.data()});
    });
}

}  // namespace

void bind_annotation(nb::module_& module) {
    module.def("annotate", &annotate, nb::arg("scores"), nb::arg("starts"), nb::arg("nodes"), nb::arg("labels"),
               nb::arg("dep_major"), nb::arg("root"), nb::arg("projective"), nb::arg("threads"), nb::arg("temperature"),
               nb::arg("mbr"), nb::arg("confidence"), nb::arg("k"), nb::arg("heads"), nb::arg("tree_labels").none(),
               nb::arg("head_probs").none(), nb::arg("log_odds").none(), nb::arg("log_prob").none(),
               nb::arg("entropy").none(), nb::arg("best_heads").none(), nb::arg("best_labels").none(),
               nb::arg("best_log_probs").none(), nb::arg("status"));
}

}  // namespace spantree::bindings
