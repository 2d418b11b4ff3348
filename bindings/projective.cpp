#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "batch.hpp"
#include "relative.hpp"
#include "spantree/batch/labels.hpp"
#include "spantree/chart/eisner.hpp"
#include "spantree/chart/kbest.hpp"
#include "spantree/chart/sample.hpp"
#include "spantree/chart/solution.hpp"
#include "streams.hpp"
#include "trees.hpp"

namespace spantree::bindings {

namespace {

int worthwhile_threads(const Batch& batch, int threads) {
    return batch.edge_size * batch.max_words < 16 * worth_a_thread ? 1 : threads;
}

template <class Body>
void with_sentences(const Batch& batch, Body body) {
    StopSignal stop = python_stop_signal();
    {
        const nb::gil_scoped_release released;
        std::visit([&](const auto& sentences) { body(sentences, stop); }, batch.sentences);
    }
    raise_if_stopped(stop);
}

template <class T>
struct Decoder {
    projective::BestProjectiveTree<T> best_tree;
    std::vector<T> arcs;

    Heads operator()(const Sentence<T>& sentence, Root root, Heads* heads, StopSignal& stop) {
        if (best_tree.read(sentence.labels ? best_labels(sentence, arcs) : sentence).bad) return bad_scores;
        return best_tree.write(root, heads, stop).unattachable;
    }
};

/// Writes the best projective trees. Returns null if all sentences have one.
std::optional<Words> argmax(const Batch& batch, Root root, int threads, FlatHeads heads,
                            std::optional<FlatHeads> labels, std::optional<Flat64> scores) {
    return write_best_trees(
        batch, worthwhile_threads(batch, threads), {heads, labels, scores, {}},
        [] { return std::tuple<Decoder<float>, Decoder<double>>(); },
        [&]<class T>(auto& scratch, const Sentence<T>& sentence, Heads* row, StopSignal& stop) {
            return std::get<Decoder<T>>(scratch)(sentence, root, row, stop);
        });
}

/// Writes the k best projective trees. Returns null if all sentences have one.
std::optional<Words> topk(const Batch& batch, Root root, std::int64_t k, int threads, FlatHeads heads,
                          std::optional<FlatHeads> labels, std::optional<Flat64> scores) {
    return write_k_best_trees(batch, k, threads, {heads, labels, scores, {}},
                              [&](const auto& sentence, Feasibility& feasible, StopSignal& stop) {
                                  return projective::best_projective_trees(sentence, root, feasible, stop);
                              });
}

/// None if the sentence has no tree.
std::unique_ptr<TreeStream> iter_best(const Batch& batch, std::size_t index, Root root) {
    StopSignal stop = python_stop_signal();
    std::unique_ptr<TreeStream> trees;
    try {
        const nb::gil_scoped_release released;
        Feasibility feasible;
        std::visit(
            [&](const auto& sentences) {
                trees = projective::best_projective_trees(sentences.at(index), root, feasible, stop);
            },
            batch.sentences);
    } catch (const Stopped&) {
    }
    raise_if_stopped(stop);
    return trees;
}

using OptionalEdges = std::optional<Flat64>;
using EdgesOut = EdgeTarget<double>;
using projective::Purpose;
using projective::QuestionScratch;
using projective::SolvedSentence;

/// Where the edge results of a sentence go: `at`-th of several arrays in a flat buffer.
EdgesOut edges_out(const Batch& batch, const Place& place, const Flat64& flat, std::int64_t at = 0) {
    const std::ptrdiff_t cell = std::max(batch.labels, 1), row = cell * place.width;
    return {flat.data() + at * batch.edge_size + place.edges, batch.dep_major ? cell : row,
            batch.dep_major ? row : cell, place.width};
}

/// Values laid out like edge results: value(head, dep, label).
auto edges_in(const Batch& batch, const Place& place, const Flat64& flat, std::int64_t at) {
    return [from = edges_out(batch, place, flat, at)](int head, int dep, int label) {
        return from.edge(head, dep)[label];
    };
}

using Labels = std::optional<FlatHeads>;

/// k trees for each sentence: k arrays of heads one after the other (-1 where there is no tree). Tree t of sentence i
/// depends on its scores, on streams[i] and on t only. And a word that cannot be attached, 0 if there is a tree.
struct DrawnTrees {
    const Batch& batch;
    std::int64_t k;
    const KeptStreams& streams;
    const FlatHeads& heads;
    const FlatHeads& unattachable;

