// The best tree by contracting cycles: Tarjan's algorithm (1977) for dense graphs, O(n^2), in the path-growing order of
// Gabow et al. (1986).
//
// Every node takes its best entering edge. Following these edges backwards from a word, the path ends at ROOT, at a
// finished node, or in a cycle. A cycle C becomes one node; an edge into its member m is worth what it gains over m's
// own choice:
//
//     w'(u -> C) = max over m in C of  w(u -> m) - w(choice of m),
//
// one pass over each member's row. At the end each contracted node's edge replaces the choice of the member it enters:
// rows do not say which, so it is found then, among the words of those cycles whose edge the tree has. Since
//
//     w'(u -> C) = max over words v of C of  w(u -> v) - D(v),   D(v) = sum of w(choice of m) over the nodes m around v
//
// up to what all words of C have in common, that takes a look at each word.
//
//     w(1 -> 2) = 9, w(2 -> 1) = 8           1 and 2 take each other and become node 4
//     w(ROOT -> 1) = 5, w(ROOT -> 2) = 7     w'(ROOT -> 4) = max(5 - 8, 7 - 9) = -2, by word 2
//     node 4 takes ROOT -> 2                 so 2 gives up 1 -> 2, and 1 keeps 2 -> 1: 7 + 8 = 9 + 8 - 2
//
// One root, in one of two ways that give trees of the same score:
//
// `run` with Root::single: weights are pairs (number of root edges, score) compared lexicographically, fewer root edges
// first. A choice inside a cycle never is a root edge, so the differences above never change the first component: a
// root edge always counts 1, any other 0. Hence "greater" becomes: take ROOT only when no word is left to take. If ROOT
// is taken twice, no tree with one root exists. This contracts the whole sentence, and leaves behind what second-best
// search needs.
//
// `reduce_roots` after `run` with Root::multi (Gabow & Tarjan 1984; Zmigrod, Vieira & Cotterell 2020): as long as ROOT
// has several edges, give up the one whose node loses least by taking a word instead; if that closes a cycle, contract
// it and let it choose again. Only what has to change is touched.
//
// Rounded weights (weight.hpp). What a node X compares are sums over equally many edges on either side: an entering
// edge's weight, with the choices it displaces, is W(A) - W(B), where A are the |X| edges that would then enter the
// words of X, and B the |X| edges that enter them in the cycles as they were contracted. So two edges into X differ by
// two sums of |X| edges, and so do two losses of nodes X and Y, by two sums of |X| + |Y|: never more than n.
//
// Rows of doubles. A node takes the highest weight of its row, if not a higher one from ROOT: what a cycle's row holds is
// never positive and, with scores up to L, never below -2 L. So rows may have fewer bits than sums need.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <type_traits>
#include <vector>

#include "../batch/sentence.hpp"
#include "../simd/dispatch.hpp"
#include "../simd/vector.hpp"
#include "weight.hpp"

