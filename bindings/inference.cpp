#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <memory>
#include <span>

#include "batch.hpp"

namespace spantree::bindings {

namespace {

using library::EdgeTargets;
using library::EdgeValues;
using library::Solved;

/// One number per edge, or several times one number per edge, float32 or float64, to be written.
using Edges = nb::ndarray<nb::c_contig, nb::device::cpu>;
using OptionalEdges = std::optional<Edges>;
using Values = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

/// How many arrays of all edges there are in one.
std::size_t directions_of(const FlatBatch& batch, std::size_t size, std::size_t directions) {
    if (size != directions * static_cast<std::size_t>(batch.edge_size)) throw std::invalid_argument("wrong size");
    return directions;
}

/// Whether the numbers of all edges lie behind each other, direction by direction, or those of all directions, edge by edge.
enum class Order { edges_together, directions_together };

/// Number k of `count` side by side, where there was one.
template <class Number>
Number* among(Number* first, Number* at, std::size_t count, std::size_t k) {
    return first + (at - first) * static_cast<std::ptrdiff_t>(count) + k;
}

std::vector<EdgeTargets> targets(const FlatBatch& batch, const OptionalEdges& edges, std::size_t directions = 1,
                                 Order order = Order::edges_together) {
    std::vector<EdgeTargets> result;
    if (!edges) return result;
    directions_of(batch, edges->size(), directions);
    const bool floats = edges->dtype() == nb::dtype<float>();
    if (!floats && edges->dtype() != nb::dtype<double>())
        throw std::invalid_argument("edges must be float32 or float64");
    const DType dtype = floats ? DType::f32 : DType::f64;
    char* const data = static_cast<char*>(edges->data());
    for (std::size_t k = 0; k < directions; ++k) {
        if (order == Order::edges_together) {
            const std::size_t direction = static_cast<std::size_t>(batch.edge_size) * edges->itemsize();
            result.push_back(batch.edges(data + k * direction, dtype));
            continue;
        }
        std::visit(
            [&]<class Out>(std::vector<EdgeTarget<Out>>& to) {
                for (EdgeTarget<Out>& target : to) {
                    target.data = among(static_cast<Out*>(edges->data()), target.data, directions, k);
                    target.head_stride *= static_cast<std::ptrdiff_t>(directions);
                    target.dep_stride *= static_cast<std::ptrdiff_t>(directions);
                }
            },
            result.emplace_back(batch.edges(data, dtype)));
    }
    return result;
}

EdgeTargets target(const FlatBatch& batch, const OptionalEdges& edges) {
    return edges ? targets(batch, edges)[0] : EdgeTargets();
}

std::vector<EdgeValues> values_of(const FlatBatch& batch, const Values& values, std::size_t directions,
                                  Order order = Order::edges_together) {
    directions_of(batch, values.size(), directions);
    std::vector<EdgeValues> result;
    for (std::size_t k = 0; k < directions; ++k) {
        if (order == Order::edges_together) {
            result.push_back(batch.values(values.data() + k * static_cast<std::size_t>(batch.edge_size)));
            continue;
        }
        for (Sentence<double>& sentence : result.emplace_back(batch.values(values.data()))) {
            sentence.scores = among(values.data(), sentence.scores, directions, k);
            sentence.head_stride *= static_cast<std::ptrdiff_t>(directions);
            sentence.dep_stride *= static_cast<std::ptrdiff_t>(directions);
        }
    }
    return result;
}

Options on_threads(int threads) { return {{}, false, threads, {}}; }

void solve(Solved* self, const FlatBatch& batch, Root root, bool projective, int threads, Solved::For purpose,
           const OptionalEdges& marginals) {
    const EdgeTargets to = target(batch, marginals);
    call({root, projective, threads, {}},
         [&](const Options& options) { new (self) Solved(batch.batch, options, purpose, to); });
}

void solve_for_entropy(Solved* self, const FlatBatch& batch, Root root, bool projective, int threads, Flat64 entropies,
                       const OptionalEdges& gradient, bool keep) {
    const EdgeTargets to = target(batch, gradient);
    call({root, projective, threads, {}},
         [&](const Options& options) { new (self) Solved(batch.batch, options, entropies.data(), to, keep); });
}

/// As library::compare; `solved_q` may be none.
std::unique_ptr<Solved> compare(const FlatBatch& p, const Solved& solved_p, const FlatBatch& q, const Solved* solved_q,
                                Root root_q, bool projective_q, int threads, bool divergence, Flat64 totals,
                                const OptionalEdges& gradient) {
    const EdgeTargets to = target(p, gradient);
    return call({root_q, projective_q, threads, {}}, [&](const Options& for_q) {
        return library::compare(p.batch, solved_p, q.batch, solved_q, for_q, divergence, totals.data(), to);
    });
}

void complete(Solved* self, const Solved& begun, const FlatBatch& batch, int threads, const OptionalEdges& marginals) {
    const EdgeTargets to = target(batch, marginals);
    call(on_threads(threads), [&](const Options& options) { new (self) Solved(begun, options, to); });
}

/// Writes log Z and, if there is a place for them, the marginals; solved and forgotten.
std::optional<Words> log_partition(const FlatBatch& batch, Root root, bool projective, int threads, Flat64 out,
                                   const OptionalEdges& marginals) {
    const EdgeTargets to = target(batch, marginals);
    return unattachable(call({root, projective, threads, {}}, [&](const Options& options) {
        const Solved solved(batch.batch, options, marginals ? Solved::For::marginals : Solved::For::log_partition, to);
        for (std::size_t i = 0; i < solved.reports().size(); ++i) out(i) = solved.reports()[i].log_partition;
        return solved.statuses();
    }));
}

/// Writes log Z, and its part that remains when everything common to all trees is taken off.
std::optional<Words> report(const Solved& solved, Flat64 log_partition, Flat64 rest) {
    for (std::size_t i = 0; i < solved.reports().size(); ++i) {
        log_partition(i) = solved.reports()[i].log_partition;
        rest(i) = solved.reports()[i].rest;
    }
    return unattachable(solved.statuses());
}

void marginals(const Solved& solved, const FlatBatch& batch, int threads, Edges out) {
    const EdgeTargets to = target(batch, out);
    call(on_threads(threads), [&](const Options& options) { solved.marginals(options, to); });
}

void entropy(const Solved& solved, const FlatBatch& batch, int threads, Flat64 totals, const OptionalEdges& gradient) {
    const EdgeTargets to = target(batch, gradient);
    call(on_threads(threads), [&](const Options& options) { solved.entropy(options, totals.data(), to); });
}

/// `values` is one array of all edges for each row of totals, and so are the gradients; or, without labels and if
/// `edges_first`, for each edge an array of as many numbers as there are rows.
void expectations(const Solved& solved, const FlatBatch& batch, int threads, const Values& values, Matrix64 totals,
                  const OptionalEdges& gradients, bool edges_first) {
    if (edges_first && batch.batch.labels() > 0) throw std::invalid_argument("labels of an edge lie side by side");
    const Order order = edges_first ? Order::directions_together : Order::edges_together;
    const std::vector<EdgeValues> given = values_of(batch, values, totals.shape(0), order);
    const std::vector<EdgeTargets> to = targets(batch, gradients, totals.shape(0), order);
    call(on_threads(threads), [&](const Options& options) { solved.expectations(options, given, totals.data(), to); });
}

void relative_scores(const Solved& solved, const FlatBatch& batch, int threads, Flat64 out, double reach) {
    const auto to = std::get<std::vector<EdgeTarget<double>>>(batch.edges(out.data(), DType::f64));
    call(on_threads(threads), [&](const Options& options) { solved.relative_scores(options, to, reach); });
}

/// out(t, i): of row t of sentence i, -inf where it is no tree, which `allowed` says.
void log_probs(const Solved& solved, const FlatBatch& batch, int threads, const HeadsIn& heads,
               const std::optional<HeadsIn>& labels, Matrix64 out, MatrixOfFlags allowed) {
    call(on_threads(threads), [&](const Options& options) {
        solved.exact_log_probs(options, static_cast<std::int64_t>(heads.shape(0)),
                               batch.trees(heads.data(), data_of(labels)), out.data(), allowed.data());
    });
}

/// The third derivative of log Z contracted with u and g.
void third(const FlatBatch& batch, Root root, bool projective, int threads, const Values& u, const Values& g,
           Edges out) {
    const std::vector<EdgeValues> along_u = values_of(batch, u, 1), along_g = values_of(batch, g, 1);
    const std::vector<EdgeTargets> to = targets(batch, out);
    call({root, projective, threads, {}},
         [&](const Options& options) { return library::third(batch.batch, options, along_u, along_g, to); });
}

void signed_product(const FlatBatch& batch, Root root, int threads, const Values& values, Flat64 sign,
                    Flat64 log_magnitude, const OptionalEdges& gradient) {
    const EdgeValues given = values_of(batch, values, 1)[0];
    const EdgeTargets to = target(batch, gradient);
    call({root, false, threads, {}}, [&](const Options& options) {
        library::signed_product(batch.batch, options, given, sign.data(), log_magnitude.data(), to);
    });
}

}  // namespace

void bind_inference(nb::module_& module) {
    nb::class_<Solved> solved(module, "Solved");
    nb::enum_<Solved::For>(solved, "For").value("draws", Solved::For::draws).value("questions", Solved::For::questions);
    solved
        .def("__init__", &solve, nb::arg("batch"), nb::arg("root"), nb::arg("projective"), nb::arg("threads"),
             nb::arg("purpose"), nb::arg("marginals").none(), nb::keep_alive<1, 2>())
        .def("__init__", &solve_for_entropy, nb::arg("batch"), nb::arg("root"), nb::arg("projective"),
             nb::arg("threads"), nb::arg("entropies"), nb::arg("gradient").none(), nb::arg("keep"),
             nb::keep_alive<1, 2>())
        .def("__init__", &complete, nb::arg("begun"), nb::arg("batch"), nb::arg("threads"), nb::arg("marginals").none(),
             nb::keep_alive<1, 3>())
        .def("report", &report, nb::arg("log_partition"), nb::arg("rest"))
        .def("marginals", &marginals, nb::arg("batch"), nb::arg("threads"), nb::arg("out"))
        .def("entropy", &entropy, nb::arg("batch"), nb::arg("threads"), nb::arg("totals"), nb::arg("gradient").none())
        .def("expectations", &expectations, nb::arg("batch"), nb::arg("threads"), nb::arg("values"), nb::arg("totals"),
             nb::arg("gradients").none(), nb::arg("edges_first") = false)
        .def("relative_scores", &relative_scores, nb::arg("batch"), nb::arg("threads"), nb::arg("out"),
             nb::arg("reach"))
        .def("log_probs", &log_probs, nb::arg("batch"), nb::arg("threads"), nb::arg("heads"), nb::arg("labels").none(),
             nb::arg("out"), nb::arg("allowed"));
    module.def("log_partition", &log_partition, nb::arg("batch"), nb::arg("root"), nb::arg("projective"),
               nb::arg("threads"), nb::arg("out"), nb::arg("marginals").none());
    module.def("compare", &compare, nb::arg("p"), nb::arg("solved_p"), nb::arg("q"), nb::arg("solved_q").none(),
               nb::arg("root_q"), nb::arg("projective_q"), nb::arg("threads"), nb::arg("divergence"), nb::arg("totals"),
               nb::arg("gradient").none(), nb::keep_alive<0, 3>());
    module.def("third", &third, nb::arg("batch"), nb::arg("root"), nb::arg("projective"), nb::arg("threads"),
               nb::arg("u"), nb::arg("g"), nb::arg("out"));
    module.def("signed_product", &signed_product, nb::arg("batch"), nb::arg("root"), nb::arg("threads"),
               nb::arg("values"), nb::arg("sign"), nb::arg("log_magnitude"), nb::arg("gradient").none());
}

}  // namespace spantree::bindings
