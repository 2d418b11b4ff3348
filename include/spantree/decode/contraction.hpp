// The best tree by contracting cycles: Tarjan's algorithm (1977) for dense graphs, O(n^2), in the path-growing order of
// Gabow et al. (1986).
//
// Every node takes its best entering edge. Following these edges backwards from a word, the path ends at ROOT, at a
// finished node, or in a cycle. A cycle C becomes one node; an edge into its member m is worth what it gains over m's
// own choice:
//     w'(u -> C) = max over m in C of  w(u -> m) - w(choice of m),
// one pass over each member's row. At the end each contracted node's edge replaces the choice of the member it enters.
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

/// row = max(row, other - choice) except where barred.
struct MergeRows {
    template <class Weight>
    static void run(Weight* row, std::int32_t* enters, const Weight* other, const std::int32_t* other_enters,
                    const Weight& choice, int count) {
        for (int u = 0; u < count; ++u) {
            const Weight gain = other[u] - choice;
            const bool better = (gain > row[u]) & !WeightTraits<Weight>::is_barred(row[u]);
            row[u] = better ? gain : row[u];
            enters[u] = better ? other_enters[u] : enters[u];
        }
    }
};

/// The same for a single word, which all its edges enter.
struct MergeWord {
    template <class Weight>
    static void run(Weight* row, std::int32_t* enters, const Weight* other, std::int32_t word, const Weight& choice,
                    int count) {
        for (int u = 0; u < count; ++u) {
            const Weight gain = other[u] - choice;
            const bool better = (gain > row[u]) & !WeightTraits<Weight>::is_barred(row[u]);
            row[u] = better ? gain : row[u];
            enters[u] = better ? word : enters[u];
        }
    }
};