namespace spantree {

namespace details {

/// row = other - choice
struct SubtractRow {
    template <class Weight>
    static void run(Weight* row, const Weight* other, const Weight& choice, int count) {
        for (int u = 0; u < count; ++u) row[u] = other[u] - choice;
    }
};

/// row = max(row, other - choice) except where barred.
struct MergeRows {
    template <class Weight>
    static void run(Weight* row, const Weight* other, const Weight& choice, int count) {
        for (int u = 0; u < count; ++u) {
            const Weight gain = other[u] - choice;
            row[u] = WeightTraits<Weight>::is_better(gain, row[u]) ? gain : row[u];
        }
    }
};

/// The largest weight of a row, the first place that has it, and whether another is no more than a tolerance behind.
template <class InRow>
struct Largest {
    InRow weight;
    int at;
    bool doubtful;
};

struct FindLargest {
    /// A tolerance of -1: nothing is doubtful. The row consists of whole vectors.
    template <class InRow>
    static Largest<InRow> run(const InRow* row, int count, [[maybe_unused]] std::int64_t tolerance) {
        if constexpr (WeightTraits<InRow>::rounds) {
            // Two chains, so that one need not wait for the other.
            constexpr int side = 4;
            using Four = Vector<InRow, side>;
            const Four absent = Four{} + WeightTraits<InRow>::absent;
            Four top[2] = {absent, absent};
            for (int u = 0; u < count; u += 2 * side)
                for (int chain = 0; chain < 2; ++chain) {
                    const Four x = load<side>(row + u + side * chain);
                    top[chain] = x > top[chain] ? x : top[chain];
                }
            const InRow best = largest_lane<InRow, side>(top[1] > top[0] ? top[1] : top[0]);
            const Four least = Four{} + (best - static_cast<InRow>(std::max<std::int64_t>(tolerance, 0)));
            // The sum of the places of such weights; above it, their number.
            using Places = Vector<std::int64_t, side>;
            constexpr int half = 32;
            Places here = iota<std::int64_t, side>() + (std::int64_t{1} << half), found{};
            for (int u = 0; u < count; u += side, here += side) {
                const Four x = load<side>(row + u);
                found += x >= least ? here : Places{};
            }
            std::int64_t sum = 0;
            for (int lane = 0; lane < side; ++lane) sum += found[lane];
            if (sum >> half == 1) return {best, static_cast<int>(sum & ((std::int64_t{1} << half) - 1)), false};
            return {best, static_cast<int>(std::find(row, row + count - 1, best) - row), tolerance >= 0};
        } else {
            const InRow* const best = std::max_element(row, row + count);
            return {*best, static_cast<int>(best - row), false};
        }
    }
};

}  // namespace details

/// An edge into a node: from `head` into the word `dep` inside it.
struct Choice {
    std::int32_t head = 0;
    std::int32_t dep = 0;
};

/// Entries in a row: one per word, rounded up to full vectors.
constexpr std::size_t row_width(int words) {
    constexpr std::size_t block = lanes<std::int64_t>;
    return (static_cast<std::size_t>(words) + block - 1) / block * block;
}

/// Nodes are 1..n for words and n+1.. for contracted cycles. A row holds a weight for every word u, at u - 1: that of
/// the best edge from u into the node.
///
/// `Weights` gives the words' entering edges: weight(head, word), also from ROOT; first_choice(word), the best head among
/// the words (0: none); from_root(to) and from_first_choice(to) write these weights of all words; start_row(row, word,
/// choice) and merge_row(row, word, choice) do with a word's weights what SubtractRow and MergeRows do with a row, barred
/// from the word itself and absent from n to row_width(n); tolerance() is how close two sums must come to be in doubt (-1:
/// never), asked after every row.
///
/// With keep_rows, the rows of all cycles stay readable, as second-best search needs; otherwise a cycle's row is written
/// over that of its largest member. Words outside cycles are never read.
///
/// Rows are of numbers `InRow` that are turned into weights where one is taken.
template <class Weight, class InRow = Weight>
class Contraction {
public:
    using Traits = WeightTraits<Weight>;

    struct Node {
        Weight taken;          // weight of the edge it took while it was outermost
        Weight from_root;      // weight of its best edge from ROOT
        Choice choice;         // the edge it took, of a cycle only its head; after `expand`, the tree's edge into it
        int parent = 0;        // the cycle it was contracted into; 0: none
        InRow* row = nullptr;  // of a cycle: weights of the edges into it, by the word they come from
        int any_word;          // a word inside it
        int first_word;        // of a cycle: its words are this one and those next in the set
        int size;              // of a cycle: how many words
        bool on_path = false;
        bool finished = false;  // its path reached ROOT
        bool kept = true;       // the tree has the edge it took: true for one node per edge of the tree
        int first_member = 0;   // of a cycle
        int next_member = 0;    // of the cycle this node is a member of; 0: last
    };

    /// Where it ends doubtful(), what it found may be wrong.
    template <class Weights>
    Feasibility run(const Weights& weights, int words, Root root, bool keep_rows) {
        if constexpr (Traits::rounds)
            return dispatch<Kernel>(*this, weights, words, root, keep_rows);
        else
            return Kernel::run(*this, weights, words, root, keep_rows);  // nothing in it would vectorise
    }

    /// After a run with Root::multi: from the best tree to the best one with one root.
    template <class Weights>
    Feasibility reduce_roots(const Weights& weights) {
        if constexpr (Traits::rounds)
            return dispatch<ReduceKernel>(*this, weights);
        else
            return ReduceKernel::run(*this, weights);
    }

    /// Whether weights that decided something were too close to be told apart.
    bool doubtful() const { return doubtful_; }

