// Working memory that is lent and given back, so that a call need not ask the system for fresh pages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace spantree {

/// Lends each borrower an object of its own. `Scratch` says how much it holds with bytes(); what has grown beyond
/// `most_bytes_kept` is not kept. A thread gets what it had before, if that is there: it may still be in its core's caches.
/// Nobody waits for long: who finds the pool busy does without it. (In a child of fork()
/// it may be busy for ever.)
template <class Scratch>
class ScratchPool {
public:
    static constexpr std::size_t most_bytes_kept = std::size_t{64}
                                                   << 20;  // beyond, asking for memory costs nothing beside its use

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
        idle_.pop_back();
        return loan;
    }

private:
    std::unique_lock<std::mutex> try_to_lock() {
        constexpr int attempts = 1000;  // some microseconds; the lock is held for less than one
        std::unique_lock lock(lock_, std::defer_lock);
        for (int attempt = 0; attempt < attempts; ++attempt)
            if (lock.try_lock()) break;
        return lock;
    }

    void take_back(std::unique_ptr<Scratch> scratch) {
        if (scratch->bytes() > most_bytes_kept) return;
        const auto lock = try_to_lock();
        if (!lock) return;
        try {
            idle_.push_back({std::move(scratch), std::this_thread::get_id()});  // never more than were lent at one time
        } catch (const std::bad_alloc&) {
            // Then it goes, and its memory with it.
        }
    }

    struct Idle {
        std::unique_ptr<Scratch> scratch;
        std::thread::id last_user;
    };

    std::mutex lock_;
    std::vector<Idle> idle_;
};

}  // namespace spantree
