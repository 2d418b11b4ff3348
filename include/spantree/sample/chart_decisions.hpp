// A projective tree as a sequence of decisions: the choices that derive it from the inside chart (derivation.hpp), then its
// labels word by word; with the distribution of each given those before.
//
// Decisions are asked for in order, along one path after another, so what is opened next mostly follows by one step from
// what was asked before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "../chart/derivation.hpp"
#include "../chart/solved_sentence.hpp"
#include "decisions.hpp"

namespace spantree::sampling {

/// Labels of type T in the scores. With Real = double, no label's share may be beyond the range of doubles, and the charts
/// must be in doubles too.
template <class Real, class T>
class ChartDecisions {
public:
    /// `labels` is null without labels. They and `solved`, where every tree counts, must stay where they are.
    void start(const projective::SolvedSentence& solved, LabelTable<T>* labels) {
        solved_ = &solved;
        words_ = solved.words();
        labelled_ = labels != nullptr;
        if (labels) labels_.start(*labels);
        heads_.assign(static_cast<std::size_t>(words_) + 1, no_head);
        begin();
    }

    int structural() const { return projective::Derivation::length(words_, solved_->root()); }
    int count() const { return structural() + (labelled_ ? words_ : 0); }

    /// How decision `index` is distributed given path[0..index). Valid until the next call.
    Shares<Real> operator()(int index, const int* path) {
        follow(path, std::min(index, structural()));
        if (index >= structural()) {
            const int dep = index - structural() + 1;
            return labels_(static_cast<int>(heads_[static_cast<std::size_t>(dep)]), dep);
        }
        shares_.clear();
        const auto item = derivation_.item();
        solved_->with_inside([&](const auto& sums) { add_shares(sums, item); });
        Shares<Real> result{shares_.data(), static_cast<int>(shares_.size()), Real{}};
        for (const Real& share : shares_) result.total += share;
        return result;
    }

    void tree_of(const int* path, Heads* heads, Heads* labels) {
        follow(path, structural());
        std::copy(heads_.begin(), heads_.end(), heads);
        if (!labelled_) return;
        labels[0] = no_head;
        for (int word = 1; word <= words_; ++word) labels[word] = path[structural() + word - 1];
    }

private:
    void begin() {
        followed_.clear();
        derivation_.start(words_, solved_->root());
    }

    /// Makes the choices path[0..count): heads_ and what is open then. Goes on from where it was if that is on the path.
    void follow(const int* path, int count) {
        const auto made = static_cast<int>(followed_.size());
        if (made > count || !std::equal(followed_.begin(), followed_.end(), path)) begin();
        for (int index = static_cast<int>(followed_.size()); index < count; ++index) {
            derivation_.choose(path[index], heads_.data());
            followed_.push_back(path[index]);
        }
    }

    template <class Ring>
    void add_shares(const projective::InsideOutside<Ring>& sums, const projective::Derivation::Item& item) {
        using Scalar = typename Ring::Scalar;
        if (item.kind == projective::Derivation::Kind::root) {
            for (int node = 0; node < item.choices(); ++node) add(sums.rooted(node));
            return;
        }
        const auto terms = terms_of(sums.inside(), item);
        for (int u = 0; u < terms.count; ++u)
            add(Scalar::times(Scalar::load(terms.a + u * terms.step_a, sums.plane()),
                              Scalar::load(terms.b + u * terms.step_b, sums.plane())));
    }

    void add(const projective::Linear<1>::Block& x) { shares_.emplace_back(x[0]); }
    void add(const projective::Ranged<1>::Block& x) {
        if constexpr (std::is_same_v<Real, double>)
            shares_.push_back(0.0);  // never: doubles are for charts in doubles
        else
            shares_.push_back(x.mantissa[0] > 0.0 ? Real(x.mantissa[0], x.exponent[0]) : Real());
    }

    const projective::SolvedSentence* solved_ = nullptr;
    int words_ = 0;
    bool labelled_ = false;
    LabelShares<Real, T> labels_;
    projective::Derivation derivation_;
    std::vector<int> followed_;
    std::vector<Heads> heads_;
    std::vector<Real> shares_;
};

}  // namespace spantree::sampling
