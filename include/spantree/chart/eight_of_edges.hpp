// Up to eight numbers of every edge of a sentence without labels, each where its owner wants it: side by side, or far apart.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>

#include "../batch/edges_out.hpp"

namespace spantree::projective {

template <class Number>
class EightOfEdges {
public:
    using Plain = std::remove_const_t<Number>;

    /// first[k] belongs to edge (0, 0); all have the same strides and width, as in EdgeTarget.
    EightOfEdges(std::span<Number* const> first, std::ptrdiff_t head_stride, std::ptrdiff_t dep_stride, int width)
        : used_(static_cast<int>(first.size())), head_stride_(head_stride), dep_stride_(dep_stride), width_(width) {
        side_by_side_ = used_ == 8;
        for (int k = 0; k < used_; ++k) {
            first_[k] = first[static_cast<std::size_t>(k)];
            side_by_side_ &= first_[k] == first_[0] + k;
        }
    }

    int width() const { return width_; }

    /// 0 where there is no number.
    void get(int head, int dep, double* to) const {
        const std::ptrdiff_t edge = head * head_stride_ + dep * dep_stride_;
        if (side_by_side_) {
            std::copy_n(first_[0] + edge, 8, to);
        } else {
            for (int k = 0; k < used_; ++k) to[k] = first_[k][edge];
            std::fill(to + used_, to + 8, 0.0);
        }
    }

    void set(int head, int dep, const double* from) const {
        const std::ptrdiff_t edge = head * head_stride_ + dep * dep_stride_;
        if (side_by_side_)
            for (int k = 0; k < 8; ++k) first_[0][edge + k] = static_cast<Plain>(from[k]);
        else
            for (int k = 0; k < used_; ++k) first_[k][edge] = static_cast<Plain>(from[k]);
    }

    /// Calls body(target, 0) for each number's own target.
    template <class Body>
    void for_each_target(Body body) const {
        for (int k = 0; k < used_; ++k) body(EdgeTarget<Plain>{first_[k], head_stride_, dep_stride_, width_}, 0);
    }

private:
    Number* first_[8];
    int used_;
    std::ptrdiff_t head_stride_, dep_stride_;
    int width_;
    bool side_by_side_;
};

}  // namespace spantree::projective