    /// Ends the search: afterwards every node's choice is the tree's edge into it, unless that is doubtful().
    /// From the outermost cycles inwards: the edge into a cycle is also the edge into every node around the word it
    /// enters. O(n) and the words of the cycles whose edge the tree has.
    template <class Weights>
    void expand(const Weights& weights) {
        displaced_.resize(static_cast<std::size_t>(last_node_) + 1);
        for (int node = last_node_; node >= 1 && !doubtful_; --node)
            displaced_[node] =
                nodes_[node].parent == 0 ? Weight{} : in_range(displaced_[nodes_[node].parent] + nodes_[node].taken);
        if (doubtful_) return;
        for (int cycle = last_node_; cycle > words_; --cycle) {
            if (!nodes_[cycle].kept) continue;
            const Choice choice{nodes_[cycle].choice.head, entered_word(weights, nodes_[cycle])};
            nodes_[cycle].choice = choice;
            for (int inner = choice.dep; inner != cycle; inner = nodes_[inner].parent) {
                nodes_[inner].choice = choice;
                nodes_[inner].kept = false;
            }
        }
    }

    std::size_t bytes() const {
        std::size_t total = nodes_.capacity() * sizeof(Node);
        for (const auto& row : rows_) total += row.capacity() * sizeof(InRow);
        return total;
    }

    int last_node() const { return last_node_; }
    const Node& node(int index) const { return nodes_[index]; }

private:
    struct ReduceKernel {
        template <class Weights>
        static Feasibility run(Contraction& self, const Weights& weights) {
            return self.give_up_roots(weights);
        }
    };

    struct Kernel {
        template <class Weights>
        static Feasibility run(Contraction& self, const Weights& weights, int words, Root root, bool keep_rows) {
            return self.grow_paths(weights, words, root, keep_rows);
        }
    };

    template <class Weights>
    Feasibility grow_paths(const Weights& weights, int words, Root root, bool keep_rows) {
        start(words, keep_rows);
        weights.from_root(from_root_.data());
        weights.from_first_choice(first_choice_.data());
        int root_edges = 0;
        for (int word = 1; word <= words; ++word) {
            int node = outermost(word);
            if (nodes_[node].finished) continue;
            path_.clear();
            for (;;) {
                path_.push_back(node);
                nodes_[node].on_path = true;
                if (!choose(weights, node, root)) return {nodes_[node].any_word};
                if (doubtful_) return {};
                const Choice choice = nodes_[node].choice;
                if (choice.head == 0) {
                    if (root == Root::single && ++root_edges > 1) return {nodes_[node].any_word};
                    break;
                }
                const int next = outermost(choice.head);
                if (nodes_[next].finished) break;
                node = nodes_[next].on_path ? contract(weights, next) : next;
            }
            for (const int done : path_) nodes_[done].finished = true;
        }
        return {};
    }

    /// An edge from a word, and whether another may be better.
    struct WordEdge {
        int head;
        Weight weight;
        bool doubtful;
    };

    /// A node whose edge comes from ROOT, and the best it can do without.
    struct RootNode {
        int node;
        WordEdge instead;
        Weight loss;
    };

    template <class Weights>
    RootNode root_node(const Weights& weights, int node) {
        const WordEdge instead = best_word(weights, node);
        return {node, instead, nodes_[node].taken - instead.weight};
    }

    template <class Weights>
    Feasibility give_up_roots(const Weights& weights) {
        root_nodes_.clear();
        for (int node = 1; node <= last_node_; ++node)
            if (nodes_[node].parent == 0 && nodes_[node].choice.head == 0)
                root_nodes_.push_back(root_node(weights, node));
        while (root_nodes_.size() > 1 && !doubtful_) {
            const auto cheapest =
                std::min_element(root_nodes_.begin(), root_nodes_.end(),
                                 [](const RootNode& a, const RootNode& b) { return a.loss < b.loss; });
            const RootNode it = *cheapest;
            if (Traits::is_absent(it.instead.weight)) return {nodes_[root_nodes_[1].node].any_word};
            root_nodes_.erase(cheapest);
            for (const RootNode& other : root_nodes_) doubt(is_close(weights, other.loss, it.loss));
            doubt(it.instead.doubtful);
            nodes_[it.node].choice = {it.instead.head, it.node};
            nodes_[it.node].taken = it.instead.weight;
            settle(weights, it.node);
        }
        return {};
    }

