#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <array>
#include <cstring>
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

    Heads operator()(const Sentence<T>& sentence, Root root, Heads* heads) {
        if (best_tree.read(sentence.labels ? best_labels(sentence, arcs) : sentence).bad) return bad_scores;
        return best_tree.write(root, heads).unattachable;
    }
};

struct Decoders {
    std::tuple<Decoder<float>, Decoder<double>> of;

    std::size_t bytes() const { return std::get<0>(of).bytes() + std::get<1>(of).bytes(); }
};

using Matrix64 = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using MatrixOfFlags = nb::ndarray<bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

ScratchPool<Decoders> decoders;

}  // namespace

std::optional<Words> write_argmax(const Batch& batch, Root root, int threads, const TreeRows& rows) {
    if (batch.edge_size < worth_a_thread) threads = 1;
    return write_best_trees(
        batch, threads, rows, [] { return decoders.borrow(); },
        [&]<class T>(auto& scratch, const Sentence<T>& sentence, Heads* row, StopSignal&) {
            return std::get<Decoder<T>>((*scratch).of)(sentence, root, row);
        },
        batch.grain());
}

namespace {

std::optional<Words> argmax(const Batch& batch, Root root, int threads, FlatHeads heads,
                            std::optional<FlatHeads> labels, std::optional<Flat64> scores) {
    return write_argmax(batch, root, threads, {heads, labels, scores, {}});
}

/// Writes the k best trees. Returns null if all sentences have one.
std::optional<Words> topk(const Batch& batch, Root root, std::int64_t k, int threads, FlatHeads heads,
                          std::optional<FlatHeads> labels, std::optional<Flat64> scores) {
    return write_k_best_trees(
        batch, k, threads, {heads, labels, scores, {}},
        [&](const auto& sentence, Feasibility& feasible, StopSignal&) { return best_trees(sentence, root, feasible); });
}

/// None if the sentence has no tree.
std::unique_ptr<TreeStream> iter_best(const Batch& batch, std::size_t index, Root root) {
    const nb::gil_scoped_release released;
    return std::visit(
        [&](const auto& sentences) {
            Feasibility feasible;
            return best_trees(sentences.at(index), root, feasible);
        },
        batch.sentences);
}

std::optional<double> next_tree(TreeStream& stream, FlatHeads heads, std::optional<FlatHeads> labels) {
    StopSignal stop = python_stop_signal();
    std::optional<double> score;
    try {
        const nb::gil_scoped_release released;
        score = stream.next(heads.data(), labels ? labels->data() : nullptr, stop);
    } catch (const Stopped&) {
    }
    raise_if_stopped(stop);
    return score;
}

// Heads that callers hand in may be read-only, lie at odd addresses and change while they are looked at: each row is
// copied before anything else is done with it.
using HeadsIn = nb::ndarray<const Heads, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

class HeadsReader {
public:
    /// Entry 0 may have been anything.
    const Heads* read(const HeadsIn& rows, std::size_t row, std::ptrdiff_t first, int nodes) {
        copy_.resize(static_cast<std::size_t>(nodes));
        const auto* bytes = reinterpret_cast<const char*>(rows.data());
        const std::size_t at = row * rows.shape(1) + static_cast<std::size_t>(first);
        std::memcpy(copy_.data(), bytes + at * sizeof(Heads), copy_.size() * sizeof(Heads));
        copy_[0] = no_head;
        return copy_.data();
    }

private:
    std::vector<Heads> copy_;
};

/// A row of heads (and labels) that may be a tree of a sentence.
class CandidateTree {
public:
    const Heads *heads = nullptr, *labels = nullptr;

    void read(const HeadsIn& head_rows, const std::optional<HeadsIn>& label_rows, std::size_t row, std::ptrdiff_t first,
              int nodes) {
        heads = heads_.read(head_rows, row, first, nodes);
        labels = label_rows ? labels_.read(*label_rows, row, first, nodes) : nullptr;
    }

