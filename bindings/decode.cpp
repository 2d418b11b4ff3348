#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <tuple>

#include "batch.hpp"
#include "spantree/batch/labels.hpp"
#include "spantree/batch/scratch_pool.hpp"
#include "spantree/batch/tree.hpp"
#include "spantree/decode/best_tree.hpp"
#include "spantree/decode/kbest.hpp"
#include "trees.hpp"

namespace spantree::bindings {

namespace {

template <class T>
struct Decoder {
    BestTree<T> best_tree;
    std::vector<T> arcs;

    std::size_t bytes() const { return best_tree.bytes() + arcs.capacity() * sizeof(T); }

    /// Sets `bad` if an unlabelled sentence has a score that is NaN or +inf; there is no tree then.
    Feasibility operator()(const Sentence<T>& sentence, Root root, Heads* heads, std::atomic<bool>& bad) {
        if (!best_tree.read(sentence.labels ? best_labels(sentence, arcs) : sentence).bad)
            return best_tree.write(root, heads);
        bad = true;
        return {1};
    }
};

struct Decoders {
    std::tuple<Decoder<float>, Decoder<double>> of;

    std::size_t bytes() const { return std::get<0>(of).bytes() + std::get<1>(of).bytes(); }
};

ScratchPool<Decoders> decoders;

}  // namespace

std::int64_t write_argmax(const Batch& batch, Root root, int threads, const TreeRows& rows) {
    if (batch.edge_size < worth_a_thread) threads = 1;
    std::atomic<bool> bad = false;
    const std::int64_t infeasible = write_best_trees(
        batch, threads, rows, [] { return decoders.borrow(); },
        [&]<class T>(auto& scratch, const Sentence<T>& sentence, Heads* row, StopSignal&) {
            return std::get<Decoder<T>>((*scratch).of)(sentence, root, row, bad);
        },
        batch.grain());
    return bad ? bad_scores : infeasible;
}

namespace {

std::int64_t argmax(const Batch& batch, Root root, int threads, FlatHeads heads, std::optional<FlatHeads> labels,
                    std::optional<Flat64> scores, std::optional<FlatHeads> unattachable) {
    return write_argmax(batch, root, threads, {heads, labels, scores, unattachable});
}

/// Writes the k best trees. Returns how many sentences have none.
std::int64_t topk(const Batch& batch, Root root, std::int64_t k, int threads, FlatHeads heads,
                  std::optional<FlatHeads> labels, std::optional<Flat64> scores,
                  std::optional<FlatHeads> unattachable) {
    return write_k_best_trees(
        batch, k, threads, {heads, labels, scores, unattachable},
        [&](const auto& sentence, Feasibility& feasible, StopSignal&) { return best_trees(sentence, root, feasible); });
}

/// None if the sentence has no tree.
std::unique_ptr<TreeStream> iter_best(const Batch& batch, std::size_t index, Root root) {
    Feasibility feasible;
    return std::visit(
        [&]<class T>(const std::vector<Sentence<T>>& sentences) {
            return best_trees(sentences.at(index), root, feasible);
        },
        batch.sentences);
}

std::optional<double> next_tree(TreeStream& stream, FlatHeads heads, std::optional<FlatHeads> labels) {
    const nb::gil_scoped_release released;
    return stream.next(heads.data(), labels ? labels->data() : nullptr);
}

/// scores[i] = score of heads row i, -inf where it is no tree (or not projective, if that is asked for).
void score(const Batch& batch, Root root, bool projective, const FlatHeads& heads, std::optional<FlatHeads> labels,
           Flat64 scores) {
    for_each_sentence(
        batch, 1, [] { return std::vector<int>(); },
        [&]<class T>(auto& mark, const Sentence<T>& sentence, const Place& place, std::size_t i, StopSignal&) {
            const Heads* row = heads.data() + place.row;
            const Heads* label_row = labels ? labels->data() + place.row : nullptr;
            const auto valid_label = [&](Heads label) { return label >= 0 && label < sentence.labels; };
            const bool valid = is_tree(row, sentence.words, root, mark) &&
                               (!projective || is_projective(row, sentence.words)) &&
                               (!label_row || std::all_of(label_row + 1, label_row + sentence.words + 1, valid_label));
            scores(i) = !valid      ? minus_infinity<double>
                        : label_row ? tree_score(sentence, row, label_row)
                                    : tree_score(sentence, row);
        });
}

using HeadRows = nb::ndarray<const Heads, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

int words_in_row(const Heads* row, int width) {
    int nodes = width;
    while (nodes > 1 && row[nodes - 1] == no_head) --nodes;  // padding
    return nodes - 1;
}

void are_trees(const HeadRows& heads, Root root, bool projective, Flags result) {
    std::vector<int> mark;
    const int width = static_cast<int>(heads.shape(1));
    for (std::size_t i = 0; i < heads.shape(0); ++i) {
        const Heads* row = heads.data() + i * heads.shape(1);
        const int words = words_in_row(row, width);
        const bool empty = words == 0 && width > 1;  // how a sentence without a tree is marked
        result(i) = !empty && is_tree(row, words, root, mark) && (!projective || is_projective(row, words));
    }
}

}  // namespace

void bind_decode(nb::module_& module) {
    nb::enum_<Root>(module, "Root").value("single", Root::single).value("multi", Root::multi);
    nb::class_<TreeStream>(module, "TreeStream").def("next", &next_tree, nb::arg("heads"), nb::arg("labels").none());
    module.def("argmax", &argmax, nb::arg("batch"), nb::arg("root"), nb::arg("threads"), nb::arg("heads"),
               nb::arg("labels").none(), nb::arg("scores").none(), nb::arg("unattachable").none());
    module.def("topk", &topk, nb::arg("batch"), nb::arg("root"), nb::arg("k"), nb::arg("threads"), nb::arg("heads"),
               nb::arg("labels").none(), nb::arg("scores").none(), nb::arg("unattachable").none());
    module.def("iter_best", &iter_best, nb::arg("batch"), nb::arg("index"), nb::arg("root"), nb::keep_alive<0, 1>());
    module.def("score", &score, nb::arg("batch"), nb::arg("root"), nb::arg("projective"), nb::arg("heads"),
               nb::arg("labels").none(), nb::arg("scores"));
    module.def("are_trees", &are_trees, nb::arg("heads"), nb::arg("root"), nb::arg("projective"), nb::arg("result"));
}

}  // namespace spantree::bindings
