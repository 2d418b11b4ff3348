// What a kept solve holds: groups of the matrix-tree solve, or the charts of each sentence.
#pragma once

#include <vector>

#include "questions.hpp"
#include "spantree/chart/solution.hpp"
#include "spantree/walk/solution.hpp"

namespace spantree::library {

struct Solved::State {
    Solution walk;
    std::vector<projective::KeptSentence> charts;
};

}  // namespace spantree::library
