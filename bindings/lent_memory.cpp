// Memory for copies of scores: lent, and when the array that lies in it goes, kept for the next.
//
// A distribution's copy comes and goes with every batch. The C library would give its pages back to the system each time,
// and ask for as many again: as long as solving takes, for some hundred sentences.
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "batch.hpp"

namespace spantree::bindings {

namespace {

struct Free {
    void operator()(std::byte* p) const { ::operator delete(p, std::align_val_t{64}); }
};

struct Block {
    std::unique_ptr<std::byte, Free> data;
    std::size_t bytes = 0;
};

/// Nobody waits: who finds it busy does without it. (In a child of fork() it may be busy for ever.)
class LentMemory {
public:
    /// Lives as long as the process: arrays may outlive everything else.
    static LentMemory& get() {
        static LentMemory& memory = *new LentMemory;
        return memory;
    }

    Block lend(std::size_t bytes) {
        const std::unique_lock lock(lock_, std::try_to_lock);
        for (std::size_t i = lock ? idle_.size() : 0; i-- > 0;)  // the last one first: it is in the caches
            if (idle_[i].bytes >= bytes && idle_[i].bytes / 2 <= bytes) {
                Block block = std::move(idle_[i]);
                idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
                return block;
            }
        return {std::unique_ptr<std::byte, Free>(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{64}))),
                bytes};
    }

    void take_back(Block block) noexcept {
        const std::unique_lock lock(lock_, std::try_to_lock);
        if (!lock || block.bytes > most_idle) return;
        std::size_t idle = block.bytes;
        for (std::size_t i = idle_.size(); i-- > 0;)
            if ((idle += idle_[i].bytes) > most_idle) {
                idle_.erase(idle_.begin(), idle_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
                break;
            }
        try {
            idle_.push_back(std::move(block));
        } catch (const std::bad_alloc&) {
            // Then it goes.
        }
    }

private:
    static constexpr std::size_t most_idle = std::size_t{32} << 20;

    std::mutex lock_;
    std::vector<Block> idle_;
};

/// numpy.empty(shape), of float32 or float64.
nb::ndarray<nb::numpy> lent_array(const std::vector<std::size_t>& shape, bool float32) {
    std::size_t bytes = float32 ? sizeof(float) : sizeof(double);
    for (const std::size_t axis : shape)
        if (__builtin_mul_overflow(bytes, axis, &bytes)) throw std::bad_alloc();
    auto block = std::make_unique<Block>(LentMemory::get().lend(bytes));
    void* const data = block->data.get();
    const nb::capsule owner(block.get(), [](void* p) noexcept {
        const std::unique_ptr<Block> returned(static_cast<Block*>(p));
        LentMemory::get().take_back(std::move(*returned));
    });
    (void)block.release();
    return {data, shape.size(), shape.data(), owner, nullptr, float32 ? nb::dtype<float>() : nb::dtype<double>()};
}

}  // namespace

void bind_lent_memory(nb::module_& module) {
    module.def("lent_array", &lent_array, nb::arg("shape"), nb::arg("float32"));
}

}  // namespace spantree::bindings
