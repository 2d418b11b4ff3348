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

namespace details {

/// The indices from 0 to count, cut into as many ranges as there are workers. Each takes from the beginning of its own, so that
/// from call to call it finds in its caches what it had there, then from those of others. Towards the end of a range fewer at a
/// time, so that nobody has much left when the others are done.
class SharedIndices {
public:
    SharedIndices(std::size_t count, std::size_t grain, int workers)
        : ranges_(std::clamp(workers, 1, most_ranges)), grain_(grain) {
        for (int r = 0; r < ranges_; ++r) {
            range_[r].next = count * static_cast<std::size_t>(r) / ranges_;
            range_[r].end = count * static_cast<std::size_t>(r + 1) / ranges_;
        }
    }

    /// How many were taken, from `begin` on; none if none is left.
    std::size_t take(int worker, std::size_t& begin) {
        for (int i = 0; i < ranges_; ++i)
            if (const std::size_t size = range_[(worker + i) % ranges_].take(grain_, begin); size > 0) return size;
        return 0;
    }

private:
    static constexpr int most_ranges = 16;
    // In a cache line of its own: what lies beside it is written by others.
    struct alignas(64) Range {
        std::atomic<std::size_t> next = 0;
        std::size_t end = 0;

        std::size_t take(std::size_t grain, std::size_t& begin) {
            std::size_t size = 0;
            begin = next.load(std::memory_order_relaxed);
            do {
                size = begin < end ? std::clamp<std::size_t>((end - begin) / 4, 1, grain) : 0;
            } while (size > 0 && !next.compare_exchange_weak(begin, begin + size, std::memory_order_relaxed));
            return size;
        }
    };
    Range range_[most_ranges];
    int ranges_;
    std::size_t grain_;
};

}  // namespace details

/// Calls body(scratch, i) for i in [0, count), on up to `threads` threads, each with its own make_scratch().
/// Whoever is free takes the next `grain` indices or fewer, so one long sentence does not hold up the rest. The first exception
/// is rethrown here.
template <class MakeScratch, class Body>
void parallel_for(std::size_t count, std::size_t grain, int threads, StopSignal& stop, MakeScratch make_scratch,
                  Body body) {
    const std::size_t pieces = (count + grain - 1) / grain;
    const int workers = static_cast<int>(std::min(static_cast<std::size_t>(std::max(threads, 1)), pieces));
    details::SharedIndices indices(count, grain, workers);
    std::mutex failure_lock;
    std::exception_ptr failure;
    const auto work = [&](int worker) {
        try {
            std::size_t begin, size = indices.take(worker, begin);
            if (size == 0) return;
            auto scratch = make_scratch();
            for (; size > 0; size = indices.take(worker, begin)) {
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
    if (workers > 1)
        WorkerPool::of_this_process().run(workers - 1, work);
    else
        work(0);
    if (failure) std::rethrow_exception(failure);
}

}  // namespace spantree
