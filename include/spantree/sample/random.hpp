// Random numbers by position: Philox4x64-10, the counter-based generator of Salmon, Moraes, Dror & Shaw (2011,
// "Parallel random numbers: as easy as 1, 2, 3").
//
// A block of four 64-bit words is a fixed function of a 128-bit key and a 256-bit counter: ten rounds of two 64 x 64 ->
// 128 bit products,
//
//     (c0, c1, c2, c3) -> (high(M1 c2) ^ c1 ^ k0,  low(M1 c2),  high(M0 c0) ^ c3 ^ k1,  low(M0 c0)),     k += (W0, W1).
//
// There is no state to share: the key is the seed, and the counter says which tree of which sentence a block is for. So
// what is drawn does not depend on threads, and on how a batch is cut only as far as sentences change their numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace spantree {

using Key = std::array<std::uint64_t, 2>;
using Counter = std::array<std::uint64_t, 4>;

namespace details {

struct Halves {
    std::uint64_t high, low;
};

inline Halves multiply(std::uint64_t a, std::uint64_t b) {
    __extension__ using Uint128 = unsigned __int128;
    const Uint128 product = static_cast<Uint128>(a) * b;
    return {static_cast<std::uint64_t>(product >> 64), static_cast<std::uint64_t>(product)};
}

}  // namespace details

inline Counter philox(Counter c, Key key) {
    for (int round = 0; round < 10; ++round) {
        const auto p0 = details::multiply(0xD2E7470EE14C6C93u, c[0]);
        const auto p1 = details::multiply(0xCA5A826395121157u, c[2]);
        c = {p1.high ^ c[1] ^ key[0], p1.low, p0.high ^ c[3] ^ key[1], p0.low};
        key[0] += 0x9E3779B97F4A7C15u;
        key[1] += 0xBB67AE8584CAA73Bu;
    }
    return c;
}

/// The random numbers of one tree: block b of the stream is philox({b, tree, sentence, 0}, key).
class RandomStream {
public:
    RandomStream(const Key& key, std::uint64_t sentence, std::uint64_t tree)
        : key_(key), counter_{0, tree, sentence, 0} {}

    std::uint64_t bits() {
        if (used_ == block_.size()) {
            block_ = philox(counter_, key_);
            ++counter_[0];
            used_ = 0;
        }
        return block_[used_++];
    }

    /// Uniform on [0, 1): a multiple of 2^-53.
    double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

private:
    Key key_;
    Counter counter_;
    Counter block_{};
    std::size_t used_ = 4;
};

/// Where the random numbers of one sentence's trees come from.
struct SentenceStreams {
    Key key{};
    std::uint64_t sentence = 0;
    RandomStream tree(std::uint64_t tree) const { return {key, sentence, tree}; }
};

/// Where those of a batch come from: one key for all sentences, which are told apart by their numbers, counted from
/// `first_sentence`; or one key each, and then a tree depends on its key and its scores alone.
struct BatchStreams {
    const Key* keys = nullptr;
    bool one_each = false;
    std::uint64_t first_sentence = 0;
    SentenceStreams operator[](std::size_t i) const {
        return one_each ? SentenceStreams{keys[i], 0} : SentenceStreams{keys[0], first_sentence + i};
    }
};

}  // namespace spantree
