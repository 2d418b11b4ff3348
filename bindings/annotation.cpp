#include <nanobind/stl/optional.h>

#include <algorithm>

#include "batch.hpp"

namespace spantree::bindings {

namespace {

using Scores = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
/// Any integers, to be looked at: int32 or int64.
using Candidates = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Statuses = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using InTheTypeOfScores = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;

IntType int_type_of(const std::optional<Candidates>& numbers) {
    if (numbers && numbers->dtype() == nb::dtype<std::int32_t>()) return IntType::i32;
    if (numbers && numbers->dtype() != nb::dtype<std::int64_t>())
        throw std::invalid_argument("candidates must be int32 or int64");
    return IntType::i64;
}

/// Sentence i has nodes[i] rows and begins at scores[starts[i]]; or there are no starts, but cuts, heads and labels of
/// candidates. All places are as large as spantree.hpp says: `annotate`.
void annotate(const Scores& scores, std::optional<Integers> starts, const Integers& nodes, int labels, bool dep_major,
              std::optional<Integers> cuts, std::optional<Candidates> edge_heads, std::optional<Candidates> edge_labels,
              Root root, bool projective, int threads, double temperature, bool mbr, bool confidence, std::int64_t k,
              FlatHeads heads, std::optional<FlatHeads> tree_labels, std::optional<InTheTypeOfScores> head_probs,
              std::optional<InTheTypeOfScores> log_odds, std::optional<Flat64> log_prob, std::optional<Flat64> entropy,
              std::optional<FlatHeads> best_heads, std::optional<FlatHeads> best_labels,
              std::optional<Flat64> best_log_probs, Statuses status) {
    const bool floats = scores.dtype() == nb::dtype<float>();
    if (!floats && scores.dtype() != nb::dtype<double>())
        throw std::invalid_argument("scores must be float32 or float64");
    if (status.size() != nodes.size() || (starts && starts->size() != nodes.size()))
        throw std::invalid_argument("starts, nodes and status of the same sentences");
    std::size_t words = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i)
        words += static_cast<std::size_t>(std::max<std::int64_t>(nodes(i) - 1, 0));
    const auto fits = [&](const auto& candidates) { return !candidates || candidates->size() == scores.size(); };
    if ((cuts && cuts->size() != words + 1) || !fits(edge_heads) || !fits(edge_labels))
        throw std::invalid_argument("cuts of all words, heads and labels of all candidates");
    const FlatScoresView view{scores.data(),
                              floats ? DType::f32 : DType::f64,
                              static_cast<std::int64_t>(scores.size()),
                              static_cast<std::int64_t>(nodes.size()),
                              data_of(starts),
                              nodes.data(),
                              labels,
                              dep_major,
                              data_of(cuts),
                              data_of(edge_heads),
                              data_of(edge_labels),
                              int_type_of(edge_heads),
                              int_type_of(edge_labels)};
    const AnnotationsOut out{heads.data(),        data_of(tree_labels), data_of(head_probs),
                             data_of(log_odds),   data_of(log_prob),    data_of(entropy),
                             data_of(best_heads), data_of(best_labels), data_of(best_log_probs)};
    call({root, projective, threads, {}}, [&](const Options& options) {
        spantree::annotate(view, options, {temperature, mbr, confidence, k}, out, {status.data()});
    });
}

}  // namespace

void bind_annotation(nb::module_& module) {
    module.def("annotate", &annotate, nb::arg("scores"), nb::arg("starts").none(), nb::arg("nodes"), nb::arg("labels"),
               nb::arg("dep_major"), nb::arg("cuts").none(), nb::arg("edge_heads").none(),
               nb::arg("edge_labels").none(), nb::arg("root"), nb::arg("projective"), nb::arg("threads"),
               nb::arg("temperature"), nb::arg("mbr"), nb::arg("confidence"), nb::arg("k"), nb::arg("heads"),
               nb::arg("tree_labels").none(), nb::arg("head_probs").none(), nb::arg("log_odds").none(),
               nb::arg("log_prob").none(), nb::arg("entropy").none(), nb::arg("best_heads").none(),
               nb::arg("best_labels").none(), nb::arg("best_log_probs").none(), nb::arg("status"));
}

}  // namespace spantree::bindings
