// Spreads the sentences of a batch over threads, and lets the caller stop a long call.
#pragma once

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "worker_pool.hpp"

namespace spantree {

/// Thrown inside long loops once the caller has asked to stop; never leaves `parallel_for`.
struct Stopped {};

/// Asks the outside world, a few times a second and only on the thread that made the call, whether to go on.
class StopSignal {
public:
    explicit StopSignal(std::function<bool()> asked_to_stop)
        : ask_(std::move(asked_to_stop)), caller_(std::this_thread::get_id()) {}

    /// To be called now and then by whoever works; throws `Stopped`.
    void check() {
        if (asked()) throw Stopped{};
    }
    bool asked() {
        if (std::this_thread::get_id() == caller_) poll();
        return stopped();
    }

    bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
    void stop() { stopped_.store(true, std::memory_order_relaxed); }

private:
    void poll() {
        const std::int64_t now = milliseconds();
        if (now - last_poll_ < 50) return;  // nobody notices a twentieth of a second
        last_poll_ = now;
        if (ask_()) stop();
    }

    /// Since some moment; a few at a time is fine enough, and four times cheaper.
    static std::int64_t milliseconds() {
#ifdef CLOCK_MONOTONIC_COARSE
        timespec now;
        clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
        return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
#else
        const auto now = std::chrono::steady_clock::now().time_since_epoch();
        return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
#endif
    }

    std::function<bool()> ask_;
    std::thread::id caller_;
    std::int64_t last_poll_ = milliseconds();
    std::atomic<bool> stopped_ = false;
};

/// Calls body(scratch, i) for i in [0, count), on up to `threads` threads, each with its own make_scratch().
/// Whoever is free takes the next `grain` indices, so one long sentence does not hold up the rest; towards the end fewer, so
/// that nobody has much left when the others are done. The first exception is rethrown here.
template <class MakeScratch, class Body>
void parallel_for(std::size_t count, std::size_t grain, int threads, StopSignal& stop, MakeScratch make_scratch,
                  Body body) {
    // In a cache line of its own: what lies beside it is read all the time, by all.
    struct alignas(64) Next {
        std::atomic<std::size_t> index = 0;
    } next;
    std::mutex failure_lock;
    std::exception_ptr failure;

    // Half of what would be each one's share of the rest.
    const std::size_t shares = 2 * static_cast<std::size_t>(std::max(threads, 1));
    const auto take = [&](std::size_t& begin) {
        std::size_t size = 0;
        begin = next.index.load(std::memory_order_relaxed);
        do {
            size = begin < count ? std::clamp<std::size_t>((count - begin) / shares, 1, grain) : 0;
        } while (size > 0 && !next.index.compare_exchange_weak(begin, begin + size, std::memory_order_relaxed));
        return size;
    };
    const auto work = [&] {
        if (next.index.load(std::memory_order_relaxed) >= count) return;
        try {
            auto scratch = make_scratch();
            for (std::size_t begin, size; (size = take(begin)) > 0;) {
                stop.check();
                for (std::size_t i = begin; i < begin + size; ++i) body(scratch, i);
            }
        } catch (const Stopped&) {
        } catch (...) {
            const std::lock_guard lock(failure_lock);
            if (!failure) failure = std::current_exception();
            stop.stop();
        }
    };

    const std::size_t pieces = (count + grain - 1) / grain;
    if (threads > 1 && pieces > 1)
        WorkerPool::of_this_process().run(static_cast<int>(std::min<std::size_t>(threads, pieces)) - 1, work);
    else
        work();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace spantree
