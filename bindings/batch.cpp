#include "batch.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <tuple>

namespace arbora::bindings {

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
BadScore first_bad(const Batch& batch) {
    return std::visit(
        [&]<class T>(const std::vector<Sentence<T>>& sentences) -> BadScore {
            for (std::size_t i = 0; i < sentences.size(); ++i) {
                if (!batch.survey<T>(i).bad) continue;
                const LabelledEdge bad = first_bad_score(sentences[i]);
                return std::tuple(i, bad.head, bad.dep, bad.label);
            }
            return std::nullopt;
        },
        batch.sentences);
}

void survey_all(Batch& batch, int threads) {
    std::visit(
        [&]<class T>(const std::vector<Sentence<T>>& sentences) {
            auto& surveys = batch.surveys.emplace<Surveys<T>>();
            surveys.of_sentence.resize(sentences.size());
            if (!batch.labels) {
                surveys.best.resize(static_cast<std::size_t>(batch.row_size));
                surveys.head.resize(static_cast<std::size_t>(batch.row_size));
            }
        },
        batch.sentences);
    if (batch.edge_size < worth_a_thread) threads = 1;
    for_each_sentence(
        batch, threads, [] { return nullptr; },
        [&]<class T>(auto&, const Sentence<T>& sentence, const Place& place, std::size_t i, StopSignal&) {
            auto& surveys = std::get<Surveys<T>>(batch.surveys);
            surveys.of_sentence[i] =
                sentence.labels ? survey_labels(sentence)
                                : survey(sentence, surveys.best.data() + place.row, surveys.head.data() + place.row);
        });
}

Batch padded(const Scores& array, const std::optional<Lengths>& lengths, bool labelled, bool dep_major, int threads) {
    Batch batch;
    is_float(array) ? add_padded<float>(batch, array, lengths, labelled)
                    : add_padded<double>(batch, array, lengths, labelled);
    batch.dep_major = dep_major;
    survey_all(batch, threads);
    return batch;
}

Batch ragged(const nb::list& arrays, bool labelled, bool dep_major, int threads) {
    Batch batch;
    const bool single_precision = arrays.size() > 0 && is_float(nb::cast<Scores>(arrays[0]));
    single_precision ? add_ragged<float>(batch, arrays, labelled) : add_ragged<double>(batch, arrays, labelled);
    batch.dep_major = dep_major;
    survey_all(batch, threads);
    return batch;
}

}  // namespace

void bind_batch(nb::module_& module) {
    nb::class_<Batch>(module, "Batch")
        .def_static("padded", &padded, nb::arg("scores"), nb::arg("lengths").none(), nb::arg("labelled"),
                    nb::arg("dep_major"), nb::arg("threads"))
        .def_static("ragged", &ragged, nb::arg("scores"), nb::arg("labelled"), nb::arg("dep_major"), nb::arg("threads"))
        .def("first_bad", &first_bad)
        .def_ro("row_size", &Batch::row_size)
        .def_ro("edge_size", &Batch::edge_size)
        .def_ro("max_words", &Batch::max_words)
        .def("__len__", &Batch::size);
}

}  // namespace arbora::bindings
