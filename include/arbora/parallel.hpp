// Spreads the sentences of a batch over threads, and lets the caller stop a long call.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace arbora {

/// Thrown inside long loops once the caller has asked to stop; never leaves `parallel_for`.
struct Stopped {};

/// Asks the outside world, a few times a second and only on the thread that made the call, whether to go on.
class StopSignal {
public:
    explicit StopSignal(std::function<bool()> asked_to_stop)
        : ask_(std::move(asked_to_stop)), caller_(std::this_thread::get_id()) {}

    /// To be called now and then by whoever works; throws `Stopped`.
    void check() {
        if (std::this_thread::get_id() == caller_) poll();
        if (stopped()) throw Stopped{};
    }

    bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
    void stop() { stopped_.store(true, std::memory_order_relaxed); }

private:
    void poll() {
        const auto now = std::chrono::steady_clock::now();
        if (now - last_poll_ < std::chrono::milliseconds(50)) return;
        last_poll_ = now;
        if (ask_()) stop();
    }

    std::function<bool()> ask_;
    std::thread::id caller_;
    std::chrono::steady_clock::time_point last_poll_ = std::chrono::steady_clock::now();
    std::atomic<bool> stopped_ = false;
};

/// Calls body(scratch, i) for i in [0, count), on up to `threads` threads, each with its own make_scratch().
/// Whoever is free takes the next index, so one long sentence does not hold up the rest. The first exception is
/// rethrown here.
template <class MakeScratch, class Body>
void parallel_for(std::size_t count, int threads, StopSignal& stop, MakeScratch make_scratch, Body body) {
    std::atomic<std::size_t> next = 0;
    std::mutex failure_lock;
    std::exception_ptr failure;

    const auto work = [&] {
        try {
            auto scratch = make_scratch();
            for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
                stop.check();
                body(scratch, i);
            }
        } catch (const Stopped&) {
        } catch (...) {
            const std::lock_guard lock(failure_lock);
            if (!failure) failure = std::current_exception();
            stop.stop();
        }
    };

    const std::size_t helpers = threads > 1 && count > 1 ? std::min<std::size_t>(threads, count) - 1 : 0;
    std::vector<std::jthread> pool;
    pool.reserve(helpers);
    try {
        for (std::size_t i = 0; i < helpers; ++i) pool.emplace_back(work);
    } catch (const std::system_error&) {
        // No more threads to be had: those that started, and this one, do all the work.
    }
    work();
    pool.clear();  // joins
    if (failure) std::rethrow_exception(failure);
}

}  // namespace arbora
