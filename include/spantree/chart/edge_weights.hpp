// A sentence's centred scores as the weights of edges, exp(score), laid out like the chart's arcs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../batch/centred.hpp"
#include "../batch/sentence.hpp"
#include "../number/exp.hpp"
#include "../simd/dispatch.hpp"
#include "../simd/vector.hpp"
#include "chart.hpp"
#include "sum_product.hpp"

namespace spantree::projective {

namespace details {

/// From `count` log-weights to weights. There is room for a multiple of eight; what is beyond `count` means nothing.
template <class Ring>
struct ExpOf {
    template <class Registers>
    struct Kernel {
        static void run(const double* from, int count, typename Ring::Cell* to, std::ptrdiff_t plane) {
            constexpr int at_once = 4;  // their chains of operations overlap
            int i = 0;
            for (; i + at_once * pack_size <= count; i += at_once * pack_size) write<at_once>(from + i, to + i, plane);
            for (; i + pack_size <= count; i += pack_size) write<1>(from + i, to + i, plane);
            double rest[pack_size] = {};
            std::copy(from + i, from + count, rest);
            if (i < count) write<1>(rest, to + i, plane);
        }

    private:
        template <int eights>
        [[gnu::always_inline]] static void write(const double* from, double* to, std::ptrdiff_t plane) {
            using In = typename Ring::template In<Registers::width>;
            if constexpr (Ring::parts == 1) {
                PackOf<Registers::width> x[eights];
                for (int k = 0; k < eights; ++k) x[k] = PackOf<Registers::width>::load(from + k * pack_size);
                plain_exp<eights>(x);
                for (int k = 0; k < eights; ++k) x[k].store(to + k * pack_size);
            } else {
                for (int k = 0; k < eights * pack_size; k += In::lanes)
                    In::store(to + k, plane, In::exp(spantree::load<In::lanes>(from + k)));
            }
        }
    };
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
        const int words = scores.words(), first = first_node(root), nodes = words + 1 - first;
        const int size = (words + 1) * (words + 1);
        plane_ = round_up(size);
        weights_.resize(static_cast<std::size_t>(Ring::parts) * plane_);
        const double* log_weights = scores.sentence().scores;
        std::vector<double> of_every_tree;
        if (every_tree) log_weights = (of_every_tree = scores.of_every_tree()).data();
        dispatch_on_registers<details::ExpOf<Ring>>(log_weights, size, weights_.data(), plane_);
        for (auto* table : {&right, &left}) table->resize(nodes);
        for (int part = 0; part < Ring::parts; ++part)
            lay_out_edges(weights_.data() + part * plane_, words, first, right, left, part);
    }

    /// Single root: the weight of the edge from ROOT to a node of the chart.
    typename Ring::Scalar::Block from_root(int node) const {
        return Ring::Scalar::load(weights_.data() + node + 1, plane_);
    }

    std::size_t bytes() const { return right.bytes() + left.bytes() + weights_.capacity() * sizeof(Cell); }

private:
    std::vector<Cell> weights_;  // [head, dep]
    std::ptrdiff_t plane_ = 0;
};

}  // namespace spantree::projective
