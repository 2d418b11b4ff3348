// The C++ library's own entries (spantree/spantree.hpp) for hosts that have pointers: addresses and strides go in, nothing is
// copied, the GIL is released. Whoever calls keeps the memory alive.
#include "batch.hpp"
#include "spantree/spantree.hpp"

namespace spantree::bindings {

namespace {

using Address = std::uintptr_t;

template <class T>
T* at(Address address) {
    return reinterpret_cast<T*>(address);
}

DType dtype_of(bool is_double) { return is_double ? DType::f64 : DType::f32; }
IntType int_type_of(bool is_64) { return is_64 ? IntType::i64 : IntType::i32; }

Status status_at(Address address) { return {at<std::int32_t>(address)}; }

}  // namespace

void bind_entries(nb::module_& module) {
    nb::module_ entries = module.def_submodule("entries");
    using Stride = std::ptrdiff_t;
    nb::class_<ScoresView>(entries, "ScoresView")
        .def(
            "__init__",
            [](ScoresView* self, Address data, bool is_double, std::int64_t batch, int nodes, int labels,
               Stride batch_stride, Stride head, Stride dep, Stride label, Address lengths, bool lengths_are_64) {
                new (self) ScoresView{at<const void>(data),
                                      dtype_of(is_double),
                                      batch,
                                      nodes,
                                      labels,
                                      batch_stride,
                                      head,
                                      dep,
                                      label,
                                      at<const void>(lengths),
                                      int_type_of(lengths_are_64)};
            },
            nb::arg("data"), nb::arg("is_double"), nb::arg("batch"), nb::arg("nodes"), nb::arg("labels"),
            nb::arg("batch_stride"), nb::arg("head_stride"), nb::arg("dep_stride"), nb::arg("label_stride"),
            nb::arg("lengths") = 0, nb::arg("lengths_are_64") = true);
    nb::class_<EdgesView>(entries, "EdgesView")
        .def(
            "__init__",
            [](EdgesView* self, Address data, bool is_double, Stride batch, Stride head, Stride dep, Stride label,
               Stride direction) {
                new (self) EdgesView{at<const void>(data), dtype_of(is_double), batch, head, dep, label, direction};
            },
            nb::arg("data"), nb::arg("is_double"), nb::arg("batch_stride"), nb::arg("head_stride"),
            nb::arg("dep_stride"), nb::arg("label_stride"), nb::arg("direction_stride") = 0);
    nb::class_<EdgesOut>(entries, "EdgesOut")
        .def(nb::init<>())
        .def(
            "__init__",
            [](EdgesOut* self, Address data, bool is_double, Stride batch, Stride head, Stride dep, Stride direction) {
                new (self) EdgesOut{at<void>(data), dtype_of(is_double), batch, head, dep, direction};
            },
            nb::arg("data"), nb::arg("is_double"), nb::arg("batch_stride"), nb::arg("head_stride"),
            nb::arg("dep_stride"), nb::arg("direction_stride") = 0);
    const auto bind_heads = [&]<class Heads, class Pointer>(const char* name, Pointer) {
        nb::class_<Heads>(entries, name)
            .def(nb::init<>())
            .def(
                "__init__",
                [](Heads* self, Address data, bool is_64, Stride batch, Stride node, Stride tree) {
                    new (self) Heads{reinterpret_cast<Pointer>(data), int_type_of(is_64), batch, node, tree};
                },
                nb::arg("data"), nb::arg("is_64"), nb::arg("batch_stride"), nb::arg("node_stride"),
                nb::arg("tree_stride") = 0);
    };
    bind_heads.operator()<HeadsView>("HeadsView", static_cast<const void*>(nullptr));
    bind_heads.operator()<HeadsOut>("HeadsOut", static_cast<void*>(nullptr));
    nb::class_<Options>(entries, "Options")
        .def(
            "__init__",
            [](Options* self, bool single_root, bool projective, int threads) {
                new (self) Options{single_root ? Root::single : Root::multi, projective, threads, {}};
            },
            nb::arg("single_root"), nb::arg("projective"), nb::arg("threads"));

    entries.def(
        "log_partition",
        [](const ScoresView& scores, const Options& given, Address log_z, Address status) {
            call(given,
                 [&](const Options& options) { log_partition(scores, options, at<void>(log_z), status_at(status)); });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("log_z"), nb::arg("status"));
    entries.def(
        "marginals",
        [](const ScoresView& scores, const Options& given, Address log_z, const EdgesOut& out, Address status) {
            call(given,
                 [&](const Options& options) { marginals(scores, options, at<void>(log_z), out, status_at(status)); });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("log_z"), nb::arg("marginals"), nb::arg("status"));
    entries.def(
        "hessian",
        [](const ScoresView& scores, const Options& given, int directions, const EdgesView& g, const EdgesOut& out,
           Address status) {
            call(given,
                 [&](const Options& options) { hessian(scores, options, directions, g, out, status_at(status)); });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("directions"), nb::arg("g"), nb::arg("out"), nb::arg("status"));
    entries.def(
        "third",
        [](const ScoresView& scores, const Options& given, int directions, const EdgesView& u, const EdgesView& g,
           const EdgesOut& out, Address status) {
            call(given,
                 [&](const Options& options) { third(scores, options, directions, u, g, out, status_at(status)); });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("directions"), nb::arg("u"), nb::arg("g"), nb::arg("out"),
        nb::arg("status"));
    entries.def(
        "entropy",
        [](const ScoresView& scores, const Options& given, Address value, const EdgesOut& gradient, Address status) {
            call(given, [&](const Options& options) {
                entropy(scores, options, at<void>(value), gradient, status_at(status));
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("entropy"), nb::arg("gradient"), nb::arg("status"));
    entries.def(
        "expectation",
        [](const ScoresView& scores, const Options& given, int directions, const EdgesView& values,
           Address expectations, const EdgesOut& gradients, Address status) {
            call(given, [&](const Options& options) {
                expectation(scores, options, directions, values, at<void>(expectations), gradients, status_at(status));
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("directions"), nb::arg("values"), nb::arg("expectations"),
        nb::arg("gradients"), nb::arg("status"));
    const auto bind_comparison = [&](const char* name, auto compare) {
        entries.def(
            name,
            [compare](const ScoresView& p, const ScoresView& q, const Options& given, Address value,
                      const EdgesOut& gradient_p, const EdgesOut& gradient_q, Address status_p, Address status_q) {
                call(given, [&](const Options& options) {
                    compare(p, q, options, at<void>(value), gradient_p, gradient_q, status_at(status_p),
                            status_at(status_q));
                });
            },
            nb::arg("p"), nb::arg("q"), nb::arg("options"), nb::arg("value"), nb::arg("gradient_p"),
            nb::arg("gradient_q"), nb::arg("status_p"), nb::arg("status_q"));
    };
    bind_comparison("cross_entropy", &cross_entropy);
    bind_comparison("kl", &kl);
    entries.def(
        "crf_loss",
        [](const ScoresView& scores, const Options& given, const HeadsView& heads, const HeadsView& labels,
           Address loss, const EdgesOut& gradient, Address status) {
            call(given, [&](const Options& options) {
                crf_loss(scores, options, heads, labels, at<void>(loss), gradient, status_at(status));
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("heads"), nb::arg("labels"), nb::arg("loss"),
        nb::arg("gradient"), nb::arg("status"));
    entries.def(
        "log_prob",
        [](const ScoresView& scores, const Options& given, std::int64_t trees, const HeadsView& heads,
           const HeadsView& labels, Address log_probs, Address status) {
            call(given, [&](const Options& options) {
                log_prob(scores, options, trees, heads, labels, at<void>(log_probs), status_at(status));
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("trees"), nb::arg("heads"), nb::arg("labels"),
        nb::arg("log_probs"), nb::arg("status"));
    entries.def(
        "argmax",
        [](const ScoresView& scores, const Options& given, const HeadsOut& heads, const HeadsOut& labels, Address best,
           Address status) {
            call(given, [&](const Options& options) {
                argmax(scores, options, heads, labels, at<void>(best), status_at(status));
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("heads"), nb::arg("labels"), nb::arg("best"), nb::arg("status"));
    entries.def(
        "topk",
        [](const ScoresView& scores, const Options& given, std::int64_t k, const HeadsOut& heads,
           const HeadsOut& labels, Address best, Address status) {
            call(given, [&](const Options& options) {
                topk(scores, options, k, heads, labels, at<void>(best), status_at(status));
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("k"), nb::arg("heads"), nb::arg("labels"), nb::arg("best"),
        nb::arg("status"));
    entries.def(
        "sample",
        [](const ScoresView& scores, const Options& given, std::int64_t k, Address keys, const HeadsOut& heads,
           const HeadsOut& labels, Address status) {
            call(given, [&](const Options& options) {
                sample(scores, options, k, at<const std::uint64_t>(keys), heads, labels, status_at(status));
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("k"), nb::arg("keys"), nb::arg("heads"), nb::arg("labels"),
        nb::arg("status"));
    entries.def(
        "sample_without_replacement",
        [](const ScoresView& scores, const Options& given, std::int64_t k, Address keys, const HeadsOut& heads,
           const HeadsOut& labels, Address log_probs, Address gumbel_keys, Address threshold, Address log_left,
           Address status) {
            const DistinctOut out{
                heads, labels, at<void>(log_probs), at<void>(gumbel_keys), at<void>(threshold), at<void>(log_left)};
            call(given, [&](const Options& options) {
                sample_without_replacement(scores, options, k, at<const std::uint64_t>(keys), out, status_at(status));
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("k"), nb::arg("keys"), nb::arg("heads"), nb::arg("labels"),
        nb::arg("log_probs"), nb::arg("gumbel_keys"), nb::arg("threshold"), nb::arg("log_left"), nb::arg("status"));
    entries.def("default_threads", &default_threads);
    entries.def("set_default_threads", &set_default_threads, nb::arg("threads"));
}

}  // namespace spantree::bindings
