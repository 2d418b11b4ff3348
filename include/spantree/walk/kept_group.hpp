// What a solve leaves behind: V and E of the sentences of one group, and what it says about each sentence.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "../batch/scratch_pool.hpp"
#include "group.hpp"
#include "special.hpp"

namespace spantree {

/// What a solve says about one sentence: log Z = total + rest.
struct SentenceState {
    double total = 0.0;               // what was taken off the scores: every tree's log-weight lost as much
    double rest = 0.0;                // log Z of what was left; -inf if there is no tree
    double log_partition = 0.0;       // their sum, the same whether the rest of the solve was asked for or not
    Feasibility feasible;             // whether there is one
    std::vector<double> label_shift;  // labelled: of each column; part of the total
    std::unique_ptr<const SpecialSolution> special;  // if the group's V and E mean nothing for it
    bool limited = false;                            // whether its scores are (batch/centred.hpp)
};

template <class Format>
struct GroupState {
    AlignedBuffer<double> memory, shift_memory;
    EdgeMatrices<Format> edges;
    std::size_t sentence[Format::sentences] = {};
    int count = 0;

    double* shifts() const { return shift_memory.data(); }
    double* root_shift() const { return shift_memory.data() + shift_size(edges.padded); }

    /// What was taken off the scores of edges into word d of the group's s-th sentence (labelled: beside label_shift).
    double column_shift(int s, int d) const { return shifts()[(d - 1) * Format::element_size + s]; }
    double marginal(int s, int h, int d) const {
        const std::ptrdiff_t column = (d - 1) * Format::element_size + s;
        return edges.weights.data[h * edges.weights.stride + column] *
               edges.escape.data[h * edges.escape.stride + column];
    }

    void reserve(int words) {
        edges = EdgeMatrices<Format>(words, memory.reserve(EdgeMatrices<Format>::memory_size(words)));
        shift_memory.reserve(shift_size(words) + pack_size);
    }

    std::size_t bytes() const { return memory.bytes() + shift_memory.bytes(); }

    static std::size_t shift_size(int words) {
        return static_cast<std::size_t>(round_up(words) + pack_size) * Format::element_size;
    }
};

/// A group that stays with its solution. In small batches its memory is on loan, for the next batch to use afterwards.
template <class Group>
class KeptGroup {
public:
    explicit KeptGroup(std::size_t groups) {
        groups <= most_groups_lent ? void(loan_.emplace(pool.borrow())) : void(own_ = std::make_unique<Group>());
    }
    Group& operator*() const { return loan_ ? **loan_ : *own_; }

private:
    static constexpr std::size_t most_groups_lent = 64;  // a few megabytes of short sentences
    static inline ScratchPool<Group> pool;
    std::optional<typename ScratchPool<Group>::Loan> loan_;
    std::unique_ptr<Group> own_;
};

}  // namespace spantree
