// One number for every edge of one sentence.
#pragma once

#include <vector>

#include "../batch/sentence.hpp"

namespace spantree {

/// A dense matrix of edges of one sentence, [head, dep].
struct EdgeTable {
    int words = 0;
    std::vector<double> data;
    explicit EdgeTable(int n = 0, double fill = 0.0)
        : words(n), data(static_cast<std::size_t>(n + 1) * (n + 1), fill) {}
    double& operator()(int h, int d) { return data[static_cast<std::size_t>(h) * (words + 1) + d]; }
    double operator()(int h, int d) const { return data[static_cast<std::size_t>(h) * (words + 1) + d]; }
    const double* row(int h) const { return data.data() + static_cast<std::size_t>(h) * (words + 1); }
    Sentence<double> sentence() const { return {data.data(), words, words + 1, 1}; }
};

}  // namespace spantree
