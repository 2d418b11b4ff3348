// Wilson's algorithm as cycle popping (Propp & Wilson 1998): draw a head for every word; while there is a cycle, draw
// new heads for the words on it. What remains is a tree with probability proportional to the product of its weights,
// and which cycles were popped is independent of which tree it is. So if a draw is given up after any number of steps,
// those that are not keep their distribution.
//
// Steps are head draws. All cycles there are get popped at once, words in increasing order, until there is none; so
// draws do not wait for each other as they would along a walk.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "../batch/sentence.hpp"
#include "../simd/dispatch.hpp"
#include "../simd/vector.hpp"
#include "alias.hpp"
#include "random.hpp"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(SPANTREE_BASELINE_ONLY)
#define SPANTREE_WIDE_SHUFFLES [[gnu::target("arch=x86-64-v4")]]
#else
#define SPANTREE_WIDE_SHUFFLES
#endif

namespace spantree::sampling {

/// 16-bit random numbers of one stream, made many at a time.
class RandomBits {
public:
    explicit RandomBits(int at_once) : blocks_((at_once + numbers_per_block - 1) / numbers_per_block) {
        buffer_.resize(static_cast<std::size_t>(blocks_ + 2) * numbers_per_block);
    }

    void start(const Key& key, std::uint64_t sentence, std::uint64_t tree) {
        key_ = key;
        counter_ = {0, tree, sentence, 0};
        rare_ = 0;
        make(blocks_);
    }

    std::uint16_t next() {
        if (used_ == made_) make(1);
        return buffer_[used_++];
    }

    /// The next `count` numbers, at most `at_once`, in one go: use(i, number) for i < count, and, for the loop's sake,
    /// with anything for i up to the next multiple of `group`.
    template <int group, class Use>
    [[gnu::always_inline]] void next(int count, Use use) {
        if (made_ - used_ < count) make((count + numbers_per_block - 1) / numbers_per_block + 1);
        const std::uint16_t* const numbers = buffer_.data() + used_;
        used_ += count;
        for (int i = 0; i < count; i += group)
#pragma GCC unroll 4
            for (int u = 0; u < group; ++u) use(i + u, numbers[i + u]);
    }

    /// 64 bits of a stream beside the other one, for the rare case.
    std::uint64_t next_64() { return philox({rare_++, counter_[1], counter_[2], 1}, key_)[0]; }

private:
    static constexpr int numbers_per_block = 16;

    void make(int blocks) {
        std::uint16_t* out = buffer_.data();
        for (int b = 0; b < blocks; ++b, ++counter_[0])
            for (const std::uint64_t bits : philox(counter_, key_)) {
                out[0] = static_cast<std::uint16_t>(bits);
                out[1] = static_cast<std::uint16_t>(bits >> 16);
                out[2] = static_cast<std::uint16_t>(bits >> 32);
                out[3] = static_cast<std::uint16_t>(bits >> 48);
                out += 4;
            }
        used_ = 0;
        made_ = blocks * numbers_per_block;
    }

    int blocks_;
    Key key_{};
    Counter counter_{};
    std::uint64_t rare_ = 0;
    std::vector<std::uint16_t> buffer_;
    int used_ = 0, made_ = 0;
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

    /// In increasing order; valid until the next call.
    const std::vector<std::uint16_t>& operator()(const std::uint16_t* head, int words) {
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
        if (cycle_.empty()) return cycle_;
        for (int word = 1; word <= words; ++word)
            if (mark_[word] != in_tree) mark_[word] = ends_in_tree_[mark_[word]] ? in_tree : not_seen;
        std::sort(cycle_.begin(), cycle_.end());
        return cycle_;
    }

private:
    static constexpr std::uint16_t not_seen = 0, in_tree = 0xffff;

    std::vector<std::uint16_t> mark_;  // not_seen, in_tree, or the word from which it was reached first
    std::vector<char> ends_in_tree_;   // by that word
    std::vector<std::uint16_t> cycle_;
};

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(SPANTREE_BASELINE_ONLY)

/// The same in vector registers, for up to 63 words: those on cycles are the image of `head` composed with itself until
/// it is a power of 2 >= words, but for ROOT; a set bit for each. head[0] and the root word's head must be 0, as must
/// be entries from words + 1 to 63.
SPANTREE_WIDE_SHUFFLES inline std::uint64_t words_on_cycles(const std::uint16_t* head, int words) {
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
    return (((part[0] | part[1]) | (part[2] | part[3])) | ((part[4] | part[5]) | (part[6] | part[7]))) &
           ~std::uint64_t{1};
}

inline bool has_wide_shuffles() { return spantree::details::vector_level() == spantree::details::VectorLevel::avx512; }

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
        head_.assign(std::max(words, nobody) + 1, 0);
    }

    /// Draws heads[0..words] of a tree in which ROOT's only child is `root_word` (1..words), or any children if 0.
    /// Returns whether `budget` was enough, and takes the steps off it; if not, heads are undefined.
    bool operator()(int root_word, std::int64_t& budget, RandomBits& random, Heads* heads) {
        if ((budget -= words_) < 0) return false;
        random.next<1>(words_, [&](int i, std::uint16_t bits) { head_[i + 1] = draw(i + 1, bits, random); });
        head_[0] = head_[root_word] = 0;
        if (!(words_ < short_sentence && details::has_wide_shuffles() ? pop_short(budget, random)
                                                                      : pop(root_word, budget, random)))
            return false;
        for (int word = 1; word <= words_; ++word) heads[word] = head_[word];
        heads[0] = no_head;
        return true;
    }

private:
    static constexpr int short_sentence = 64, nobody = 64;

    [[gnu::always_inline]] std::uint16_t draw(int word, std::uint16_t bits, RandomBits& random,
                                              bool in_earnest = true) const {
        const auto more_bits = [&] { return in_earnest ? random.next_64() : 0; };
        return static_cast<std::uint16_t>(tables_.draw(word - 1, bits, more_bits));
    }

    bool pop(int root_word, std::int64_t& budget, RandomBits& random) {
        find_cycles_.reset(words_, root_word);
        while (true) {
            const auto& cycles = find_cycles_(head_.data(), words_);
            if (cycles.empty()) return true;
            const int count = static_cast<int>(cycles.size());
            if ((budget -= count) < 0) return false;
            random.next<1>(count, [&](int i, std::uint16_t bits) { head_[cycles[i]] = draw(cycles[i], bits, random); });
        }
    }

    /// The same draws from the same random numbers. A few at a time, if need be to no purpose, so that the loop's end
    /// is foreseeable.
    SPANTREE_WIDE_SHUFFLES bool pop_short(std::int64_t& budget, RandomBits& random) {
        while (std::uint64_t cycles = details::words_on_cycles(head_.data(), words_)) {
            const int count = std::popcount(cycles);
            if ((budget -= count) < 0) return false;
            random.next<4>(count, [&](int i, std::uint16_t bits) __attribute__((always_inline)) {
                const int word = cycles ? std::countr_zero(cycles) : 1;
                head_[i < count ? word : nobody] = draw(word, bits, random, i < count);
                cycles &= cycles - 1;
            });
        }
        return true;
    }

    int words_ = 0;
    AliasTables tables_;
    std::vector<std::uint16_t> head_;
    details::CycleFinder find_cycles_;
};

}  // namespace spantree::sampling
