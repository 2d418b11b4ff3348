// Wilson's algorithm as cycle popping (Propp & Wilson 1998): draw a head for every word; while there is a cycle, draw new heads
// for the words on it. What remains is a tree with probability proportional to the product of its weights, and which cycles were popped is
// independent of which tree it is. So if a draw is given up after any number of steps, those that are not keep their distribution.
//
// Steps are head draws. All cycles there are get popped at once, words in increasing order, until there is none; so draws do not wait
// for each other as they would along a walk.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "../dispatch.hpp"
#include "../random.hpp"
#include "../sentence.hpp"
#include "../vector.hpp"
#include "alias.hpp"

namespace arbora::sampling {

/// 32-bit random numbers of one stream, made many at a time.
class RandomWords {
public:
    explicit RandomWords(int at_once) : blocks_((at_once + words_per_block - 1) / words_per_block + 1) {
        buffer_.resize(static_cast<std::size_t>(blocks_) * words_per_block);
    }

    void start(const Key& key, std::uint64_t sentence, std::uint64_t tree) {
        key_ = key;
        counter_ = {0, tree, sentence, 0};
        make(blocks_);
    }

    std::uint32_t next() {
        if (used_ == made_) make(2);
        return buffer_[used_++];
    }
    std::uint64_t next_64() {
        const std::uint64_t high = next();
        return (high << 32) | next();
    }

private:
    static constexpr int words_per_block = 8;

    void make(int blocks) {
        std::uint32_t* out = buffer_.data();
        for (int b = 0; b < blocks; ++b, ++counter_[0])
            for (const std::uint64_t bits : philox(counter_, key_)) {
                *out++ = static_cast<std::uint32_t>(bits);
                *out++ = static_cast<std::uint32_t>(bits >> 32);
            }
        used_ = 0;
        made_ = static_cast<std::size_t>(blocks) * words_per_block;
    }

    int blocks_;
    Key key_{};
    Counter counter_{};
    std::vector<std::uint32_t> buffer_;
    std::size_t used_ = 0, made_ = 0;
};

namespace details {

/// Finds the words on cycles of head[0..words]; words that are known to reach ROOT are not followed again.
class CycleFinder {
public:
    void reset(int words, int root_word) {
        mark_.assign(static_cast<std::size_t>(words) + 1, not_seen);
        ends_in_tree_.resize(static_cast<std::size_t>(words) + 1);
        mark_[root_word] = in_tree;
    }

    /// Calls on_cycle(word) for each, in increasing order; returns how many there are.
    template <class OnCycle>
    int operator()(const std::uint16_t* head, int words, OnCycle on_cycle) {
        cycle_.clear();
        for (int start = 1; start <= words; ++start) {
            if (mark_[start] != not_seen) continue;
            const auto here = static_cast<std::uint16_t>(start);
            int word = start;
            for (; mark_[word] == not_seen; word = head[word]) mark_[word] = here;
            ends_in_tree_[start] = mark_[word] == in_tree || (mark_[word] != here && ends_in_tree_[mark_[word]]);
            if (mark_[word] != here) continue;
            const int first = word;
            do cycle_.push_back(static_cast<std::uint16_t>(word));
            while ((word = head[word]) != first);
        }
        if (cycle_.empty()) return 0;
        for (int word = 1; word <= words; ++word)
            if (mark_[word] != in_tree) mark_[word] = ends_in_tree_[mark_[word]] ? in_tree : not_seen;
        std::sort(cycle_.begin(), cycle_.end());
        for (const int word : cycle_) on_cycle(word);
        return static_cast<int>(cycle_.size());
    }

private:
    static constexpr std::uint16_t not_seen = 0, in_tree = 0xffff;

