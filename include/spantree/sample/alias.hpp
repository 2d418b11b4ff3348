// Drawing from a fixed distribution in constant time: Walker's alias method, set up as by Vose (1991).
//
// 2^b buckets of equal probability each hold one or two outcomes. Sixteen random bits are usually enough: the first b
// choose the bucket, the rest is compared with the bucket's threshold. Only if those bits do not decide (once in
// 2^(16-b)) are 64 more drawn, so the probabilities are exact to 2^-64 of a bucket.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace spantree::sampling {

/// Several distributions over small integers.
class AliasTables {
public:
    static constexpr int largest_outcome = 0xffff;

    /// `tables` distributions with at most `outcomes` outcomes each.
    void reset(int tables, int outcomes) {
        bits_ = std::bit_width(static_cast<unsigned>(outcomes > 1 ? outcomes - 1 : 1));
        size_ = std::size_t{1} << bits_;
        buckets_.resize(tables * size_);
        thresholds_.resize(tables * size_);
        share_.resize(size_);
        stacks_.resize(size_);
    }

    /// weight(i) >= 0 for i < count is the weight of outcome(i). If all are 0, there is nothing but outcome 0.
    template <class Weight, class Outcome>
    void set(int table, int count, Weight weight, Outcome outcome) {
        double total = 0.0;
        for (int i = 0; i < count; ++i) total += share_[i] = weight(i);
        const int size = static_cast<int>(size_);
        if (!(total > 0.0)) {
            for (int i = 0; i < size; ++i) fill(table, i, 1.0, 0, 0);
            return;
        }
        const double unit = size / total;
        // Buckets whose share is below 1 are a stack from the front, the others one from the back.
        int small = 0, large = size;
        for (int i = 0; i < size; ++i) {
            share_[i] = i < count ? share_[i] * unit : 0.0;
            const bool is_small = share_[i] < 1.0;
            stacks_[is_small ? small : large - 1] = i;
            small += is_small;
            large -= !is_small;
        }
        while (small > 0 && large < size) {
            const int lesser = stacks_[--small], greater = stacks_[large];
            fill(table, lesser, share_[lesser], lesser < count ? outcome(lesser) : outcome(greater), outcome(greater));
            share_[greater] -= 1.0 - share_[lesser];
            if (share_[greater] < 1.0) {
                ++large;
                stacks_[small++] = greater;
            }
        }
        // Left over, by rounding: buckets whose share is 1. Of the small ones none may be an outcome without weight.
        int whole = count;
        for (; large < size; ++large) {
            whole = stacks_[large];
            fill(table, whole, 1.0, outcome(whole), outcome(whole));
        }
        while (small > 0) {
            const int i = stacks_[--small];
            const bool possible = i < count && weight(i) > 0.0;
            if (possible)
                whole = i;
            else if (whole == count)
                for (int j = 0; j < count; ++j) whole = weight(j) > 0.0 ? j : whole;
            const int from = possible ? i : whole;
            fill(table, i, 1.0, outcome(from), outcome(from));
        }
    }

    /// An outcome of the table from 16 random bits; more_bits() gives 64 more.
    template <class MoreBits>
    [[gnu::always_inline]] int draw(int table, std::uint16_t random, MoreBits more_bits) const {
        const std::size_t at = (static_cast<std::size_t>(table) << bits_) + (random >> (16 - bits_));
        const Bucket bucket = buckets_[at];
        const auto rest = static_cast<std::uint16_t>(random << bits_);
        if (rest == bucket.threshold()) [[unlikely]] {
            const std::uint64_t exact = (static_cast<std::uint64_t>(rest) << 48) | (more_bits() >> (16 - bits_));
            return bucket.outcome(exact < thresholds_[at]);
        }
        return bucket.outcome(rest < bucket.threshold());
    }

private:
    /// Of 16 bits each: the first 16 - b bits of the exact threshold, then zeros; and the outcomes above and below it. In one
    /// number, so that choosing is a shift: a branch would be taken by chance.
    struct Bucket {
        std::uint64_t numbers;

        [[gnu::always_inline]] std::uint16_t threshold() const { return static_cast<std::uint16_t>(numbers); }
        [[gnu::always_inline]] int outcome(bool below) const {
            return static_cast<std::uint16_t>(numbers >> (16 + 16 * static_cast<int>(below)));
        }
    };

    void fill(int table, int bucket, double share, int below, int above) {
        const std::size_t at = table * size_ + bucket;
        const std::uint64_t threshold = share < 1.0 ? static_cast<std::uint64_t>(share * 0x1p64) : ~std::uint64_t{0};
        thresholds_[at] = threshold;
        const std::uint64_t first_bits = threshold >> 48 >> bits_ << bits_;
        buckets_[at] = {first_bits | static_cast<std::uint64_t>(above) << 16 | static_cast<std::uint64_t>(below) << 32};
    }

    int bits_ = 1;
    std::size_t size_ = 2;
    std::vector<Bucket> buckets_;
    std::vector<std::uint64_t> thresholds_;
    std::vector<double> share_;
    std::vector<int> stacks_;
};

}  // namespace spantree::sampling
