// The best tree by contracting cycles: Tarjan's algorithm (1977) for dense graphs, O(n^2), in the path-growing order of
// Gabow et al. (1986).
//
// Every node takes its best entering edge. Following these edges backwards from a word, the path ends at ROOT, at a
// finished node, or in a cycle. A cycle C becomes one node; an edge into its member m is worth what it gains over m's
// own choice:
//
//     w'(u -> C) = max over m in C of  w(u -> m) - w(choice of m),
//
// one pass over each member's row. At the end each contracted node's edge replaces the choice of the member it enters.
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

/// row = row - choice
struct SubtractFromRow {
    template <class Weight>
    static void run(Weight* row, const Weight& choice, int count) {
        for (int u = 0; u < count; ++u) row[u] = row[u] - choice;
    }
};

/// Beside a word that an edge enters: another word was as good, as far as rounded weights can tell.
inline constexpr std::int32_t doubt_mark = std::numeric_limits<std::int32_t>::min();

/// row = max(row, other - choice) except where barred; other_enters(u) is the word that other[u] enters.
struct MergeRows {
    template <class Weight, class Enters>
    static void run(Weight* row, std::int32_t* enters, const Weight* other, Enters other_enters, const Weight& choice,
                    int count) {
        for (int u = 0; u < count; ++u) {
            const Weight gain = other[u] - choice;
            const bool better = int{gain > row[u]} & int{!WeightTraits<Weight>::is_barred(row[u])};  // (no branch)
            row[u] = better ? gain : row[u];
            enters[u] = better ? other_enters(u) : enters[u];
        }
    }
};

/// The same, with a mark where the two are no more than `tolerance` apart.
struct MergeRoundedRows {
    template <class Enters>
    static void run(std::int64_t* row, std::int32_t* enters, const std::int64_t* other, Enters other_enters,
                    std::int64_t choice, int count, std::int64_t tolerance) {
        for (int u = 0; u < count; ++u) {
            const std::int64_t gain = other[u] - choice, lead = gain - row[u];
            const bool better = (lead > 0) & !WeightTraits<std::int64_t>::is_barred(row[u]);
            const bool close = (lead <= tolerance) & (lead >= -tolerance);
            row[u] = better ? gain : row[u];
            enters[u] = (better ? other_enters(u) : enters[u]) | (close ? doubt_mark : 0);
        }
    }
};

/// How many are at least `least`.
struct CountAtLeast {
    static std::int64_t run(const std::int64_t* row, std::int64_t least, int count) {
        std::int64_t found = 0;
        for (int u = 0; u < count; ++u) found += row[u] >= least ? 1 : 0;
        return found;
    }
};

