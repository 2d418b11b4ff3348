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
    std::vector<char> seen(words + 1, 0);
    int unseen = words;
    const auto see = [&](int node) {
        seen[node] = 1;
        if (node > 0) --unseen;
        stack.push_back(node);
    };
    const auto see_nothing = [&] {
        seen.assign(words + 1, 0);
        unseen = words;
    };
    // Where nearly everything is possible, all is seen after a step or two.
    const auto spread = [&](int from, auto edge) {
        stack.clear();
        see(from);
        while (!stack.empty() && unseen > 0) {
            const int node = stack.back();
            stack.pop_back();
            for (int next = 1; next <= words; ++next)
                if (!seen[next] && next != node && edge(node, next)) see(next);
        }
    };

    Structure result;
    if (root == Root::multi) {
        spread(0, possible);
        result.feasible = unseen == 0;
        for (int word = 1; word <= words; ++word) result.rest.push_back(word);
        return result;
    }
    // If some word reaches all others, so does the last one from which a search had to be started.
    int mother = 0;
    for (int word = 1; word <= words; ++word)
        if (!seen[word]) {
            mother = word;
            spread(word, possible);
        }
    see_nothing();
    spread(mother, possible);
    if (unseen > 0) return result;
    see_nothing();
    spread(mother, [&](int dep, int head) { return possible(head, dep); });
    for (int word = 1; word <= words; ++word) {
        (seen[word] ? result.core : result.rest).push_back(word);
        if (seen[word] && possible(0, word)) result.feasible = true;
    }
    return result;
}

}  // namespace spantree
