// Numbers of all edges of a batch, [head, dep, label] of sentence behind sentence, in memory of our own that is used again.
#pragma once

#include <span>
#include <vector>

#include "run.hpp"
#include "spantree/batch/aligned_buffer.hpp"
#include "spantree/batch/scratch_pool.hpp"

namespace spantree::library {

/// Fresh pages for as many numbers take longer than writing them.
inline ScratchPool<AlignedBuffer<double>> own_numbers;

class OwnEdges {
public:
    /// Whatever was there before; none if they are not wanted.
    explicit OwnEdges(const Batch& batch, bool wanted = true) {
        if (!wanted) return;
        batch.visit([&](const auto& sentences) {
            std::size_t size = 0;
            for (const auto& sentence : sentences) size += edges_of(sentence);
            double* at = (*loan_).reserve(size);
            numbers_ = std::span(at, size);
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

    std::span<double> numbers() { return numbers_; }
    std::span<double> numbers_of(std::size_t i) {
        const std::ptrdiff_t nodes = targets_[i].width;
        return {targets_[i].data, static_cast<std::size_t>(nodes * targets_[i].head_stride)};
    }
    double* edge(std::size_t i, int head, int dep) { return targets_[i].edge(head, dep); }
    const EdgeValues& values() const { return values_; }
    const std::vector<EdgeTarget<double>>& targets() const { return targets_; }

private:
    ScratchPool<AlignedBuffer<double>>::Loan loan_ = own_numbers.borrow();
    std::span<double> numbers_;
    std::vector<EdgeTarget<double>> targets_;
    EdgeValues values_;
};

}  // namespace spantree::library
