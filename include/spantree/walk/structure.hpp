// What the forbidden edges alone say about a sentence: whether it has a tree, and whether its single-root trees come in
// two parts.
//
// With one root allowed, ROOT's child must reach every word. Let U be the words that do. No edge leads from outside
// into U (its tail would reach everything too), so a tree is a single-root tree on U, and, independently, a way to hang
// every other word below U: on the rest, U plays ROOT's part and has as many children as it likes. No tree exists if U
// is empty or ROOT leads to none of it. Found by search, O(n^2); numbers never decide.
#pragma once

#include <vector>

#include "../batch/sentence.hpp"

namespace spantree {

struct Structure {
    bool feasible = false;
    std::vector<int> core;  // U; several roots allowed: empty, there is only the rest
    std::vector<int> rest;
};

/// possible(head, dep), nodes 0..words.
template <class Possible>
Structure find_structure(int words, Root root, Possible possible) {
    std::vector<int> stack;
    const auto spread = [&](int from, std::vector<char>& seen, auto edge) {
        stack.assign(1, from);
        seen[from] = 1;
        while (!stack.empty()) {
            const int node = stack.back();
            stack.pop_back();
            for (int next = 1; next <= words; ++next)
                if (!seen[next] && next != node && edge(node, next)) {
                    seen[next] = 1;
                    stack.push_back(next);
                }
        }
    };
    const auto all_seen = [&](const std::vector<char>& seen) {
        for (int word = 1; word <= words; ++word)
            if (!seen[word]) return false;
        return true;
    };

    Structure result;
    std::vector<char> seen(words + 1, 0);
    if (root == Root::multi) {
        spread(0, seen, possible);
        result.feasible = all_seen(seen);
        for (int word = 1; word <= words; ++word) result.rest.push_back(word);
        return result;
    }
    // If some word reaches all others, so does the last one from which a search had to be started.
    int mother = 0;
    for (int word = 1; word <= words; ++word)
        if (!seen[word]) {
            mother = word;
            spread(word, seen, possible);
        }
    seen.assign(words + 1, 0);
    spread(mother, seen, possible);
    if (!all_seen(seen)) return result;
    seen.assign(words + 1, 0);
    spread(mother, seen, [&](int dep, int head) { return possible(head, dep); });
    for (int word = 1; word <= words; ++word) {
        (seen[word] ? result.core : result.rest).push_back(word);
        if (seen[word] && possible(0, word)) result.feasible = true;
    }
    return result;
}

}  // namespace spantree