/// The first of the largest.
struct IndexOfMax {
    template <class Weight>
    static int run(const Weight* row, int count) {
        if constexpr (std::is_same_v<Weight, std::int64_t>) {
            auto top = load<lanes<Weight>>(row);
            auto here = iota<Weight, lanes<Weight>>();
            auto at = here;
            for (int u = lanes<Weight>; u < count; u += lanes<Weight>) {
                const auto x = load<lanes<Weight>>(row + u);
                here += lanes<Weight>;
                at = x > top ? here : at;
                top = x > top ? x : top;
            }
            Weight best = top[0], best_at = at[0];
            for (int lane = 1; lane < lanes<Weight>; ++lane) {
                const Weight x = top[lane], x_at = at[lane];
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

/// Nodes are 1..n for words and n+1.. for contracted cycles.
///
/// `Rows` gives a word's entering edges: row(word, storage) is where the weights from the words 1..n lie, in `storage`
/// or elsewhere, barred from the word itself and absent from n to row_width(n); from_root(word) is the weight from
/// ROOT, first_choice(word) the best head among the words (0: none), weight(head, word) any one of them.
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
        std::int32_t root_enters;  // the word that edge enters
        Choice choice;             // the edge it took; after `expand`, the tree's edge into it
        int parent = 0;            // the cycle it was contracted into; 0: none
        Weight* row = nullptr;     // weights of the edges into it, by the word they come from
        std::int32_t* enters;      // of a cycle: beside each weight, the word that edge enters
        int any_word;              // a word inside it
        bool on_path = false;
        bool finished = false;  // its path reached ROOT
        bool kept = true;       // the tree has the edge it took: true for one node per edge of the tree
        int first_member = 0;   // of a cycle
        int next_member = 0;    // of the cycle this node is a member of; 0: last
    };

    template <class Rows>
    Feasibility run(const Rows& source, int words, Root root, bool keep_rows) {
        return dispatch<Kernel>(*this, source, words, root, keep_rows);
    }

    /// After a run with Root::multi: from the best tree to the best one with one root.
    template <class Rows>
    Feasibility reduce_roots(const Rows& source) {
        return dispatch<ReduceKernel>(*this, source);
    }

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
        template <class Rows>
        static Feasibility run(Contraction& self, const Rows& source) {
            return self.give_up_roots(source);
        }
    };

    struct Kernel {
        template <class Rows>
        static Feasibility run(Contraction& self, const Rows& source, int words, Root root, bool keep_rows) {
            return self.grow_paths(source, words, root, keep_rows);
        }
    };

    template <class Rows>
    Feasibility grow_paths(const Rows& source, int words, Root root, bool keep_rows) {
        start(words, keep_rows);
        int root_edges = 0;
        for (int word = 1; word <= words; ++word) {
            int node = outermost(word);
            if (nodes_[node].finished) continue;
            path_.clear();
            for (;;) {
                path_.push_back(node);
                nodes_[node].on_path = true;
                if (!choose(source, node, root)) return {nodes_[node].any_word};
                const Choice choice = nodes_[node].choice;
                if (choice.head == 0) {
                    if (root == Root::single && ++root_edges > 1) return {choice.dep};
                    break;
                }
                const int next = outermost(choice.head);
                if (nodes_[next].finished) break;
                node = nodes_[next].on_path ? contract(source, next) : next;
            }
            for (const int done : path_) nodes_[done].finished = true;
        }
        return {};
    }

    /// A node whose edge comes from ROOT, and the best it can do without.
    struct RootNode {
        int node;
        Choice choice;
        Weight weight;
        Weight loss;
    };

    template <class Rows>
    RootNode root_node(const Rows& source, int node) {
        RootNode it{node, {}, {}, {}};
        std::tie(it.choice, it.weight) = best_word(source, node);
        it.loss = nodes_[node].taken - it.weight;
        return it;
    }

    template <class Rows>
    Feasibility give_up_roots(const Rows& source) {
        root_nodes_.clear();
        for (int node = 1; node <= last_node_; ++node)
            if (nodes_[node].parent == 0 && nodes_[node].choice.head == 0)
                root_nodes_.push_back(root_node(source, node));
        while (root_nodes_.size() > 1) {
            const auto cheapest =
                std::min_element(root_nodes_.begin(), root_nodes_.end(),
                                 [](const RootNode& a, const RootNode& b) { return a.loss < b.loss; });
            const RootNode it = *cheapest;
            if (Traits::is_absent(it.weight)) return {nodes_[root_nodes_[1].node].any_word};
            root_nodes_.erase(cheapest);
            nodes_[it.node].choice = it.choice;
            nodes_[it.node].taken = it.weight;
            settle(source, it.node);
        }
        return {};
    }

    /// Contracts the cycles that a node's new edge closes, until its path reaches ROOT again.
    template <class Rows>
    void settle(const Rows& source, int node) {
        while (closes_cycle(node)) {
            node = contract(source, path_.front());
            choose(source, node, Root::multi);
            if (nodes_[node].choice.head == 0) {
                root_nodes_.push_back(root_node(source, node));
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

    /// The best edge into a node from a word.
    template <class Rows>
    std::tuple<Choice, Weight> best_word(const Rows& source, int node) {
        if (node <= words_) {
            const int head = source.first_choice(node);
            return {Choice{head, node}, head ? source.weight(head, node) : Traits::absent};
        }
        const Node& it = nodes_[node];
        const int best = details::IndexOfMax::run(it.row, static_cast<int>(width_));
        return {Choice{best + 1, it.enters[best]}, it.row[best]};
    }

    /// The node takes its best edge. False if none enters it.
    template <class Rows>
    bool choose(const Rows& source, int node, Root root) {
        Node& it = nodes_[node];
        std::tie(it.choice, it.taken) = best_word(source, node);
        if (node <= words_) {
            it.from_root = source.from_root(node);
            it.root_enters = node;
        }
        if (Traits::is_absent(it.taken) || (root == Root::multi && it.from_root > it.taken)) {
            it.choice = {0, it.root_enters};
            it.taken = it.from_root;
        }
        return !Traits::is_absent(it.taken);
    }

    /// Makes one node of the end of the path, from `first` on. The caller puts it on the path.
    template <class Rows>
    int contract(const Rows& source, int first) {
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

        start_row(source, cycle, lead);
        const int count = static_cast<int>(width_);
        for (int other = cycle.first_member; other != 0; other = nodes_[other].next_member) {
            if (other == lead) continue;
            Node& it = nodes_[other];
            if (other <= words_) {
                it.row = source.row(other, scratch_.data());
                details::MergeWord::run(cycle.row, cycle.enters, it.row, other, it.taken, count);
            } else {
                details::MergeRows::run(cycle.row, cycle.enters, it.row, it.enters, it.taken, count);
            }
            const Weight from_root = it.from_root - it.taken;
            if (from_root > cycle.from_root) {
                cycle.from_root = from_root;
                cycle.root_enters = it.root_enters;
            }
            absorb(set_of(lead), set_of(other), cycle.row);
        }
        sets_[set_of(lead)].outermost = index;
        return index;
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
    template <class Rows>
    void start_row(const Rows& source, Node& cycle, int lead) {
        Node& leader = nodes_[lead];
        const int count = static_cast<int>(width_);
        const bool word = lead <= words_;
        if (word || keep_rows_) {
            std::tie(cycle.row, cycle.enters) = unused_row();
            if (word) leader.row = source.row(lead, cycle.row);
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
