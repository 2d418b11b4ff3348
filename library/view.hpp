// From the public views to what questions are asked with, and back.
#pragma once

#include <vector>

#include "run.hpp"

namespace spantree::library {

inline double number_at(const void* data, DType dtype, std::ptrdiff_t at) {
    return dtype == DType::f32 ? static_cast<const float*>(data)[at] : static_cast<const double*>(data)[at];
}

/// Values of edges as doubles, labels next to each other: where they lie if they do, else copied.
class ValuesOfView {
public:
    ValuesOfView(const EdgesView& edges, const Batch& batch, int directions) {
        if (!edges.data && batch.size() > 0 && directions > 0) throw InvalidInput("values of edges: no data");
        batch.visit([&](const auto& sentences) {
            const int labels = batch.labels();
            const std::ptrdiff_t cell = std::max(labels, 1);
            const bool as_they_lie = edges.dtype == DType::f64 && (labels <= 1 || edges.label_stride == 1);
            std::size_t size = 0;
            for (const auto& sentence : sentences) size += edges_of(sentence);
            if (!as_they_lie) copy_.resize(size * static_cast<std::size_t>(directions));
            double* to = copy_.data();
            for (int direction = 0; direction < directions; ++direction) {
                EdgeValues& values = all_.emplace_back();
                for (std::size_t i = 0; i < sentences.size(); ++i) {
                    const int words = sentences[i].words;
                    const std::ptrdiff_t at =
                        direction * edges.direction_stride + static_cast<std::ptrdiff_t>(i) * edges.batch_stride;
                    if (as_they_lie) {
                        values.push_back({static_cast<const double*>(edges.data) + at, words, edges.head_stride,
                                          edges.dep_stride, labels, labels ? 1 : 0});
                        continue;
                    }
                    values.push_back({to, words, cell * (words + 1), cell, labels, labels ? 1 : 0});
                    for (int h = 0; h <= words; ++h)
                        for (int d = 0; d <= words; ++d)
                            for (int y = 0; y < cell; ++y)
                                *to++ = number_at(
                                    edges.data, edges.dtype,
                                    at + h * edges.head_stride + d * edges.dep_stride + y * edges.label_stride);
                }
            }
        });
    }
    ValuesOfView(const ValuesOfView&) = delete;
    ValuesOfView& operator=(const ValuesOfView&) = delete;

    const std::vector<EdgeValues>& all() const { return all_; }

private:
    std::vector<EdgeValues> all_;  // of each direction
    std::vector<double> copy_;
};

inline EdgeTargets targets(const EdgesOut& edges, const ScoresView& scores, int direction = 0) {
    if (!edges.data) return {};
    return with_type(edges.dtype, [&]<class Out>(Out) -> EdgeTargets {
        std::vector<EdgeTarget<Out>> result;
        result.reserve(static_cast<std::size_t>(scores.batch));
        auto* const data = static_cast<Out*>(edges.data) + direction * edges.direction_stride;
        for (std::int64_t i = 0; i < scores.batch; ++i)
            result.push_back({data + i * edges.batch_stride, edges.head_stride, edges.dep_stride, scores.nodes});
        return result;
    });
}

/// One for each direction; none if nobody wants them.
inline std::vector<EdgeTargets> targets_of_all(const EdgesOut& edges, const ScoresView& scores, int directions) {
    std::vector<EdgeTargets> result;
    for (int direction = 0; edges.data && direction < directions; ++direction)
        result.push_back(targets(edges, scores, direction));
    return result;
}

/// Numbers in the type of the scores; nowhere if nobody wants them.
inline void write_numbers(const std::vector<double>& numbers, DType dtype, void* to) {
    if (!to) return;
    with_type(dtype, [&]<class Out>(Out) {
        for (std::size_t i = 0; i < numbers.size(); ++i) static_cast<Out*>(to)[i] = static_cast<Out>(numbers[i]);
    });
}

inline void write_statuses(const Statuses& statuses, Status to) {
    if (to.per_sentence) std::copy(statuses.begin(), statuses.end(), to.per_sentence);
}

}  // namespace spantree::library