    void write(const SolvedSentence& solved, QuestionScratch& scratch, std::size_t i, StopSignal& stop) const {
        const Place& place = batch.places[i];
        const auto row = [&](std::int64_t tree) { return heads.data() + tree * batch.row_size + place.row; };
        for (std::int64_t tree = 0; tree < k; ++tree) std::fill_n(row(tree), place.width, no_head);
        unattachable(i) = solved.unattachable();
        if (!solved.feasible()) return;
        scratch.draw.start(solved.words(), solved.root());
        solved.with_inside([&](const auto& sums) {
            for (std::int64_t tree = 0; tree < k; ++tree) {
                if (tree % 256 == 0) stop.check();
                RandomStream random = streams[i].tree(static_cast<std::uint64_t>(tree));
                scratch.draw(sums, random, row(tree));
            }
        });
    }
};

/// The log-probabilities of k trees per sentence, as k rows of one number per sentence; -inf where heads are no tree.
template <class T>
void write_log_probs(const Batch& batch, const SolvedSentence& solved, const Sentence<T>& sentence, std::size_t i,
                     std::int64_t k, const FlatHeads& heads, const Labels& labels, const Flat64& out) {
    std::vector<Heads> tree;
    for (std::int64_t rank = 0; rank < k; ++rank) {
        const std::ptrdiff_t row = rank * batch.row_size + batch.places[i].row;
        tree.assign(heads.data() + row, heads.data() + row + sentence.words + 1);
        tree[0] = no_head;  // what callers have there does not matter
        out(rank * batch.size() + i) = solved.log_prob(sentence, tree.data(), labels ? labels->data() + row : nullptr);
    }
}

/// The sums over the trees of every sentence of a batch. Complete and unchanging: any number of threads may ask it.
class ProjectiveSolution {
public:
    explicit ProjectiveSolution(std::vector<projective::KeptSentence> sentences) : sentences_(std::move(sentences)) {}
    ProjectiveSolution(const ProjectiveSolution&) = delete;
    ProjectiveSolution& operator=(const ProjectiveSolution&) = delete;

    std::size_t size() const { return sentences_.size(); }

    /// Writes log Z as total + rest (-inf: no tree).
    void log_partition(Flat64 total, Flat64 rest) const {
        for (std::size_t i = 0; i < size(); ++i) {
            total(i) = (*sentences_[i]).log_partition().total;
            rest(i) = (*sentences_[i]).log_partition().rest;
        }
    }

    void marginals(const Batch& batch, int threads, Flat64 out) const {
        ask(batch, threads, [&](const auto& solved, const auto& sentence, auto& scratch, std::size_t i, StopSignal&) {
            solved.write_marginals(sentence, scratch, edges_out(batch, batch.places[i], out));
        });
    }

    /// `values` is `directions` arrays laid out like edge results; none: minus the scores, and the totals are entropies.
    /// Totals are as many rows of one number per sentence, NaN if it has no tree.
    void expectation(const Batch& batch, int threads, std::int64_t directions, OptionalEdges values, Flat64 totals,
                     OptionalEdges gradients) const {
        ask(batch, threads,
            [&](const auto& solved, const auto& sentence, auto& scratch, std::size_t i, StopSignal& stop) {
                write_expectations(batch, solved, sentence, scratch, i, directions, values, totals, gradients, stop);
            });
    }

