// Threads that wait for work, so that a call on a small batch need not start any.
//
// There is one pool in a process; it grows to the number of helpers asked for and lives as long as the process. A child
// of fork() has none of its parent's threads: it gets a pool of its own, and leaves the parent's copy alone.
//
// To wake a thread takes it 20 to 80 us, and the one that wakes it 10 to 30; on a virtual machine whose core has gone to sleep
// too, sometimes a millisecond. So whoever is about to be needed again stays awake for a moment, and lets others run meanwhile
// (yield): a caller while its helpers finish; a helper after its work, for no longer than it has worked and no longer than a
// millisecond. A process that does not call takes no time at all.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace spantree {

class WorkerPool {
public:
    static WorkerPool& of_this_process() {
        static std::atomic<WorkerPool*> current = nullptr;
        WorkerPool* pool = current.load(std::memory_order_acquire);
        if (pool && pool->process_ == getpid()) return *pool;
        auto fresh = std::make_unique<WorkerPool>();
        // Never destroyed: its threads may be waiting when the process ends.
        return current.compare_exchange_strong(pool, fresh.get(), std::memory_order_acq_rel) ? *fresh.release() : *pool;
    }

    /// Calls work(0) on this thread and, as far as they are free, work(i) on up to `helpers` others, at the same time, i > 0 the
    /// same for a thread every time; returns when all have finished. `work` does not throw, and returns at once when nothing is
    /// left to do.
    void run(int helpers, const std::function<void(int)>& work) {
        Job job{&work, helpers};
        {
            const std::lock_guard lock(lock_);
            hire(helpers);
            jobs_.push_back(&job);
            offers_.store(jobs_.size(), std::memory_order_release);
        }
        for (int i = 0; i < helpers; ++i) offered_.notify_one();
        work(0);
        std::unique_lock lock(lock_);
        std::erase(jobs_, &job);  // whoever has not begun need not
        offers_.store(jobs_.size(), std::memory_order_release);
        lock.unlock();
        // Helpers are about to finish: falling asleep and being woken would take longer.
        for (int i = 0; i < patience && job.running.load(std::memory_order_acquire) > 0; ++i) std::this_thread::yield();
        lock.lock();
        finished_.wait(lock, [&] { return job.running == 0; });
    }

private:
    struct Job {
        const std::function<void(int)>* work;
        int wanted;                    // helpers that may still join
        std::atomic<int> running = 0;  // helpers at work
    };
    using Clock = std::chrono::steady_clock;
    static constexpr int patience = 1000;  // yields, of a fraction of a microsecond each
    static constexpr Clock::duration attention = std::chrono::milliseconds(1);  // what lies between calls in a loop

    void hire(int helpers) {
        try {
            for (; workers_ < helpers; ++workers_) std::thread([this, i = workers_ + 1] { serve(i); }).detach();
        } catch (const std::system_error&) {
            // No more threads to be had: those there are do all the work.
        }
    }

    void serve(int worker) {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);  // signals are the application's business
        std::unique_lock lock(lock_);
        for (;;) {
            offered_.wait(lock, [&] { return !jobs_.empty(); });
            Job& job = *jobs_.front();
            ++job.running;
            if (--job.wanted == 0) jobs_.pop_front();
            offers_.store(jobs_.size(), std::memory_order_release);
            lock.unlock();
            const Clock::time_point begun = Clock::now();
            (*job.work)(worker);
            lock.lock();
            if (--job.running == 0) finished_.notify_all();
            lock.unlock();
            const Clock::time_point done = Clock::now(), until = done + std::min(attention, done - begun);
            while (offers_.load(std::memory_order_acquire) == 0 && Clock::now() < until) std::this_thread::yield();
            lock.lock();
        }
    }

    const pid_t process_ = getpid();
    std::mutex lock_;
    std::condition_variable offered_, finished_;
    std::deque<Job*> jobs_;
    std::atomic<std::size_t> offers_ = 0;  // jobs that wait for helpers
    int workers_ = 0;
};

}  // namespace spantree
