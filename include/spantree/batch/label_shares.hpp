// The labels of one edge, looked at one by one: for questions that are asked once in a while. (In bulk: label_sums.hpp.)
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "labels.hpp"
#include "sentence.hpp"

namespace spantree {

/// The labels of one edge: their shares of its weight.
class SharesOfLabels {
public:
    /// Of an edge with this marginal. Without labels, one share of 1; 0 for labels that, as far as doubles can tell, no
    /// tree has on this edge.
    template <class T>
    void look_at(const Sentence<T>& sentence, int head, int dep, double marginal) {
        share_.resize(static_cast<std::size_t>(std::max(sentence.labels, 1)));
        share_[0] = 1.0;
        if (!sentence.labels) return;
        const LabelTotal total(sentence, head, dep);
        for (int label = 0; label < sentence.labels; ++label) {
            const double share = total.share(sentence(head, dep, label));
            share_[static_cast<std::size_t>(label)] = marginal * share > 0.0 ? share : 0.0;
        }
    }

    int count() const { return static_cast<int>(share_.size()); }
    double operator[](int label) const { return share_[static_cast<std::size_t>(label)]; }

    /// The mean of value(label); labels without weight do not matter, whatever their value.
    template <class Value>
    double mean(Value value) const {
        if (count() == 1) return value(0);
        double sum = 0.0;
        for (int label = 0; label < count(); ++label)
            if ((*this)[label] > 0.0) sum += (*this)[label] * value(label);
        return sum;
    }

    /// Their entropy.
    double entropy() const {
        return count() == 1 ? 0.0 : mean([&](int label) { return -std::log((*this)[label]); });
    }

private:
    std::vector<double> share_;
};

}  // namespace spantree