    /// The second derivative of log Z contracted with each of `directions` arrays.
    void hessian(const Batch& batch, int threads, std::int64_t directions, const Flat64& values, Flat64 out) const {
        ask(batch, threads,
            [&](const auto& solved, const auto& sentence, auto& scratch, std::size_t i, StopSignal& stop) {
                write_hessian(batch, solved, sentence, scratch, i, directions, values, out, stop);
            });
    }

    /// The third derivative contracted with each of `directions` pairs of arrays.
    void third(const Batch& batch, int threads, std::int64_t directions, const Flat64& u, const Flat64& g,
               Flat64 out) const {
        ask(batch, threads,
            [&](const auto& solved, const auto& sentence, auto& scratch, std::size_t i, StopSignal& stop) {
                for (std::int64_t at = 0; at < directions; ++at)
                    solved.third(sentence, scratch, edges_in(batch, batch.places[i], u, at),
                                 edges_in(batch, batch.places[i], g, at), edges_out(batch, batch.places[i], out, at),
                                 stop);
            });
    }

    /// Draws trees; see DrawnTrees. Returns how many sentences have none.
    std::int64_t sample(const Batch& batch, std::int64_t k, const Keys& keys, std::uint64_t first_sentence, int threads,
                        FlatHeads heads, FlatHeads unattachable) const {
        const KeptStreams streams(keys, first_sentence, batch);
        const DrawnTrees drawn{batch, k, streams, heads, unattachable};
        ask(batch, threads, [&](const auto& solved, const auto&, auto& scratch, std::size_t i, StopSignal& stop) {
            drawn.write(solved, scratch, i, stop);
        });
        return count_infeasible(unattachable);
    }

    /// As of the non-projective solution.
    void relative_scores(const Batch& batch, int threads, Flat64 out) const {
        std::fill_n(out.data(), out.size(), minus_infinity<double>);
        ask(batch, threads, [&](const auto& solved, const auto& sentence, auto&, std::size_t i, StopSignal&) {
            if (!solved.feasible()) return;
            write_relative_scores(
                batch, i, sentence,
                [&](int h, int d, int label) {
                    const double edge = solved.scores().value(h, d);
                    return edge > minus_infinity<double> ? edge + log_share_of(sentence, h, d, label) : edge;
                },
                out.data());
        });
    }

    void log_prob(const Batch& batch, int threads, std::int64_t k, const FlatHeads& heads, Labels labels,
                  Flat64 out) const {
        ask(batch, threads, [&](const auto& solved, const auto& sentence, auto&, std::size_t i, StopSignal&) {
            write_log_probs(batch, solved, sentence, i, k, heads, labels, out);
        });
    }

    template <class T>
    static void write_expectations(const Batch& batch, const SolvedSentence& solved, const Sentence<T>& sentence,
                                   QuestionScratch& scratch, std::size_t i, std::int64_t directions,
                                   const OptionalEdges& values, const Flat64& totals, const OptionalEdges& gradients,
                                   StopSignal& stop) {
        const Place& place = batch.places[i];
        if (!values) {
            totals(i) = solved.entropy(sentence, scratch);
            if (!gradients) return;
            const EdgesOut out = edges_out(batch, place, *gradients);
            solved.template hessian<1>(sentence, scratch, [&](int) { return solved.surprise(scratch); }, &out, stop);
            return;
        }
        for (std::int64_t at = 0; at < directions; ++at)
            totals(at * batch.size() + i) = solved.expectation(sentence, scratch, edges_in(batch, place, *values, at));
        if (gradients) write_hessian(batch, solved, sentence, scratch, i, directions, *values, *gradients, stop);
    }

private:
    template <class T>
    static void write_hessian(const Batch& batch, const SolvedSentence& solved, const Sentence<T>& sentence,
                              QuestionScratch& scratch, std::size_t i, std::int64_t directions, const Flat64& values,
                              const Flat64& out, StopSignal& stop) {
        const auto several = [&]<int count>(std::int64_t first) {
            EdgesOut to[count];
            for (int k = 0; k < count; ++k) to[k] = edges_out(batch, batch.places[i], out, first + k);
            solved.template hessian<count>(
                sentence, scratch, [&](int k) { return edges_in(batch, batch.places[i], values, first + k); }, to,
                stop);
        };
        std::int64_t at = 0;
        for (; at + 4 <= directions; at += 4) several.template operator()<4>(at);
        for (; at + 2 <= directions; at += 2) several.template operator()<2>(at);
        if (at < directions) several.template operator()<1>(at);
    }

