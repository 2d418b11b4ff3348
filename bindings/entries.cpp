// The C++ library's own entries (spantree/spantree.hpp) for hosts that have pointers: addresses and strides go in, nothing is
// copied, the GIL is released. Whoever calls keeps the memory alive. Every question returns what became of the sentences: None
// if all is well, or else a number for each (Status in spantree.hpp).
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>
#include <vector>

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

std::size_t batch_of(const ScoresView& scores) {
    return static_cast<std::size_t>(std::max<std::int64_t>(scores.batch, 0));
}

/// What became of each sentence; None if all is well, as it nearly always is.
nb::object said(const std::vector<std::int32_t>& status) {
    if (std::all_of(status.begin(), status.end(), [](std::int32_t word) { return word == 0; })) return nb::none();
    nb::list all;
    for (const std::int32_t word : status) all.append(word);
    return all;
}

/// Calls entry(options, status) with the GIL released and Ctrl-C heard.
template <class Entry>
nb::object ask(const ScoresView& scores, const Options& given, Entry entry) {
    std::vector<std::int32_t> status(batch_of(scores));
    call(given, [&](const Options& options) { entry(options, Status{status.data()}); });
    return said(status);
}

/// Shape or strides of a tensor; counted from the end if i is negative, as in Python.
Py_ssize_t along(const nb::tuple& axes, int i) {
    const Py_ssize_t size = PyTuple_Size(axes.ptr());
    PyObject* const item = PyTuple_GetItem(axes.ptr(), i < 0 ? size + i : i);
    const Py_ssize_t number = item ? PyLong_AsSsize_t(item) : -1;
    if (PyErr_Occurred()) throw nb::python_error();
    return number;
}

HeadsView heads_at(Address data, bool are_64, const nb::tuple& strides, bool in_batch) {
    if (!data) return {};
    return {at<const void>(data), int_type_of(are_64), in_batch ? along(strides, 0) : 0, along(strides, -1)};
}

