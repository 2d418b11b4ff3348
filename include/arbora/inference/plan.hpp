// Which sentences are solved side by side, and which alone.
//
// Sentences of like length share a group of eight lanes; the result of a sentence does not depend on its company. A
// group costs about as much as `worth_lanes` sentences of its longest length solved alone, whether its lanes are filled
// or not.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "pack.hpp"

namespace arbora {

struct GroupPlan {
    std::vector<std::size_t> sentences;  // one: alone; more: in lanes
    int words = 0;                       // of the longest
};

inline constexpr int longest_in_lanes = 192;  // beyond, eight matrices leave the nearer caches
inline constexpr int worth_lanes = 4;

inline std::vector<GroupPlan> plan_groups(const std::vector<int>& words) {
    std::vector<std::size_t> order(words.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return words[a] > words[b]; });
    std::vector<GroupPlan> groups;
    for (std::size_t first = 0; first < order.size();) {
        const int longest = words[order[first]];
        if (longest == 0) break;
        std::size_t last = first + 1;
        const int shortest = longest - longest / 8 - 1;
        while (last < order.size() && last - first < pack_size && words[order[last]] >= shortest &&
               words[order[last]] > 0)
            ++last;
        if (longest > longest_in_lanes || last - first < worth_lanes) last = first + 1;
        groups.push_back(
            {{order.begin() + static_cast<std::ptrdiff_t>(first), order.begin() + static_cast<std::ptrdiff_t>(last)},
             longest});
        first = last;
    }
    return groups;
}

}  // namespace arbora
