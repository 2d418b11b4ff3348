// The ways of drawing trees, and what is known of a tree drawn without replacement.
#pragma once

namespace spantree::sampling {

/// See random_trees.hpp.
enum class SamplingMethod { automatic, wilson_marginal, wilson_reject, ancestral };

/// See without_replacement.hpp.
enum class DistinctMethod { automatic, trie, beam };

struct DistinctTree {
    double log_probability = 0.0;
    double key = 0.0;  // Gumbel; decreasing from tree to tree
};

}  // namespace spantree::sampling
