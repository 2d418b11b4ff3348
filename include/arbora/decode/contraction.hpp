// The best tree by contracting cycles: Tarjan's algorithm (1977) for dense graphs, O(n^2), in the path-growing order of Gabow et al. (1986).
//
// Every node takes its best entering edge. Following these edges backwards from a word, the path ends at ROOT, at a finished
// node, or in a cycle. A cycle C becomes one node; an edge into its member m is worth what it gains over m's own choice:
//     w'(u -> C) = max over m in C of  w(u -> m) - w(choice of m),
// one pass over each member's row. At the end each contracted node's edge replaces the choice of the member it enters.
//
// One root. Weights are pairs (number of root edges, score) compared lexicographically, fewer root edges first. A choice inside a
// cycle never is a root edge, so the differences above never change the first component: a root edge always counts 1, any other
// 0. Hence "greater" becomes: take ROOT only when no word is left to take. If ROOT is taken twice, no tree with one root exists.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <type_traits>
#include <vector>

#include "../dispatch.hpp"
#include "../sentence.hpp"
#include "weight.hpp"

namespace arbora {

namespace details {

/// row[u] = max(row[u], other[u] - choice) unless barred, remembering which word the winning edge enters.
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

struct IndexOfMax {
    template <class Weight>
    static int run(const Weight* row, int count) {
        if constexpr (std::is_same_v<Weight, std::int64_t>) {
            constexpr int lanes = 8;
            Weight top[lanes];
            for (int lane = 0; lane < lanes; ++lane) top[lane] = std::numeric_limits<Weight>::min();
            int u = 0;
            for (; u + lanes <= count; u += lanes)
                for (int lane = 0; lane < lanes; ++lane) top[lane] = row[u + lane] > top[lane] ? row[u + lane] : top[lane];
            Weight best = *std::max_element(top, top + lanes);
            for (; u < count; ++u) best = std::max(best, row[u]);
            return static_cast<int>(std::find(row, row + count, best) - row);
        } else {
            return static_cast<int>(std::max_element(row, row + count) - row);
        }
    }
};

}  // namespace details

/// An edge into a (contracted) node: from `head` into the word `dep` inside it.
struct Choice {
    std::int32_t head = 0;
    std::int32_t dep = 0;
};

/// Nodes are 1..n for words and n+1.. for contracted cycles.
///
/// `Rows` gives a word's entering edges: fill(word, row) writes the weights from the words 1..n to row[0..n), from_root(word)
/// is the weight from ROOT, and first_choice(word) the best head among the words (0: none).
///
/// With keep_rows, every node's row stays readable afterwards, as second-best search needs; otherwise a cycle's row is
/// written over that of its first member.
template <class Weight>
class Contraction {
public:
    using Traits = WeightTraits<Weight>;

    template <class Rows>
    Feasibility run(const Rows& source, int words, Root root, bool keep_rows) {
        start(words, keep_rows);
        int root_edges = 0;
        for (int word = 1; word <= words; ++word) {
            if (finished_[outermost(word)]) continue;
            path_.clear();
            int node = outermost(word);
            for (;;) {
                path_.push_back(node);
                on_path_[node] = true;
                if (!choose(source, node, root)) return {choice_[node].dep};
                const int head = choice_[node].head;
                if (head == 0) {
                    if (root == Root::single && ++root_edges > 1) return {choice_[node].dep};
                    break;
                }
                const int next = outermost(head);
                if (finished_[next]) break;
                node = on_path_[next] ? contract(source, next) : next;
            }
            for (const int done : path_) finished_[done] = true;
        }
        expand();
        return {};
    }

    int nodes() const { return nodes_; }
    int parent(int node) const { return parent_[node]; }
    /// After `run`: the tree's edge into this node. A word's is its head.
    Choice choice(int node) const { return choice_[node]; }

