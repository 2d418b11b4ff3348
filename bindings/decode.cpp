#include <nanobind/stl/vector.h>

#include <algorithm>

#include "arbora/decode/best_tree.hpp"
#include "arbora/tree.hpp"
#include "batch.hpp"

namespace arbora::bindings {

namespace {

/// Below this many scores in a batch, starting a thread costs more than it saves.
constexpr std::ptrdiff_t worth_a_thread = 1 << 16;

void fill_row(Heads* row, const Place& place, Heads value) { std::fill_n(row, place.width, value); }

/// Writes best trees, their scores, and for every sentence the word that cannot be attached (0: a tree exists).
/// Returns how many sentences have no tree.
std::int64_t argmax(const Batch& batch, Root root, int threads, FlatHeads heads, Flat64 scores, FlatHeads unattachable) {
    if (batch.edge_size < worth_a_thread) threads = 1;
    for_each_sentence(
        batch, threads, [] { return std::tuple<BestTree<float>, BestTree<double>>(); },
        [&]<class T>(auto& scratch, const Sentence<T>& sentence, const Place& place, std::size_t i, StopSignal&) {
            Heads* row = heads.data() + place.row;
            std::fill(row + sentence.words + 1, row + place.width, no_head);
            const Feasibility feasible = std::get<BestTree<T>>(scratch)(sentence, root, row);
            if (!feasible) fill_row(row, place, no_head);
            scores(i) = feasible ? tree_score(sentence, row) : minus_infinity<double>;
            unattachable(i) = feasible.unattachable;
        });
    return std::count_if(unattachable.data(), unattachable.data() + batch.size(), [](auto word) { return word != 0; });
}

}  // namespace

void bind_decode(nb::module_& module) {
    nb::enum_<Root>(module, "Root").value("single", Root::single).value("multi", Root::multi);
    module.def("argmax", &argmax, nb::arg("batch"), nb::arg("root"), nb::arg("threads"), nb::arg("heads"), nb::arg("scores"),
               nb::arg("unattachable"));
}

}  // namespace arbora::bindings
