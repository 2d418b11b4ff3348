// A sentence's scores as weights for the sums over trees.
//
// Every tree has one edge into each word, so a constant per word may be taken off: w(h -> d) = exp(score(h, d) -
// shift(d)), and log Z = log of the sum of these + the sum of the shifts. What is taken off:
//   each word's highest score, if that leaves weights whose products fit doubles;
//   else nothing, for a subtraction rounds (by 1e-12 at scores in the thousands), and Ranged needs none;
//   else, if there are scores beyond its exponential's range (soft masks such as -1e30), those of the best tree's
//   edges. Then the total is at least 1.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "../batch/parallel.hpp"
#include "../batch/sentence.hpp"
#include "../batch/tree.hpp"
#include "eisner.hpp"
#include "sum_product.hpp"

namespace spantree::projective {

class Shifts {
public:
    template <class T>
    void choose(const Sentence<T>& sentence, Root root, StopSignal& stop) {
        highest_.assign(static_cast<std::size_t>(sentence.words) + 1, minus_infinity<double>);
        lowest_.assign(static_cast<std::size_t>(sentence.words) + 1, std::numeric_limits<double>::infinity());
        for (int head = 0; head <= sentence.words; ++head)
            for (int dep = 1; dep <= sentence.words; ++dep) {
                const double score = head == dep ? minus_infinity<double> : sentence(head, dep);
                highest_[dep] = score > highest_[dep] ? score : highest_[dep];
                lowest_[dep] = score > minus_infinity<double> && score < lowest_[dep] ? score : lowest_[dep];
            }
        double spread = 0.0, largest = 0.0;
        for (int dep = 1; dep <= sentence.words; ++dep) {
            if (highest_[dep] == minus_infinity<double>)
                highest_[dep] = lowest_[dep] = 0.0;  // no edge enters this word
            spread += highest_[dep] - lowest_[dep];
            largest = std::max({largest, highest_[dep], -lowest_[dep]});
        }
        fit_doubles_ = spread <= 600.0 && sentence.words <= 300;
        shift_.assign(highest_.size(), 0.0);
        if (fit_doubles_)
            shift_ = highest_;
        else if (largest > details::largest_exact_log_weight)
            take_best_tree(sentence, largest, root, stop);
        CompensatedSum sum;
        for (int dep = 1; dep <= sentence.words; ++dep) sum.add(shift_[dep]);
        total_ = sum.value();
    }

    double operator()(int dep) const { return shift_[dep]; }
    double total() const { return total_; }

    /// Whether all sums of products of weights are surely normal doubles: no product of one weight per word is below
    /// exp(-600), and no sentence this short has more than exp(600) trees (the number grows as 6.75^n).
    bool fit_doubles() const { return fit_doubles_; }

private:
    template <class T>
    void take_best_tree(const Sentence<T>& sentence, double largest, Root root, StopSignal& stop) {
        std::vector<Heads> heads(shift_.size());
        if (!best_tree_(sentence, largest, root, heads.data(), stop)) return;
        for (int dep = 1; dep <= sentence.words; ++dep) shift_[dep] = sentence(static_cast<int>(heads[dep]), dep);
    }

    std::vector<double> shift_, highest_, lowest_;  // by word, [0] unused
    bool fit_doubles_ = false;
    double total_ = 0.0;
    BestProjectiveTree best_tree_;
};

namespace details {

/// From `count` log-weights to weights; zeros in the rest of the last block.
template <class Ring>
struct ExpRow {
    static void run(typename Ring::Cell* row, std::ptrdiff_t plane, int count) {
        for (int i = count; i % Ring::lanes != 0; ++i) row[i] = minus_infinity<double>;
        for (int i = 0; i < count; i += Ring::lanes)
            Ring::store(row + i, plane, Ring::exp(spantree::load<Ring::lanes>(row + i)));
    }
};

}  // namespace details

/// The weights of all edges, those between the chart's nodes as tables. With one root, edges from ROOT are apart.
template <class Ring>
class EdgeWeights {
public:
    using Cell = typename Ring::Cell;

    Table<Ring> right, left;

    template <class T>
    void fill(const Sentence<T>& sentence, Root root, const Shifts& shift) {
        const int first = first_node(root);
        const int nodes = sentence.words + 1 - first;
        const auto log_weight = [&](int head, int dep) { return sentence(head, dep) - shift(dep); };
        for (auto* table : {&right, &left}) table->resize(nodes);
        for (int j = 1; first == 0 && j < nodes; ++j) *left.at(0, j) = minus_infinity<double>;
        for_each_arc(right, left, first, [&](Cell* cell, int head, int dep) { *cell = log_weight(head, dep); });
        for (auto* table : {&right, &left})
            for (int width = 1; width < nodes; ++width)
                dispatch<details::ExpRow<Ring>>(table->row(width), table->plane(), nodes - width);
        if (first == 1) {
            root_plane_ = nodes + Table<Ring>::overhang;
            from_root_.resize(static_cast<std::size_t>(Ring::parts) * root_plane_);
            for (int node = 0; node < nodes; ++node) from_root_[node] = log_weight(0, node + 1);
            dispatch<details::ExpRow<Ring>>(from_root_.data(), root_plane_, nodes);
        }
    }

    /// Single root: the weight of the edge from ROOT to a node of the chart.
    typename Ring::Scalar::Block from_root(int node) const {
        return Ring::Scalar::load(from_root_.data() + node, root_plane_);
    }

private:
    std::vector<Cell> from_root_;
    std::ptrdiff_t root_plane_ = 0;
};

}  // namespace spantree::projective
