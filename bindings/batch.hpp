// What all bindings have in common: arrays, batches of them, and calls into the library.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <optional>
#include <stdexcept>
#include <vector>

#include "../library/questions.hpp"
#include "ending.hpp"

namespace spantree::bindings {

namespace nb = nanobind;

using library::FlatBatch;

using Flat64 = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix64 = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using MatrixOfFlags = nb::ndarray<bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using FlatHeads = nb::ndarray<Heads, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
/// Heads that callers hand in may be read-only, lie at odd addresses and change while they are looked at.
using HeadsIn = nb::ndarray<const Heads, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Keys = nb::ndarray<const std::uint64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;

/// Calls ask(options) with the GIL released and Ctrl-C heard.
template <class Ask>
auto call(Options options, Ask ask) {
    leave_if_ending();
    const bool keeps_gil = is_ending();
    options.stop = [keeps_gil] {
        const nb::gil_scoped_acquire gil;
        return PyErr_CheckSignals() != 0 || is_ending() != keeps_gil;
    };
    try {
        if (keeps_gil) return ask(options);
        const CallWithoutGil under_way;
        const nb::gil_scoped_release released;
        return ask(options);
    } catch (const Interrupted&) {
        if (!PyErr_Occurred()) leave_if_ending();
        throw nb::python_error();
    }
}

/// For every sentence a word that cannot be attached: 0 where there is a tree, -1 where a score is bad; none if all have one.
using Words = nb::ndarray<nb::numpy, Heads, nb::ndim<1>>;
std::optional<Words> unattachable(const library::Statuses& statuses);

/// The data of an array, null if there is none.
template <class Array>
auto data_of(const std::optional<Array>& array) {
    return array ? array->data() : nullptr;
}

void bind_ending(nb::module_& module);
void bind_batch(nb::module_& module);
void bind_lent_memory(nb::module_& module);
void bind_plain(nb::module_& module);
void bind_decode(nb::module_& module);
void bind_inference(nb::module_& module);
void bind_sampling(nb::module_& module);
void bind_annotation(nb::module_& module);
void bind_entries(nb::module_& module);
void bind_xla(nb::module_& module);

}  // namespace spantree::bindings
