// A sentence's centred scores as the weights of edges, exp(score), laid out like the chart's arcs.
#pragma once

#include <cstddef>
#include <vector>

#include "../batch/centred.hpp"
#include "../batch/sentence.hpp"
#include "../simd/dispatch.hpp"
#include "../simd/vector.hpp"
#include "chart.hpp"
#include "sum_product.hpp"

namespace spantree::projective {

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

    /// `every_tree`: also of edges that no tree that matters has.
    void fill(const CentredScores& scores, Root root, bool every_tree) {
        const int first = first_node(root);
        const int nodes = scores.words() + 1 - first;
        const auto log_weight = [&](int head, int dep) {
            return every_tree ? scores.value(head, dep, scores.every_tree()) : scores(head, dep);
        };
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

    std::size_t bytes() const { return right.bytes() + left.bytes() + from_root_.capacity() * sizeof(Cell); }

private:
    std::vector<Cell> from_root_;
    std::ptrdiff_t root_plane_ = 0;
};

}  // namespace spantree::projective