    /// Whether it is a tree, and has no edge that is forbidden.
    template <class T>
    bool allowed(const Sentence<T>& sentence, Root root, bool projective) {
        const int words = sentence.words;
        const auto is_label = [&](Heads label) { return label >= 0 && label < sentence.labels; };
        if (!is_tree(heads, words, root, mark_) || (projective && !is_projective(heads, words))) return false;
        if (labels && !std::all_of(labels + 1, labels + words + 1, is_label)) return false;
        for (int dep = 1; dep <= words; ++dep)
            if (edge_score(sentence, dep, heads, labels) == minus_infinity<double>) return false;
        return true;
    }

private:
    HeadsReader heads_, labels_;
    std::vector<int> mark_;
};

/// scores[t, i] = score of sentence i's tree in row t of heads (and labels), less that of its tree in `than` if there is
/// such; -inf where it is no tree (or not projective, if that is asked for) or has a forbidden edge, and allowed[t, i] is
/// then false.
void score(const Batch& batch, Root root, bool projective, int threads, const HeadsIn& heads,
           const std::optional<HeadsIn>& labels, const std::optional<HeadsIn>& than,
           const std::optional<HeadsIn>& than_labels, Matrix64 scores, MatrixOfFlags allowed) {
    const std::size_t trees = heads.shape(0);
    if (static_cast<std::ptrdiff_t>(trees) * batch.row_size < worth_a_thread) threads = 1;
    for_each_sentence(
        batch, threads, [] { return std::array<CandidateTree, 2>(); },
        [&]<class T>(std::array<CandidateTree, 2>& candidates, const Sentence<T>& sentence, const Place& place,
                     std::size_t i, StopSignal& stop) {
            auto& [tree, other] = candidates;
            if (than) other.read(*than, than_labels, 0, place.row, sentence.words + 1);
            const bool compare = than && other.allowed(sentence, root, projective);
            for (std::size_t t = 0; t < trees; ++t) {
                if (t % 1024 == 0) stop.check();
                tree.read(heads, labels, t, place.row, sentence.words + 1);
                allowed(t, i) = tree.allowed(sentence, root, projective);
                scores(t, i) = !allowed(t, i) ? minus_infinity<double>
                               : compare
                                   ? score_difference(sentence, tree.heads, tree.labels, other.heads, other.labels)
                                   : tree_score(sentence, tree.heads, tree.labels);
            }
        });
}

using Flags = nb::ndarray<bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

int words_in_row(const Heads* row, int width) {
    int nodes = width;
    while (nodes > 1 && row[nodes - 1] == no_head) --nodes;  // padding
    return nodes - 1;
}

void are_trees(const HeadsIn& heads, Root root, bool projective, Flags result) {
    HeadsReader reader;
    std::vector<int> mark;
    const int width = static_cast<int>(heads.shape(1));
    for (std::size_t i = 0; i < heads.shape(0); ++i) {
        const Heads* row = reader.read(heads, i, 0, width);
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
               nb::arg("labels").none(), nb::arg("scores").none());
    module.def("topk", &topk, nb::arg("batch"), nb::arg("root"), nb::arg("k"), nb::arg("threads"), nb::arg("heads"),
               nb::arg("labels").none(), nb::arg("scores").none());
    module.def("iter_best", &iter_best, nb::arg("batch"), nb::arg("index"), nb::arg("root"), nb::keep_alive<0, 1>());
    module.def("score", &score, nb::arg("batch"), nb::arg("root"), nb::arg("projective"), nb::arg("threads"),
               nb::arg("heads"), nb::arg("labels").none(), nb::arg("than").none(), nb::arg("than_labels").none(),
               nb::arg("scores"), nb::arg("allowed"));
    module.def("are_trees", &are_trees, nb::arg("heads"), nb::arg("root"), nb::arg("projective"), nb::arg("result"));
}

}  // namespace spantree::bindings
