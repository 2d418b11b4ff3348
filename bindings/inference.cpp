#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <optional>

#include "batch.hpp"
#include "spantree/walk/signed_product.hpp"
#include "spantree/walk/solution.hpp"

namespace spantree::bindings {

namespace {

using OptionalEdges = std::optional<Flat64>;

/// Below this many words cubed in a batch, starting a thread costs more than it saves.
constexpr double cubes_worth_a_thread = 1e5;

int useful_threads(const Batch& batch, int threads) {
    const double n = batch.max_words;
    return n * n * n * static_cast<double>(batch.size()) < cubes_worth_a_thread ? 1 : threads;
}

std::vector<EdgeTarget> targets(const Batch& batch, const OptionalEdges& edges) {
    std::vector<EdgeTarget> result;
    if (!edges) return result;
    result.reserve(batch.size());
    for (const Place& place : batch.places)
        result.push_back({edges->data() + place.edges, batch.dep_major ? 1 : place.width,
                          batch.dep_major ? place.width : 1, place.width});
    return result;
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

/// Returns how many sentences have no tree, or `bad_scores` (unlabelled batches need not have been checked).
std::int64_t report(const std::vector<SentenceState>& states, Flat64 log_partition) {
    std::int64_t infeasible = 0;
    bool bad = false;
    for (std::size_t i = 0; i < states.size(); ++i) {
        log_partition(i) = states[i].log_partition;
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
    return report(states, out);
}

/// Solves the batch. Without `keep` the solution only knows log Z.
std::unique_ptr<Solution> solve(const Batch& batch, Root root, int threads, bool keep, OptionalEdges marginals) {
    auto solution = std::make_unique<Solution>();
    const auto to = targets(batch, marginals);
    with_sentences(batch, [&](const auto& sentences, StopSignal& stop) {
        solution->solve(sentences, root, useful_threads(batch, threads), stop, keep, to);
    });
    return solution;
}

void marginals(Solution& solution, const Batch& batch, int threads, Flat64 out) {
    const auto to = targets(batch, out);
    with_sentences(batch, [&](const auto& sentences, StopSignal& stop) {
        solution.marginals(sentences, useful_threads(batch, threads), stop, to);
    });
}

/// Values laid out like edge results, as sentences.
std::vector<Sentence<double>> read_values(const Batch& batch, const Flat64& values) {
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
void expectation(Solution& solution, const Batch& batch, int threads, OptionalEdges values, Flat64 totals,
                 OptionalEdges gradient) {
    ValueSource source;
    source.minus_scores = !values;
    if (values) source.given = read_values(batch, *values);
    const auto to = targets(batch, gradient);
    with_sentences(batch, [&](const auto& sentences, StopSignal& stop) {
        solution.expectation(sentences, source, useful_threads(batch, threads), stop, totals.data(), to);
    });
}

/// For unlabelled batches: sign and log-magnitude of Z with every edge's weight multiplied by its value, of either
/// sign, and the gradient of the log-magnitude.
void signed_product(const Batch& batch, Root root, int threads, Flat64 values, Flat64 sign, Flat64 log_magnitude,
                    OptionalEdges gradient) {
    const std::vector<Sentence<double>> given = read_values(batch, values);
    const auto to = targets(batch, gradient);
    for_each_sentence(
        batch, threads, [] { return 0; },
        [&]<class T>(int, const Sentence<T>& sentence, const Place&, std::size_t i, StopSignal&) {
            EdgeTable scores(sentence.words, minus_infinity<double>), factors(sentence.words);
            for (int h = 0; h <= sentence.words; ++h)
                for (int d = 1; d <= sentence.words; ++d)
                    if (h != d && sentence(h, d) > minus_infinity<T>) {
                        scores(h, d) = sentence(h, d);
                        factors(h, d) = given[i](h, d);
                    }
            const SignedProduct product(scores, factors, root);
            sign(i) = product.sign();
            log_magnitude(i) = product.log_magnitude();
            if (to.empty()) return;
            const EdgeTable slope = product.sign() ? product.gradient(root) : EdgeTable(sentence.words);
            write_edges(sentence, to[i], [&](int h, int d, int) { return slope(h, d); });
        });
}

}  // namespace

void bind_inference(nb::module_& module) {
    nb::class_<Solution>(module, "Solution")
        .def(
            "report", [](const Solution& s, Flat64 z) { return report(s.states, z); }, nb::arg("log_partition"))
        .def("marginals", &marginals, nb::arg("batch"), nb::arg("threads"), nb::arg("out"))
        .def("expectation", &expectation, nb::arg("batch"), nb::arg("threads"), nb::arg("values").none(),
             nb::arg("totals"), nb::arg("gradient").none());
    module.def("log_partition", &log_partition, nb::arg("batch"), nb::arg("root"), nb::arg("threads"), nb::arg("out"));
    module.def("signed_product", &signed_product, nb::arg("batch"), nb::arg("root"), nb::arg("threads"),
               nb::arg("values"), nb::arg("sign"), nb::arg("log_magnitude"), nb::arg("gradient").none());
    module.def("solve", &solve, nb::arg("batch"), nb::arg("root"), nb::arg("threads"), nb::arg("keep"),
               nb::arg("marginals").none());
}

}  // namespace spantree::bindings
