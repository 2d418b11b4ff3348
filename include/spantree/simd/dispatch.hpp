// Runs a kernel with the widest vector instructions the machine has.
//
// A kernel is a type with a static `run`. It is compiled three times, for x86-64 with AVX-512, with AVX2 and for any
// x86-64, and the version is chosen when the program runs, so one binary serves every machine. `flatten` inlines the
// whole kernel into each version; a function that is not inlined would run with the oldest instructions. The
// environment variable SPANTREE_VECTORS, "avx2" or "baseline", asks for less than the machine has: to measure, and to
// test that all versions give the same bits. SPANTREE_BASELINE_ONLY leaves just one, for what the compiler's flags say: it
// compiles fast.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace spantree {

/// A register holds `width` doubles; a matrix is worked on in tiles of four rows of `tile` registers (walk/update.hpp).
template <int doubles, int registers>
struct Registers {
    static constexpr int width = doubles;
    static constexpr int tile = registers;
    template <class T>
    static constexpr int lanes = width * sizeof(double) / sizeof(T);
};

#if defined(__x86_64__) && defined(__GNUC__) && !defined(SPANTREE_BASELINE_ONLY)

namespace details {

#ifdef __clang__
#define SPANTREE_AVX512 "arch=x86-64-v4"
#else
#define SPANTREE_AVX512 "arch=x86-64-v4,prefer-vector-width=512"
#endif

template <class Kernel, class... Args>
[[gnu::target(SPANTREE_AVX512), gnu::flatten, gnu::noinline]] auto run_avx512(Args&&... args) {
    return Kernel::run(std::forward<Args>(args)...);
}

template <class Kernel, class... Args>
[[gnu::target("arch=x86-64-v3"), gnu::flatten, gnu::noinline]] auto run_avx2(Args&&... args) {
    return Kernel::run(std::forward<Args>(args)...);
}

template <class Kernel, class... Args>
[[gnu::flatten, gnu::noinline]] auto run_apart(Args&&... args) {
    return Kernel::run(std::forward<Args>(args)...);
}

enum class VectorLevel { baseline, avx2, avx512 };

/// What the machine has. (Compilers of some age do not know the levels' names.)
inline VectorLevel widest_vectors() {
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    return v4 ? VectorLevel::avx512 : v3 ? VectorLevel::avx2 : VectorLevel::baseline;
}

inline VectorLevel wanted_vectors() {
    const char* const wanted = std::getenv("SPANTREE_VECTORS");
    if (wanted && std::strcmp(wanted, "baseline") == 0) return VectorLevel::baseline;
    return wanted && std::strcmp(wanted, "avx2") == 0 ? VectorLevel::avx2 : VectorLevel::avx512;
}

inline VectorLevel vector_level() {
    static const VectorLevel level = std::min(widest_vectors(), wanted_vectors());
    return level;
}

}  // namespace details

template <class Kernel, class... Args>
auto dispatch(Args&&... args) {
    switch (details::vector_level()) {
        case details::VectorLevel::avx512: return details::run_avx512<Kernel>(std::forward<Args>(args)...);
        case details::VectorLevel::avx2: return details::run_avx2<Kernel>(std::forward<Args>(args)...);
        default: return Kernel::run(std::forward<Args>(args)...);
    }
}

/// The same for kernels that want to know what registers there are: Family::Kernel<Registers>.
template <class Family, class... Args>
auto dispatch_on_registers(Args&&... args) {
    switch (details::vector_level()) {
        case details::VectorLevel::avx512:
            return details::run_avx512<typename Family::template Kernel<Registers<8, 4>>>(std::forward<Args>(args)...);
        case details::VectorLevel::avx2:
            return details::run_avx2<typename Family::template Kernel<Registers<4, 2>>>(std::forward<Args>(args)...);
        default: return Family::template Kernel<Registers<2, 2>>::run(std::forward<Args>(args)...);
    }
}

/// From within a kernel, in registers of `width` doubles: calls Kernel::run as a function of its own. Compilers do well by a
/// loop that is alone, and keep its numbers in memory where it is one of many.
template <int width, class Kernel, class... Args>
[[gnu::always_inline]] inline auto call_apart(Args&&... args) {
    if constexpr (width == 8)
        return details::run_avx512<Kernel>(std::forward<Args>(args)...);
    else if constexpr (width == 4)
        return details::run_avx2<Kernel>(std::forward<Args>(args)...);
    else
        return details::run_apart<Kernel>(std::forward<Args>(args)...);
}

#else

template <class Kernel, class... Args>
auto dispatch(Args&&... args) {
    return Kernel::run(std::forward<Args>(args)...);
}

template <int, class Kernel, class... Args>
[[gnu::always_inline]] inline auto call_apart(Args&&... args) {
    return Kernel::run(std::forward<Args>(args)...);
}

template <class Family, class... Args>
auto dispatch_on_registers(Args&&... args) {
#ifdef __AVX__
    using Widest = Registers<4, 2>;
#else
    using Widest = Registers<2, 2>;
#endif
    return Family::template Kernel<Widest>::run(std::forward<Args>(args)...);
}

#endif

}  // namespace spantree