    /// Contracts the cycles that a node's new edge closes, until its path reaches ROOT again.
    template <class Weights>
    void settle(const Weights& weights, int node) {
        while (!doubtful_ && closes_cycle(node)) {
            node = contract(weights, path_.front());
            if (!choose(weights, node, Root::multi)) return doubt(true);  // scores have changed since they were read
            if (nodes_[node].choice.head == 0) {
                root_nodes_.push_back(root_node(weights, node));
                return;
            }
        }
    }

    /// Whether the edges up from a node come back to it; path_ then holds the cycle.
    bool closes_cycle(int node) {
        path_.clear();
        int at = node;
        do {
            path_.push_back(at);
            const int head = nodes_[at].choice.head;
            if (head == 0) return false;
            at = outermost(head);
        } while (at != node);
        return true;
    }

    struct WordSet {
        int set;       // the set this word is in, named after one of its words
        int next = 0;  // next word in the set; 0: last
        // Of a word that names a set:
        int last;  // its last word
        int size = 1;
        int outermost;  // the outermost node, which holds just these words
    };

    void start(int words, bool keep_rows) {
        words_ = words;
        last_node_ = words;
        keep_rows_ = keep_rows;
        doubtful_ = false;
        width_ = row_width(words);
        const std::size_t most_nodes = 2 * static_cast<std::size_t>(words) + 1;
        rows_used_ = 0;
        from_root_.resize(width_);
        first_choice_.resize(width_);
        if (nodes_.size() < most_nodes) nodes_.resize(most_nodes);
        sets_.resize(static_cast<std::size_t>(words) + 1);
        for (int word = 1; word <= words; ++word) {
            reset(word, word);
            sets_[word] = {word, 0, word, 1, word};
        }
    }

    void reset(int node, int any_word) {
        Node& it = nodes_[node];
        it.parent = 0;
        it.row = nullptr;
        it.any_word = any_word;
        it.on_path = it.finished = false;
        it.kept = true;
        it.first_member = 0;
    }

    int outermost(int word) const { return sets_[sets_[word].set].outermost; }
    int set_of(int node) const { return sets_[nodes_[node].any_word].set; }

    void doubt(bool reason) { doubtful_ |= reason; }

    template <class Weights>
    static bool is_close(const Weights& weights, const Weight& a, const Weight& b) {
        if constexpr (Traits::rounds) {
            const Weight tolerance = weights.tolerance();
            return a - b <= tolerance && b - a <= tolerance;
        } else {
            return false;
        }
    }

    /// A sum that leaves room for one more weight, and for what is absent; if it does not, a doubt. Sums stay far below n
    /// times the largest score, but in sentences made for it, so that weights may have more bits than n of them could.
    Weight in_range(const Weight& sum) {
        if constexpr (Traits::rounds) {
            constexpr Weight most = Weight{1} << Traits::usable_bits;
            doubt(sum > most || sum < -most);
        }
        return sum;
    }

    /// What an edge from ROOT gains over the one that a member of a cycle took.
    Weight gain_from_root(const Node& member) {
        return Traits::is_absent(member.from_root) ? Traits::absent : in_range(member.from_root - member.taken);
    }

    /// In bounds whatever a row holds: scores may change while they are read.
    static Weight from_row(const InRow& x) {
        if constexpr (std::is_same_v<InRow, Weight>) {
            return x;
        } else {
            constexpr InRow bound = 0x1p53;  // scores are below 2^51, what a row holds no more than twice as far from 0
            return x > -bound ? static_cast<Weight>(std::min(x, bound)) : Traits::absent;
        }
    }

    /// The best edge into a node from a word.
    template <class Weights>
    WordEdge best_word(const Weights& weights, int node) {
        if (node <= words_) {
            const int head = weights.first_choice(node);
            return {head, head ? from_row(first_choice_[node - 1]) : Traits::absent, false};
        }
        const auto best = details::FindLargest::run(nodes_[node].row, static_cast<int>(width_), weights.tolerance());
        return {best.at + 1, from_row(best.weight), best.doubtful};
    }

    /// The node takes its best edge. False if none enters it.
    template <class Weights>
    bool choose(const Weights& weights, int node, Root root) {
        Node& it = nodes_[node];
        const WordEdge from_word = best_word(weights, node);
        if (node <= words_) it.from_root = from_row(from_root_[node - 1]);
        const bool no_word = Traits::is_absent(from_word.weight);
        if (no_word || (root == Root::multi && it.from_root > from_word.weight)) {
            it.choice = {0, node};
            it.taken = it.from_root;
        } else {
            it.choice = {from_word.head, node};
            it.taken = from_word.weight;
            doubt(from_word.doubtful);
        }
        if (root == Root::multi && !no_word) doubt(is_close(weights, it.from_root, from_word.weight));
        return !Traits::is_absent(it.taken);
    }