    // For second-best search, with keep_rows:
    const Weight* row(int node) const { return rows_.data() + static_cast<std::size_t>(row_of_[node]) * width_; }
    const std::int32_t* enters(int node) const { return enters_.data() + static_cast<std::size_t>(row_of_[node]) * width_; }
    Weight from_root(int node) const { return root_weight_[node]; }
    std::int32_t root_enters(int node) const { return root_enters_[node]; }
    /// The weight of the edge this node took when it was on the path (its own choice, later perhaps replaced).
    Weight taken(int node) const { return taken_[node]; }
    /// Whether the tree has this node's own choice: then no node above it replaced it. One such node for each edge of the tree.
    bool kept(int node) const { return kept_[node]; }
    const std::vector<int>& members(int node) const { return members_[node - words_ - 1]; }

private:
    void start(int words, bool keep_rows) {
        words_ = words;
        keep_rows_ = keep_rows;
        width_ = (static_cast<std::size_t>(words) + 7) / 8 * 8;
        nodes_ = words;
        const std::size_t most_nodes = 2 * static_cast<std::size_t>(words) + 1;
        const std::size_t most_rows = keep_rows ? most_nodes : static_cast<std::size_t>(words) + 1;
        if (rows_.size() < most_rows * width_) {
            rows_.resize(most_rows * width_);
            enters_.resize(most_rows * width_);
        }
        row_of_.assign(most_nodes, -1);
        any_word_.resize(most_nodes);
        std::iota(any_word_.begin(), any_word_.end(), 0);
        const std::size_t sets = static_cast<std::size_t>(words) + 1;
        set_of_.assign(any_word_.begin(), any_word_.begin() + words + 1);
        last_word_ = set_of_;
        outermost_ = set_of_;
        next_word_.assign(sets, 0);
        set_size_.assign(sets, 1);
        parent_.assign(most_nodes, 0);
        choice_.resize(most_nodes);
        taken_.resize(most_nodes);
        root_weight_.resize(most_nodes);
        root_enters_.resize(most_nodes);
        finished_.assign(most_nodes, false);
        on_path_.assign(most_nodes, false);
        members_.resize(static_cast<std::size_t>(words));
    }

    /// The outermost node around a word.
    int outermost(int word) const { return outermost_[set_of_[word]]; }

    Weight* row_of(int node) { return rows_.data() + static_cast<std::size_t>(row_of_[node]) * width_; }
    std::int32_t* enters_of(int node) { return enters_.data() + static_cast<std::size_t>(row_of_[node]) * width_; }

    template <class Rows>
    void read_word(const Rows& source, int word) {
        row_of_[word] = word;
        Weight* row = row_of(word);
        source.fill(word, row);
        row[word - 1] = Traits::barred;
        std::fill(row + words_, row + width_, Traits::absent);
        std::fill_n(enters_of(word), width_, word);
        root_weight_[word] = source.from_root(word);
        root_enters_[word] = word;
    }

    /// Sets choice_ and taken_. False if no edge enters the node; choice_.dep then is one of its words.
    template <class Rows>
    bool choose(const Rows& source, int node, Root root) {
        Choice best;
        Weight weight;
        if (node <= words_) {
            const int head = source.first_choice(node);
            best = {head, node};
            weight = head ? source.weight(head, node) : Traits::absent;
            root_weight_[node] = source.from_root(node);
            root_enters_[node] = node;
        } else {
            const int at = dispatch<details::IndexOfMax>(row(node), static_cast<int>(width_));
            best = {at + 1, enters(node)[at]};
            weight = row(node)[at];
        }
        const bool no_word = Traits::is_absent(weight);
        if (no_word || (root == Root::multi && root_weight_[node] > weight)) {
            best = {0, root_enters_[node]};
            weight = root_weight_[node];
        }
        choice_[node] = best;
        taken_[node] = weight;
        return !Traits::is_absent(weight);
    }

