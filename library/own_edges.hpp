// Numbers of all edges of a batch in memory of our own, [head, dep, label] of sentence behind sentence.
#pragma once

#include <vector>

#include "run.hpp"

namespace spantree::library {

class OwnEdges {
public:
    /// None if they are not wanted.
    explicit OwnEdges(const Batch& batch, bool wanted = true) {
        if (!wanted) return;
        batch.visit([&](const auto& sentences) {
            std::size_t size = 0;
            for (const auto& sentence : sentences) size += edges_of(sentence);
            numbers_.resize(size);
            double* at = numbers_.data();
            for (const auto& sentence : sentences) {
                const std::ptrdiff_t cell = std::max(sentence.labels, 1);
                targets_.push_back({at, cell * (sentence.words + 1), cell, sentence.words + 1});
                values_.push_back(
                    {at, sentence.words, cell * (sentence.words + 1), cell, sentence.labels, sentence.labels ? 1 : 0});
                at += edges_of(sentence);
            }
        });
    }
    OwnEdges(const OwnEdges&) = delete;
    OwnEdges& operator=(const OwnEdges&) = delete;

    std::vector<double>& numbers() { return numbers_; }
    double* edge(std::size_t i, int head, int dep) { return targets_[i].edge(head, dep); }
    const EdgeValues& values() const { return values_; }
    const std::vector<EdgeTarget<double>>& targets() const { return targets_; }

private:
    std::vector<double> numbers_;
    std::vector<EdgeTarget<double>> targets_;
    EdgeValues values_;
};

}  // namespace spantree::library