    template <class Ask>
    void ask(const Batch& batch, int threads, Ask body) const {
        with_sentences(batch, [&](const auto& sentences, StopSignal& stop) {
            projective::ask_batch(sentences_, worthwhile_threads(batch, threads), stop,
                                  [&](const SolvedSentence& solved, QuestionScratch& scratch, std::size_t i) {
                                      body(solved, sentences[i], scratch, i, stop);
                                  });
        });
    }

    std::vector<projective::KeptSentence> sentences_;
};

/// Solves the batch; what is given room for is answered on the way: log Z as total + rest, the marginals, entropies and
/// their gradients. None if it is not to be kept.
std::unique_ptr<ProjectiveSolution> solve(const Batch& batch, Root root, int threads, bool keep, Flat64 total,
                                          Flat64 rest, OptionalEdges marginals, OptionalEdges entropies,
                                          OptionalEdges gradients) {
    std::vector<projective::KeptSentence> kept;
    with_sentences(batch, [&](const auto& sentences, StopSignal& stop) {
        kept = projective::solve_batch(
            sentences, root, Purpose::marginals, keep, worthwhile_threads(batch, threads), stop,
            [&](const SolvedSentence& solved, QuestionScratch& scratch, std::size_t i) {
                total(i) = solved.log_partition().total;
                rest(i) = solved.log_partition().rest;
                if (marginals)
                    solved.write_marginals(sentences[i], scratch, edges_out(batch, batch.places[i], *marginals));
                if (entropies)
                    ProjectiveSolution::write_expectations(batch, solved, sentences[i], scratch, i, 1, std::nullopt,
                                                           *entropies, gradients, stop);
            });
    });
    return keep ? std::make_unique<ProjectiveSolution>(std::move(kept)) : nullptr;
}

/// Writes log Z (-inf: no tree). Returns how many sentences have no tree.
std::int64_t log_partition(const Batch& batch, Root root, int threads, Flat64 log_z) {
    std::atomic<std::int64_t> infeasible = 0;
    with_sentences(batch, [&](const auto& sentences, StopSignal& stop) {
        projective::solve_batch(sentences, root, Purpose::partition, false, worthwhile_threads(batch, threads), stop,
                                [&](const SolvedSentence& solved, QuestionScratch&, std::size_t i) {
                                    log_z(i) = solved.log_partition().value();
                                    infeasible += !solved.feasible();
                                });
    });
    return infeasible;
}

/// As ProjectiveSolution::sample, without one.
std::int64_t sample(const Batch& batch, Root root, std::int64_t k, const Keys& keys, std::uint64_t first_sentence,
                    int threads, FlatHeads heads, FlatHeads unattachable) {
    const KeptStreams streams(keys, first_sentence, batch);
    const DrawnTrees drawn{batch, k, streams, heads, unattachable};
    with_sentences(batch, [&](const auto& sentences, StopSignal& stop) {
        projective::solve_batch(sentences, root, Purpose::partition, false, threads, stop,
                                [&](const SolvedSentence& solved, QuestionScratch& scratch, std::size_t i) {
                                    drawn.write(solved, scratch, i, stop);
                                });
    });
    return count_infeasible(unattachable);
}

/// As ProjectiveSolution::log_prob, without one.
void log_prob(const Batch& batch, Root root, int threads, std::int64_t k, const FlatHeads& heads, Labels labels,
              Flat64 out) {
    with_sentences(batch, [&](const auto& sentences, StopSignal& stop) {
        projective::solve_batch(sentences, root, Purpose::partition, false, worthwhile_threads(batch, threads), stop,
                                [&](const SolvedSentence& solved, QuestionScratch&, std::size_t i) {
                                    write_log_probs(batch, solved, sentences[i], i, k, heads, labels, out);
                                });
    });
}

}  // namespace

void bind_projective(nb::module_& module) {
    module.def("projective_argmax", &argmax, nb::arg("batch"), nb::arg("root"), nb::arg("threads"), nb::arg("heads"),
               nb::arg("labels").none(), nb::arg("scores").none());
    module.def("projective_topk", &topk, nb::arg("batch"), nb::arg("root"), nb::arg("k"), nb::arg("threads"),
               nb::arg("heads"), nb::arg("labels").none(), nb::arg("scores").none());
    module.def("projective_iter_best", &iter_best, nb::arg("batch"), nb::arg("index"), nb::arg("root"),
               nb::keep_alive<0, 1>());
    nb::class_<ProjectiveSolution>(module, "ProjectiveSolution")
        .def("__len__", &ProjectiveSolution::size)
        .def("log_partition", &ProjectiveSolution::log_partition, nb::arg("total"), nb::arg("rest"))
        .def("marginals", &ProjectiveSolution::marginals, nb::arg("batch"), nb::arg("threads"), nb::arg("out"))
        .def("expectation", &ProjectiveSolution::expectation, nb::arg("batch"), nb::arg("threads"),
             nb::arg("directions"), nb::arg("values").none(), nb::arg("totals"), nb::arg("gradients").none())
        .def("hessian", &ProjectiveSolution::hessian, nb::arg("batch"), nb::arg("threads"), nb::arg("directions"),
             nb::arg("values"), nb::arg("out"))
        .def("sample", &ProjectiveSolution::sample, nb::arg("batch"), nb::arg("k"), nb::arg("keys"),
             nb::arg("first_sentence"), nb::arg("threads"), nb::arg("heads"), nb::arg("unattachable"))
        .def("relative_scores", &ProjectiveSolution::relative_scores, nb::arg("batch"), nb::arg("threads"),
             nb::arg("out"))
        .def("log_prob", &ProjectiveSolution::log_prob, nb::arg("batch"), nb::arg("threads"), nb::arg("k"),
             nb::arg("heads"), nb::arg("labels").none(), nb::arg("out"))
        .def("third", &ProjectiveSolution::third, nb::arg("batch"), nb::arg("threads"), nb::arg("directions"),
             nb::arg("u"), nb::arg("g"), nb::arg("out"));
    module.def("projective_log_partition", &log_partition, nb::arg("batch"), nb::arg("root"), nb::arg("threads"),
               nb::arg("log_z"));
    module.def("projective_solve", &solve, nb::arg("batch"), nb::arg("root"), nb::arg("threads"), nb::arg("keep"),
               nb::arg("total"), nb::arg("rest"), nb::arg("marginals").none(), nb::arg("entropies").none(),
               nb::arg("gradients").none());
    module.def("projective_log_prob", &log_prob, nb::arg("batch"), nb::arg("root"), nb::arg("threads"), nb::arg("k"),
               nb::arg("heads"), nb::arg("labels").none(), nb::arg("out"));
    module.def("projective_sample", &sample, nb::arg("batch"), nb::arg("root"), nb::arg("k"), nb::arg("keys"),
               nb::arg("first_sentence"), nb::arg("threads"), nb::arg("heads"), nb::arg("unattachable"));
    module.def("philox", &philox, nb::arg("counter"), nb::arg("key"));
}

}  // namespace spantree::bindings
