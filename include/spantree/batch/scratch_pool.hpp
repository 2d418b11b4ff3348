// Working memory that is lent and given back, so that a call need not ask the system for fresh pages.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace spantree {

/// What lies idle in all pools together, however many threads have worked at the same time. No piece is larger than half of it:
/// beyond, asking for memory costs nothing beside its use.
class IdleMemory {
public:
    static constexpr std::size_t most_bytes = std::size_t{128} << 20, largest_piece = most_bytes / 2;

    /// Whether there is room for so many more, which are taken then.
    static bool take(std::size_t bytes) {
        if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= most_bytes) return true;
        give_back(bytes);
        return false;
    }
    static void give_back(std::size_t bytes) { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }

private:
    static inline std::atomic<std::size_t> bytes_ = 0;
};

/// Lends each borrower an object of its own, and keeps what comes back as long as there is room (`IdleMemory`): the oldest
/// goes first. `Scratch` says how much it holds with bytes(). A thread gets what it had before, if that is there: it may
/// still be in its core's caches. Nobody waits for long: who finds the pool busy does without it. (In a child of fork() it
/// may be busy for ever.)
template <class Scratch>
class ScratchPool {
public:
    class Loan {
    public:
        Loan(ScratchPool& pool, std::unique_ptr<Scratch> scratch) : pool_(&pool), scratch_(std::move(scratch)) {}
        Loan(Loan&&) = default;
        ~Loan() {
            if (scratch_) pool_->take_back(std::move(scratch_));
        }
        Scratch& operator*() const { return *scratch_; }

    private:
        ScratchPool* pool_;
        std::unique_ptr<Scratch> scratch_;
    };

    Loan borrow() {
        const auto lock = try_to_lock();
        if (!lock || idle_.empty()) return {*this, std::make_unique<Scratch>()};
        const auto mine =
            std::find_if(idle_.rbegin(), idle_.rend(),
                         [me = std::this_thread::get_id()](const Idle& idle) { return idle.last_user == me; });
        if (mine != idle_.rend()) std::swap(*mine, idle_.back());
        Loan loan{*this, std::move(idle_.back().scratch)};
        IdleMemory::give_back(idle_.back().bytes);
        idle_.pop_back();
        return loan;
    }

private:
    std::unique_lock<std::mutex> try_to_lock() {
        constexpr int attempts = 1000;  // some microseconds; the lock is held for less than one, unless something goes
        std::unique_lock lock(lock_, std::defer_lock);
        for (int attempt = 0; attempt < attempts; ++attempt)
            if (lock.try_lock()) break;
        return lock;
    }

    void take_back(std::unique_ptr<Scratch> scratch) {
        const std::size_t bytes = scratch->bytes();
        if (bytes > IdleMemory::largest_piece) return;
        const auto lock = try_to_lock();
        if (!lock) return;
        while (!IdleMemory::take(bytes)) {
            if (idle_.empty()) return;
            IdleMemory::give_back(idle_.front().bytes);
            idle_.erase(idle_.begin());
        }
        try {
            idle_.push_back({std::move(scratch), bytes, std::this_thread::get_id()});
        } catch (const std::bad_alloc&) {
            IdleMemory::give_back(bytes);  // then it goes
        }
    }

    struct Idle {
        std::unique_ptr<Scratch> scratch;
        std::size_t bytes;
        std::thread::id last_user;
    };

    std::mutex lock_;
    std::vector<Idle> idle_;
};

}  // namespace spantree