    std::vector<std::uint16_t> mark_;  // not_seen, in_tree, or the word from which it was reached first
    std::vector<char> ends_in_tree_;   // by that word
    std::vector<std::uint16_t> cycle_;
};

#if defined(__x86_64__) && defined(__GNUC__)

/// The same in vector registers, for up to 63 words: those on cycles are the image of `head` composed with itself until it is a power of
/// 2 >= words, but for ROOT; a set bit for each. head[0] and the root word's head must be 0, as must be entries from words + 1 to 63.
[[gnu::target("arch=x86-64-v4")]] inline std::uint64_t words_on_cycles(const std::uint16_t* head, int words) {
    using Heads32 = Vector<std::uint16_t, 32>;
    const int doublings = std::bit_width(static_cast<unsigned>(words));
    Heads32 low = load<32>(head), high = {};
    if (words < 32) {
        for (int i = 0; i < doublings; ++i) low = __builtin_shuffle(low, low);
    } else {
        high = load<32>(head + 32);
        for (int i = 0; i < doublings; ++i) {
            const Heads32 next = __builtin_shuffle(low, high, low);
            high = __builtin_shuffle(low, high, high);
            low = next;
        }
    }
    using Bits = Vector<std::uint64_t, 8>;
    const Bits one = Bits{} + 1;
    Bits image = one;
    for (int i = 0; i < 64; i += 16) {
        const Bits shifted[] = {reinterpret_cast<Bits>(low) >> i, reinterpret_cast<Bits>(high) >> i};
        image |= (one << (shifted[0] & 63)) | (one << (shifted[1] & 63));
    }
    alignas(64) std::uint64_t part[8];
    store(part, image);
    return (((part[0] | part[1]) | (part[2] | part[3])) | ((part[4] | part[5]) | (part[6] | part[7]))) & ~std::uint64_t{1};
}

inline bool has_wide_shuffles() { return arbora::details::vector_level() == arbora::details::VectorLevel::avx512; }

#else

inline std::uint64_t words_on_cycles(const std::uint16_t*, int) { return 0; }
inline bool has_wide_shuffles() { return false; }

#endif

}  // namespace details

class WilsonWalk {
public:
    /// weight(head, word): words from 0, heads from 0 = ROOT, which is left out unless `with_root`.
    template <class Weight>
    void set_up(int words, bool with_root, Weight weight) {
        if (words > AliasTables::largest_outcome) throw std::length_error("walks of more than 65,535 words");
        words_ = words;
        const int first = with_root ? 0 : 1, heads = words - first;
        tables_.reset(words, heads);
        for (int word = 0; word < words; ++word) {
            const auto head = [=](int i) { return first + i + (first + i > word); };  // leaves out the word itself
            tables_.set(word, heads, [&](int i) { return weight(head(i), word); }, head);
        }
        head_.assign(std::max(words + 1, short_sentence), 0);
    }

    /// Draws heads[0..words] of a tree in which ROOT's only child is `root_word` (1..words), or any children if 0. Returns whether
    /// `budget` was enough, and takes the steps off it; if not, heads are undefined.
    bool operator()(int root_word, std::int64_t& budget, RandomWords& random, Heads* heads) {
        if ((budget -= words_) < 0) return false;
        for (int word = 1; word <= words_; ++word) head_[word] = draw(word, random);
        head_[0] = head_[root_word] = 0;
        if (!(words_ < short_sentence && details::has_wide_shuffles() ? pop_short(budget, random) : pop(root_word, budget, random)))
            return false;
        for (int word = 1; word <= words_; ++word) heads[word] = head_[word];
        heads[0] = no_head;
        return true;
    }

private:
    static constexpr int short_sentence = 64;

    [[gnu::always_inline]] std::uint16_t draw(int word, RandomWords& random) const {
        return static_cast<std::uint16_t>(tables_.draw(word - 1, random.next(), [&] { return random.next_64(); }));
    }

    bool pop(int root_word, std::int64_t& budget, RandomWords& random) {
        find_cycles_.reset(words_, root_word);
        while (const int count = find_cycles_(head_.data(), words_, [&](int word) { head_[word] = draw(word, random); }))
            if ((budget -= count) < 0) return false;
        return true;
    }

    bool pop_short(std::int64_t& budget, RandomWords& random) {
        while (std::uint64_t cycles = details::words_on_cycles(head_.data(), words_)) {
            for (; cycles; cycles &= cycles - 1, --budget) {
                const int word = std::countr_zero(cycles);
                head_[word] = draw(word, random);
            }
            if (budget < 0) return false;
        }
        return true;
    }

    int words_ = 0;
    AliasTables tables_;
    std::vector<std::uint16_t> head_;
    details::CycleFinder find_cycles_;
};

}  // namespace arbora::sampling
