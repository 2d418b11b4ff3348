// A best tree, and by how much every other tree is worse, in terms none of which is negative.
//
// Edmonds' algorithm (1967) grows sets S of words, any two of them nested or apart, and amounts y(S) >= 0. An edge h -> d
// enters S if d is in S and h is not. With x(d) a number per word and
//
//     r(h, d)  =  x(d) - score(h, d) - sum of y(S) over the sets that h -> d enters  >=  0,
//
//     score(best) - score(tree)  =  sum of r over the tree's edges  +  sum over S of y(S) (edges of it that enter S - 1)
//
// since every tree enters every set, the best one just once. With one root, every tree also enters a set just once whose
// only way in is from ROOT: its y is 0 here, and what it would be is common to the r of all edges from ROOT.
//
//     two words, several roots       score             r                y({1, 2}) = 1e30 + 5
//     0 -> 1, 0 -> 2                 -1e30, -1e30      0, 2             one root edge costs nothing more, the second
//     2 -> 1, 1 -> 2                  3,     5         0, 0             of two costs y
//
// All in exact arithmetic. O(n^2) for every level of sets within sets.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "../number/exact_sum.hpp"
#include "../number/wide.hpp"
#include "../root.hpp"
#include "parallel.hpp"
#include "sentence.hpp"

namespace spantree {

class Certificate {
public:
    /// score(h, d) in two parts that do not overlap, -inf if forbidden; false if there is no tree.
    template <class Score>
    bool find(int words, Root root, StopSignal& stop, Score score) {
        words_ = words;
        root_ = root;
        const std::size_t most = 2 * static_cast<std::size_t>(words) + 1;  // ROOT, words and sets
        parent_.assign(most, outermost);
        amount_.assign(most, 0.0);
        entering_.assign(most, {});
        progress_.assign(most, Progress::none);
        progress_[0] = Progress::done;
        members_.assign(most, {});
        largest_of_.resize(static_cast<std::size_t>(words) + 1);
        for (int node = 0; node <= words; ++node) {
            largest_of_[node] = node;
            members_[node] = {node};
        }
        level_.assign(static_cast<std::size_t>(words) + 1, {});
        short_of_.assign(static_cast<std::size_t>(words + 1) * (words + 1), std::numeric_limits<double>::infinity());
        next_ = words + 1;
        root_edges_ = 0;
        for (int word = 1; word <= words; ++word)
            if (!connect(largest_of_[word], stop, score)) return false;
        if (root == Root::single && words > 0 && root_edges_ != 1) return false;
        for (int d = 1; d <= words; ++d)
            for (int h = 0; h <= words; ++h)
                if (largest_of_[h] != largest_of_[d] && may_enter(h, largest_of_[d])) settle(h, d, score);
        choose_heads();
        members_.clear();
        level_.clear();
        return true;
    }

    /// Of the best tree.
    int head(int dep) const { return entering_[dep].head; }

    /// r. Infinite where no tree has the edge.
    double short_of_best(int head, int dep) const { return short_of_[index(head, dep)]; }

    /// What the edge adds to score(tree) - score(best): those of the best tree add 0. Of an r or a y, no more than `limit`
    /// counts.
    double value(int head, int dep, double limit) const {
        const int own = set_of_both(head, dep), best = set_of_both(this->head(dep), dep);
        const double r = short_of_best(head, dep);
        double sum = r == std::numeric_limits<double>::infinity() ? minus_infinity<double> : -std::min(r, limit);
        for (int set = best; set < own; set = parent_[set]) sum -= std::min(amount_[set], limit);
        for (int set = own; set < best; set = parent_[set]) sum += std::min(amount_[set], limit);
        return sum;
    }

    /// One more than the highest number of a set.
    int end_of_sets() const { return next_; }
    /// y
    double amount(int set) const { return amount_[set]; }
    /// visit(set, entered) for the sets around a word, and whether an edge into it enters them.
    template <class Visit>
    void each_set(int head, int dep, Visit visit) const {
        const int both = set_of_both(head, dep);
        for (int set = parent_[dep]; set != outermost; set = parent_[set]) visit(set, set < both);
    }

private:
    using Exact = Wide<limbs_of_any_sum>;
    enum class Progress : unsigned char { none, on_path, done };
    struct Edge {
        int head = 0, dep = 0;
    };
    static constexpr int outermost = std::numeric_limits<int>::max();

    std::size_t index(int head, int dep) const { return static_cast<std::size_t>(head) * (words_ + 1) + dep; }

