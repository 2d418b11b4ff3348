// Trees from best to worst, one at a time.
#pragma once

#include <optional>

#include "../batch/sentence.hpp"

namespace spantree {

class TreeStream {
public:
    virtual ~TreeStream() = default;

    /// Writes the next tree (heads[0..words]; labels too if the sentence is labelled) and returns its score, or nothing
    /// when all trees have been given. Scores never rise.
    virtual std::optional<double> next(Heads* heads, Heads* labels) = 0;
};

}  // namespace spantree
