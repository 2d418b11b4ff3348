// Stores that leave alone what is in the caches: for more than they hold, written once and read much later. Without them
// every line is fetched before it is overwritten.
#pragma once

#include "vector.hpp"

namespace spantree {

/// To a multiple of x's size. Other threads see it after finish_storing().
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
