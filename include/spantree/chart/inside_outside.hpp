// Sums over all projective trees of a sentence: Z, and the marginal probability of every edge. O(n^3) time, O(n^2)
// memory.
//
// Inside: chart.hpp over (+, *). Outside: outside.hpp. Only sums and products of nonnegative numbers, so each marginal
// is right to a few units in the last place of its own, however small it is.
#pragma once

#include <cstddef>
#include <vector>

#include "../batch/parallel.hpp"
#include "../batch/sentence.hpp"
#include "../simd/dispatch.hpp"
#include "chart.hpp"
#include "edge_values.hpp"
#include "outside.hpp"
#include "sum_product.hpp"
#include "weights.hpp"

namespace spantree::projective {

namespace details {

template <class Ring>
struct MarginalsWidth {
    static void run(const Chart<Ring>& inside, const OutsideChart<Ring>& outside,
                    const typename Ring::Scalar::Block& total, EdgeValues& marginals, int width) {
        const std::ptrdiff_t plane = inside.plane();
        const auto all = Ring::spread(total);
        for (int i = 0; i + width < inside.nodes(); i += Ring::lanes) {
            const int j = i + width;
            const auto share = [&](const Table<Ring>& arc, const Table<Ring>& around) {
                return Ring::ratio(Ring::times(Ring::load(arc.at(i, j), plane), Ring::load(around.at(i, j), plane)),
                                   all);
            };
            spantree::store(marginals.right.at(i, j), share(inside.arc_right, outside.arc_right));
            spantree::store(marginals.left.at(i, j), share(inside.arc_left, outside.arc_left));
        }
    }
};

}  // namespace details

template <class Ring>
class InsideOutside {
public:
    using Scalar = typename Ring::Scalar;
    using Number = typename Scalar::Block;

    /// False if there is no tree.
    template <class T>
    bool run_inside(const Sentence<T>& sentence, Root root, const Shifts& shift, StopSignal& stop) {
        words_ = sentence.words;
        root_ = root;
        weights_.fill(sentence, root, shift);
        inside_.resize(words_, root);
        inside_.arc_right = weights_.right;
        inside_.arc_left = weights_.left;
        projective::run_inside(inside_, stop);
        total_ = root == Root::multi ? get(inside_.right, 0, last()) : words_ > 0 ? total_of_roots() : one();
        log_total_ = Scalar::log(total_);
        return log_total_ > minus_infinity<double>;
    }

    void run_outside(StopSignal& stop) {
        outside_.resize(words_, root_);
        outside_.right.clear();
        outside_.left.clear();
        if (root_ == Root::multi) {
            Scalar::store(outside_.right.at(0, last()), plane(), one());
        } else {
            for (int node = 0; node <= last(); ++node) {
                Scalar::store(outside_.left.at(0, node), plane(), seed_left(node));
                Scalar::store(outside_.right.at(node, last()), plane(), seed_right(node));
            }
        }
        projective::run_outside(inside_, weights_.right, weights_.left, outside_, stop);
    }

    /// After run_outside.
    void find_marginals(EdgeValues& marginals) {
        marginals.resize(words_, root_);
        for (int width = 1; width <= last(); ++width)
            dispatch<details::MarginalsWidth<Ring>>(inside_, outside_, total_, marginals, width);
        for (int node = 0; root_ == Root::single && node <= last(); ++node)
            marginals.from_root[node] = root_marginal(node);
        normalise(marginals);
    }

    double log_total() const { return log_total_; }
    const Chart<Ring>& inside() const { return inside_; }
    const OutsideChart<Ring>& outside() const { return outside_; }
    const EdgeWeights<Ring>& weights() const { return weights_; }
    int words() const { return words_; }
    Root root() const { return root_; }
    int last() const { return inside_.nodes() - 1; }
    std::ptrdiff_t plane() const { return inside_.plane(); }

    static Number get(const Table<Ring>& table, int i, int j) { return Scalar::load(table.at(i, j), table.plane()); }

    // Single root.
    double root_marginal(int node) const { return Scalar::ratio(rooted_[static_cast<std::size_t>(node)], total_)[0]; }
    Number seed_left(int node) const {
        return Scalar::times(weights_.from_root(node), get(inside_.right, node, last()));
    }
    Number seed_right(int node) const { return Scalar::times(get(inside_.left, 0, node), weights_.from_root(node)); }

private:
    static Number one() { return Scalar::exp(Vector<double, 1>{0.0}); }

    Number total_of_roots() {
        rooted_.clear();
        for (int node = 0; node <= last(); ++node)
            rooted_.push_back(Scalar::times(seed_right(node), get(inside_.right, node, last())));
        Number total = rooted_.front();
        for (std::size_t node = 1; node < rooted_.size(); ++node) total = Scalar::plus(total, rooted_[node]);
        return total;
    }

    /// The edges into a word add up to 1, but for rounding errors; now to the last bit or nearly.
    void normalise(EdgeValues& marginals) {
        column_.assign(static_cast<std::size_t>(words_) + 1, 0.0);
        marginals.for_each([&](double value, int, int dep) { column_[static_cast<std::size_t>(dep)] += value; });
        marginals.for_each([&](double& value, int, int dep) { value /= column_[static_cast<std::size_t>(dep)]; });
    }

    int words_ = 0;
    Root root_ = Root::single;
    EdgeWeights<Ring> weights_;
    Chart<Ring> inside_;
    OutsideChart<Ring> outside_;
    Number total_{};
    double log_total_ = 0.0;
    std::vector<Number> rooted_;  // single root: the sum over trees by their root word
    std::vector<double> column_;
};

}  // namespace spantree::projective
