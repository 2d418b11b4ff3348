#include "batch.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "spantree/batch/check.hpp"

namespace spantree::bindings {

namespace {

using Scores = nb::ndarray<nb::ro, nb::device::cpu>;
using Lengths = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
Sentence<T> view(const Scores& array, std::size_t first_axis, const T* data, int words, bool labelled) {
    return Sentence<T>{data,
                       words,
                       array.stride(first_axis),
                       array.stride(first_axis + 1),
                       labelled ? static_cast<int>(array.shape(first_axis + 2)) : 0,
                       labelled ? array.stride(first_axis + 2) : 0};
}

template <class T>
void add_padded(Batch& batch, const Scores& array, const std::optional<Lengths>& lengths, bool labelled) {
    auto& sentences = batch.sentences.emplace<std::vector<Sentence<T>>>();
    const std::size_t count = array.shape(0);
    const int width = static_cast<int>(array.shape(1));
    const std::ptrdiff_t cell = labelled ? static_cast<std::ptrdiff_t>(array.shape(3)) : 1;
    const T* data = static_cast<const T*>(array.data());
    sentences.reserve(count);
    batch.places.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(i);
        const int words = lengths ? static_cast<int>((*lengths)(i)) : width - 1;
        sentences.push_back(view<T>(array, 1, data + at * array.stride(0), words, labelled));
        batch.places.push_back({at * width, at * width * width * cell, width});
        batch.max_words = std::max(batch.max_words, words);
    }
    batch.labels = labelled ? static_cast<int>(cell) : 0;
    batch.row_size = static_cast<std::ptrdiff_t>(count) * width;
    batch.edge_size = batch.row_size * width * cell;
}

template <class T>
void add_ragged(Batch& batch, const nb::list& arrays, bool labelled) {
    auto& sentences = batch.sentences.emplace<std::vector<Sentence<T>>>();
    sentences.reserve(arrays.size());
    batch.places.reserve(arrays.size());
    for (const nb::handle item : arrays) {
        const auto array = nb::cast<Scores>(item);
        const int width = static_cast<int>(array.shape(0));
        const auto sentence = view<T>(array, 0, static_cast<const T*>(array.data()), width - 1, labelled);
        sentences.push_back(sentence);
        batch.places.push_back({batch.row_size, batch.edge_size, width});
        batch.max_words = std::max(batch.max_words, width - 1);
        batch.labels = sentence.labels;
        batch.row_size += width;
        batch.edge_size += static_cast<std::ptrdiff_t>(width) * width * (labelled ? sentence.labels : 1);
    }
}

bool is_float(const Scores& array) {
    if (array.dtype() == nb::dtype<float>()) return true;
    if (array.dtype() == nb::dtype<double>()) return false;
    throw std::invalid_argument("scores must be float32 or float64");
}

using BadScore = std::optional<std::tuple<std::size_t, int, int, int>>;

/// Sentence, head, dep, label of the first score that is NaN or +inf.
BadScore first_bad(const Batch& batch, int threads) {
    const std::size_t count = batch.size(), piece = batch.grain();
    if (batch.edge_size < worth_a_thread) threads = 1;
    StopSignal stop = python_stop_signal();
    std::atomic<std::size_t> bad = count;
    const auto look = [&](const auto& sentences, std::size_t at) {
        const std::size_t begin = at * piece, end = std::min(begin + piece, count);
        const std::size_t found = first_bad_sentence(sentences, begin, end);
        if (found == end) return;
        for (std::size_t first = bad; found < first && !bad.compare_exchange_weak(first, found);) continue;
    };
    {
        const nb::gil_scoped_release released;
        std::visit(
            [&](const auto& sentences) {
                const std::size_t pieces = (count + piece - 1) / piece;
                parallel_for(
                    pieces, 1, threads, stop, [] { return nullptr; },
                    [&](auto&, std::size_t at) { look(sentences, at); });
            },
            batch.sentences);
    }
    raise_if_stopped(stop);
    if (bad == count) return std::nullopt;
    const auto edge =
        std::visit([&](const auto& sentences) { return first_bad_score(sentences[bad]); }, batch.sentences);
    if (!edge) return std::nullopt;  // the scores have changed meanwhile
    return std::tuple(bad.load(), edge->head, edge->dep, edge->label);
}

Batch padded(const Scores& array, const std::optional<Lengths>& lengths, bool labelled, bool dep_major) {
    Batch batch;
    is_float(array) ? add_padded<float>(batch, array, lengths, labelled)
                    : add_padded<double>(batch, array, lengths, labelled);
    batch.dep_major = dep_major;
    return batch;
}

Batch ragged(const nb::list& arrays, bool labelled, bool dep_major) {
    Batch batch;
    const bool single_precision = arrays.size() > 0 && is_float(nb::cast<Scores>(arrays[0]));
    single_precision ? add_ragged<float>(batch, arrays, labelled) : add_ragged<double>(batch, arrays, labelled);
    batch.dep_major = dep_major;
    return batch;
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

void bind_batch(nb::module_& module) {
    module.def("bfloat16_bits", &bfloat16_bits, nb::arg("array"));
    nb::class_<Batch>(module, "Batch")
        .def_static("padded", &padded, nb::arg("scores"), nb::arg("lengths").none(), nb::arg("labelled"),
                    nb::arg("dep_major"))
        .def_static("ragged", &ragged, nb::arg("scores"), nb::arg("labelled"), nb::arg("dep_major"))
        .def("first_bad", &first_bad, nb::arg("threads"))
        .def_ro("row_size", &Batch::row_size)
        .def_ro("edge_size", &Batch::edge_size)
        .def_ro("max_words", &Batch::max_words)
        .def("__len__", &Batch::size);
}

}  // namespace spantree::bindings
