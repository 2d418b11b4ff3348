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
#include "alias.hpp"
#include "cycles.hpp"
#include "random.hpp"

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
    static constexpr int numbers_per_block = 16;  // four times 64 bits, in numbers of 16

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

class WilsonWalk {
public:
    static constexpr int most_words = AliasTables::largest_outcome;

    /// weight(head, word): words from 0, heads from 0 = ROOT, which is left out unless `with_root`.
    template <class Weight>
    void set_up(int words, bool with_root, Weight weight) {
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
        if (!dispatch_on_registers<Popping>(*this, root_word, budget, random)) return false;
        for (int word = 1; word <= words_; ++word) heads[word] = head_[word];
        heads[0] = no_head;
        return true;
    }

private:
    static constexpr int short_sentence = 64, nobody = 64;  // words are bits of one number; nobody is behind them

    [[gnu::always_inline]] std::uint16_t draw(int word, std::uint16_t bits, RandomBits& random,
                                              bool in_earnest = true) const {
        const auto more_bits = [&] { return in_earnest ? random.next_64() : 0; };
        return static_cast<std::uint16_t>(tables_.draw(word - 1, bits, more_bits));
    }

    struct Popping {
        template <class Registers>
        struct Kernel {
            static bool run(WilsonWalk& walk, int root_word, std::int64_t& budget, RandomBits& random) {
                using Cycles = CyclesInRegisters<Registers::width>;
                if constexpr (Cycles::possible)
                    if (walk.words_ < short_sentence) return walk.pop_short<Cycles>(budget, random);
                return walk.pop(root_word, budget, random);
            }
        };
    };

    /// Draws anew for the words on cycles, until there is none.
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
    template <class Cycles>
    bool pop_short(std::int64_t& budget, RandomBits& random) {
        while (std::uint64_t cycles = Cycles::words_on_cycles(head_.data(), words_)) {
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
    CycleFinder find_cycles_;
};

}  // namespace spantree::sampling
