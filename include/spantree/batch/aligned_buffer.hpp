// Numbers on a cache-line boundary; grows, never shrinks. What was in it is lost when it grows.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace spantree {

template <class T>
class AlignedBuffer {
public:
    T* reserve(std::size_t count) {
        if (count > capacity_) {
            data_.reset();
            capacity_ = 0;
            data_.reset(static_cast<T*>(::operator new(count * sizeof(T), alignment)));
            capacity_ = count;
        }
        return data_.get();
    }
    T* data() const { return data_.get(); }
    std::size_t bytes() const { return capacity_ * sizeof(T); }

private:
    static constexpr std::align_val_t alignment{64};
    struct Free {
        void operator()(T* p) const { ::operator delete(p, alignment); }
    };
    std::unique_ptr<T, Free> data_;
    std::size_t capacity_ = 0;
};

}  // namespace spantree
