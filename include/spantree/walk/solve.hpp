// Escape probabilities of all pairs of words, in O(n^3) and without a subtraction.
//
//     E[i, j] = P(the walk from word i reaches ROOT before word j),  E[j, j] = 0
//
// E[:, j] needs every word eliminated but j. Divide and conquer: split the live words in halves; eliminate one half,
// solve on the other, and extend the answer to the eliminated words, whose walk meets a kept one first or ROOT,
//
//     E[k, j] = F_root[k] + sum over the kept words l of F[k, l] E[l, j]
//
// then the same with the halves swapped. Halves are cut at powers of two, whatever the length, so that words of padding
// after the last word change nothing: their contributions are exact zeros. About 1.1 n^3 multiply-adds, memory O(n^2).
//
// The chain of branches that keep the first half eliminates all words but the first, so the product of its pivots times
// what root weight the first word ends up with is Z; log Z alone follows that chain only, n^3 / 3.
#pragma once

#include <array>
#include <bit>
#include <vector>

#include "../batch/aligned_buffer.hpp"
#include "../batch/parallel.hpp"
#include "elimination.hpp"
#include "small_solve.hpp"

namespace spantree {

/// An odd number of packs: rows then spread over all sets of the cache.
constexpr std::ptrdiff_t odd_packs(int packs) { return static_cast<std::ptrdiff_t>(packs | 1) * pack_size; }

/// Words and padding up to the end of the last leaf of the divide and conquer.
constexpr int padded_words(int words) {
    const int rest = words % pack_size;
    return words - rest + (rest ? static_cast<int>(std::bit_ceil(static_cast<unsigned>(rest))) : 0);
}

template <class Format>
class WalkBuffer {
public:
    static std::ptrdiff_t stride(int words) { return odd_packs(1 + Format::packs(padded_words(words))); }

    Walk<Format> reserve(int words) {
        double* data = buffer_.reserve(static_cast<std::size_t>(padded_words(words)) * stride(words));
        return {data + pack_size, data, stride(words)};
    }

    std::size_t bytes() const { return buffer_.bytes(); }

private:
    AlignedBuffer<double> buffer_;
};

/// Scratch for solving on one thread.
template <class Format>
class Solve {
public:
    static constexpr int e = Format::element_size;
    static constexpr int small_words = Format::leaf_words;
    static constexpr int small_chain = 8;  // words that are eliminated in registers and the nearest cache

    static constexpr int long_words = 512;  // parts of so many words take long enough to ask whether to go on

    /// To be called before `run`, outside the dispatched kernel. `stop`, if any, is asked in long sentences: it throws
    /// `Stopped`.
    void reserve(int words, StopSignal* stop = nullptr) {
        stop_ = stop;
        int depth = 0;
        for (int size = power_above(words); size > small_words; size /= 2) {
            if (static_cast<std::size_t>(depth) >= copies_.size()) copies_.emplace_back();
            copies_[depth++].reserve(std::min(size, words));
        }
    }

    std::size_t bytes() const {
        std::size_t total = 0;
        for (const auto& copy : copies_) total += copy.bytes();
        return total;
    }

    /// E in rows of packs, word i in row i, and what `pivots` gathers. Destroys `walk`.
    template <class Layout, int tile>
    [[gnu::always_inline]] void run(Walk<Format> walk, int words, Rows escape, Pivots<Layout>& pivots) {
        std::array<Frame, 32> stack;  // one for every time that the words can be halved
        int top = 0;
        stack[0] = {walk, walk, 0, power_above(words), 0, Branch::none, true};
        while (top >= 0) {
            Frame& frame = stack[top];
            StopSignal* const stop = frame.size >= long_words ? stop_ : nullptr;
            const int count = std::min(frame.size, words - frame.offset);
            if (frame.size <= Layout::leaf_words) {
                leaf<Layout>(frame, count, escape, pivots);
                --top;
                continue;
            }
            const int half = frame.size / 2;
            if (count <= half) {
                frame.size = half;
                continue;
            }
            const Range low{0, half}, high{half, count};
            if (frame.done != Branch::none) {
                const bool low_done = frame.done == Branch::low;
                in_pieces(low_done ? high : low, stop, [&](Range dropped) __attribute__((always_inline)) {
                    call_apart<Layout::width, Extend<Layout, tile>>(
                        low_done ? frame.copy : frame.walk, low_done ? low : high, dropped, frame.offset, escape);
                });
                if (!low_done) {
                    --top;
                    continue;
                }
            }
            const bool to_low = frame.done == Branch::none;
            if (to_low) frame.copy = copies_[frame.depth].reserve(count);
            const Walk<Format> chain = to_low ? frame.copy : frame.walk;
            const bool first_chain = frame.first_chain && to_low;
            Elimination<Layout, tile>::run(frame.walk, chain, to_low ? low : high, to_low ? high : low, frame.offset,
                                           first_chain, pivots, stop);
            frame.done = to_low ? Branch::low : Branch::high;
            const int kept = to_low ? 0 : half;
            stack[++top] = {chain.from(kept), chain.from(kept), frame.offset + kept, half,
                            frame.depth + 1,  Branch::none,     first_chain};
        }
    }

