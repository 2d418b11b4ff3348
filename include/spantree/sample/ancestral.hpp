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
    bool operator()(std::vector<TreeDraw>& draws, StopSignal& stop) {
        conditionals_.listen_to(stop);
        for (const TreeDraw& draw : draws) draw.heads[0] = no_head;
        waiting_.assign(1, {0, draws.data(), draws.data() + draws.size()});
        while (!waiting_.empty() && !conditionals_.left_range()) {
            const Bundle next = waiting_.back();
            waiting_.pop_back();
            finish(next);
        }
        return !conditionals_.left_range();
    }

private:
    /// Trees with the same heads for the words before `word`.
    struct Bundle {
        int word;
        TreeDraw *begin, *end;
    };

    /// Draws the other words' heads. Whenever trees part, one of the new bundles is gone on with and the others wait.
    void finish(Bundle bundle) {
        int word = bundle.word;
        TreeDraw *const begin = bundle.begin, *end = bundle.end;
        const auto head = [&](const TreeDraw& draw) { return static_cast<int>(draw.heads[word + 1]); };
        for (int before = 0; before < word; ++before)
            conditionals_.decide(before, static_cast<int>(begin->heads[before + 1]));
        for (; word < words_; ++word) {
            Real total;
            const Real* const shares = conditionals_(word, total);
            for (TreeDraw* draw = begin; draw != end; ++draw)
                draw->heads[word + 1] = draw_head(shares, total, draw->random);
            if (end - begin > 1) {
                std::sort(begin, end, [&](const TreeDraw& a, const TreeDraw& b) { return head(a) < head(b); });
                const auto part_end = [&](TreeDraw* first) {
                    return std::find_if(first, end, [&](const TreeDraw& draw) { return head(draw) != head(*first); });
                };
                TreeDraw* const first_end = part_end(begin);
                for (TreeDraw* at = first_end; at != end; at = waiting_.back().end)
                    waiting_.push_back({word + 1, at, part_end(at)});
                end = first_end;
            }
            conditionals_.decide(word, head(*begin));
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
    std::vector<Bundle> waiting_;
};

}  // namespace spantree::sampling
