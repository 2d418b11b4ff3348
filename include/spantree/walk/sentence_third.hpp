// The third derivative of log Z of one sentence's scores, labels and all, contracted with pairs of directions.
//
// Labels are parallel edges: the walk sees means of values over labels by share, and their covariance as the mixed second
// derivative that the logarithm of their total has of its own. O(n^3) to solve, and again for each pair.
#pragma once

#include <memory>

#include "../batch/edges_out.hpp"
#include "../batch/label_shares.hpp"
#include "special.hpp"

namespace spantree {

template <class T>
class SentenceThird {
public:
    SentenceThird(const Sentence<T>& sentence, Root root, StopSignal& stop) : sentence_(sentence) {
        if (sentence.words == 0) return;
        CentredScores centred;
        centre(sentence, root, stop, centred);
        feasible_.bad_score = centred.bad();
        if (feasible_.bad_score) return;
        std::vector<Heads> heads(static_cast<std::size_t>(sentence.words) + 1);
        feasible_ = BestTree<double>()(centred.sentence(), root, heads.data(), stop);
        if (feasible_) solution_ = SpecialSolution::of(std::move(centred), root, stop);
    }

    const Feasibility& feasible() const { return feasible_; }

    /// u(head, dep, label), and g. 0 where there is no tree.
    template <class U, class G, class Out>
    void write(U u, G g, const EdgeTarget<Out>& to, StopSignal& stop) {
        clear_edges(to, sentence_.labels);
        if (!solution_) return;
        const EdgeTable& marginals = solution_->marginals();
        EdgeTable mean_u(sentence_.words), mean_g(sentence_.words), covariance(sentence_.words);
        each_possible([&](int h, int d) {
            mean_u(h, d) = labels_.mean([&](int label) { return u(h, d, label); });
            mean_g(h, d) = labels_.mean([&](int label) { return g(h, d, label); });
            if (labels_.count() > 1)
                covariance(h, d) = labels_.mean(
                    [&](int label) { return (u(h, d, label) - mean_u(h, d)) * (g(h, d, label) - mean_g(h, d)); });
        });
        const MarginalSlopes slopes = solution_->third(mean_u, mean_g, covariance, stop);
        each_possible([&](int h, int d) {
            Out* const out = to.edge(h, d);
            if (labels_.count() == 1) {
                out[0] = static_cast<Out>(slopes.mixed(h, d));
                return;
            }
            for (int label = 0; label < labels_.count(); ++label)
                if (labels_[label] > 0.0)
                    out[label] = static_cast<Out>(mixed_slope_of_share(
                        labels_[label], marginals(h, d), slopes.u(h, d), slopes.g(h, d), slopes.mixed(h, d),
                        u(h, d, label) - mean_u(h, d), g(h, d, label) - mean_g(h, d), covariance(h, d)));
        });
    }

private:
    /// body(h, d) for the edges that some tree has, as far as doubles can tell; labels_ looks at it.
    template <class Body>
    void each_possible(Body body) {
        for (int h = 0; h <= sentence_.words; ++h)
            for (int d = 1; d <= sentence_.words; ++d) {
                if (h == d || !(solution_->marginals()(h, d) > 0.0)) continue;
                labels_.look_at(sentence_, h, d, solution_->marginals()(h, d));
                body(h, d);
            }
    }

    Sentence<T> sentence_;
    Feasibility feasible_;
    std::unique_ptr<const SpecialSolution> solution_;
    SharesOfLabels labels_;
};

}  // namespace spantree
