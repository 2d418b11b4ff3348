// Work that is spread over threads: every index is taken just once, whatever the grain and whoever else is calling; what one
// of them throws arrives, and nobody's scratch is anybody else's. Under ThreadSanitizer; exits non-zero if something is wrong.
#include <atomic>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "spantree/batch/parallel.hpp"
#include "spantree/batch/scratch_pool.hpp"

using namespace spantree;

namespace {

struct Scratch {
    std::atomic<bool> in_use = false;
    std::size_t bytes() const { return sizeof *this; }
};
ScratchPool<Scratch> pool;

struct Borrowed {
    ScratchPool<Scratch>::Loan loan = pool.borrow();
    bool alone = !(*loan).in_use.exchange(true);
    Borrowed() = default;
    Borrowed(Borrowed&&) = delete;
    ~Borrowed() { (*loan).in_use = false; }
};

bool each_just_once(std::size_t count, std::size_t grain, int threads) {
    StopSignal stop([] { return false; });
    std::unique_ptr<std::atomic<int>[]> times(new std::atomic<int>[count + 1]());
    std::atomic<bool> alone = true;
    parallel_for(
        count, grain, threads, stop, [] { return std::make_unique<Borrowed>(); },
        [&](const auto& scratch, std::size_t i) {
            if (!scratch->alone) alone = false;
            ++times[i];
        });
    bool right = alone;
    for (std::size_t i = 0; i <= count; ++i) right &= times[i] == (i < count ? 1 : 0);
    return right;
}

bool throws_what_is_thrown(std::size_t count, std::size_t grain, int threads) {
    StopSignal stop([] { return false; });
    try {
        parallel_for(
            count, grain, threads, stop, [] { return 0; },
            [&](int, std::size_t i) {
                if (i == count / 2) throw std::runtime_error("half way");
            });
    } catch (const std::runtime_error&) {
        return true;
    }
    return false;
}

}  // namespace

int main() {
    std::atomic<bool> right = true;
    const auto call = [&] {
        for (const std::size_t count : {0, 1, 2, 7, 64, 1000})
            for (const std::size_t grain : {1, 3, 16, 5000})
                for (const int threads : {1, 2, 3, 5, 20}) {
                    if (!each_just_once(count, grain, threads)) right = false;
                    if (count > 0 && !throws_what_is_thrown(count, grain, threads)) right = false;
                }
    };
    std::vector<std::thread> callers;
    for (int i = 0; i < 3; ++i) callers.emplace_back(call);
    for (std::thread& caller : callers) caller.join();
    if (!right) std::printf("not every index just once, or an exception was lost\n");
    return right ? 0 : 1;
}
