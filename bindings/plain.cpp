// The short way to the best trees of plain NumPy arrays: one matrix or a list of them, float32 or float64; and to log Z and
// marginals of an array of matrices.
//
// Whatever is not as plain as that, has a bad score or no tree is left to the long way, which says what is wrong.
#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include "batch.hpp"
#include "plain_array.hpp"

namespace spantree::bindings {

namespace {

/// A sentence's matrix, its axes turned if `dep_major`; nothing if it is none.
template <class T>
std::optional<Sentence<T>> plain_sentence(PyObject* object, PyObject* dtype, bool dep_major) {
    const NumpyFields* array = plain_array(object);
    if (!array || array->axes != 2 || array->dtype != dtype) return std::nullopt;
    const Py_ssize_t nodes = array->shape[0];
    if (nodes != array->shape[1] || nodes < 1 || nodes > library::most_nodes) return std::nullopt;
    const std::ptrdiff_t rows = array->strides[0] / static_cast<Py_ssize_t>(sizeof(T)),
                         columns = array->strides[1] / static_cast<Py_ssize_t>(sizeof(T));
    return Sentence<T>{static_cast<const T*>(array->data),
                       static_cast<int>(nodes - 1),
                       dep_major ? columns : rows,
                       dep_major ? rows : columns,
                       0,
                       0};
}

/// Whether all sentences have a tree, and scores that are scores.
bool found_all(const library::Batch& batch, Root root, int threads, const library::TreesOut& trees) {
    return library::all_well(call({root, false, threads, {}}, [&](const Options& options) {
        return library::argmax(batch, options, trees, nullptr);
    }));
}

/// The search in a sentence of so many words takes a few microseconds: to let other threads of Python in meanwhile would take
/// almost as long.
constexpr int words_worth_the_gil = 50;

template <class T>
nb::object one(PyObject* matrix, PyObject* dtype, bool dep_major, Root root) {
    const auto sentence = plain_sentence<T>(matrix, dtype, dep_major);
    if (!sentence) return nb::none();
    Heads* heads = nullptr;
    nb::object result = new_heads(sentence->words + 1, &heads);
    const auto search = [&](const Options& options) { return library::best_tree(*sentence, options, heads); };
    const Options options{root, false, 1, {}};
    const std::int32_t status = sentence->words < words_worth_the_gil ? search(options) : call(options, search);
    return status == 0 ? result : nb::none();
}

template <class T>
nb::object several(const nb::list& given, PyObject* dtype, bool dep_major, Root root, int threads) {
    // A list of our own: the caller's may change while the GIL is released.
    const auto matrices = nb::steal<nb::list>(PyList_GetSlice(given.ptr(), 0, PY_SSIZE_T_MAX));
    std::vector<Sentence<T>> sentences;
    sentences.reserve(matrices.size());
    for (const nb::handle matrix : matrices) {
        const auto sentence = plain_sentence<T>(matrix.ptr(), dtype, dep_major);
        if (!sentence) return nb::none();
        sentences.push_back(*sentence);
    }
    const FlatBatch batch(std::move(sentences), dep_major);
    std::vector<Heads> heads(static_cast<std::size_t>(batch.row_size));
    if (!found_all(batch.batch, root, threads, batch.trees(heads.data(), nullptr))) return nb::none();
    nb::list result;
    for (const library::Place& place : batch.places) {
        Heads* row = nullptr;
        result.append(new_heads(place.width, &row));
        std::copy_n(heads.data() + place.row, place.width, row);
    }
    return result;
}

PyObject* dtype_of(PyObject* object) {
    const NumpyFields* array = plain_array(object);
    return array ? array->dtype : nullptr;
}

/// Heads of the best tree of one matrix, or of each matrix in a list; None if this is not for the short way.
nb::object decode_plain(nb::handle scores, bool single_root, bool dep_major, int threads) {
    const Root root = single_root ? Root::single : Root::multi;
    const Numpy& numpy = Numpy::get();
    if (!PyList_CheckExact(scores.ptr())) {
        PyObject* dtype = dtype_of(scores.ptr());
        if (dtype == numpy.float32) return one<float>(scores.ptr(), dtype, dep_major, root);
        if (dtype == numpy.float64) return one<double>(scores.ptr(), dtype, dep_major, root);
        return nb::none();
    }
    const auto list = nb::borrow<nb::list>(scores);
    if (list.size() == 0) return nb::none();
    PyObject* dtype = dtype_of(list[0].ptr());
    if (dtype == numpy.float32) return several<float>(list, dtype, dep_major, root, threads);
    if (dtype == numpy.float64) return several<double>(list, dtype, dep_major, root, threads);
    return nb::none();
}

/// What is asked about each matrix of an array (sentences, n+1, n+1), or about the one of (n+1, n+1).
enum class Question { log_partition, marginals };

template <class T>
nb::object answer(const NumpyFields& array, Question question, bool dep_major, Root root, int threads) {
    constexpr bool floats = std::is_same_v<T, float>;
    const bool one = array.axes == 2;
    const Py_ssize_t sentences = one ? 1 : array.shape[0], nodes = array.shape[array.axes - 1];
    const auto stride = [&](int axis) { return array.strides[axis] / static_cast<Py_ssize_t>(sizeof(T)); };
    const std::ptrdiff_t rows = stride(array.axes - 2), columns = stride(array.axes - 1);
    ScoresView scores;
    scores.data = array.data;
    scores.dtype = floats ? DType::f32 : DType::f64;
    scores.batch = sentences;
    scores.nodes = static_cast<int>(nodes);
    scores.batch_stride = one ? 0 : stride(0);
    scores.head_stride = dep_major ? columns : rows;
    scores.dep_stride = dep_major ? rows : columns;
    const bool of_edges = question == Question::marginals;
    void* out = nullptr;
    const nb::object result = new_array(!of_edges ? nb::object(nb::int_(sentences))
                                        : one     ? nb::object(nb::make_tuple(nodes, nodes))
                                                  : nb::object(nb::make_tuple(sentences, nodes, nodes)),
                                        array.dtype, &out);
    const EdgesOut edges{out, scores.dtype, nodes * nodes, dep_major ? 1 : nodes, dep_major ? nodes : 1};
    library::Statuses statuses(static_cast<std::size_t>(sentences));
    const Status status{statuses.data()};
    const bool well = call({root, false, threads, {}}, [&](const Options& options) {
        if (of_edges)
            marginals(scores, options, nullptr, edges, status);
        else
            log_partition(scores, options, out, status);
        return library::all_well(statuses);
    });
    if (!well) return nb::none();
    return one && !of_edges ? nb::object(result[0]) : result;  // a number
}

nb::object ask_plain(nb::handle scores, Question question, bool single_root, bool dep_major, int threads) {
    const Root root = single_root ? Root::single : Root::multi;
    const Numpy& numpy = Numpy::get();
    const NumpyFields* array = plain_array(scores.ptr());
    if (!array || (array->axes != 2 && array->axes != 3) || !(array->flags & numpy_c_order)) return nb::none();
    const Py_ssize_t nodes = array->shape[array->axes - 1];
    if (array->shape[0] < 1 || nodes != array->shape[array->axes - 2] || nodes < 2 || nodes > library::most_nodes)
        return nb::none();
    if (array->dtype == numpy.float32) return answer<float>(*array, question, dep_major, root, threads);
    if (array->dtype == numpy.float64) return answer<double>(*array, question, dep_major, root, threads);
    return nb::none();
}

/// log Z of each matrix of an array; None if this is not for the short way.
nb::object log_partition_plain(nb::handle scores, bool single_root, bool dep_major, int threads) {
    return ask_plain(scores, Question::log_partition, single_root, dep_major, threads);
}

/// Marginals of each matrix of an array; None if this is not for the short way.
nb::object marginals_plain(nb::handle scores, bool single_root, bool dep_major, int threads) {
    return ask_plain(scores, Question::marginals, single_root, dep_major, threads);
}

}  // namespace

void bind_plain(nb::module_& module) {
    Numpy::get();  // now: whoever imports gives up the GIL, and the next thread to come would keep it while it waits
    const auto add = [&](const char* name, auto function) {
        module.def(name, function, nb::arg("scores").none(), nb::arg("single_root"), nb::arg("dep_major"),
                   nb::arg("threads"));
    };
    add("decode_plain", &decode_plain);
    add("log_partition_plain", &log_partition_plain);
    add("marginals_plain", &marginals_plain);
}

}  // namespace spantree::bindings
