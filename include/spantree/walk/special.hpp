// One sentence that the fast kernels handed back: its trees come in two parts, or its numbers leave the range of
// doubles, or a closed form would lose too many digits.
//
// Its scores are centred (batch/centred.hpp), the sentence is cut as structure.hpp says, and each part is solved alone
// (part_solution.hpp). Where U plays ROOT's part for the rest, the edges u -> j are parallel edges from that root: the root
// edge has their total weight, and each of them its share.
//
// Nothing changes after construction: any number of threads may ask at the same time.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "../batch/centred.hpp"
#include "../decode/best_tree.hpp"
#include "part_solution.hpp"
#include "structure.hpp"

namespace spantree {

/// One of several parallel edges: it has a share of the weight of all, whose marginal and its slopes are given. Its values
/// are ahead of the mean of all by u and g; the covariance of the values is part of the total's mixed slope already. From
/// d share = share (value - mean) and d mean(u) = covariance,
///
///     d^2 (share m)  =  share (m_ug + g m_u + u m_g + m (u g - covariance))
inline double mixed_slope_of_share(double share, double m, double m_u, double m_g, double m_ug, double u, double g,
                                   double covariance) {
    return share * (((m_ug + g * m_u) + u * m_g) + m * (u * g - covariance));
}

/// Scores without labels, centred for trees that may cross.
template <class T>
void centre(const Sentence<T>& sentence, Root root, StopSignal& stop, CentredScores& centred) {
    centred.read(sentence, root, false, stop, [&](const Sentence<double>& scores, Heads* heads) {
        return static_cast<bool>(BestTree<double>()(scores, root, heads, stop));
    });
}

class SpecialSolution {
public:
    /// Null if there is no tree. `out_of_range`: the sentence with such constants taken off has been solved in doubles before,
    /// and they were not enough.
    static std::unique_ptr<const SpecialSolution> of(CentredScores centred, Root root, StopSignal& stop,
                                                     bool out_of_range = false) {
        Structure structure = find_structure(
            centred.words(), root, [&](int h, int d) { return centred.if_it_matters(h, d) > minus_infinity<double>; });
        if (!structure.feasible) return nullptr;
        return std::unique_ptr<const SpecialSolution>(
            new SpecialSolution(std::move(centred), std::move(structure), out_of_range, stop));
    }

    const CentredScores& scores() const { return scores_; }
    /// Of the centred scores.
    double log_partition() const {
        return (core_ ? core_->log_partition() : 0.0) + (rest_ ? rest_->log_partition() : 0.0);
    }
    const EdgeTable& marginals() const { return marginals_; }

    /// The parts, null if there is no such part, and their words.
    const PartSolution* core() const { return core_ ? &*core_ : nullptr; }
    const PartSolution* rest() const { return rest_ ? &*rest_ : nullptr; }
    const Structure& structure() const { return structure_; }

    EdgeTable gradient(const EdgeTable& values, StopSignal& stop) const {
        EdgeTable result(marginals_.words);
        if (core_) place(structure_.core, core_->gradient(cut(values, structure_.core), stop), result);
        if (!rest_) return result;
        EdgeTable inner = cut(values, structure_.rest);
        if (core_) {
            for (std::size_t k = 1; k <= structure_.rest.size(); ++k) inner(0, static_cast<int>(k)) = 0.0;
            each_parallel([&](int u, int j, int k) { inner(0, k) += shares_(u, j) * values(u, j); });
        }
        const EdgeTable gradient = rest_->gradient(inner, stop);
        place(structure_.rest, gradient, result);
        if (core_)
            each_parallel([&](int u, int j, int k) {
                result(u, j) =
                    shares_(u, j) * ((values(u, j) - inner(0, k)) * rest_->marginals()(0, k) + gradient(0, k));
            });
        return result;
    }