/// crf_loss of tensors (n+1, n+1[, labels]), or with an axis before these, in one call: for short sentences, the way to the
/// core takes longer than what it does there.
nb::object crf_loss_of_tensors(const nb::tuple& shape, bool labelled, const Options& given, Address scores,
                               bool is_double, const nb::tuple& strides, Address lengths, bool lengths_are_64,
                               Address heads, bool heads_are_64, const nb::tuple& heads_strides, Address labels,
                               bool labels_are_64, const nb::tuple& labels_strides, Address loss, Address gradient,
                               const nb::tuple& gradient_strides, bool partial, std::optional<double> weight) {
    const int axes = labelled ? 3 : 2;
    const bool in_batch = PyTuple_Size(shape.ptr()) > axes;
    const ScoresView view{at<const void>(scores),
                          dtype_of(is_double),
                          in_batch ? along(shape, 0) : 1,
                          static_cast<int>(along(shape, -axes)),
                          labelled ? static_cast<int>(along(shape, -1)) : 0,
                          in_batch ? along(strides, 0) : 0,
                          along(strides, -axes),
                          along(strides, 1 - axes),
                          labelled ? along(strides, -1) : 0,
                          at<const void>(lengths),
                          int_type_of(lengths_are_64)};
    EdgesOut out;
    if (gradient)
        out = {at<void>(gradient), view.dtype, in_batch ? along(gradient_strides, 0) : 0,
               along(gradient_strides, -axes), along(gradient_strides, 1 - axes)};
    const HeadsView trees = heads_at(heads, heads_are_64, heads_strides, in_batch),
                    tree_labels = heads_at(labels, labels_are_64, labels_strides, in_batch);
    return ask(view, given, [&](const Options& options, Status status) {
        crf_loss(view, options, trees, tree_labels, at<void>(loss), out, status, partial, weight);
    });
}

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
        [](const ScoresView& scores, const Options& given, Address log_z) {
            return ask(scores, given, [&](const Options& options, Status status) {
                log_partition(scores, options, at<void>(log_z), status);
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("log_z"));
    entries.def(
        "marginals",
        [](const ScoresView& scores, const Options& given, Address log_z, const EdgesOut& out) {
            return ask(scores, given, [&](const Options& options, Status status) {
                marginals(scores, options, at<void>(log_z), out, status);
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("log_z"), nb::arg("marginals"));
    entries.def(
        "hessian",
        [](const ScoresView& scores, const Options& given, int directions, const EdgesView& g, const EdgesOut& out) {
            return ask(scores, given, [&](const Options& options, Status status) {
                hessian(scores, options, directions, g, out, status);
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("directions"), nb::arg("g"), nb::arg("out"));
    entries.def(
        "third",
        [](const ScoresView& scores, const Options& given, int directions, const EdgesView& u, const EdgesView& g,
           const EdgesOut& out) {
            return ask(scores, given, [&](const Options& options, Status status) {
                third(scores, options, directions, u, g, out, status);
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("directions"), nb::arg("u"), nb::arg("g"), nb::arg("out"));
    entries.def(
        "relative_scores",
        [](const ScoresView& scores, const Options& given, const EdgesOut& out) {
            return ask(scores, given,
                       [&](const Options& options, Status status) { relative_scores(scores, options, out, status); });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("out"));
    entries.def(
        "entropy",
        [](const ScoresView& scores, const Options& given, Address value, const EdgesOut& gradient) {
            return ask(scores, given, [&](const Options& options, Status status) {
                entropy(scores, options, at<void>(value), gradient, status);
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("entropy"), nb::arg("gradient"));
    entries.def(
        "expectation",
        [](const ScoresView& scores, const Options& given, int directions, const EdgesView& values,
           Address expectations, const EdgesOut& gradients) {
            return ask(scores, given, [&](const Options& options, Status status) {
                expectation(scores, options, directions, values, at<void>(expectations), gradients, status);
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("directions"), nb::arg("values"), nb::arg("expectations"),
        nb::arg("gradients"));
    const auto bind_comparison = [&](const char* name, auto compare) {
        entries.def(
            name,
            [compare](const ScoresView& p, const ScoresView& q, const Options& given, Address value,
                      const EdgesOut& gradient_p, const EdgesOut& gradient_q) {
                std::vector<std::int32_t> of_q(batch_of(q));
                const nb::object of_p = ask(p, given, [&](const Options& options, Status status) {
                    compare(p, q, options, at<void>(value), gradient_p, gradient_q, status, {of_q.data()});
                });
                return nb::make_tuple(of_p, said(of_q));
            },
            nb::arg("p"), nb::arg("q"), nb::arg("options"), nb::arg("value"), nb::arg("gradient_p"),
            nb::arg("gradient_q"));
    };
    bind_comparison("cross_entropy", &cross_entropy);
    bind_comparison("kl", &kl);
    entries.def(
        "crf_loss",
        [](const ScoresView& scores, const Options& given, const HeadsView& heads, const HeadsView& labels,
           Address loss, const EdgesOut& gradient, bool partial, std::optional<double> weight) {
            return ask(scores, given, [&](const Options& options, Status status) {
                crf_loss(scores, options, heads, labels, at<void>(loss), gradient, status, partial, weight);
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("heads"), nb::arg("labels"), nb::arg("loss"),
        nb::arg("gradient"), nb::arg("partial"), nb::arg("weight").none());
    entries.def("crf_loss_of_tensors", &crf_loss_of_tensors, nb::arg("shape"), nb::arg("labelled"), nb::arg("options"),
                nb::arg("scores"), nb::arg("is_double"), nb::arg("strides"), nb::arg("lengths"),
                nb::arg("lengths_are_64"), nb::arg("heads"), nb::arg("heads_are_64"), nb::arg("heads_strides"),
                nb::arg("labels"), nb::arg("labels_are_64"), nb::arg("labels_strides"), nb::arg("loss"),
                nb::arg("gradient"), nb::arg("gradient_strides"), nb::arg("partial"), nb::arg("weight").none());
    entries.def(
        "log_prob",
        [](const ScoresView& scores, const Options& given, std::int64_t trees, const HeadsView& heads,
           const HeadsView& labels, Address log_probs) {
            return ask(scores, given, [&](const Options& options, Status status) {
                log_prob(scores, options, trees, heads, labels, at<void>(log_probs), status);
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("trees"), nb::arg("heads"), nb::arg("labels"),
        nb::arg("log_probs"));
    entries.def(
        "argmax",
        [](const ScoresView& scores, const Options& given, const HeadsOut& heads, const HeadsOut& labels,
           Address best) {
            return ask(scores, given, [&](const Options& options, Status status) {
                argmax(scores, options, heads, labels, at<void>(best), status);
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("heads"), nb::arg("labels"), nb::arg("best"));
    entries.def(
        "topk",
        [](const ScoresView& scores, const Options& given, std::int64_t k, const HeadsOut& heads,
           const HeadsOut& labels, Address best) {
            return ask(scores, given, [&](const Options& options, Status status) {
                topk(scores, options, k, heads, labels, at<void>(best), status);
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("k"), nb::arg("heads"), nb::arg("labels"), nb::arg("best"));
    entries.def(
        "sample",
        [](const ScoresView& scores, const Options& given, std::int64_t k, Address keys, const HeadsOut& heads,
           const HeadsOut& labels) {
            return ask(scores, given, [&](const Options& options, Status status) {
                sample(scores, options, k, at<const std::uint64_t>(keys), heads, labels, status);
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("k"), nb::arg("keys"), nb::arg("heads"), nb::arg("labels"));
    entries.def(
        "sample_without_replacement",
        [](const ScoresView& scores, const Options& given, std::int64_t k, Address keys, const HeadsOut& heads,
           const HeadsOut& labels, Address log_probs, Address gumbel_keys, Address threshold, Address log_left) {
            const DistinctOut out{
                heads, labels, at<void>(log_probs), at<void>(gumbel_keys), at<void>(threshold), at<void>(log_left)};
            return ask(scores, given, [&](const Options& options, Status status) {
                sample_without_replacement(scores, options, k, at<const std::uint64_t>(keys), out, status);
            });
        },
        nb::arg("scores"), nb::arg("options"), nb::arg("k"), nb::arg("keys"), nb::arg("heads"), nb::arg("labels"),
        nb::arg("log_probs"), nb::arg("gumbel_keys"), nb::arg("threshold"), nb::arg("log_left"));
    entries.def("default_threads", &default_threads);
    entries.def("set_default_threads", &set_default_threads, nb::arg("threads"));
}

}  // namespace spantree::bindings