    static Exact exact(const TwoPart<double>& x) {
        return Exact::of(x.high, BitRange::lowest) + Exact::of(x.low, BitRange::lowest);
    }
    static bool less(const TwoPart<double>& a, const TwoPart<double>& b) {
        return a.high < b.high || (a.high == b.high && a.low < b.low);
    }

    /// The smallest set (or word) of both; sets have higher numbers than what they contain.
    int set_of_both(int a, int b) const {
        while (a != b) (a < b ? a : b) = parent_[a < b ? a : b];
        return a;
    }

    /// From a set on to what it is entered from, until ROOT or what leads there. A cycle becomes a set.
    template <class Score>
    bool connect(int set, StopSignal& stop, Score score) {
        path_.clear();
        while (progress_[set] != Progress::done) {
            stop.check();
            if (progress_[set] == Progress::on_path) {
                set = contract(set, score);
                continue;
            }
            if (!enter(set, score)) return false;
            progress_[set] = Progress::on_path;
            path_.push_back(set);
            set = largest_of_[entering_[set].head];
        }
        for (const int passed : path_) progress_[passed] = Progress::done;
        return true;
    }

    /// Finds the best edge into a set: y is by how much it falls short.
    template <class Score>
    bool enter(int set, Score score) {
        for (const bool from_root : {false, true}) {
            bool found = false;
            Exact least;
            for (const int d : members_[set]) {
                int best = -1;
                TwoPart<double> highest{minus_infinity<double>, 0.0};
                const bool root_too = from_root || root_ == Root::multi;
                for (int h = root_too ? 0 : 1; h <= (from_root ? 0 : words_); ++h)
                    if (largest_of_[h] != set)
                        if (const TwoPart<double> x = score(h, d); less(highest, x)) {
                            highest = x;
                            best = h;
                        }
                if (best < 0) continue;
                const Exact gap = level_[d] - exact(highest);
                if (!found || gap < least) {
                    least = gap;
                    entering_[set] = {best, d};
                }
                found = true;
            }
            if (!found) continue;
            for (const int d : members_[set]) level_[d] = level_[d] - least;
            const bool once = root_ == Root::single && entering_[set].head == 0;
            if (set > words_ && !once) amount_[set] = finite(least.value(BitRange::lowest));
            root_edges_ += entering_[set].head == 0;
            return true;
        }
        return false;
    }

    /// The sets on the path from `first` on become one.
    template <class Score>
    int contract(int first, Score score) {
        const auto begin = std::find(path_.begin(), path_.end(), first);
        const int set = next_++;
        for (auto part = begin; part != path_.end(); ++part) {
            parent_[*part] = set;
            for (const int d : members_[*part])
                for (auto other = begin; other != path_.end(); ++other)
                    for (const int h : members_[*other])
                        if (other != part) settle(h, d, score);
        }
        for (auto part = begin; part != path_.end(); ++part) {
            members_[set].insert(members_[set].end(), members_[*part].begin(), members_[*part].end());
            members_[*part].clear();
        }
        for (const int d : members_[set]) largest_of_[d] = set;
        path_.erase(begin, path_.end());
        return set;
    }

    /// With one root, only the set that is entered from ROOT has edges from there.
    bool may_enter(int h, int set) const { return h > 0 || root_ == Root::multi || entering_[set].head == 0; }

    template <class Score>
    void settle(int h, int d, Score score) {
        const TwoPart<double> x = score(h, d);
        if (x.high > minus_infinity<double>)
            short_of_[index(h, d)] = finite((level_[d] - exact(x)).value(BitRange::lowest));
    }

    static double finite(double x) { return std::min(x, std::numeric_limits<double>::max()); }

    /// From the outermost sets inwards: the part that the edge into a set leads to is entered by that edge.
    void choose_heads() {
        for (int set = next_ - 1; set > words_; --set) {
            int part = entering_[set].dep;
            while (parent_[part] != set) part = parent_[part];
            entering_[part] = entering_[set];
        }
    }

    int words_ = 0;
    Root root_ = Root::single;
    int next_ = 0;                // number of the next set
    int root_edges_ = 0;          // of sets that nothing contains
    std::vector<int> parent_;     // by word and set: the smallest set around it
    std::vector<double> amount_;  // y
    std::vector<Edge> entering_;  // by word and set
    std::vector<Progress> progress_;
    std::vector<std::vector<int>> members_;  // by largest set
    std::vector<int> largest_of_;            // by node
    std::vector<int> path_;
    std::vector<Exact> level_;      // by word: x less all y around it so far
    std::vector<double> short_of_;  // r, [head, dep]
};

}  // namespace spantree
