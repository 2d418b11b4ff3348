#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "arbora/labels.hpp"
#include "arbora/projective/eisner.hpp"
#include "arbora/projective/kbest.hpp"
#include "arbora/tree.hpp"
#include "batch.hpp"

namespace arbora::bindings {

namespace {

using LabelRows = std::optional<FlatHeads>;

std::int64_t count_infeasible(const FlatHeads& unattachable) {
    return std::count_if(unattachable.data(), unattachable.data() + unattachable.size(), [](Heads word) { return word != 0; });
}

template <class T>
struct Decoder {
    projective::BestProjectiveTree best_tree;
    std::vector<T> arcs;

    /// Returns the tree's score; -inf if there is none.
    double operator()(const Sentence<T>& sentence, Root root, Heads* heads, Heads* labels, Feasibility& feasible, StopSignal& stop) {
        const Sentence<T> plain = sentence.labels ? best_labels(sentence, arcs) : sentence;
        feasible = best_tree(plain, root, heads, stop);
        if (!feasible) return minus_infinity<double>;
        if (sentence.labels) label_tree(sentence, heads, labels);
        return tree_score(plain, heads);
    }
};

/// Writes the best projective trees, their labels (labelled batches only), their scores, and for every sentence a word that
/// cannot be attached (0: a tree exists). Returns how many sentences have no tree.
std::int64_t argmax(const Batch& batch, Root root, int threads, FlatHeads heads, LabelRows labels, Flat64 scores,
                    FlatHeads unattachable) {
    for_each_sentence(
        batch, threads, [] { return std::tuple<Decoder<float>, Decoder<double>>(); },
        [&]<class T>(auto& scratch, const Sentence<T>& sentence, const Place& place, std::size_t i, StopSignal& stop) {
            Heads* row = heads.data() + place.row;
            Heads* label_row = labels ? labels->data() + place.row : nullptr;
            Feasibility feasible;
            scores(i) = std::get<Decoder<T>>(scratch)(sentence, root, row, label_row, feasible, stop);
            unattachable(i) = feasible.unattachable;
            const int written = feasible ? sentence.words + 1 : 0;
            std::fill(row + written, row + place.width, no_head);
            if (label_row) std::fill(label_row + written, label_row + place.width, no_head);
        });
    return count_infeasible(unattachable);
}

/// The same for the k best trees: heads and labels are k arrays one after the other, scores k rows of one number per sentence.
std::int64_t topk(const Batch& batch, Root root, std::int64_t k, int threads, FlatHeads heads, LabelRows labels, Flat64 scores,
                  FlatHeads unattachable) {
    const auto count = static_cast<std::int64_t>(batch.size());
    for_each_sentence(
        batch, threads, [] { return nullptr; },
        [&]<class T>(auto&, const Sentence<T>& sentence, const Place& place, std::size_t i, StopSignal& stop) {
            const std::unique_ptr<TreeStream> stream = projective::best_projective_trees(sentence, root, stop);
            unattachable(i) = stream->feasibility().unattachable;
            for (std::int64_t rank = 0; rank < k; ++rank) {
                stop.check();
                Heads* row = heads.data() + rank * batch.row_size + place.row;
                Heads* label_row = labels ? labels->data() + rank * batch.row_size + place.row : nullptr;
                const std::optional<double> score = stream->next(row, label_row);
                const int written = score ? sentence.words + 1 : 0;
                std::fill(row + written, row + place.width, no_head);
                if (label_row) std::fill(label_row + written, label_row + place.width, no_head);
                scores(rank * count + static_cast<std::int64_t>(i)) = score.value_or(minus_infinity<double>);
            }
        });
    return count_infeasible(unattachable);
}

std::unique_ptr<TreeStream> iter_best(const Batch& batch, std::size_t index, Root root) {
    StopSignal stop = python_stop_signal();
    std::unique_ptr<TreeStream> stream;
    try {
        const nb::gil_scoped_release released;
        stream = std::visit(
            [&](const auto& sentences) { return projective::best_projective_trees(sentences.at(index), root, stop); },
            batch.sentences);
    } catch (const Stopped&) {
    }
    raise_if_stopped(stop);
    return stream;
}

}  // namespace

void bind_projective(nb::module_& module) {
    module.def("projective_argmax", &argmax, nb::arg("batch"), nb::arg("root"), nb::arg("threads"), nb::arg("heads"),
               nb::arg("labels").none(), nb::arg("scores"), nb::arg("unattachable"));
    module.def("projective_topk", &topk, nb::arg("batch"), nb::arg("root"), nb::arg("k"), nb::arg("threads"), nb::arg("heads"),
               nb::arg("labels").none(), nb::arg("scores"), nb::arg("unattachable"));
    module.def("projective_iter_best", &iter_best, nb::arg("batch"), nb::arg("index"), nb::arg("root"), nb::keep_alive<0, 1>());
}

}  // namespace arbora::bindings
