// Plain NumPy arrays, read where they lie: a look at a handful of fields instead of a call through the array protocols.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>

#include "spantree/batch/sentence.hpp"

namespace spantree::bindings {

namespace nb = nanobind;

/// The first fields of NumPy's PyArrayObject, which have not changed since NumPy 1.7 and are part of its ABI.
struct NumpyFields {
    PyObject base;
    void* data;
    int axes;
    const Py_ssize_t* shape;
    const Py_ssize_t* strides;  // in bytes
    PyObject* owner;
    PyObject* dtype;
    int flags;
};

inline constexpr int numpy_c_order = 0x1, numpy_fortran_order = 0x2, numpy_aligned = 0x100;

/// What is needed of NumPy. Lives as long as the process.
struct Numpy {
    PyObject *ndarray, *empty, *float32, *float64, *int64;

    static const Numpy& get() {
        static const Numpy numpy;
        return numpy;
    }

private:
    Numpy() {
        const auto module = nb::module_::import_("numpy");
        const auto keep = [](nb::object object) { return object.release().ptr(); };
        ndarray = keep(module.attr("ndarray"));
        empty = keep(module.attr("empty"));
        float32 = keep(module.attr("dtype")("float32"));
        float64 = keep(module.attr("dtype")("float64"));
        int64 = keep(module.attr("dtype")("int64"));
    }
};

/// The fields of an array that is no subclass, aligned, and in C or Fortran order; null for anything else.
inline const NumpyFields* plain_array(PyObject* object) {
    if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != Numpy::get().ndarray) return nullptr;
    const auto* fields = reinterpret_cast<const NumpyFields*>(object);
    const bool ordered = fields->flags & (numpy_c_order | numpy_fortran_order);
    return ordered && (fields->flags & numpy_aligned) ? fields : nullptr;
}

/// numpy.empty(shape, dtype), and where its entries lie.
inline nb::object new_array(const nb::object& shape, PyObject* dtype, void** data) {
    PyObject* arguments[] = {shape.ptr(), dtype};
    PyObject* made = PyObject_Vectorcall(Numpy::get().empty, arguments, 2, nullptr);
    if (!made) throw nb::python_error();
    *data = reinterpret_cast<NumpyFields*>(made)->data;
    return nb::steal(made);
}

inline nb::object new_heads(Py_ssize_t size, Heads** data) {
    void* entries = nullptr;
    nb::object result = new_array(nb::steal(PyLong_FromSsize_t(size)), Numpy::get().int64, &entries);
    *data = static_cast<Heads*>(entries);
    return result;
}

}  // namespace spantree::bindings
