// Wilson's algorithm as cycle popping (Propp & Wilson 1998): draw a head for every word; while there is a cycle, draw
// new heads for the words on it. What remains is a tree with probability proportional to the product of its weights,
// and which cycles were popped is independent of which tree it is. So if a draw is given up after any number of steps,
// those that are not keep their distribution.
//
// Steps are head draws. All cycles there are get popped at once, words in increasing order, until there is none; so
// draws do not wait for each other as they would along a walk. A tree depends on its own random numbers alone, whichever
// others are drawn beside it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
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
    }

    /// Draws `count` trees, a few side by side: what one waits for, another has ready. begin(i, random) makes the random
    /// numbers of tree i ready and returns its root word: ROOT's only child (1..words), or 0 if ROOT may have any children, or
    /// -1 if it is not to be drawn. end(i, root word, head) gets head[0..words], head[0] = 0, and returns whether to try again,
    /// with the numbers that come next; or null if `budget`, steps for one tree, was not enough. `numbers`: 16-bit random
    /// numbers that most trees need.
    template <class Begin, class End>
    void operator()(std::int64_t count, std::int64_t budget, int numbers, Begin begin, End end) {
        drafts_.clear();
        for (std::int64_t i = 0; i < std::min<std::int64_t>(count, most_drafts); ++i) {
            drafts_.emplace_back(numbers);
            drafts_.back().head.assign(static_cast<std::size_t>(std::max(words_, nobody)) + 1, 0);
        }
        Trees<Begin, End> trees{count, budget, begin, end};
        if (count > 0) dispatch_on_registers<DrawAll>(*this, trees);
    }

private:
    static constexpr int short_sentence = 64, nobody = 64;  // words are bits of one number; nobody is behind them
    static constexpr int most_drafts =
        2;  // side by side: the second saves an eighth of the time, more save next to nothing

    /// A tree that is being drawn.
    struct Draft {
        RandomBits random;
        std::vector<std::uint16_t> head;
        std::int64_t tree = 0, budget = 0;
        int root_word = 0;

        explicit Draft(int numbers) : random(numbers) {}
    };

    [[gnu::always_inline]] std::uint16_t draw(int word, std::uint16_t bits, RandomBits& random,
                                              bool in_earnest = true) const {
        const auto more_bits = [&] { return in_earnest ? random.next_64() : 0; };
        return static_cast<std::uint16_t>(tables_.draw(word - 1, bits, more_bits));
    }

    /// All that are to be drawn, and the next one.
    template <class Begin, class End>
    struct Trees {
        std::int64_t count, budget;
        Begin& begin;
        End& end;
        std::int64_t next = 0;
    };

    struct DrawAll {
        template <class Registers>
        struct Kernel {
            template <class Trees>
            static void run(WilsonWalk& walk, Trees& trees) {
                using Cycles = CyclesInRegisters<Registers::width>;
                if constexpr (Cycles::possible)
                    if (walk.words_ < short_sentence) return walk.draw_short<Cycles>(trees);
                walk.draw_one_by_one(trees);
            }
        };
    };

    /// Draws heads for all words; false if that is beyond the budget.
    template <class Trees>
    [[gnu::always_inline]] bool draw_heads(Draft& draft, Trees& trees) {
        if ((draft.budget -= words_) < 0) {
            trees.end(draft.tree, draft.root_word, nullptr);
            return false;
        }
        draft.random.next<1>(words_,
                             [&](int i, std::uint16_t bits) { draft.head[i + 1] = draw(i + 1, bits, draft.random); });
        draft.head[0] = draft.head[draft.root_word] = 0;
        return true;
    }

    /// Takes on the next tree; false if there is none left.
    template <class Trees>
    [[gnu::always_inline]] bool start(Draft& draft, Trees& trees) {
        while (trees.next < trees.count) {
            draft.tree = trees.next++;
            draft.budget = trees.budget;
            draft.root_word = trees.begin(draft.tree, draft.random);
            if (draft.root_word >= 0 && draw_heads(draft, trees)) return true;
        }
        return false;
    }

    /// Hands over a tree, or none; false if there is nothing left to draw.
    template <class Trees>
    [[gnu::always_inline]] bool go_on(Draft& draft, Trees& trees, const std::uint16_t* head) {
        const bool again = trees.end(draft.tree, draft.root_word, head);
        return (again && draw_heads(draft, trees)) || start(draft, trees);
    }

    template <class Trees>
    void draw_one_by_one(Trees& trees) {
        Draft& draft = drafts_[0];
        if (!start(draft, trees)) return;
        while (go_on(draft, trees, pop(draft) ? draft.head.data() : nullptr)) continue;
    }

    /// Draws anew for the words on cycles, until there is none; false if that is beyond the budget.
    bool pop(Draft& draft) {
        find_cycles_.reset(words_, draft.root_word);
        while (true) {
            const std::span<const std::uint16_t> cycles = find_cycles_(draft.head.data());
            if (cycles.empty()) return true;
            const int again = static_cast<int>(cycles.size());
            if ((draft.budget -= again) < 0) return false;
            draft.random.next<1>(
                again, [&](int i, std::uint16_t bits) { draft.head[cycles[i]] = draw(cycles[i], bits, draft.random); });
        }
    }

    /// The same draws from the same random numbers, cycles of all drafts popped in turn.
    template <class Cycles, class Trees>
    [[gnu::always_inline]] void draw_short(Trees& trees) {
        std::size_t active = 0;
        while (active < drafts_.size() && start(drafts_[active], trees)) ++active;
        while (active > 0) {
            std::uint64_t cycles[most_drafts];
            for (std::size_t k = 0; k < active; ++k)
                cycles[k] = Cycles::words_on_cycles(drafts_[k].head.data(), words_);
            for (std::size_t k = active; k-- > 0;) {
                Draft& draft = drafts_[k];
                if (cycles[k] && (draft.budget -= std::popcount(cycles[k])) >= 0)
                    redraw(draft, cycles[k]);
                else if (!go_on(draft, trees, cycles[k] ? nullptr : draft.head.data()))
                    std::swap(draft, drafts_[--active]);
            }
        }
    }

    /// A few words at a time, if need be to no purpose, so that the loop's end is foreseeable.
    [[gnu::always_inline]] void redraw(Draft& draft, std::uint64_t cycles) {
        const int again = std::popcount(cycles);
        draft.random.next<4>(again, [&](int i, std::uint16_t bits) __attribute__((always_inline)) {
            const int word = cycles ? std::countr_zero(cycles) : 1;
            draft.head[i < again ? word : nobody] = draw(word, bits, draft.random, i < again);
            cycles &= cycles - 1;
        });
    }

    int words_ = 0;
    AliasTables tables_;
    std::vector<Draft> drafts_;
    CycleFinder find_cycles_;
};

}  // namespace spantree::sampling
