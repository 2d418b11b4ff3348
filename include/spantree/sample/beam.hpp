// Stochastic beam search (Kool, van Hoof & Welling 2019): the k largest of independent Gumbel keys, one per tree, each
// with location log p(tree), found top down. They are a sample without replacement, in its order.
//
// exp(-key) is a tree's arrival time in a race where trees arrive at rate p. The first arrival below a node is at a
// child drawn in proportion to its rate, and then the race among the others starts afresh: child c's first is later by
// an exponential time of rate p(c). So a node with a known time passes it on to one child and draws later ones for the
// rest. Nodes are opened in the order of their times, which opens those that a beam of k would, and at most k + 1 wait
// at any time.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "decisions.hpp"
#include "random.hpp"

namespace spantree::sampling {

inline double log_add_exp(double a, double b) {
    const double high = std::max(a, b), low = std::min(a, b);
    return low == minus_infinity<double> ? high : high + std::log1p(std::exp(low - high));
}

/// The logarithm of a standard exponential variable.
inline double log_exponential(RandomStream& random) {
    const double inside_0_1 = (static_cast<double>(random.bits() >> 12) + 0.5) * 0x1p-52;
    return std::log(-std::log(inside_0_1));
}

template <class Source>
class RacingBeam {
public:
    /// Will find `size` trees.
    RacingBeam(Source& decisions, std::int64_t size, RandomStream& random)
        : decisions_(decisions), random_(random), left_(size), depth_(decisions.count()) {
        waiting_.push_back({-log_exponential(random), 0.0, no_path, 0, 0});
    }

    /// The key of the next tree; -inf if there is none.
    double next_key() const { return waiting_.empty() ? minus_infinity<double> : waiting_.front().key; }

    /// The decisions of the next tree; there must be one.
    const int* next() {
        std::pop_heap(waiting_.begin(), waiting_.end(), later);
        Waiting node = waiting_.back();
        waiting_.pop_back();
        --left_;
        const std::int64_t path_number = found_++;
        paths_.resize(static_cast<std::size_t>(found_) * depth_);
        int* const path = paths_.data() + path_number * depth_;
        int index = 0;
        if (node.path != no_path) {
            std::copy_n(paths_.data() + node.path * depth_, node.index, path);
            path[node.index] = node.choice;
            index = node.index + 1;
        }
        for (; index < depth_; ++index) open(node, path_number, index, path);
        return path;
    }

    /// log of the mass of the trees not found.
    double log_left() const {
        double total = pruned_;
        for (const Waiting& node : waiting_) total = log_add_exp(total, node.log_probability);
        return total;
    }

private:
    static constexpr std::int64_t no_path = -1;

    /// A node: decisions path[0..index) of a tree found before, then `choice`. The first node of all has no path.
    struct Waiting {
        double key;  // of the first tree below
        double log_probability;
        std::int64_t path;
        int index, choice;
    };

    static bool later(const Waiting& a, const Waiting& b) { return a.key < b.key; }

    /// Goes from `node` to the child that inherits its key; the others wait.
    void open(Waiting& node, std::int64_t path_number, int index, int* path) {
        const auto shares = decisions_(index, path);
        double target = random_.uniform();
        int first = 0;
        for (int choice = 0; choice < shares.count; ++choice) {
            if (!is_positive(shares.data[choice])) continue;
            first = choice;
            target -= value_of(shares.data[choice] / shares.total);
            if (target < 0.0) break;
        }
        // The logarithm of the quotient: either logarithm alone may be so large that it has no digits left for it.
        const auto log_share = [&](int choice) { return log_of(shares.data[choice] / shares.total); };
        for (int choice = 0; choice < shares.count; ++choice) {
            if (choice == first || !is_positive(shares.data[choice])) continue;
            const double log_probability = node.log_probability + log_share(choice);
            const double key = -log_add_exp(-node.key, log_exponential(random_) - log_probability);
            wait({key, log_probability, path_number, index, choice});
        }
        path[index] = first;
        node.log_probability += log_share(first);
    }

    /// One more than are still to be found may be needed: its key is the threshold.
    void wait(const Waiting& node) {
        if (node.key < least_needed_) {
            pruned_ = log_add_exp(pruned_, node.log_probability);
            return;
        }
        waiting_.push_back(node);
        const auto enough = static_cast<std::size_t>(left_ + 1);
        if (waiting_.size() < 2 * enough + 64) {  // then half of them are thrown away: O(1) a node
            std::push_heap(waiting_.begin(), waiting_.end(), later);
            return;
        }
        std::nth_element(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(enough), waiting_.end(),
                         [](const Waiting& a, const Waiting& b) { return a.key > b.key; });
        least_needed_ = waiting_[enough].key;
        for (std::size_t i = enough; i < waiting_.size(); ++i)
            pruned_ = log_add_exp(pruned_, waiting_[i].log_probability);
        waiting_.resize(enough);
        std::make_heap(waiting_.begin(), waiting_.end(), later);
    }

    Source& decisions_;
    RandomStream& random_;
    std::int64_t left_, found_ = 0;
    int depth_;
    std::vector<Waiting> waiting_;  // a heap
    std::vector<int> paths_;        // of the trees found, one after the other
    double least_needed_ = minus_infinity<double>;
    double pruned_ = minus_infinity<double>;
};

}  // namespace spantree::sampling
