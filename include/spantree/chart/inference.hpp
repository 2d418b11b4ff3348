// The distribution over a sentence's projective trees, p(tree) proportional to exp(score): chooses how to compute its
// sums.
#pragma once

#include <tuple>

#include "../batch/parallel.hpp"
#include "../batch/sentence.hpp"
#include "eisner.hpp"
#include "inside_outside.hpp"
#include "sum_product.hpp"
#include "weights.hpp"

namespace spantree::projective {

/// Scratch memory; reused from sentence to sentence on one thread.
class ProjectiveInference {
public:
    /// Fills the inside chart of an unlabelled sentence and calls use(sums) with it, if there is a tree.
    template <class T, class Use>
    Feasibility operator()(const Sentence<T>& sentence, Root root, StopSignal& stop, Use use) {
        shift_.choose(sentence, root, stop);
        const auto run = [&](auto& sums) {
            if (!sums.run_inside(sentence, root, shift_, stop)) return find_unattachable(sentence, root, stop);
            use(sums);
            return Feasibility{};
        };
        return shift_.fit_doubles() ? run(std::get<InsideOutside<Linear<>>>(sums_))
                                    : run(std::get<InsideOutside<Ranged<>>>(sums_));
    }

    /// Within `use`.
    template <class Ring>
    double log_partition(const InsideOutside<Ring>& sums) const {
        return sums.log_total() + shift_.total();
    }

private:
    Shifts shift_;
    std::tuple<InsideOutside<Linear<>>, InsideOutside<Ranged<>>> sums_;
};

}  // namespace spantree::projective