    /// The word of a cycle that its edge enters.
    template <class Weights>
    int entered_word(const Weights& weights, const Node& cycle) {
        int best = cycle.first_word;
        Weight highest = Traits::absent, next = Traits::absent;
        for (int word = cycle.first_word, i = 0; i < cycle.size; word = sets_[word].next, ++i) {
            const Weight weight = weights.weight(cycle.choice.head, word);
            if (Traits::is_absent(weight)) continue;
            const Weight gain = weight - displaced_[word];
            if (gain > highest) {
                best = word;
                next = highest;
                highest = gain;
            } else {
                next = std::max(next, gain);
            }
        }
        doubt(is_close(weights, highest, next));
        return best;
    }

    /// Makes one node of the end of the path, from `first` on. The caller puts it on the path.
    template <class Weights>
    int contract(const Weights& weights, int first) {
        const int index = ++last_node_;
        reset(index, nodes_[first].any_word);
        Node& cycle = nodes_[index];
        int lead = first;  // the member with the most words
        int member;
        do {
            member = path_.back();
            path_.pop_back();
            nodes_[member].on_path = false;
            nodes_[member].parent = index;
            nodes_[member].next_member = cycle.first_member;
            cycle.first_member = member;
            if (sets_[set_of(member)].size > sets_[set_of(lead)].size) lead = member;
        } while (member != first);

        start_row(weights, cycle, lead);
        for (int other = cycle.first_member; other != 0; other = nodes_[other].next_member) {
            if (other == lead) continue;
            Node& it = nodes_[other];
            const auto choice = static_cast<InRow>(it.taken);
            if (other <= words_)
                weights.merge_row(cycle.row, other, choice);
            else
                details::MergeRows::run(cycle.row, it.row, choice, static_cast<int>(width_));
            cycle.from_root = std::max(cycle.from_root, gain_from_root(it));
            absorb(set_of(lead), set_of(other), cycle.row);
        }
        WordSet& set = sets_[set_of(lead)];
        set.outermost = index;
        cycle.first_word = set.set;
        cycle.size = set.size;
        return index;
    }

    InRow* unused_row() {
        if (rows_used_ == rows_.size()) rows_.emplace_back();
        auto& row = rows_[rows_used_++];
        if (row.size() < width_) row.resize(width_);
        return row.data();
    }

    /// A cycle's row begins as that of its lead, less what the lead took.
    template <class Weights>
    void start_row(const Weights& weights, Node& cycle, int lead) {
        const Node& leader = nodes_[lead];
        const auto choice = static_cast<InRow>(leader.taken);
        const bool word = lead <= words_;
        cycle.row = word || keep_rows_ ? unused_row() : leader.row;
        if (word)
            weights.start_row(cycle.row, lead, choice);
        else
            details::SubtractRow::run(cycle.row, leader.row, choice, static_cast<int>(width_));
        cycle.from_root = gain_from_root(leader);
    }

    /// Joins two sets of words and bars the edges from the second, smaller one: O(n log n) over all contractions.
    void absorb(int into, int smaller, InRow* row) {
        WordSet& set = sets_[into];
        set.size += sets_[smaller].size;
        sets_[set.last].next = smaller;
        set.last = sets_[smaller].last;
        for (int word = smaller; word != 0; word = sets_[word].next) {
            sets_[word].set = into;
            row[word - 1] = WeightTraits<InRow>::barred;
        }
    }

    int words_ = 0;
    int last_node_ = 0;
    bool keep_rows_ = false;
    bool doubtful_ = false;
    std::size_t width_ = 0;                 // row_width(words_)
    std::vector<std::vector<InRow>> rows_;  // of the cycles; the first rows_used_ are in use
    std::size_t rows_used_ = 0;
    std::vector<InRow> from_root_, first_choice_;  // weights of words' edges from ROOT, and of their best from a word
    std::vector<Node> nodes_;
    std::vector<WordSet> sets_;  // by word
    std::vector<int> path_;
    std::vector<RootNode> root_nodes_;
    std::vector<Weight> displaced_;  // by node, for `expand`: the sum of what it and the cycles around it took
};

}  // namespace spantree
