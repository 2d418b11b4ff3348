// What the best-tree searches ask of a sentence: the score of an edge, which for labelled scores is that of its best label.
#pragma once

#include <algorithm>
#include <cmath>

#include "../sentence.hpp"

namespace arbora::projective {

/// The best label of an edge, the lowest index among equals. O(labels).
template <class T>
int best_label(const Sentence<T>& sentence, int head, int dep) {
    int best = 0;
    for (int label = 1; label < sentence.labels; ++label)
        if (sentence(head, dep, label) > sentence(head, dep, best)) best = label;
    return best;
}

template <class T>
double edge_score(const Sentence<T>& sentence, int head, int dep) {
    return sentence.labels == 0 ? sentence(head, dep) : sentence(head, dep, best_label(sentence, head, dep));
}

/// The extremes of a set of scores, -inf left out.
struct ScoreRange {
    double lowest = 0.0;
    double highest = 0.0;

    void include(double score) {
        lowest = score < lowest && score > minus_infinity<double> ? score : lowest;
        highest = score > highest ? score : highest;
    }
    double largest_magnitude() const { return std::max(-lowest, highest); }
};

}  // namespace arbora::projective
