#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "arbora/labels.hpp"
#include "arbora/projective/covariance.hpp"
#include "arbora/projective/eisner.hpp"
#include "arbora/projective/inference.hpp"
#include "arbora/projective/kbest.hpp"
#include "arbora/projective/sample.hpp"
#include "arbora/random.hpp"
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

void require_unlabelled(const Batch& batch) {
    if (batch.labels > 0) throw std::invalid_argument("labels must be summed out first");
}

/// Where the number of an edge stands in a flat array.
std::ptrdiff_t edge_index(const Batch& batch, const Place& place, int head, int dep) {
    const std::ptrdiff_t row = batch.dep_major ? dep : head, column = batch.dep_major ? head : dep;
    return place.edges + row * place.width + column;
}

void clear_edges(double* flat, const Place& place) {
    std::fill_n(flat + place.edges, static_cast<std::ptrdiff_t>(place.width) * place.width, 0.0);
}

void write_edges(projective::EdgeValues& values, const Batch& batch, const Place& place, double* flat) {
    values.for_each([&](double value, int head, int dep) { flat[edge_index(batch, place, head, dep)] = value; });
}

/// Writes log Z (-inf: no tree), and for every sentence a word that cannot be attached. Returns how many sentences have no tree.
std::int64_t log_partition(const Batch& batch, Root root, int threads, Flat64 log_z, FlatHeads unattachable) {
    require_unlabelled(batch);
    for_each_sentence(
        batch, threads, [] { return projective::ProjectiveInference(); },
        [&](auto& infer, const auto& sentence, const Place&, std::size_t i, StopSignal& stop) {
            log_z(i) = sentence.words == 0 ? 0.0 : minus_infinity<double>;
            unattachable(i) = 0;
            if (sentence.words == 0) return;
            const Feasibility feasible =
                infer(sentence, root, stop, [&](const auto& sums) { log_z(i) = infer.log_partition(sums); });
            unattachable(i) = feasible.unattachable;
        });
    return count_infeasible(unattachable);
}

struct MarginalScratch {
    projective::ProjectiveInference infer;
    projective::EdgeValues marginals, values;
    projective::EdgeCovariances covariances;
};

/// The same, and the marginals of all edges (0 where there is no tree, and where there is no edge).
std::int64_t marginals(const Batch& batch, Root root, int threads, Flat64 log_z, Flat64 marginals, FlatHeads unattachable) {
    require_unlabelled(batch);
    for_each_sentence(
        batch, threads, [] { return MarginalScratch(); },
        [&](auto& scratch, const auto& sentence, const Place& place, std::size_t i, StopSignal& stop) {
            clear_edges(marginals.data(), place);
            log_z(i) = sentence.words == 0 ? 0.0 : minus_infinity<double>;
            unattachable(i) = 0;
            if (sentence.words == 0) return;
            const Feasibility feasible = scratch.infer(sentence, root, stop, [&](auto& sums) {
                log_z(i) = scratch.infer.log_partition(sums);
                sums.run_outside(stop);
                sums.find_marginals(scratch.marginals);
                write_edges(scratch.marginals, batch, place, marginals.data());
            });
            unattachable(i) = feasible.unattachable;
        });
    return count_infeasible(unattachable);
}

/// For each of `directions` arrays r, one after the other: the covariance of every edge with the sum of r over the tree, that is the
/// gradient of sum(r * marginals) with respect to the scores (0 where there is no tree).
void vjp(const Batch& batch, Root root, int threads, std::int64_t directions, Flat64 upstream, Flat64 gradient) {
    require_unlabelled(batch);
    for_each_sentence(
        batch, threads, [] { return MarginalScratch(); },
        [&](auto& scratch, const auto& sentence, const Place& place, std::size_t, StopSignal& stop) {
            for (std::int64_t at = 0; at < directions; ++at) clear_edges(gradient.data() + at * batch.edge_size, place);
            if (sentence.words == 0) return;
            scratch.infer(sentence, root, stop, [&](auto& sums) {
                sums.run_outside(stop);
                sums.find_marginals(scratch.marginals);
                for (std::int64_t at = 0; at < directions; ++at) {
                    const double* r = upstream.data() + at * batch.edge_size;
                    scratch.values.resize(sentence.words, root);
                    scratch.values.for_each(
                        [&](double& value, int head, int dep) { value = r[edge_index(batch, place, head, dep)]; });
                    scratch.covariances(sums, scratch.marginals, scratch.values, stop);
                    write_edges(scratch.values, batch, place, gradient.data() + at * batch.edge_size);
                }
            });
        });
}

/// Draws k trees for each sentence: k arrays of heads one after the other (-1 where there is no tree). Tree t of sentence i depends on
/// the key, on first_sentence + i and on t only.
std::int64_t sample(const Batch& batch, Root root, std::int64_t k, const Key& key, std::uint64_t first_sentence, int threads,
                    FlatHeads heads, FlatHeads unattachable) {
    require_unlabelled(batch);
    for_each_sentence(
        batch, threads, [] { return std::tuple<projective::ProjectiveInference, projective::TreeSampler>(); },
        [&](auto& scratch, const auto& sentence, const Place& place, std::size_t i, StopSignal& stop) {
            auto& [infer, draw_tree] = scratch;
            const auto row = [&](std::int64_t tree) { return heads.data() + tree * batch.row_size + place.row; };
            for (std::int64_t tree = 0; tree < k; ++tree) std::fill_n(row(tree), place.width, no_head);
            unattachable(i) = 0;
            if (sentence.words == 0) return;
            const Feasibility feasible = infer(sentence, root, stop, [&](const auto& sums) {
                for (std::int64_t tree = 0; tree < k; ++tree) {
                    if (tree % 256 == 0) stop.check();
                    RandomStream random(key, first_sentence + i, static_cast<std::uint64_t>(tree));
                    draw_tree(sums, random, row(tree));
                }
            });
            unattachable(i) = feasible.unattachable;
        });
    return count_infeasible(unattachable);
}

}  // namespace

void bind_projective(nb::module_& module) {
    module.def("projective_argmax", &argmax, nb::arg("batch"), nb::arg("root"), nb::arg("threads"), nb::arg("heads"),
               nb::arg("labels").none(), nb::arg("scores"), nb::arg("unattachable"));
    module.def("projective_topk", &topk, nb::arg("batch"), nb::arg("root"), nb::arg("k"), nb::arg("threads"), nb::arg("heads"),
               nb::arg("labels").none(), nb::arg("scores"), nb::arg("unattachable"));
    module.def("projective_iter_best", &iter_best, nb::arg("batch"), nb::arg("index"), nb::arg("root"), nb::keep_alive<0, 1>());
    module.def("projective_log_partition", &log_partition, nb::arg("batch"), nb::arg("root"), nb::arg("threads"), nb::arg("log_z"),
               nb::arg("unattachable"));
    module.def("projective_marginals", &marginals, nb::arg("batch"), nb::arg("root"), nb::arg("threads"), nb::arg("log_z"),
               nb::arg("marginals"), nb::arg("unattachable"));
    module.def("projective_vjp", &vjp, nb::arg("batch"), nb::arg("root"), nb::arg("threads"), nb::arg("directions"),
               nb::arg("upstream"), nb::arg("gradient"));
    module.def("projective_sample", &sample, nb::arg("batch"), nb::arg("root"), nb::arg("k"), nb::arg("key"),
               nb::arg("first_sentence"), nb::arg("threads"), nb::arg("heads"), nb::arg("unattachable"));
    module.def("philox", &philox, nb::arg("counter"), nb::arg("key"));
}

}  // namespace arbora::bindings
