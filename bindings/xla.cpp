// The C++ library's entries (spantree/spantree.hpp) as handlers of XLA's foreign function interface: compiled JAX programs
// call them without Python.
//
// Arrays are row-major. Of a batch of any shape (none, if there is one sentence), scores are (*batch, n+1, n+1[, labels]) and
// come first, lengths (*batch) second. What there may be several of has more axes in front: directions
// (*several, *batch, n+1, n+1[, labels]), trees (*several, *batch, n+1). Whoever wants no gradient asks for fewer results.
//
// A handler carries the version of the headers that it was compiled with, and runs on every later jaxlib.
#include <nanobind/nanobind.h>

#include <cfenv>
#include <vector>

#include "spantree/spantree.hpp"

#if __has_include("xla/ffi/api/ffi.h")
#include "xla/ffi/api/ffi.h"
#endif

namespace spantree::bindings {

namespace nb = nanobind;

#if __has_include("xla/ffi/api/ffi.h")

namespace {

namespace ffi = xla::ffi;

// What sort of trees: a sum of these; spantree.jax says the same.
enum Form : std::int32_t { single_root = 1, projective = 2, labelled = 4 };

void expect(bool holds, const char* what) {
    if (!holds) throw InvalidInput(what);
}

DType dtype_of(const ffi::AnyBuffer& buffer) {
    const bool is_double = buffer.element_type() == ffi::DataType::F64;
    expect(is_double || buffer.element_type() == ffi::DataType::F32, "numbers must be float32 or float64");
    return is_double ? DType::f64 : DType::f32;
}

std::int64_t size_of(const ffi::AnyBuffer& buffer) { return static_cast<std::int64_t>(buffer.element_count()); }

/// One call: its arrays as the views that the library takes.
class Call {
public:
    Call(ffi::RemainingArgs arguments, ffi::RemainingRets results, std::int32_t form)
        : arguments_(arguments), results_(results), form_(form) {
        const ffi::AnyBuffer scores = argument(0);
        const auto shape = scores.dimensions();
        const std::size_t axes = form_ & labelled ? 3 : 2;
        expect(shape.size() >= axes && shape[shape.size() - axes] == shape[shape.size() - axes + 1],
               "scores must be (..., n+1, n+1), with labels (..., n+1, n+1, labels)");
        constexpr std::int64_t most = 1 << 20;
        expect(shape[shape.size() - axes] <= most && shape.back() <= most, "scores: more than 2^20 nodes or labels");
        nodes_ = static_cast<int>(shape[shape.size() - axes]);
        labels_ = form_ & labelled ? static_cast<int>(shape.back()) : 0;
        for (std::size_t axis = 0; axis + axes < shape.size(); ++axis) batch_ *= shape[axis];
    }

    Options options() const {
        return {form_ & single_root ? Root::single : Root::multi, (form_ & projective) != 0, 0, {}};
    }
    std::int64_t batch() const { return batch_; }
    std::size_t results() const { return results_.size(); }

    ScoresView scores(std::size_t at = 0) const {
        const ffi::AnyBuffer data = argument(at), lengths = argument(1);
        expect(size_of(data) == batch_ * edges(), "scores of two distributions must have one shape");
        expect(lengths.element_type() == ffi::DataType::S32 && size_of(lengths) == batch_,
               "lengths must be one int32 for each sentence");
        return {data.untyped_data(),    dtype_of(data), batch_, nodes_, labels_, edges(), row(), cell(), 1,
                lengths.untyped_data(), IntType::i32};
    }

    /// How many times as large an argument is as one for each sentence of `size` numbers would be.
    int several(std::size_t at, std::int64_t size) const {
        const std::int64_t once = batch_ * size, all = size_of(argument(at));
        return once == 0 ? 0 : static_cast<int>(all / once);
    }
    int directions(std::size_t at) const { return several(at, edges()); }
    int trees(std::size_t at) const { return several(at, nodes_); }

    EdgesView values(std::size_t at) const {
        const ffi::AnyBuffer data = argument(at);
        expect(size_of(data) == directions(at) * batch_ * edges(), "values of edges must have the shape of the scores");
        return {data.untyped_data(), dtype_of(data), edges(), row(), cell(), 1, batch_ * edges()};
    }

    /// None, if there are fewer results.
    EdgesOut edges_out(std::size_t at, int directions = 1) const {
        if (at >= results()) return {};
        const ffi::AnyBuffer data = result(at);
        expect(size_of(data) == directions * batch_ * edges(), "a result has another shape");
        return {data.untyped_data(), dtype_of(data), edges(), row(), cell(), batch_ * edges()};
    }

