// The sentences of one call, as the core sees them. Holds views; the Python side keeps the arrays alive.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <variant>
#include <vector>

#include "spantree/batch/parallel.hpp"
#include "spantree/batch/sentence.hpp"

namespace spantree::bindings {

namespace nb = nanobind;

using Flat64 = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FlatHeads = nb::ndarray<Heads, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// Where one sentence's results go in flat output buffers. Padded batches: every row is as wide as the longest
/// sentence; ragged ones: rows follow each other. Edge arrays keep the order of axes of the input.
struct Place {
    std::ptrdiff_t row = 0;    // start of its row in an array of one entry per node
    std::ptrdiff_t edges = 0;  // start of its matrix in an array of one entry per edge (times labels)
    int width = 0;             // nodes per row, padding included
};

struct Batch {
    std::variant<std::vector<Sentence<float>>, std::vector<Sentence<double>>> sentences;
    std::vector<Place> places;
    std::ptrdiff_t row_size = 0;   // entries in an array of one entry per node
    std::ptrdiff_t edge_size = 0;  // entries in an array of one entry per edge (times labels)
    int max_words = 0;
    int labels = 0;
    bool dep_major = false;  // edge arrays are [dep, head]

    std::size_t size() const { return places.size(); }

    /// Sentences that a thread takes at a time, if to each of their scores little is done.
    std::size_t grain() const {
        return static_cast<std::size_t>(1 + (1 << 12) / (std::ptrdiff_t{max_words} * max_words + 1));
    }
};

/// Below this many scores in a batch, waking a thread costs more than looking at each of them once.
inline constexpr std::ptrdiff_t worth_a_thread = 1 << 15;

/// What functions that look at every score return if some of them is bad: see Batch.first_bad.
inline constexpr std::int64_t bad_scores = -1;

/// Lets Ctrl-C through while the GIL is released. After the work: `raise_if_stopped`.
inline StopSignal python_stop_signal() {
    return StopSignal([] {
        const nb::gil_scoped_acquire gil;
        return PyErr_CheckSignals() != 0;
    });
}

inline void raise_if_stopped(const StopSignal& stop) {
    if (stop.stopped()) throw nb::python_error();
}

/// Runs body(scratch, sentence, place, index) for every sentence, GIL released, on `threads` threads, which take
/// `grain` sentences at a time.
template <class MakeScratch, class Body>
void for_each_sentence(const Batch& batch, int threads, MakeScratch make_scratch, Body body, std::size_t grain = 1) {
    StopSignal stop = python_stop_signal();
    {
        const nb::gil_scoped_release released;
        std::visit(
            [&](const auto& sentences) {
                parallel_for(sentences.size(), grain, threads, stop, make_scratch, [&](auto& scratch, std::size_t i) {
                    body(scratch, sentences[i], batch.places[i], i, stop);
                });
            },
            batch.sentences);
    }
    raise_if_stopped(stop);
}

void bind_batch(nb::module_& module);
void bind_plain(nb::module_& module);
void bind_decode(nb::module_& module);
void bind_projective(nb::module_& module);
void bind_inference(nb::module_& module);
void bind_sampling(nb::module_& module);
void bind_entries(nb::module_& module);

}  // namespace spantree::bindings
