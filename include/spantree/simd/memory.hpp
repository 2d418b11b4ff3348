// What the program knows about memory and the machine does not.
#pragma once

#include <cstdint>

#include "vector.hpp"

namespace spantree {

/// Asks for what is read soon of a long run of numbers: machines that see the run by themselves stop at every page's end. (A
/// run of 16 KB that is not in the caches is read twice as fast; farther or nearer by half makes no difference.)
[[gnu::always_inline]] inline void fetch_ahead(const void* now) {
    constexpr std::uintptr_t ahead = 2048;  // bytes; perhaps beyond the end, where there is no pointer to
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(now) + ahead));
}

/// Leaves alone what is in the caches: for more than they hold, written once and read much later. Without it every line is
/// fetched before it is overwritten. To a multiple of x's size; other threads see it after finish_storing().
template <class T, class V>
[[gnu::always_inline]] inline void store_past_caches(T* to, const V& x) {
#if !defined(__x86_64__) || !defined(__OPTIMIZE__) || defined(SPANTREE_REGISTERS_OF_ANY_WIDTH)
    store(to, x);
#elif defined(__clang__)
    __builtin_nontemporal_store(x, reinterpret_cast<V*>(to));
#else
    if constexpr (sizeof x > 16)
        asm volatile("vmovntps %1, %0" : "=m"(*reinterpret_cast<V*>(to)) : "v"(x));
    else
        asm volatile("movntps %1, %0" : "=m"(*reinterpret_cast<V*>(to)) : "x"(x));
#endif
}

inline void finish_storing() {
#ifdef __x86_64__
    __builtin_ia32_sfence();
#endif
}

}  // namespace spantree
