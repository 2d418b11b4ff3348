// Which sentences are solved side by side, and which alone.
//
// Sentences of like length share a group of eight lanes; the result of a sentence does not depend on its company. A
// group costs about as much as `worth_lanes` sentences of its longest length solved alone, whether its lanes are filled
// or not. Nobody shorter than seven eighths of the longest joins a group: (8 / 7)^3 = 1.5 times is what that costs.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "../simd/pack.hpp"
#include "sentence.hpp"

namespace spantree {

/// The sentences of a group, one: alone; more: in lanes; and the words of the longest, its first.
struct Group {
    std::span<const std::size_t> sentences;
    int words = 0;
};

inline constexpr int longest_in_lanes = 192;  // beyond, eight matrices leave the nearer caches
inline constexpr int worth_lanes = 4;

/// Groups of all sentences that have words.
class Plan {
public:
    template <class T>
    explicit Plan(const std::vector<Sentence<T>>& sentences) : order_(sentences.size()) {
        const auto words = [&](std::size_t position) { return sentences[order_[position]].words; };
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        const auto longer = [&](std::size_t a, std::size_t b) {
            return sentences[a].words != sentences[b].words ? sentences[a].words > sentences[b].words : a < b;
        };
        if (!std::is_sorted(order_.begin(), order_.end(), longer)) std::sort(order_.begin(), order_.end(), longer);
        for (std::size_t first = 0; first < order_.size() && words(first) > 0;) {
            const int longest = words(first), shortest = std::max(1, longest - longest / 8 - 1);
            std::size_t last = first + 1;
            while (last < order_.size() && last - first < pack_size && words(last) >= shortest) ++last;
            if (longest > longest_in_lanes || last - first < worth_lanes) last = first + 1;
            groups_.push_back({std::span(order_).subspan(first, last - first), longest});
            first = last;
        }
    }
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;

    std::size_t size() const { return groups_.size(); }
    const Group& operator[](std::size_t i) const { return groups_[i]; }

private:
    std::vector<std::size_t> order_;
    std::vector<Group> groups_;
};

}  // namespace spantree