    /// As of a part.
    MarginalSlopes third(const EdgeTable& u, const EdgeTable& g, const EdgeTable& own, StopSignal& stop) const {
        MarginalSlopes result(marginals_.words);
        const auto place_all = [&](const std::vector<int>& words, const MarginalSlopes& part) {
            place(words, part.u, result.u);
            place(words, part.g, result.g);
            place(words, part.mixed, result.mixed);
        };
        if (core_)
            place_all(structure_.core,
                      core_->third(cut(u, structure_.core), cut(g, structure_.core), cut(own, structure_.core), stop));
        if (!rest_) return result;
        EdgeTable inner_u = cut(u, structure_.rest), inner_g = cut(g, structure_.rest),
                  inner_own = cut(own, structure_.rest);
        if (core_) {
            // The root edge of the rest is the sum of parallel edges: means of their values, and what their logarithm's
            // mixed second derivative is, the mean of their own and the covariance of their values.
            for (std::size_t k = 1; k <= structure_.rest.size(); ++k)
                inner_u(0, static_cast<int>(k)) = inner_g(0, static_cast<int>(k)) = inner_own(0, static_cast<int>(k)) =
                    0.0;
            each_parallel([&](int from, int j, int k) {
                inner_u(0, k) += shares_(from, j) * u(from, j);
                inner_g(0, k) += shares_(from, j) * g(from, j);
            });
            each_parallel([&](int from, int j, int k) {
                inner_own(0, k) +=
                    shares_(from, j) * (own(from, j) + (u(from, j) - inner_u(0, k)) * (g(from, j) - inner_g(0, k)));
            });
        }
        const MarginalSlopes slopes = rest_->third(inner_u, inner_g, inner_own, stop);
        place_all(structure_.rest, slopes);
        if (core_)
            each_parallel([&](int from, int j, int k) {
                const double share = shares_(from, j), m = rest_->marginals()(0, k);
                const double ahead_u = u(from, j) - inner_u(0, k), ahead_g = g(from, j) - inner_g(0, k);
                result.u(from, j) = share * (ahead_u * m + slopes.u(0, k));
                result.g(from, j) = share * (ahead_g * m + slopes.g(0, k));
                result.mixed(from, j) =
                    mixed_slope_of_share(share, m, slopes.u(0, k), slopes.g(0, k), slopes.mixed(0, k), ahead_u, ahead_g,
                                         inner_own(0, k) - own(from, j));
            });
        return result;
    }

private:
    SpecialSolution(CentredScores scores, Structure structure, bool out_of_range, StopSignal& stop)
        : scores_(std::move(scores)), structure_(std::move(structure)), marginals_(scores_.words()) {
        const bool in_two = !structure_.core.empty() && !structure_.rest.empty();
        const bool try_doubles = in_two || !scores_.only_shifted() || !out_of_range;
        EdgeTable table(scores_.words(), minus_infinity<double>);
        for (int h = 0; h <= scores_.words(); ++h)
            for (int d = 1; d <= scores_.words(); ++d) table(h, d) = scores_.if_it_matters(h, d);
        if (!structure_.core.empty()) {
            core_.emplace(cut(table, structure_.core), false, try_doubles, stop);
            place(structure_.core, core_->marginals(), marginals_);
        }
        if (!structure_.rest.empty()) {
            EdgeTable rest = cut(table, structure_.rest);
            if (core_) {
                shares_ = EdgeTable(scores_.words());
                for (std::size_t j = 0; j < structure_.rest.size(); ++j)
                    rest(0, static_cast<int>(j) + 1) = contract(table, structure_.rest[j]);
            }
            rest_.emplace(std::move(rest), true, try_doubles, stop);
            place(structure_.rest, rest_->marginals(), marginals_);
            if (core_)
                each_parallel(
                    [&](int u, int j, int k) { marginals_(u, j) = shares_(u, j) * rest_->marginals()(0, k); });
        }
    }

    static EdgeTable cut(const EdgeTable& table, const std::vector<int>& words) {
        const int n = static_cast<int>(words.size());
        if (n == table.words) return table;
        EdgeTable part(n);
        for (int h = 0; h <= n; ++h)
            for (int d = 1; d <= n; ++d) part(h, d) = table(h == 0 ? 0 : words[h - 1], words[d - 1]);
        return part;
    }

    /// Writes a part back. The rest's root row stands for edges from U, not from ROOT.
    void place(const std::vector<int>& words, const EdgeTable& part, EdgeTable& table) const {
        const bool root_is_root = &words == &structure_.core || structure_.core.empty();
        for (int h = root_is_root ? 0 : 1; h <= part.words; ++h)
            for (int d = 1; d <= part.words; ++d) table(h == 0 ? 0 : words[h - 1], words[d - 1]) = part(h, d);
    }

    /// log of the total weight of the edges from U to j; their shares of it are noted.
    double contract(const EdgeTable& scores, int j) {
        double largest = minus_infinity<double>, total = 0.0;
        for (const int u : structure_.core) largest = std::max(largest, scores(u, j));
        if (largest == minus_infinity<double>) return largest;
        for (const int u : structure_.core) total += shares_(u, j) = std::exp(scores(u, j) - largest);
        for (const int u : structure_.core) shares_(u, j) /= total;
        return largest + std::log(total);
    }

    /// body(u, j, k) for the possible edges u -> j from U to the rest; j is the k-th word of the rest.
    template <class Body>
    void each_parallel(Body body) const {
        for (std::size_t k = 0; k < structure_.rest.size(); ++k)
            for (const int u : structure_.core)
                if (shares_(u, structure_.rest[k]) > 0.0) body(u, structure_.rest[k], static_cast<int>(k) + 1);
    }

    CentredScores scores_;
    Structure structure_;
    std::optional<PartSolution> core_, rest_;
    EdgeTable shares_, marginals_;
};

}  // namespace spantree