    /// Makes one node of the path's end, from `first` on, and puts it in their place.
    template <class Rows>
    int contract(const Rows& source, int first) {
        const int cycle = ++nodes_;
        auto& members = members_[cycle - words_ - 1];
        members.clear();
        do {
            members.push_back(path_.back());
            path_.pop_back();
            on_path_[members.back()] = false;
        } while (members.back() != first);

        for (const int member : members)
            if (row_of_[member] < 0) read_word(source, member);
        const auto size = [&](int node) { return set_size_[set_of_[any_word_[node]]]; };
        const int lead = *std::max_element(members.begin(), members.end(), [&](int a, int b) { return size(a) < size(b); });
        row_of_[cycle] = keep_rows_ ? cycle : row_of_[lead];
        Weight* row = row_of(cycle);
        std::int32_t* enters = enters_of(cycle);
        if (keep_rows_) {
            std::copy_n(row_of(lead), width_, row);
            std::copy_n(enters_of(lead), width_, enters);
        }
        for (std::size_t u = 0; u < width_; ++u) row[u] = row[u] - taken_[lead];
        root_weight_[cycle] = root_weight_[lead] - taken_[lead];
        root_enters_[cycle] = root_enters_[lead];
        for (const int member : members) {
            parent_[member] = cycle;
            if (member == lead) continue;
            dispatch<details::MergeRows>(row, enters, row_of(member), enters_of(member), taken_[member], static_cast<int>(width_));
            const Weight from_root = root_weight_[member] - taken_[member];
            if (from_root > root_weight_[cycle]) {
                root_weight_[cycle] = from_root;
                root_enters_[cycle] = root_enters_[member];
            }
        }
        absorb(cycle, lead, members);
        return cycle;
    }

    /// The cycle's words become one set, and edges from them barred. Only words outside the largest member, the lead, are
    /// touched, so all calls together take O(n log n).
    void absorb(int cycle, int lead, const std::vector<int>& members) {
        Weight* row = row_of(cycle);
        const int set = set_of_[any_word_[lead]];
        for (const int member : members) {
            if (member == lead) continue;
            const int other = set_of_[any_word_[member]];
            for (int word = other; word != 0; word = next_word_[word]) {
                set_of_[word] = set;
                row[word - 1] = Traits::barred;
            }
            next_word_[last_word_[set]] = other;
            last_word_[set] = last_word_[other];
            set_size_[set] += set_size_[other];
        }
        any_word_[cycle] = set;
        outermost_[set] = cycle;
    }

    /// From the outermost cycles inwards: the edge into a cycle is also the edge into every node around the word it enters.
    void expand() {
        kept_.assign(static_cast<std::size_t>(nodes_) + 1, true);
        for (int cycle = nodes_; cycle > words_; --cycle) {
            const Choice choice = choice_[cycle];
            for (int inner = choice.dep; inner != cycle; inner = parent_[inner]) {
                choice_[inner] = choice;
                kept_[inner] = false;
            }
        }
    }

    int words_ = 0;
    int nodes_ = 0;
    bool keep_rows_ = false;
    std::size_t width_ = 0;               // of a row: words, rounded up to full vectors
    std::vector<Weight> rows_;            // weights of the edges into a node, by the word they come from
    std::vector<std::int32_t> enters_;    // the word inside the node that this edge enters
    std::vector<int> row_of_;             // a node's place in rows_; -1: not read yet
    std::vector<int> parent_;             // the cycle a node was contracted into (0: none)
    // Words inside one outermost node form a set, named after one of them, s, and listed from it: s, next_word_[s], ...,
    // last_word_[s]. any_word_[node] is a word in the node.
    std::vector<int> set_of_, set_size_, next_word_, last_word_, outermost_, any_word_;
    std::vector<Choice> choice_;
    std::vector<Weight> taken_, root_weight_;
    std::vector<std::int32_t> root_enters_;
    std::vector<std::uint8_t> finished_, on_path_, kept_;
    std::vector<std::vector<int>> members_;  // of each cycle, by cycle - words - 1
    std::vector<int> path_;
};

}  // namespace arbora
