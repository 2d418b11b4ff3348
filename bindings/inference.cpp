#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>

#include "batch.hpp"
#include "relative.hpp"
#include "spantree/walk/signed_product.hpp"
#include "spantree/walk/solution.hpp"

namespace spantree::bindings {

namespace {

/// One number per edge, float32 or float64, to be written.
using Edges = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OptionalEdges = std::optional<Edges>;
using Values = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Below this many words cubed in a batch, starting a thread costs more than it saves.
constexpr double cubes_worth_a_thread = 1e5;

int useful_threads(const Batch& batch, int threads) {
    const double n = batch.max_words;
    return n * n * n * static_cast<double>(batch.size()) < cubes_worth_a_thread ? 1 : threads;
}

template <class Out>
std::vector<EdgeTarget<Out>> targets(const Batch& batch, void* data) {
    std::vector<EdgeTarget<Out>> result;
    result.reserve(batch.size());
    const std::ptrdiff_t cell = std::max(batch.labels, 1);
    for (const Place& place : batch.places)
        result.push_back({static_cast<Out*>(data) + place.edges, batch.dep_major ? cell : cell * place.width,
                          batch.dep_major ? cell * place.width : cell, place.width});
    return result;
}

/// body(targets), of floats or doubles as `edges` is; no targets if there is no array.
template <class Body>
void with_targets(const Batch& batch, const OptionalEdges& edges, Body body) {
    if (!edges) return body(std::vector<EdgeTarget<double>>());
    if (edges->size() != static_cast<std::size_t>(batch.edge_size)) throw std::invalid_argument("wrong size");
    if (edges->dtype() == nb::dtype<float>()) return body(targets<float>(batch, edges->data()));
    if (edges->dtype() != nb::dtype<double>()) throw std::invalid_argument("edges must be float32 or float64");
    body(targets<double>(batch, edges->data()));
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

/// Writes log Z, and, if there is room for it, its part that remains when everything common to all trees is taken off. Returns how many sentences
/// have no tree, or `bad_scores` (batches need not have been checked).
std::int64_t report(const std::vector<SentenceState>& states, double* log_partition, double* rest) {
    std::int64_t infeasible = 0;
    bool bad = false;
    for (std::size_t i = 0; i < states.size(); ++i) {
        log_partition[i] = states[i].log_partition;
        if (rest) rest[i] = states[i].rest;
        infeasible += states[i].unattachable != 0;
        bad |= states[i].bad;
    }
    return bad ? bad_scores : infeasible;
}

std::int64_t log_partition(const Batch& batch, Root root, int threads, Flat64 out) {
    std::vector<SentenceState> states;
    with_sentences(batch, [&](const auto& sentences, StopSignal& stop) {
        states = Solution::log_partition(sentences, root, useful_threads(batch, threads), stop);
    });
    return report(states, out.data(), nullptr);
}

/// Solves the batch. Without `keep` the solution only knows log Z.
std::unique_ptr<Solution> solve(const Batch& batch, Root root, int threads, bool keep, OptionalEdges marginals) {
    auto solution = std::make_unique<Solution>();
    with_targets(batch, marginals, [&](const auto& to) {
        with_sentences(batch, [&](const auto& sentences, StopSignal& stop) {
            solution->solve(sentences, root, useful_threads(batch, threads), stop, keep, to);
        });
    });
    return solution;
}

void marginals(const Solution& solution, const Batch& batch, int threads, Edges out) {
    with_targets(batch, out, [&](const auto& to) {
        with_sentences(batch, [&](const auto& sentences, StopSignal& stop) {
            solution.marginals(sentences, useful_threads(batch, threads), stop, to);
        });
    });
}

/// Values laid out like edge results, as sentences.
std::vector<Sentence<double>> read_values(const Batch& batch, const Values& values) {
    if (values.size() != static_cast<std::size_t>(batch.edge_size)) throw std::invalid_argument("wrong size");
    std::vector<Sentence<double>> result;
    const std::ptrdiff_t cell = std::max(batch.labels, 1);
    std::visit(
        [&](const auto& sentences) {
            for (std::size_t i = 0; i < sentences.size(); ++i) {
                const Place& place = batch.places[i];
                const std::ptrdiff_t head = cell * (batch.dep_major ? 1 : place.width),
                                     dep = cell * (batch.dep_major ? place.width : 1);
                result.push_back({values.data() + place.edges, sentences[i].words, head, dep, batch.labels, 1});
            }
        },
        batch.sentences);
    return result;
}

/// `values` is laid out like edge results; none: minus the scores, and the totals are entropies.
void expectation(const Solution& solution, const Batch& batch, int threads, std::optional<Values> values, Flat64 totals,
                 OptionalEdges gradient) {
    ValueSource source;
    source.minus_scores = !values;
    if (values) source.given = read_values(batch, *values);
    with_targets(batch, gradient, [&](const auto& to) {
        with_sentences(batch, [&](const auto& sentences, StopSignal& stop) {
            solution.expectation(sentences, source, useful_threads(batch, threads), stop, totals.data(), to);
        });
    });
}

/// What each edge adds to a tree's log-weight when everything common to all trees is taken off; -inf where there is no
/// edge.
void relative_scores(const Solution& solution, const Batch& batch, int threads, Flat64 out) {
    std::fill_n(out.data(), out.size(), minus_infinity<double>);
    with_sentences(batch, [&](const auto& sentences, StopSignal& stop) {
        solution.relative_scores(sentences, threads, stop, [&](std::size_t i, auto value) {
            write_relative_scores(batch, i, sentences[i], value, out.data());
        });
    });
}

/// Log-probabilities of heads that are trees of their sentences; out(t, i) is row t of sentence i.
void log_probs(const Solution& solution, const Batch& batch, const HeadRows& heads, std::optional<HeadRows> labels,
               Flat64 out) {
    std::fill_n(out.data(), out.size(), 0.0);
    with_sentences(batch, [&](const auto& sentences, StopSignal& stop) {
        solution.relative_scores(sentences, 1, stop, [&](std::size_t i, auto value) {
            const SentenceState& state = solution.states[i];
            write_log_probs(
                batch, i, sentences[i], heads, labels, state.rest,
                [&](const Heads* row, const Heads* label_row) {
                    if (state.special) return relative_score(state.special->scores(), sentences[i], row, label_row);
                    TwoPart<double> sum;
                    for (int d = 1; d <= sentences[i].words; ++d)
                        sum += value(static_cast<int>(row[d]), d, label_row ? static_cast<int>(label_row[d]) : 0);
                    return sum.value();
                },
                out.data());
        });
    });
}

/// For unlabelled batches: sign and log-magnitude of Z with every edge's weight multiplied by its value, of either
/// sign, and the gradient of the log-magnitude.
void signed_product(const Batch& batch, Root root, int threads, Values values, Flat64 sign, Flat64 log_magnitude,
                    OptionalEdges gradient) {
    const std::vector<Sentence<double>> given = read_values(batch, values);
    with_targets(batch, gradient, [&](const auto& to) {
        for_each_sentence(
            batch, threads, [] { return 0; },
            [&]<class T>(int, const Sentence<T>& sentence, const Place&, std::size_t i, StopSignal& stop) {
                EdgeTable scores(sentence.words, minus_infinity<double>), factors(sentence.words);
                for (int h = 0; h <= sentence.words; ++h)
                    for (int d = 1; d <= sentence.words; ++d)
                        if (h != d && sentence(h, d) > minus_infinity<T>) {
                            scores(h, d) = sentence(h, d);
                            factors(h, d) = given[i](h, d);
                        }
                const SignedProduct product(scores, factors, root, stop);
                sign(i) = product.sign();
                log_magnitude(i) = product.log_magnitude();
                if (to.empty()) return;
                const EdgeTable slope = product.sign() ? product.gradient(root, stop) : EdgeTable(sentence.words);
                write_edges(sentence, to[i], [&](int h, int d) { return slope(h, d); });
            });
    });
}

}  // namespace

void bind_inference(nb::module_& module) {
    nb::class_<Solution>(module, "Solution")
        .def(
            "report", [](const Solution& s, Flat64 z, Flat64 rest) { return report(s.states, z.data(), rest.data()); },
            nb::arg("log_partition"), nb::arg("rest"))
        .def("marginals", &marginals, nb::arg("batch"), nb::arg("threads"), nb::arg("out"))
        .def("expectation", &expectation, nb::arg("batch"), nb::arg("threads"), nb::arg("values").none(),
             nb::arg("totals"), nb::arg("gradient").none())
        .def("relative_scores", &relative_scores, nb::arg("batch"), nb::arg("threads"), nb::arg("out"))
        .def("log_probs", &log_probs, nb::arg("batch"), nb::arg("heads"), nb::arg("labels").none(), nb::arg("out"));
    module.def("log_partition", &log_partition, nb::arg("batch"), nb::arg("root"), nb::arg("threads"), nb::arg("out"));
    module.def("signed_product", &signed_product, nb::arg("batch"), nb::arg("root"), nb::arg("threads"),
               nb::arg("values"), nb::arg("sign"), nb::arg("log_magnitude"), nb::arg("gradient").none());
    module.def("solve", &solve, nb::arg("batch"), nb::arg("root"), nb::arg("threads"), nb::arg("keep"),
               nb::arg("marginals").none());
}

}  // namespace spantree::bindings
