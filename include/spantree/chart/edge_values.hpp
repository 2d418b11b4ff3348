// Some numbers per edge, laid out like the chart's arcs.
#pragma once

#include <cstddef>
#include <vector>

#include "../batch/sentence.hpp"
#include "../simd/vector.hpp"
#include "chart.hpp"

namespace spantree::projective {

/// What tables of slopes hold: along `count` directions, the derivative of an item's logarithm. That of 1 is 0; that of
/// 0 matters to nobody.
template <int count>
struct Slopes {
    using Cell = double;
    static constexpr int parts = count;
    static constexpr int lanes = spantree::lanes<double>;
    static Cell zero(int) { return 0.0; }
    static Cell one(int) { return 0.0; }
};

/// `count` numbers per edge. Those of one kind are a `plane` apart from those of the next.
template <int count>
class EdgeNumbers {
public:
    Table<Slopes<count>> right,
        left;                       // of the edges i -> j, j -> i between the chart's nodes; 0 where there is no edge
    std::vector<double> from_root;  // single root: of the edges from ROOT, by the chart's nodes

    void resize(int words, Root root) {
        const int first = first_node(root);
        for (auto* table : {&right, &left}) {
            table->resize(words + 1 - first);
            if (first != first_) table->clear();
        }
        root_plane_ = root == Root::single ? words : 0;
        from_root.resize(static_cast<std::size_t>(count * root_plane_));
        first_ = first;
    }

    double& operator()(int head, int dep, int which = 0) { return *place(*this, head, dep, which); }
    double operator()(int head, int dep, int which = 0) const { return *place(*this, head, dep, which); }

    double root_value(int node, int which = 0) const {
        return from_root[static_cast<std::size_t>(which * root_plane_ + node)];
    }

    /// Sets the first number of every edge to value(head, dep).
    template <class Value>
    void set(Value value) {
        const int words = right.nodes() - 1 + first_;
        for (int dep = 1; first_ == 1 && dep <= words; ++dep)
            from_root[static_cast<std::size_t>(dep) - 1] = value(0, dep);
        for (int i = 0; i < right.nodes(); ++i) {
            const int head = i + first_;
            double* to = right.at(i, i);
            for (int dep = head + 1; dep <= words; ++dep) *(to += right.step()) = value(head, dep);
            to = left.at(i, i);
            for (int dep = head - 1; dep >= 1; --dep) *(to += left.step() - 1) = value(head, dep);
        }
    }

    /// Calls visit(head, dep) for every edge.
    template <class Visit>
    void for_each_edge(Visit visit) const {
        const int words = right.nodes() - 1 + first_;
        for (int head = 0; head <= words; ++head)
            for (int dep = 1; dep <= words; ++dep)
                if (head != dep) visit(head, dep);
    }

    std::size_t bytes() const { return right.bytes() + left.bytes() + from_root.capacity() * sizeof(double); }

private:
    template <class Self>
    static auto* place(Self& self, int head, int dep, int which) {
        if (head < self.first_) return &self.from_root[static_cast<std::size_t>(which * self.root_plane_ + dep - 1)];
        auto* const at = head < dep ? self.right.at(head - self.first_, dep - self.first_)
                                    : self.left.at(dep - self.first_, head - self.first_);
        return at + which * self.right.plane();
    }

    int first_ = 0;
    int root_plane_ = 0;
};

}  // namespace spantree::projective
