// Several numbers as one value. Operators work lane by lane; compilers lower them to whatever registers the target has.
// For use inside kernels run by dispatch.hpp. Select with `mask ? a : b` only, one comparison a mask: masks that are
// combined (&, |) before the kernel is inlined into its target are lowered lane by lane. So are selects wider than a
// register: where many are made, vectors have Registers::lanes<T> lanes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace spantree {

/// Of the widest registers there are.
template <class T>
inline constexpr int lanes = 64 / sizeof(T);

namespace details {

template <class T, int Lanes>
struct VectorOf {
    using type [[gnu::vector_size(Lanes * sizeof(T))]] = T;
    using in_memory [[gnu::vector_size(Lanes * sizeof(T)), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
};

}  // namespace details

template <class T, int Lanes = lanes<T>>
using Vector = typename details::VectorOf<T, Lanes>::type;

/// As wide as a T, so that comparing Ts selects indices lane by lane.
template <class T>
using IndexLike = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// As vectors, not with memcpy: that is cut into the registers of the oldest machines before the target is known.

template <int Lanes, class T>
[[gnu::always_inline]] inline Vector<T, Lanes> load(const T* from) {
    return *reinterpret_cast<const typename details::VectorOf<T, Lanes>::in_memory*>(from);
}

template <class T, class V>
[[gnu::always_inline]] inline void store(T* to, const V& x) {
    *reinterpret_cast<typename details::VectorOf<T, sizeof x / sizeof(T)>::in_memory*>(to) = x;
}

/// Keeps x in a register. GCC rather reads a loaded number from memory again at each use, which costs nothing until reading
/// is what a loop waits for. x has to fit into a register, which is unknown at -O0 (pack.hpp); a test of widths that the
/// machine does not have defines SPANTREE_REGISTERS_OF_ANY_WIDTH.
template <class V>
[[gnu::always_inline]] inline void keep_in_register([[maybe_unused]] V& x) {
#if defined(__clang__) || !defined(__OPTIMIZE__) || defined(SPANTREE_REGISTERS_OF_ANY_WIDTH)
#elif defined(__x86_64__)
    asm("" : "+v"(x));
#elif defined(__aarch64__)
    asm("" : "+w"(x));
#endif
}

/// As doubles: lane by lane, of which compilers make one instruction (of __builtin_convertvector GCC 12 makes four).
template <int Lanes, class T>
[[gnu::always_inline]] inline Vector<double, Lanes> load_as_doubles(const T* from) {
    const Vector<T, Lanes> x = load<Lanes>(from);
    return [&]<int... lane>(std::integer_sequence<int, lane...>) __attribute__((always_inline)) {
        return Vector<double, Lanes>{static_cast<double>(x[lane])...};
    }(std::make_integer_sequence<int, Lanes>{});
}

/// Lanes of a and b: those of b are counted from the number of a's on.
template <int... lane, class V>
[[gnu::always_inline]] inline V shuffle(const V& a, const V& b) {
#ifdef __clang__
    return __builtin_shufflevector(a, b, lane...);
#else
    using Index = IndexLike<std::remove_cvref_t<decltype(a[0])>>;
    return __builtin_shuffle(a, b, Vector<Index, sizeof...(lane)>{lane...});
#endif
}

[[gnu::always_inline]] inline Vector<double, 8> join(const Vector<double, 4>& low, const Vector<double, 4>& high) {
#if __has_builtin(__builtin_shufflevector)
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#else
    const Vector<double, 4> halves[2] = {low, high};
    Vector<double, 8> result;
    std::memcpy(&result, halves, sizeof result);
    return result;
#endif
}

/// {0, 1, 2, ...}
template <class T, int Lanes>
[[gnu::always_inline]] inline Vector<T, Lanes> iota() {
    Vector<T, Lanes> x;
    for (int lane = 0; lane < Lanes; ++lane) x[lane] = static_cast<T>(lane);
    return x;
}

namespace details {

/// Exchanges the squares of `side` lanes beside the diagonal of every square of twice the side.
template <int side, class V, int count, int... lane>
[[gnu::always_inline]] inline void exchange(V (&x)[count], std::integer_sequence<int, lane...>) {
#pragma GCC unroll 16
    for (int r = 0; r < count; ++r)
        if (!(r & side)) {
            const V a = x[r], b = x[r + side];
            x[r] = shuffle<(lane & side ? count + lane - side : lane)...>(a, b);
            x[r + side] = shuffle<(lane & side ? count + lane : lane + side)...>(a, b);
        }
}

}  // namespace details

/// Transposes each square of `side` rows and lanes.
template <int side, class V, int count>
[[gnu::always_inline]] inline void transpose_squares(V (&x)[count]) {
    if constexpr (side > 2) transpose_squares<side / 2>(x);
    details::exchange<side / 2>(x, std::make_integer_sequence<int, count>{});
}

/// Turns `count` rows of as many lanes into columns: what was lane c of x[r] becomes lane r of x[c].
template <class V, int count>
[[gnu::always_inline]] inline void transpose(V (&x)[count]) {
    transpose_squares<count>(x);
}

template <class T, int Lanes>
[[gnu::always_inline]] inline T largest_lane(const Vector<T, Lanes>& x) {
    if constexpr (Lanes == 1) {
        return x[0];
    } else {
        Vector<T, Lanes / 2> half[2];
        std::memcpy(half, &x, sizeof x);
        return largest_lane<T, Lanes / 2>(half[1] > half[0] ? half[1] : half[0]);
    }
}

/// Calls body.template operator()<Lanes>() with Lanes as large as fits into `count`, at most `most`.
template <int most, class Body>
[[gnu::always_inline]] inline auto with_lanes(int count, Body body) {
    if (count >= most) return body.template operator()<most>();
    if constexpr (most > 4)
        return with_lanes<most / 2>(count, body);
    else
        return body.template operator()<1>();
}

/// Covers positions 0..count-1 with blocks: calls body.template operator()<Lanes>(first), Lanes as above. The last block
/// ends at the last position and so may overlap the one before.
template <int most, class Body>
[[gnu::always_inline]] inline void for_each_block(int count, Body body) {
    with_lanes<most>(count, [&]<int Lanes>() __attribute__((always_inline)) {
        for (int first = 0; first < count; first += Lanes)
            body.template operator()<Lanes>(std::min(first, count - Lanes));
    });
}

}  // namespace spantree
