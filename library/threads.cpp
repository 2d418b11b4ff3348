#include <atomic>
#include <cstdlib>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

#include "spantree/spantree.hpp"

namespace spantree {

namespace {

std::atomic<int> threads_set = 0;

int cores() {
#ifdef __linux__
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return CPU_COUNT(&allowed);
#endif
    const unsigned count = std::thread::hardware_concurrency();
    return count ? static_cast<int>(count) : 1;
}

int threads_at_first() {
    if (const char* const wanted = std::getenv("SPANTREE_THREADS")) {
        const long count = std::strtol(wanted, nullptr, 10);
        if (count > 0 && count <= 1 << 16) return static_cast<int>(count);
    }
    return cores();
}

}  // namespace

int default_threads() {
    if (const int count = threads_set.load(std::memory_order_relaxed)) return count;
    static const int at_first = threads_at_first();
    return at_first;
}

void set_default_threads(int threads) {
    if (threads < 0) throw InvalidInput("a negative number of threads");
    threads_set.store(threads, std::memory_order_relaxed);
}

}  // namespace spantree
