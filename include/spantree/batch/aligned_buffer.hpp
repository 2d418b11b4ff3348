// Numbers on a cache-line boundary; grows, never shrinks. What was in it is lost when it grows.
//
// Large ones lie in pages of their own, which go back to the system the moment they are given up: the C library would keep
// them, for every thread that ever asked, in case the same thread asks again. And in large pages, where there are any.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <new>

#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif

namespace spantree {

namespace details {

struct Pages {
#if __has_include(<sys/mman.h>) && !defined(__SANITIZE_ADDRESS__)
    static constexpr std::size_t least_bytes = std::size_t{4} << 20;  // where asking the system costs next to nothing

    static void* get(std::size_t bytes) {
        void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
        madvise(pages, bytes, MADV_HUGEPAGE);
#endif
        return pages;
    }
    static void give_back(void* pages, std::size_t bytes) { munmap(pages, bytes); }
#else
    static constexpr std::size_t least_bytes = std::numeric_limits<std::size_t>::max();

    static void* get(std::size_t) { throw std::bad_alloc(); }
    static void give_back(void*, std::size_t) {}
#endif
};

}  // namespace details

template <class T>
class AlignedBuffer {
public:
    T* reserve(std::size_t count) {
        if (count > capacity_) {
            data_.reset();
            capacity_ = 0;
            const std::size_t bytes = count * sizeof(T);
            void* const memory =
                bytes < details::Pages::least_bytes ? ::operator new(bytes, alignment) : details::Pages::get(bytes);
            data_ = {static_cast<T*>(memory), Free{bytes}};
            capacity_ = count;
        }
        return data_.get();
    }
    T* data() const { return data_.get(); }
    std::size_t bytes() const { return capacity_ * sizeof(T); }

private:
    static constexpr std::align_val_t alignment{64};
    struct Free {
        std::size_t bytes = 0;
        void operator()(T* p) const {
            if (bytes < details::Pages::least_bytes)
                ::operator delete(p, alignment);
            else
                details::Pages::give_back(p, bytes);
        }
    };
    std::unique_ptr<T, Free> data_;
    std::size_t capacity_ = 0;
};

}  // namespace spantree
