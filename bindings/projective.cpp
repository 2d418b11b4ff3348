#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "batch.hpp"
#include "spantree/batch/labels.hpp"
#include "spantree/chart/covariance.hpp"
#include "spantree/chart/eisner.hpp"
#include "spantree/chart/inference.hpp"
#include "spantree/chart/kbest.hpp"
#include "spantree/chart/sample.hpp"
#include "spantree/decode/survey.hpp"
#include "spantree/sample/random.hpp"
#include "trees.hpp"

namespace spantree::bindings {

namespace {

int worthwhile_threads(const Batch& batch, int threads) {
    return batch.edge_size * batch.max_words < 16 * worth_a_thread ? 1 : threads;
}

template <class T>
struct Decoder {
    projective::BestProjectiveTree best_tree;
    std::vector<T> arcs;
};

/// Writes the best projective trees. Returns how many sentences have none.
std::int64_t argmax(const Batch& batch, Root root, int threads, FlatHeads heads, std::optional<FlatHeads> labels,
                    std::optional<Flat64> scores, std::optional<FlatHeads> unattachable) {
    return write_best_trees(
        batch, worthwhile_threads(batch, threads), {heads, labels, scores, unattachable},
        [] { return std::tuple<Decoder<float>, Decoder<double>>(); },
        [&]<class T>(auto& scratch, const Sentence<T>& sentence, Heads* row, StopSignal& stop) {
            auto& [best_tree, arcs] = std::get<Decoder<T>>(scratch);
            return best_tree(sentence.labels ? best_labels(sentence, arcs) : sentence, largest_magnitude(sentence),
                             root, row, stop);
        });
}

/// Writes the k best projective trees. Returns how many sentences have none.
std::int64_t topk(const Batch& batch, Root root, std::int64_t k, int threads, FlatHeads heads,
                  std::optional<FlatHeads> labels, std::optional<Flat64> scores,
                  std::optional<FlatHeads> unattachable) {
    return write_k_best_trees(batch, k, threads, {heads, labels, scores, unattachable},
                              [&](const auto& sentence, Feasibility& feasible, StopSignal& stop) {
                                  return projective::best_projective_trees(sentence, largest_magnitude(sentence), root,
                                                                           feasible, stop);
                              });
}

/// None if the sentence has no tree.
std::unique_ptr<TreeStream> iter_best(const Batch& batch, std::size_t index, Root root) {
    StopSignal stop = python_stop_signal();
    std::unique_ptr<TreeStream> trees;
    try {
        const nb::gil_scoped_release released;
        std::visit(
            [&]<class T>(const std::vector<Sentence<T>>& sentences) {
                Feasibility feasible;
                const double largest = largest_magnitude(sentences.at(index));
                trees = projective::best_projective_trees(sentences[index], largest, root, feasible, stop);
            },
            batch.sentences);
    } catch (const Stopped&) {
    }
    raise_if_stopped(stop);
    return trees;
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

void read_edges(const double* flat, const Batch& batch, const Place& place, int words, Root root,
                projective::EdgeValues& values) {
    values.resize(words, root);
    values.for_each([&](double& value, int head, int dep) { value = flat[edge_index(batch, place, head, dep)]; });
}

void write_edges(projective::EdgeValues& values, const Batch& batch, const Place& place, double* flat) {
    values.for_each([&](double value, int head, int dep) { flat[edge_index(batch, place, head, dep)] = value; });
}

/// Writes log Z (-inf: no tree), and for every sentence a word that cannot be attached. Returns how many sentences have
/// no tree.
std::int64_t log_partition(const Batch& batch, Root root, int threads, Flat64 log_z, FlatHeads unattachable) {
    require_unlabelled(batch);
    for_each_sentence(
        batch, worthwhile_threads(batch, threads), [] { return projective::ProjectiveInference(); },
        [&](auto& infer, const auto& sentence, const Place&, std::size_t i, StopSignal& stop) {
            log_z(i) = minus_infinity<double>;
            unattachable(i) = infer(sentence, root, stop, [&](const auto& sums) {
                                  log_z(i) = infer.log_partition(sums);
                              }).unattachable;
        });
    return count_infeasible(unattachable);
}

struct MarginalScratch {
    projective::ProjectiveInference infer;
    projective::EdgeValues marginals, values;
    projective::EdgeCovariances covariances;
};

/// The same, the marginals of all edges, and for each of `directions` arrays r, one after the other, the covariance of
/// every edge with the sum of r over the tree: the gradient of sum(r * marginals) with respect to the scores. All 0
/// where there is no tree or no edge.
std::int64_t vjp(const Batch& batch, Root root, int threads, std::int64_t directions, const Flat64& upstream,
                 Flat64 log_z, Flat64 marginals, Flat64 gradients, FlatHeads unattachable) {
    require_unlabelled(batch);
    for_each_sentence(
        batch, worthwhile_threads(batch, threads), [] { return MarginalScratch(); },
        [&](auto& scratch, const auto& sentence, const Place& place, std::size_t i, StopSignal& stop) {
            log_z(i) = minus_infinity<double>;
            clear_edges(marginals.data(), place);
            for (std::int64_t at = 0; at < directions; ++at)
                clear_edges(gradients.data() + at * batch.edge_size, place);
            const Feasibility feasible = scratch.infer(sentence, root, stop, [&](auto& sums) {
                log_z(i) = scratch.infer.log_partition(sums);
                sums.run_outside(stop);
                sums.find_marginals(scratch.marginals);
                write_edges(scratch.marginals, batch, place, marginals.data());
                for (std::int64_t at = 0; at < directions; ++at) {
                    read_edges(upstream.data() + at * batch.edge_size, batch, place, sentence.words, root,
                               scratch.values);
                    scratch.covariances(sums, scratch.marginals, scratch.values, stop);
                    write_edges(scratch.values, batch, place, gradients.data() + at * batch.edge_size);
                }
            });
            unattachable(i) = feasible.unattachable;
        });
    return count_infeasible(unattachable);
}

std::int64_t marginals(const Batch& batch, Root root, int threads, Flat64 log_z, Flat64 marginals,
                       FlatHeads unattachable) {
    return vjp(batch, root, threads, 0, {}, log_z, marginals, {}, unattachable);
}

/// Draws k trees for each sentence: k arrays of heads one after the other (-1 where there is no tree). Tree t of
/// sentence i depends on the key, on first_sentence + i and on t only.
std::int64_t sample(const Batch& batch, Root root, std::int64_t k, const Key& key, std::uint64_t first_sentence,
                    int threads, FlatHeads heads, FlatHeads unattachable) {
    require_unlabelled(batch);
    for_each_sentence(
        batch, threads, [] { return std::tuple<projective::ProjectiveInference, projective::TreeSampler>(); },
        [&](auto& scratch, const auto& sentence, const Place& place, std::size_t i, StopSignal& stop) {
            auto& infer = std::get<0>(scratch);
            auto& draw_tree = std::get<1>(scratch);
            const auto row = [&](std::int64_t tree) { return heads.data() + tree * batch.row_size + place.row; };
            for (std::int64_t tree = 0; tree < k; ++tree) std::fill_n(row(tree), place.width, no_head);
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
               nb::arg("labels").none(), nb::arg("scores").none(), nb::arg("unattachable").none());
    module.def("projective_topk", &topk, nb::arg("batch"), nb::arg("root"), nb::arg("k"), nb::arg("threads"),
               nb::arg("heads"), nb::arg("labels").none(), nb::arg("scores").none(), nb::arg("unattachable").none());
    module.def("projective_iter_best", &iter_best, nb::arg("batch"), nb::arg("index"), nb::arg("root"),
               nb::keep_alive<0, 1>());
    module.def("projective_log_partition", &log_partition, nb::arg("batch"), nb::arg("root"), nb::arg("threads"),
               nb::arg("log_z"), nb::arg("unattachable"));
    module.def("projective_marginals", &marginals, nb::arg("batch"), nb::arg("root"), nb::arg("threads"),
               nb::arg("log_z"), nb::arg("marginals"), nb::arg("unattachable"));
    module.def("projective_vjp", &vjp, nb::arg("batch"), nb::arg("root"), nb::arg("threads"), nb::arg("directions"),
               nb::arg("upstream"), nb::arg("log_z"), nb::arg("marginals"), nb::arg("gradients"),
               nb::arg("unattachable"));
    module.def("projective_sample", &sample, nb::arg("batch"), nb::arg("root"), nb::arg("k"), nb::arg("key"),
               nb::arg("first_sentence"), nb::arg("threads"), nb::arg("heads"), nb::arg("unattachable"));
    module.def("philox", &philox, nb::arg("counter"), nb::arg("key"));
}

}  // namespace spantree::bindings