    HeadsView heads(std::size_t at) const {
        const ffi::AnyBuffer data = argument(at);
        expect(data.element_type() == ffi::DataType::S32, "heads and labels must be int32");
        if (size_of(data) == 0 && batch_ > 0) return {};
        expect(size_of(data) == trees(at) * batch_ * nodes_, "heads must be (..., n+1)");
        return {data.untyped_data(), IntType::i32, nodes_, 1, batch_ * nodes_};
    }

    /// How many trees for each sentence a result has room for.
    std::int64_t trees_wanted(std::size_t at) const {
        return batch_ == 0 ? 0 : size_of(result(at)) / (batch_ * nodes_);
    }

    /// None, if it is empty, as labels are where there are none.
    HeadsOut heads_out(std::size_t at) const {
        const ffi::AnyBuffer data = result(at);
        if (size_of(data) == 0) return {};
        expect(data.element_type() == ffi::DataType::S32 && size_of(data) == trees_wanted(at) * batch_ * nodes_,
               "a result has another shape");
        return {data.untyped_data(), IntType::i32, nodes_, 1, batch_ * nodes_};
    }

    /// One number for each sentence, `rows` times, in the type of the scores.
    void* numbers_out(std::size_t at, std::int64_t rows = 1) const {
        const ffi::AnyBuffer data = result(at);
        expect(size_of(data) == rows * batch_ && data.element_type() == argument(0).element_type(),
               "a result has another shape");
        return data.untyped_data();
    }

    Status status_out(std::size_t at) const {
        const ffi::AnyBuffer data = result(at);
        expect(size_of(data) == batch_ && data.element_type() == ffi::DataType::S32, "a result has another shape");
        return {static_cast<std::int32_t*>(data.untyped_data())};
    }

    /// 128 bits for each sentence from keys of two or four 32-bit words, the first word lowest.
    std::vector<std::uint64_t> keys(std::size_t at) const {
        const ffi::AnyBuffer data = argument(at);
        const auto words = data.dimensions().size() ? data.dimensions().back() : 0;
        expect(
            data.element_type() == ffi::DataType::U32 && (words == 2 || words == 4) && size_of(data) == batch_ * words,
            "keys must be two or four uint32 for each sentence");
        std::vector<std::uint64_t> result(static_cast<std::size_t>(batch_) * 2, 0);
        const auto* const from = static_cast<const std::uint32_t*>(data.untyped_data());
        for (std::int64_t i = 0; i < batch_; ++i)
            for (std::int64_t word = 0; word < words; ++word)
                result[static_cast<std::size_t>(2 * i + word / 2)] |= std::uint64_t{from[i * words + word]}
                                                                      << (32 * (word % 2));
        return result;
    }

private:
    ffi::AnyBuffer argument(std::size_t at) const {
        const auto found = arguments_.get<ffi::AnyBuffer>(at);
        expect(found.has_value(), "an argument is missing");
        return *found;
    }
    ffi::AnyBuffer result(std::size_t at) const {
        auto found = results_.get<ffi::AnyBuffer>(at);
        expect(found.has_value(), "a result is missing");
        return **found;
    }

    std::ptrdiff_t cell() const { return form_ & labelled ? labels_ : 1; }
    std::ptrdiff_t row() const { return nodes_ * cell(); }
    std::ptrdiff_t edges() const { return nodes_ * row(); }

