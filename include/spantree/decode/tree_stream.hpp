// Trees from best to worst, one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "../batch/parallel.hpp"
#include "../batch/sentence.hpp"
#include "../batch/tree.hpp"

namespace spantree {

class TreeStream {
public:
    virtual ~TreeStream() = default;

    /// Writes the next tree (heads[0..words]; labels too if the sentence is labelled) and returns its score, or nothing
    /// when all trees have been given. Scores never rise.
    virtual std::optional<double> next(Heads* heads, Heads* labels, StopSignal& stop) = 0;
};

/// A search for trees from best to worst in weights of some kind (decode/weight.hpp).
class TreeSearch {
public:
    virtual ~TreeSearch() = default;

    /// Writes the next tree, if there is one and if there is no doubt.
    virtual bool next(Heads* heads, Heads* labels, StopSignal& stop) = 0;

    /// Whether the weights were too coarse to find the tree last asked for; all trees before it are right.
    virtual bool doubtful() const = 0;
};

/// A stream that searches in fast weights, and begins again in wide ones when they leave a doubt. Both searches take
/// the same course, so those trees that have been given are passed over.
template <class T, class MakeWideSearch>
class DoubtingTreeStream final : public TreeStream {
public:
    DoubtingTreeStream(const Sentence<T>& sentence, std::unique_ptr<TreeSearch> fast, MakeWideSearch make_wide)
        : sentence_(sentence), search_(std::move(fast)), make_wide_(std::move(make_wide)) {}

    std::optional<double> next(Heads* heads, Heads* labels, StopSignal& stop) override {
        bool found = search_->next(heads, labels, stop);
        if (search_->doubtful()) {
            auto wide = make_wide_(stop);
            found = true;
            for (std::size_t tree = 0; found && tree <= given_; ++tree) found = wide->next(heads, labels, stop);
            search_ = std::move(wide);  // only now: if the search was stopped, the stream can still be asked
        }
        if (!found) return std::nullopt;
        ++given_;
        return tree_score(sentence_, heads, sentence_.labels ? labels : nullptr);
    }

private:
    Sentence<T> sentence_;
    std::unique_ptr<TreeSearch> search_;
    MakeWideSearch make_wide_;
    std::size_t given_ = 0;
};

}  // namespace spantree
