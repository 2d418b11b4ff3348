// Scores and log-probabilities when everything common to all trees is taken off, written for Python.
#pragma once

#include <algorithm>
#include <optional>

#include "batch.hpp"
#include "spantree/batch/centred.hpp"
#include "spantree/batch/labels.hpp"
#include "spantree/number/exact_sum.hpp"

namespace spantree::bindings {

using HeadRows = nb::ndarray<const Heads, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// value(h, d, label) of every edge of sentence i, in the layout of edge results.
template <class T, class Value>
void write_relative_scores(const Batch& batch, std::size_t i, const Sentence<T>& sentence, Value value, double* out) {
    const Place& place = batch.places[i];
    const std::ptrdiff_t cell = std::max(batch.labels, 1), row = cell * place.width;
    const std::ptrdiff_t to_head = batch.dep_major ? cell : row, to_dep = batch.dep_major ? row : cell;
    for (int h = 0; h <= sentence.words; ++h)
        for (int d = 1; d <= sentence.words; ++d)
            for (int label = 0; label < cell && h != d; ++label)
                out[place.edges + h * to_head + d * to_dep + label] = value(h, d, label);
}

/// What an edge's label adds to the edge's relative score.
template <class T>
double log_share_of(const Sentence<T>& sentence, int h, int d, int label) {
    if (!sentence.labels) return 0.0;
    const double score = sentence(h, d, label);
    return score == minus_infinity<double> ? score : LabelTotal(sentence, h, d).log_share(score);
}

/// out[t * batch + i] = tree(heads, labels) - rest for every row t; -inf where a head or a label is out of range.
template <class T, class Tree>
void write_log_probs(const Batch& batch, std::size_t i, const Sentence<T>& sentence, const HeadRows& heads,
                     const std::optional<HeadRows>& labels, double rest, Tree tree, double* out) {
    const auto inside = [](const Heads* row, int words, int end) {
        return std::all_of(row + 1, row + words + 1, [&](Heads x) { return x >= 0 && x < end; });
    };
    for (std::size_t t = 0; t < heads.shape(0); ++t) {
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(t) * batch.row_size + batch.places[i].row;
        const Heads* const row = heads.data() + at;
        const Heads* const label_row = labels ? labels->data() + at : nullptr;
        const bool valid = inside(row, sentence.words, sentence.words + 1) &&
                           (!label_row || inside(label_row, sentence.words, sentence.labels));
        out[t * batch.size() + i] = valid ? tree(row, label_row) - rest : minus_infinity<double>;
    }
}

/// A tree's relative score by centred scores.
template <class T>
double relative_score(const CentredScores& scores, const Sentence<T>& sentence, const Heads* heads,
                      const Heads* labels) {
    TwoPart<double> sum{scores.relative_score(heads), 0.0};
    for (int d = 1; labels && d <= sentence.words; ++d)
        sum += log_share_of(sentence, static_cast<int>(heads[d]), d, static_cast<int>(labels[d]));
    return sum.value();
}

}  // namespace spantree::bindings
