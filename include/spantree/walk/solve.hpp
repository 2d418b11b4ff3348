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

    /// To be called before `run`, outside the dispatched kernel.
    void reserve(int words) {
        int depth = 0;
        for (int size = static_cast<int>(std::bit_ceil(static_cast<unsigned>(words))); size > small_words; size /= 2) {
            if (static_cast<std::size_t>(depth) >= copies_.size()) copies_.emplace_back();
            copies_[depth++].reserve(std::min(size, words));
        }
    }

    std::size_t bytes() const {
        std::size_t total = 0;
        for (const auto& copy : copies_) total += copy.bytes();
        return total;
    }

    /// If all_pairs, E in rows of packs, word i in row i; else only what `pivots` gathers. Destroys `walk`.
    template <class Layout, int tile>
    [[gnu::always_inline]] void run(Walk<Format> walk, int words, bool all_pairs, Rows escape, Pivots<Layout>& pivots) {
        std::array<Frame, 32> stack;  // one for every time that the words can be halved
        int top = 0;
        stack[0] = {walk, walk,         0,   static_cast<int>(std::bit_ceil(static_cast<unsigned>(words))),
                    0,    Branch::none, true};
        while (top >= 0) {
            Frame& frame = stack[top];
            const int count = std::min(frame.size, words - frame.offset);
            if (frame.size <= (all_pairs ? small_words : small_chain)) {
                leaf<Layout>(frame, count, all_pairs, escape, pivots);
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
                if (all_pairs)
                    extend<Layout, tile>(low_done ? frame.copy : frame.walk, low_done ? low : high,
                                         low_done ? high : low, frame.offset, escape);
                if (!low_done || !all_pairs) {
                    --top;
                    continue;
                }
            }
            const bool to_low = frame.done == Branch::none;
            if (to_low && all_pairs) {
                frame.copy = copies_[frame.depth].reserve(count);
                copy_walk<Layout>(frame.walk, frame.copy, count);
            }
            const Walk<Format> chain = to_low ? frame.copy : frame.walk;
            const bool first_chain = frame.first_chain && to_low;
            Elimination<Layout, tile>::run(chain, to_low ? low : high, to_low ? high : low, frame.offset, first_chain,
                                           pivots);
            frame.done = to_low ? Branch::low : Branch::high;
            const int kept = to_low ? 0 : half;
            stack[++top] = {chain.from(kept), chain.from(kept), frame.offset + kept, half,
                            frame.depth + 1,  Branch::none,     first_chain};
        }
    }

private:
    enum class Branch { none, low, high };

    /// Words offset, ..., offset + size - 1 of the sentence, `walk` being reduced to them, and which half has been
    /// solved.
    struct Frame {
        Walk<Format> walk, copy;
        int offset, size, depth;
        Branch done;
        bool first_chain;
    };

    template <class Layout>
    [[gnu::always_inline]] static void copy_walk(Walk<Format> from, Walk<Format> to, int words) {
        for (int i = 0; i < words; ++i) {
            Layout::set(to.root_at(i), Layout::get(from.root_at(i)));
            for (int p = 0; p < Layout::packs(words); ++p)
                Layout::store(to.row(i) + p * pack_size, Layout::load(from.row(i) + p * pack_size));
        }
    }

    /// Fills E[drop, keep] from E[keep, keep] and the rows F of the dropped words.
    template <class Layout, int tile>
    [[gnu::always_inline]] static void extend(Walk<Format> walk, Range keep, Range drop, int offset, Rows escape) {
        const int first_pack = Layout::first_pack(offset + keep.begin), last_pack = Layout::packs(offset + keep.end);
        const auto row = [&](int word) { return escape.data + (offset + word) * escape.stride; };
        for (int k = drop.begin; k < drop.end; k += tile_rows) {
            const int count = std::min(tile_rows, drop.end - k);
            for (int t = 0; t < count; ++t) {
                const auto start = Layout::spread(Layout::get(walk.root_at(k + t)));
                for (int p = first_pack; p < last_pack; ++p) Layout::store(row(k + t) + p * pack_size, start);
            }
            update<Layout, tile>({row(k), escape.stride}, count, first_pack, last_pack,
                                 {walk.at(k, keep.begin), walk.stride, e}, {row(keep.begin), escape.stride},
                                 keep.size());
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

    template <class Layout>
    [[gnu::always_inline]] static void leaf(const Frame& frame, int words, bool all_pairs, Rows escape,
                                            Pivots<Layout>& pivots) {
        const Walk<Format>& walk = frame.walk;
        using Element = typename Layout::Element;
        with_leaf(words, [&]<int size>() __attribute__((always_inline)) {
            Element a[size][size + 1];
            for (int i = 0; i < size; ++i)
                for (int l = 0; l <= size; ++l) a[i][l] = Layout::get(l == size ? walk.root_at(i) : walk.at(i, l));
            if (!all_pairs) return SmallSolve<Layout, size>::eliminate_all(a, pivots);
            if constexpr (size <= small_words) {
                Element solved[size][size];
                SmallSolve<Layout, size>::run(a, frame.offset, frame.first_chain, pivots, solved);
                for (int i = 0; i < size; ++i)
                    for (int j = 0; j < size; ++j)
                        Layout::set(escape.data + (frame.offset + i) * escape.stride + (frame.offset + j) * e,
                                    solved[i][j]);
            }
        });
    }

    std::vector<WalkBuffer<Format>> copies_;  // one per level
};

}  // namespace spantree
