// A set of trees, for finding out whether one was drawn before.
#pragma once

#include <cstdint>
#include <vector>

#include "../batch/sentence.hpp"

namespace spantree::sampling {

/// Open addressing; trees are stored one after the other in the order of insertion, labels (if any) behind heads.
class TreeSet {
public:
    void reset(int words, bool labelled) {
        words_ = words;
        width_ = labelled ? 2 * words : words;
        trees_.clear();
        slots_.assign(64, empty);
        size_ = 0;
    }

    std::int64_t size() const { return size_; }

    /// Decisions of tree i as written by `insert`: heads[1..words], then labels.
    const std::int32_t* operator[](std::int64_t i) const { return trees_.data() + i * width_; }

    /// Whether it was not there yet.
    bool insert(const Heads* heads, const Heads* labels) {
        const std::size_t start = trees_.size();
        for (int word = 1; word <= words_; ++word) trees_.push_back(static_cast<std::int32_t>(heads[word]));
        if (width_ > words_)
            for (int word = 1; word <= words_; ++word) trees_.push_back(static_cast<std::int32_t>(labels[word]));
        std::int64_t& slot = find(size_);
        if (slot != empty) {
            trees_.resize(start);
            return false;
        }
        slot = size_++;
        if (2 * static_cast<std::size_t>(size_) > slots_.size()) grow();
        return true;
    }

private:
    static constexpr std::int64_t empty = -1;

    std::uint64_t hash(std::int64_t i) const {
        std::uint64_t h = 0;
        for (const std::int32_t* x = (*this)[i]; x != (*this)[i] + width_; ++x)
            h = (h ^ static_cast<std::uint64_t>(*x)) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
        return h;
    }

    /// The slot of an equal tree, or an empty one.
    std::int64_t& find(std::int64_t i) {
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t at = hash(i) & mask;; at = (at + 1) & mask)
            if (slots_[at] == empty || std::equal((*this)[i], (*this)[i] + width_, (*this)[slots_[at]]))
                return slots_[at];
    }

    void grow() {
        slots_.assign(2 * slots_.size(), empty);
        for (std::int64_t i = 0; i < size_; ++i) find(i) = i;
    }

    int words_ = 0, width_ = 0;
    std::int64_t size_ = 0;
    std::vector<std::int32_t> trees_;
    std::vector<std::int64_t> slots_;
};

}  // namespace spantree::sampling
