// Which trees of a batch relative scores of edges shall be right for, where scores are so large that not all can be.
#pragma once

#include <vector>

#include "sentence.hpp"

namespace spantree {

/// How: numbers beyond what matters count for less, or gaps between them were closed (gaps.hpp).
enum class Limited : unsigned char { no, by_terms, by_gaps };

struct WhichTrees {
    double reach = 1.0;  // those that would matter if log-probabilities were divided by it
    std::vector<Sentence<double>>
        marginals;  // if there are any: those of distributions with these marginals, where `by_gaps`

    /// Null if there are none.
    const Sentence<double>* marginals_of(std::size_t i) const { return marginals.empty() ? nullptr : &marginals[i]; }
};

}  // namespace spantree