    /// Only what `pivots` gathers. Destroys `walk`.
    template <class Layout, int tile>
    [[gnu::always_inline]] void eliminate_all(Walk<Format> walk, int words, Pivots<Layout>& pivots) {
        int left = words;
        for (int half = power_above(words) / 2; half >= small_chain; left = std::min(left, half), half /= 2) {
            if (left > half)
                Elimination<Layout, tile>::run(walk, walk, {0, half}, {half, left}, 0, true, pivots,
                                               half >= long_words ? stop_ : nullptr);
        }
        with_leaf(left, [&]<int size>() __attribute__((always_inline)) {
            typename Layout::Element a[size][size + 1];
            read<Layout>(walk, a);
            SmallSolve<Layout, size>::eliminate_all(a, pivots);
        });
    }

private:
    enum class Branch { none, low, high };

    /// The least power of two that is no less.
    static int power_above(int words) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(words))); }

    /// Words offset, ..., offset + size - 1 of the sentence, `walk` being reduced to them, `copy` for the low half's branch,
    /// and which half has been solved.
    struct Frame {
        Walk<Format> walk, copy;
        int offset, size, depth;
        Branch done;
        bool first_chain;
    };

    template <class Layout, int tile>
    struct Extend {
        static void run(Walk<Format> walk, Range keep, Range drop, int offset, Rows escape) {
            extend<Layout, tile>(walk, keep, drop, offset, escape);
        }
    };

    /// Fills E[drop, keep] from E[keep, keep] and the rows F of the dropped words.
    template <class Layout, int tile>
    [[gnu::always_inline]] static void extend(Walk<Format> walk, Range keep, Range drop, int offset, Rows escape) {
        const int first_pack = Layout::first_pack(offset + keep.begin), last_pack = Layout::packs(offset + keep.end);
        const auto row = [&](int word) { return escape.data + (offset + word) * escape.stride; };
        for (int k = drop.begin; k < drop.end; k += tile_rows) {
            const int count = std::min(tile_rows, drop.end - k);
            update_from<Layout, tile>(StartColumn{walk.root_at(k), walk.stride}, {row(k), escape.stride}, count,
                                      first_pack, last_pack, {walk.at(k, keep.begin), walk.stride, e},
                                      {row(keep.begin), escape.stride}, keep.size());
        }
    }

    /// Calls body<size>() with the size of the smallest leaf that holds `words` words.
    template <class Body>
    [[gnu::always_inline]] static void with_leaf(int words, Body body) {
        if (words > 4)
            body.template operator()<8>();
        else if (words > 2)
            body.template operator()<4>();
        else if (words > 1)
            body.template operator()<2>();
        else
            body.template operator()<1>();
    }

    template <class Layout, int size>
    [[gnu::always_inline]] static void read(const Walk<Format>& walk, typename Layout::Element (&a)[size][size + 1]) {
        for (int i = 0; i < size; ++i)
            for (int l = 0; l <= size; ++l) a[i][l] = Layout::get(l == size ? walk.root_at(i) : walk.at(i, l));
    }

    template <class Layout>
    [[gnu::always_inline]] static void leaf(const Frame& frame, int words, Rows escape, Pivots<Layout>& pivots) {
        using Element = typename Layout::Element;
        with_leaf(words, [&]<int size>() __attribute__((always_inline)) {
            if constexpr (size <= Layout::leaf_words) {
                Element a[size][size + 1], solved[size][size];
                read<Layout>(frame.walk, a);
                SmallSolve<Layout, size>::run(a, frame.offset, frame.first_chain, pivots, solved);
                for (int i = 0; i < size; ++i)
                    for (int j = 0; j < size; ++j)
                        Layout::set(escape.data + (frame.offset + i) * escape.stride + (frame.offset + j) * e,
                                    solved[i][j]);
            }
        });
    }

    std::vector<WalkBuffer<Format>> copies_;  // one per level
    StopSignal* stop_ = nullptr;
};

}  // namespace spantree
