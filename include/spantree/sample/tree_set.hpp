// A set of trees, for finding out whether one was drawn before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../batch/sentence.hpp"

namespace spantree::sampling {

/// Open addressing; trees are stored one after the other in the order of insertion, labels (if any) behind heads. A tree's
/// hash is the sum of its decisions, each times a power of an odd number: none of the products waits for another.
class TreeSet {
public:
    void reset(int words, bool labelled) {
        words_ = words;
        width_ = labelled ? 2 * words : words;
        powers_.resize(static_cast<std::size_t>(width_));
        std::uint64_t power = 1;
        for (auto& x : powers_) x = power *= 0x9E3779B97F4A7C15u;
        trees_.clear();
        hashes_.clear();
        slots_.assign(64, empty);
        size_ = 0;
    }

    std::int64_t size() const { return size_; }

    /// Decisions of tree i as written by `insert`: heads[1..words], then labels.
    const std::int32_t* operator[](std::int64_t i) const { return trees_.data() + i * width_; }

    /// Whether it was not there yet.
    bool insert(const Heads* heads, const Heads* labels) {
        const std::size_t start = trees_.size();
        trees_.resize(start + static_cast<std::size_t>(width_));
        std::int32_t* const tree = trees_.data() + start;
        for (int word = 0; word < words_; ++word) tree[word] = static_cast<std::int32_t>(heads[word + 1]);
        for (int word = words_; word < width_; ++word)
            tree[word] = static_cast<std::int32_t>(labels[word - words_ + 1]);
        hashes_.push_back(hash(tree));
        std::int64_t& slot = find(size_);
        if (slot != empty) {
            trees_.resize(start);
            hashes_.pop_back();
            return false;
        }
        slot = size_++;
        if (2 * static_cast<std::size_t>(size_) > slots_.size()) grow();
        return true;
    }

private:
    static constexpr std::int64_t empty = -1;

    std::uint64_t hash(const std::int32_t* tree) const {
        std::uint64_t sum = 0;
        for (int i = 0; i < width_; ++i) sum += powers_[i] * static_cast<std::uint64_t>(tree[i]);
        return sum ^ (sum >> 32);
    }

    /// The slot of an equal tree, or an empty one.
    std::int64_t& find(std::int64_t i) {
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t at = hashes_[i] & mask;; at = (at + 1) & mask)
            if (slots_[at] == empty || are_equal(slots_[at], i)) return slots_[at];
    }

    bool are_equal(std::int64_t i, std::int64_t j) const {
        return hashes_[i] == hashes_[j] && std::equal((*this)[i], (*this)[i] + width_, (*this)[j]);
    }

    void grow() {
        slots_.assign(2 * slots_.size(), empty);
        for (std::int64_t i = 0; i < size_; ++i) find(i) = i;
    }

    int words_ = 0, width_ = 0;
    std::int64_t size_ = 0;
    std::vector<std::uint64_t> powers_;
    std::vector<std::int32_t> trees_;
    std::vector<std::uint64_t> hashes_;  // of the trees
    std::vector<std::int64_t> slots_;
};

}  // namespace spantree::sampling
