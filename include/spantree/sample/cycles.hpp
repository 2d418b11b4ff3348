// The words on cycles, where every word has one head: those that a walk from head to head comes back to.
//
// With f the map from words to heads, f composed with itself at least `words` times maps every word to a word on a cycle, or
// to ROOT, and reaches all of them; and it takes only log2(words) compositions of a map with itself to get there. None of
// its steps depends on what was drawn, so a machine need not guess where a walk ends. Up to 63 words fit into registers.
//
//     words 1..4 with heads 0 1 4 3:    f = 0 1 4 3    f f = 0 0 3 4    f f f f = 0 0 3 4: on cycles are 3 and 4
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "../simd/dispatch.hpp"
#include "../simd/vector.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif

namespace spantree::sampling {

/// Finds the words on cycles of head[0..words]; words that are known to reach ROOT are not looked at again.
class CycleFinder {
public:
    void reset(int words, int root_word) {
        const std::size_t nodes = static_cast<std::size_t>(words) + 1;
        map_.assign(nodes, 0);
        composed_.assign(nodes, 0);
        is_reached_.assign(nodes, 0);
        cycle_.resize(nodes);
        live_.clear();
        for (int word = 1; word <= words; ++word)
            if (word != root_word) live_.push_back(static_cast<std::uint16_t>(word));
    }

    /// In increasing order; valid until the next call.
    std::span<const std::uint16_t> operator()(const std::uint16_t* head) {
        const std::span<const std::uint16_t> live(live_);
        std::uint16_t *map = map_.data(), *composed = composed_.data();
        for (const std::uint16_t word : live) map[word] = head[word];
        for (std::size_t steps = 1; steps <= live.size(); steps *= 2) {
            for (const std::uint16_t word : live) composed[word] = map[map[word]];
            std::swap(map, composed);
        }
        for (const std::uint16_t word : live) {
            is_reached_[map[word]] = 1;
            composed[word] = 0;
        }
        std::size_t found = 0, left = 0;
        for (const std::uint16_t word : live_) {
            cycle_[found] = live_[left] = word;  // the latter is before or at this one
            found += is_reached_[word];
            left += map[word] != 0;
            map[word] = 0;
            is_reached_[word] = 0;
        }
        live_.resize(left);
        return {cycle_.data(), found};
    }

private:
    std::vector<std::uint16_t> live_;            // words, in increasing order
    std::vector<std::uint16_t> map_, composed_;  // by node; ROOT, and who is no longer live, maps to 0
    std::vector<std::uint16_t> is_reached_;
    std::vector<std::uint16_t> cycle_;
};

/// A set of words below 64: words_on_cycles(head, words), for registers of `width` doubles, if they can do it. head[0] and
/// the root word's head must be 0, as must be entries from words + 1 to 63.
template <int width>
struct CyclesInRegisters {
    static constexpr bool possible = false;
};

#if defined(__x86_64__) && defined(__GNUC__) && (defined(__AVX2__) || !defined(SPANTREE_BASELINE_ONLY))

template <>
struct CyclesInRegisters<4> {
    static constexpr bool possible = true;

    [[gnu::target("avx2")]] static inline std::uint64_t words_on_cycles(const std::uint16_t* head, int words) {
        const int doublings = std::bit_width(static_cast<unsigned>(words));
        __m256i low = bytes_of(head), high = _mm256_setzero_si256();
        if (words < 32) {
            for (int i = 0; i < doublings; ++i) low = looked_up(low, _mm256_setzero_si256(), low, 2);
        } else {
            high = bytes_of(head + 32);
            for (int i = 0; i < doublings; ++i) {
                const __m256i next = looked_up(low, high, low, 4);
                high = looked_up(low, high, high, 4);
                low = next;
            }
        }
        const __m256i one = _mm256_set1_epi64x(1), six_bits = _mm256_set1_epi64x(63);
        __m256i image = one;
        for (int shift = 0; shift < 64; shift += 8)
            for (const __m256i& heads : {low, high})
                image = _mm256_or_si256(
                    image, _mm256_sllv_epi64(one, _mm256_and_si256(_mm256_srli_epi64(heads, shift), six_bits)));
        alignas(32) std::uint64_t part[4];
        _mm256_store_si256(reinterpret_cast<__m256i*>(part), image);
        return ((part[0] | part[1]) | (part[2] | part[3])) & ~std::uint64_t{1};
    }

private:
    /// 32 heads, each in a byte.
    [[gnu::target("avx2")]] static inline __m256i bytes_of(const std::uint16_t* head) {
        const auto* const from = reinterpret_cast<const __m256i*>(head);
        const __m256i packed = _mm256_packus_epi16(_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1));
        return _mm256_permute4x64_epi64(packed, 0b11011000);  // packing goes by halves
    }

    /// table[at] for 32 places, in a table of `pieces` times 16 bytes. A byte shuffle looks up in one piece, and gives 0 where
    /// the highest bit is set: for other pieces it is made so.
    [[gnu::target("avx2"), gnu::always_inline]] static inline __m256i looked_up(__m256i low, __m256i high, __m256i at,
                                                                                int pieces) {
        __m256i result = _mm256_setzero_si256();
        for (int piece = 0; piece < pieces; ++piece) {
            const __m256i half = piece < 2 ? low : high;
            const __m256i table =
                piece % 2 ? _mm256_permute4x64_epi64(half, 0b11101110) : _mm256_permute4x64_epi64(half, 0b01000100);
            const __m256i in_piece = _mm256_xor_si256(at, _mm256_set1_epi8(static_cast<char>(16 * piece)));
            const __m256i place = _mm256_adds_epu8(in_piece, _mm256_set1_epi8(0x70));  // below 16 stays below 128
            result = _mm256_or_si256(result, _mm256_shuffle_epi8(table, place));
        }
        return result;
    }
};

#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(SPANTREE_BASELINE_ONLY)

template <>
struct CyclesInRegisters<8> {
    static constexpr bool possible = true;

    [[gnu::target("arch=x86-64-v4")]] static inline std::uint64_t words_on_cycles(const std::uint16_t* head,
                                                                                  int words) {
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
};

#endif

}  // namespace spantree::sampling
