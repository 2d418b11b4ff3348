#include <algorithm>

#include "arbora/projective/eisner.hpp"
#include "arbora/tree.hpp"
#include "batch.hpp"

namespace arbora::bindings {

namespace {

/// Writes best projective trees, their scores, and for every sentence the word that cannot be attached (0: a tree exists).
/// Returns how many sentences have no tree.
std::int64_t argmax(const Batch& batch, Root root, int threads, FlatHeads heads, Flat64 scores, FlatHeads unattachable) {
    for_each_sentence(
        batch, threads, [] { return projective::BestProjectiveTree(); },
        [&](auto& best_tree, const auto& sentence, const Place& place, std::size_t i, StopSignal& stop) {
            Heads* row = heads.data() + place.row;
            const Feasibility feasible = best_tree(sentence, root, row, stop);
            std::fill(row + (feasible ? sentence.words + 1 : 0), row + place.width, no_head);
            scores(i) = feasible ? tree_score(sentence, row) : minus_infinity<double>;
            unattachable(i) = feasible.unattachable;
        });
    return std::count_if(unattachable.data(), unattachable.data() + batch.size(), [](auto word) { return word != 0; });
}

}  // namespace

void bind_projective(nb::module_& module) {
    module.def("projective_argmax", &argmax, nb::arg("batch"), nb::arg("root"), nb::arg("threads"), nb::arg("heads"),
               nb::arg("scores"), nb::arg("unattachable"));
}

}  // namespace arbora::bindings