    ffi::RemainingArgs arguments_;
    ffi::RemainingRets results_;
    std::int32_t form_;
    std::int64_t batch_ = 1;
    int nodes_ = 0, labels_ = 0;
};

// One question each; arguments and results in the order of spantree.hpp, after scores and lengths.

void ask_log_partition(const Call& call) {
    if (call.results() == 1)
        log_partition(call.scores(), call.options(), call.numbers_out(0), {});
    else
        marginals(call.scores(), call.options(), call.numbers_out(0), call.edges_out(1), {});
}

void ask_hessian(const Call& call) {
    const int directions = call.directions(2);
    hessian(call.scores(), call.options(), directions, call.values(2), call.edges_out(0, directions), {});
}

void ask_third(const Call& call) {
    const int directions = call.directions(2);
    expect(directions == call.directions(3), "both directions must have one shape");
    third(call.scores(), call.options(), directions, call.values(2), call.values(3), call.edges_out(0, directions), {});
}

void ask_relative_scores(const Call& call) { relative_scores(call.scores(), call.options(), call.edges_out(0), {}); }

void ask_entropy(const Call& call) {
    entropy(call.scores(), call.options(), call.numbers_out(0), call.edges_out(1), {});
}

void ask_expectation(const Call& call) {
    const int directions = call.directions(2);
    expectation(call.scores(), call.options(), directions, call.values(2), call.numbers_out(0, directions),
                call.edges_out(1, directions), {});
}

void ask_cross_entropy(const Call& call) {
    cross_entropy(call.scores(), call.scores(2), call.options(), call.numbers_out(0), call.edges_out(1),
                  call.edges_out(2), {}, {});
}

void ask_kl(const Call& call) {
    kl(call.scores(), call.scores(2), call.options(), call.numbers_out(0), call.edges_out(1), call.edges_out(2), {},
       {});
}

void ask_crf_loss(const Call& call) {
    crf_loss(call.scores(), call.options(), call.heads(2), call.heads(3), call.numbers_out(0), call.edges_out(1), {});
}

void ask_log_prob(const Call& call) {
    const int trees = call.trees(2);
    log_prob(call.scores(), call.options(), trees, call.heads(2), call.heads(3), call.numbers_out(0, trees), {});
}

void ask_argmax(const Call& call) {
    argmax(call.scores(), call.options(), call.heads_out(0), call.heads_out(1), call.numbers_out(2),
           call.status_out(3));
}

void ask_topk(const Call& call) {
    const std::int64_t k = call.trees_wanted(0);
    topk(call.scores(), call.options(), k, call.heads_out(0), call.heads_out(1), call.numbers_out(2, k), {});
}

void ask_sample(const Call& call) {
    sample(call.scores(), call.options(), call.trees_wanted(0), call.keys(2).data(), call.heads_out(0),
           call.heads_out(1), {});
}

void ask_sample_without_replacement(const Call& call) {
    const std::int64_t k = call.trees_wanted(0);
    const DistinctOut out{call.heads_out(0),      call.heads_out(1),   call.numbers_out(2, k),
                          call.numbers_out(3, k), call.numbers_out(4), call.numbers_out(5)};
    sample_without_replacement(call.scores(), call.options(), k, call.keys(2).data(), out, {});
}

/// XLA lets its threads flush numbers near 0 to 0 (and our own threads inherit what the thread has that starts them). The
/// core counts on them: as long as this lives, arithmetic is as the standard has it.
class StandardArithmetic {
public:
    StandardArithmetic() {
        std::fegetenv(&before_);
        std::fesetenv(FE_DFL_ENV);
    }
    ~StandardArithmetic() { std::fesetenv(&before_); }
    StandardArithmetic(const StandardArithmetic&) = delete;
    StandardArithmetic& operator=(const StandardArithmetic&) = delete;

private:
    std::fenv_t before_;
};

/// No exception may leave a handler: a program that fails says why.
template <void (*ask)(const Call&)>
ffi::Error answer(ffi::RemainingArgs arguments, ffi::RemainingRets results, std::int32_t form) noexcept {
    const StandardArithmetic as_it_should_be;
    try {
        const Call call(arguments, results, form);
        if (call.batch() > 0) ask(call);
        return ffi::Error::Success();
    } catch (const std::invalid_argument& error) {
        return ffi::Error(ffi::ErrorCode::kInvalidArgument, error.what());
    } catch (const std::bad_alloc&) {
        return ffi::Error(ffi::ErrorCode::kResourceExhausted, "out of memory");
    } catch (const std::exception& error) {
        return ffi::Error(ffi::ErrorCode::kInternal, error.what());
    }
}

template <void (*ask)(const Call&)>
XLA_FFI_Error* handler(XLA_FFI_CallFrame* frame) {
    static const auto bound =
        ffi::Ffi::Bind().RemainingArgs().RemainingRets().Attr<std::int32_t>("form").To(answer<ask>);
    return bound->Call(frame);
}

}  // namespace

void bind_xla(nb::module_& module) {
    nb::dict handlers;
    const auto add = [&](const char* name, XLA_FFI_Error* (*handler)(XLA_FFI_CallFrame*)) {
        handlers[name] = nb::capsule(reinterpret_cast<void*>(handler), "xla._CUSTOM_CALL_TARGET");
    };
    add("log_partition", handler<ask_log_partition>);
    add("hessian", handler<ask_hessian>);
    add("third", handler<ask_third>);
    add("relative_scores", handler<ask_relative_scores>);
    add("entropy", handler<ask_entropy>);
    add("expectation", handler<ask_expectation>);
    add("cross_entropy", handler<ask_cross_entropy>);
    add("kl", handler<ask_kl>);
    add("crf_loss", handler<ask_crf_loss>);
    add("log_prob", handler<ask_log_prob>);
    add("argmax", handler<ask_argmax>);
    add("topk", handler<ask_topk>);
    add("sample", handler<ask_sample>);
    add("sample_without_replacement", handler<ask_sample_without_replacement>);
    module.attr("xla_handlers") = handlers;
    module.attr("xla_ffi_version") = nb::make_tuple(XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR);
}

#else

void bind_xla(nb::module_& module) {
    module.attr("xla_handlers") = nb::dict();
    module.attr("xla_ffi_version") = nb::make_tuple(0, 0);
}

#endif

}  // namespace spantree::bindings