/// The first of the largest.
struct IndexOfMax {
    template <class Weight>
    static int run(const Weight* row, int count) {
        if constexpr (std::is_same_v<Weight, std::int64_t>) {
            // Two chains, so that one need not wait for the other.
            using Four = Vector<std::int64_t, 4>;
            Four top[2] = {load<4>(row), load<4>(row + 4)};
            Four here[2] = {iota<std::int64_t, 4>(), iota<std::int64_t, 4>() + 4};
            Four at[2] = {here[0], here[1]};
            for (int u = 8; u < count; u += 8)
                for (int chain = 0; chain < 2; ++chain) {
                    const Four x = load<4>(row + u + 4 * chain);
                    here[chain] += 8;
                    at[chain] = x > top[chain] ? here[chain] : at[chain];
                    top[chain] = x > top[chain] ? x : top[chain];
                }
            std::int64_t best = top[0][0], best_at = at[0][0];
            for (int lane = 1; lane < 8; ++lane) {
                const std::int64_t x = top[lane / 4][lane % 4], x_at = at[lane / 4][lane % 4];
                const bool better = (x > best) | ((x == best) & (x_at < best_at));
                best = better ? x : best;
                best_at = better ? x_at : best_at;
            }
            return static_cast<int>(best_at);
        } else {
            return static_cast<int>(std::max_element(row, row + count) - row);
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
/// `Weights` gives the words' entering edges: row(word, storage) is where the weights from the words 1..n lie, in
/// `storage` or elsewhere, barred from the word itself and absent from n to row_width(n); from_root(word) is the weight
/// from ROOT, first_choice(word) the best head among the words (0: none), weight(head, word) any one of them;
/// tolerance() how close two sums of them must come to be in doubt (-1: never), asked after every row.
///
/// With keep_rows, the rows of all members of cycles stay readable, as second-best search needs (words' rows are then
/// not to lie in `storage`); otherwise a cycle's row is written over that of its largest member. Words outside cycles
/// are never read.
template <class Weight>
class Contraction {
public:
    using Traits = WeightTraits<Weight>;

    struct Node {
        Weight taken;              // weight of the edge it took while it was outermost
        Weight from_root;          // weight of its best edge from ROOT
        std::int32_t root_enters;  // the word that edge enters, perhaps with a doubt_mark
        Choice choice;             // the edge it took; after `expand`, the tree's edge into it
        int parent = 0;            // the cycle it was contracted into; 0: none
        Weight* row = nullptr;     // weights of the edges into it, by the word they come from
        std::int32_t* enters;      // of a cycle: beside each weight, the word that edge enters, perhaps with a mark
        int any_word;              // a word inside it
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

    /// Ends the search: afterwards every node's choice is the tree's edge into it.
    /// From the outermost cycles inwards: the edge into a cycle is also the edge into every node around the word it
    /// enters. O(n).
    void expand() {
        for (int cycle = last_node_; cycle > words_; --cycle) {
            if (!nodes_[cycle].kept) continue;
            const Choice choice = nodes_[cycle].choice;
            for (int inner = choice.dep; inner != cycle; inner = nodes_[inner].parent) {
                nodes_[inner].choice = choice;
                nodes_[inner].kept = false;
            }
        }
    }

    std::size_t bytes() const {
        std::size_t total = nodes_.capacity() * sizeof(Node);
        for (const Row& row : rows_) total += row.weight.capacity() * (sizeof(Weight) + sizeof(std::int32_t));
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
                    if (root == Root::single && ++root_edges > 1) return {choice.dep};
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
        Choice choice;
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
            nodes_[it.node].choice = it.instead.choice;
            nodes_[it.node].taken = it.instead.weight;
            settle(weights, it.node);
        }
        return {};
    }

    /// Contracts the cycles that a node's new edge closes, until its path reaches ROOT again.
    template <class Weights>
    void settle(const Weights& weights, int node) {
        while (closes_cycle(node)) {
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
        scratch_.resize(width_);
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

    static std::int32_t without_mark(std::int32_t word) { return word & ~details::doubt_mark; }
    static bool is_marked(std::int32_t word) { return word < 0; }

    /// The best edge into a node from a word.
    template <class Weights>
    WordEdge best_word(const Weights& weights, int node) {
        if (node <= words_) {
            const int head = weights.first_choice(node);
            return {Choice{head, node}, head ? weights.weight(head, node) : Traits::absent, false};
        }
        const Node& it = nodes_[node];
        const int width = static_cast<int>(width_);
        const int best = details::IndexOfMax::run(it.row, width);
        bool doubtful = is_marked(it.enters[best]);
        if constexpr (Traits::rounds) {
            const Weight tolerance = weights.tolerance();
            if (tolerance >= 0) doubtful |= details::CountAtLeast::run(it.row, it.row[best] - tolerance, width) > 1;
        }
        return {Choice{best + 1, without_mark(it.enters[best])}, it.row[best], doubtful};
    }

    /// The node takes its best edge. False if none enters it.
    template <class Weights>
    bool choose(const Weights& weights, int node, Root root) {
        Node& it = nodes_[node];
        const WordEdge from_word = best_word(weights, node);
        if (node <= words_) {
            it.from_root = weights.from_root(node);
            it.root_enters = node;
        }
        const bool no_word = Traits::is_absent(from_word.weight);
        if (no_word || (root == Root::multi && it.from_root > from_word.weight)) {
            it.choice = {0, without_mark(it.root_enters)};
            it.taken = it.from_root;
            doubt(is_marked(it.root_enters));
        } else {
            it.choice = from_word.choice;
            it.taken = from_word.weight;
            doubt(from_word.doubtful);
        }
        if (root == Root::multi && !no_word) doubt(is_close(weights, it.from_root, from_word.weight));
        return !Traits::is_absent(it.taken);
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
            if (other <= words_) {
                it.row = weights.row(other, scratch_.data());
                merge(weights, cycle, it, [other](int) { return other; });
            } else {
                merge(weights, cycle, it, [enters = it.enters](int u) { return enters[u]; });
            }
            const Weight from_root = it.from_root - it.taken;
            const bool close = is_close(weights, from_root, cycle.from_root);
            if (from_root > cycle.from_root) {
                cycle.from_root = from_root;
                cycle.root_enters = it.root_enters;
            }
            if (close) cycle.root_enters |= details::doubt_mark;
            absorb(set_of(lead), set_of(other), cycle.row);
        }
        sets_[set_of(lead)].outermost = index;
        return index;
    }

    template <class Weights, class Enters>
    void merge(const Weights& weights, Node& cycle, const Node& member, Enters enters) {
        const int count = static_cast<int>(width_);
        if constexpr (Traits::rounds)
            if (const Weight tolerance = weights.tolerance(); tolerance >= 0)
                return details::MergeRoundedRows::run(cycle.row, cycle.enters, member.row, enters, member.taken, count,
                                                      tolerance);
        details::MergeRows::run(cycle.row, cycle.enters, member.row, enters, member.taken, count);
    }

    std::tuple<Weight*, std::int32_t*> unused_row() {
        if (rows_used_ == rows_.size()) rows_.emplace_back();
        Row& row = rows_[rows_used_++];
        if (row.weight.size() < width_) {
            row.weight.resize(width_);
            row.enters.resize(width_);
        }
        return {row.weight.data(), row.enters.data()};
    }

    /// A cycle's row begins as that of its lead, less what the lead took.
    template <class Weights>
    void start_row(const Weights& weights, Node& cycle, int lead) {
        Node& leader = nodes_[lead];
        const int count = static_cast<int>(width_);
        const bool word = lead <= words_;
        if (word || keep_rows_) {
            std::tie(cycle.row, cycle.enters) = unused_row();
            if (word) leader.row = weights.row(lead, cycle.row);
            if (leader.row != cycle.row) std::copy_n(leader.row, count, cycle.row);
            if (word)
                std::fill_n(cycle.enters, count, lead);
            else
                std::copy_n(leader.enters, count, cycle.enters);
        } else {
            cycle.row = leader.row;
            cycle.enters = leader.enters;
        }
        details::SubtractFromRow::run(cycle.row, leader.taken, count);
        cycle.from_root = leader.from_root - leader.taken;
        cycle.root_enters = leader.root_enters;
    }

    /// Joins two sets of words and bars the edges from the second, smaller one: O(n log n) over all contractions.
    void absorb(int into, int smaller, Weight* row) {
        WordSet& set = sets_[into];
        set.size += sets_[smaller].size;
        sets_[set.last].next = smaller;
        set.last = sets_[smaller].last;
        for (int word = smaller; word != 0; word = sets_[word].next) {
            sets_[word].set = into;
            row[word - 1] = Traits::barred;
        }
    }

    int words_ = 0;
    int last_node_ = 0;
    bool keep_rows_ = false;
    bool doubtful_ = false;
    std::size_t width_ = 0;  // row_width(words_)
    struct Row {
        std::vector<Weight> weight;
        std::vector<std::int32_t> enters;
    };
    std::vector<Row> rows_;  // of the cycles; the first rows_used_ are in use
    std::size_t rows_used_ = 0;
    std::vector<Weight> scratch_;  // a row
    std::vector<Node> nodes_;
    std::vector<WordSet> sets_;  // by word
    std::vector<int> path_;
    std::vector<RootNode> root_nodes_;
};

}  // namespace spantree
