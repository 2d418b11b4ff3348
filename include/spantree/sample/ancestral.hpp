// Trees drawn word by word from their conditional distributions (conditionals.hpp): O(n^3) a tree at most, whatever the
// scores.
//
// Many trees are drawn together: those with the same heads so far stay together, and what is eliminated for one is for
// all.
#pragma once

#include <algorithm>
#include <vector>

#include "../batch/sentence.hpp"
#include "conditionals.hpp"
#include "random.hpp"

namespace spantree::sampling {

/// A tree to be drawn: where its random numbers come from and where its heads go.
struct TreeDraw {
    RandomStream random;
    Heads* heads;
};

template <class Real>
class AncestralSampler {
public:
    void start(const WalkWeights<Real>& weights) {
        words_ = weights.words();
        conditionals_.start(weights);
    }

    /// Returns false if doubles do not have the range; then `draws` has to be made anew for another try.
    bool operator()(std::vector<TreeDraw>& draws) {
        for (const TreeDraw& draw : draws) draw.heads[0] = no_head;
        draw_words(0, draws.data(), draws.data() + draws.size());
        return !conditionals_.left_range();
    }

private:
    /// All of [begin, end) have the heads that conditionals_ has for words before `word`.
    void draw_words(int word, TreeDraw* begin, TreeDraw* end) {
        for (; word < words_; ++word) {
            Real total;
            const Real* const shares = conditionals_(word, total);
            for (TreeDraw* draw = begin; draw != end; ++draw)
                draw->heads[word + 1] = draw_head(shares, total, draw->random);
            if (end - begin > 1) break;
            conditionals_.decide(word, static_cast<int>(begin->heads[word + 1]));
        }
        if (word == words_) return;
        const auto head = [&](const TreeDraw& draw) { return draw.heads[word + 1]; };
        std::stable_sort(begin, end, [&](const TreeDraw& a, const TreeDraw& b) { return head(a) < head(b); });
        while (begin != end) {
            TreeDraw* const next =
                std::find_if(begin, end, [&](const TreeDraw& draw) { return head(draw) != head(*begin); });
            conditionals_.decide(word, static_cast<int>(head(*begin)));
            draw_words(word + 1, begin, next);
            begin = next;
        }
    }

    Heads draw_head(const Real* shares, Real total, RandomStream& random) const {
        double left = random.uniform();
        Heads possible = 0;
        for (int head = 0; head <= words_; ++head) {
            if (!is_positive(shares[head])) continue;
            possible = head;
            left -= value_of(shares[head] / total);
            if (left < 0.0) break;
        }
        return possible;
    }

    int words_ = 0;
    Conditionals<Real> conditionals_;
};

}  // namespace spantree::sampling
