// One number per edge, laid out like the chart's arcs.
#pragma once

#include <vector>

#include "../batch/sentence.hpp"
#include "chart.hpp"
#include "sum_product.hpp"

namespace spantree::projective {

class EdgeValues {
public:
    Table<Linear<>> right, left;  // of the edges i -> j, j -> i between the chart's nodes; zero where there is no edge
    std::vector<double> from_root;  // single root: of the edges from ROOT, by the chart's nodes

    void resize(int words, Root root) {
        const int first = first_node(root);
        for (auto* table : {&right, &left}) {
            table->resize(words + 1 - first);
            if (first != first_) table->clear();
        }
        from_root.resize(root == Root::single ? static_cast<std::size_t>(words) : 0);
        first_ = first;
    }

    double& operator()(int head, int dep) {
        if (head < first_) return from_root[static_cast<std::size_t>(dep) - 1];
        return head < dep ? *right.at(head - first_, dep - first_) : *left.at(dep - first_, head - first_);
    }

    /// Calls visit(value, head, dep) for every edge.
    template <class Visit>
    void for_each(Visit visit) {
        for_each_arc(right, left, first_, [&](double* value, int head, int dep) { visit(*value, head, dep); });
        for (std::size_t node = 0; node < from_root.size(); ++node)
            visit(from_root[node], 0, static_cast<int>(node) + 1);
    }

private:
    int first_ = 0;
};

}  // namespace spantree::projective
