#include "batch.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <tuple>

namespace spantree::bindings {

namespace {

using Scores = nb::ndarray<nb::ro, nb::device::cpu>;
using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Array>
DType dtype_of(const Array& array) {
    if (array.dtype() == nb::dtype<float>()) return DType::f32;
    if (array.dtype() == nb::dtype<double>()) return DType::f64;
    throw std::invalid_argument("scores must be float32 or float64");
}

FlatBatch padded(const Scores& array, const std::optional<Integers>& lengths, bool labelled, bool dep_major) {
    ScoresView scores;
    scores.data = array.data();
    scores.dtype = dtype_of(array);
    scores.batch = static_cast<std::int64_t>(array.shape(0));
    scores.nodes = static_cast<int>(array.shape(1));
    scores.batch_stride = array.stride(0);
    scores.head_stride = array.stride(1);
    scores.dep_stride = array.stride(2);
    if (labelled) {
        scores.labels = static_cast<int>(array.shape(3));
        scores.label_stride = array.stride(3);
    }
    return FlatBatch(scores, lengths ? lengths->data() : nullptr, dep_major);
}

template <class T>
FlatBatch ragged_of(const nb::list& arrays, bool labelled, bool dep_major) {
    std::vector<Sentence<T>> sentences;
    sentences.reserve(arrays.size());
    for (const nb::handle item : arrays) {
        const auto array = nb::cast<Scores>(item);
        sentences.push_back({static_cast<const T*>(array.data()), static_cast<int>(array.shape(0)) - 1, array.stride(0),
                             array.stride(1), labelled ? static_cast<int>(array.shape(2)) : 0,
                             labelled ? array.stride(2) : 0});
    }
    return FlatBatch(std::move(sentences), dep_major);
}

FlatBatch ragged(const nb::list& arrays, bool labelled, bool dep_major) {
    const bool floats = arrays.size() > 0 && dtype_of(nb::cast<Scores>(arrays[0])) == DType::f32;
    return floats ? ragged_of<float>(arrays, labelled, dep_major) : ragged_of<double>(arrays, labelled, dep_major);
}

/// Sentence, head, dep, label of the first score that is NaN or +inf.
std::optional<std::tuple<std::size_t, int, int, int>> first_bad(const FlatBatch& batch, int threads) {
    const auto bad = call({{}, false, threads, {}},
                          [&](const Options& options) { return library::first_bad(batch.batch, options); });
    if (!bad) return std::nullopt;
    return std::tuple(bad->sentence, bad->head, bad->dep, bad->label);
}

/// The bits of an array of bfloat16 from a library whose arrays NumPy cannot take over.
nb::object bfloat16_bits(const nb::ndarray<nb::ro, nb::device::cpu>& array) {
    constexpr auto bfloat = static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bfloat);
    if (array.dtype().code != bfloat || array.dtype().bits != 16) throw std::invalid_argument("not bfloat16");
    std::vector<std::size_t> shape(array.ndim());
    std::vector<std::int64_t> strides(array.ndim());
    for (std::size_t axis = 0; axis < array.ndim(); ++axis) {
        shape[axis] = array.shape(axis);
        strides[axis] = array.stride(axis);
    }
    nb::ndarray<nb::numpy, const std::uint16_t> bits(array.data(), array.ndim(), shape.data(), nb::handle(),
                                                     strides.data());
    return bits.cast(nb::rv_policy::copy);
}

}  // namespace

std::optional<Words> unattachable(const library::Statuses& statuses) {
    if (library::all_well(statuses)) return std::nullopt;
    auto kept = std::make_unique<std::vector<Heads>>(statuses.begin(), statuses.end());
    const nb::capsule owner(kept.get(), [](void* p) noexcept { delete static_cast<std::vector<Heads>*>(p); });
    std::vector<Heads>& words = *kept.release();
    return Words(words.data(), {words.size()}, owner);
}

void bind_batch(nb::module_& module) {
    nb::enum_<Root>(module, "Root").value("single", Root::single).value("multi", Root::multi);
    module.def("bfloat16_bits", &bfloat16_bits, nb::arg("array"));
    nb::class_<FlatBatch>(module, "Batch")
        .def_static("padded", &padded, nb::arg("scores"), nb::arg("lengths").none(), nb::arg("labelled"),
                    nb::arg("dep_major"))
        .def_static("ragged", &ragged, nb::arg("scores"), nb::arg("labelled"), nb::arg("dep_major"))
        .def("first_bad", &first_bad, nb::arg("threads"))
        .def_ro("row_size", &FlatBatch::row_size)
        .def_ro("edge_size", &FlatBatch::edge_size)
        .def_ro("max_words", &FlatBatch::max_words)
        .def("__len__", [](const FlatBatch& batch) { return batch.places.size(); });
}

}  // namespace spantree::bindings
