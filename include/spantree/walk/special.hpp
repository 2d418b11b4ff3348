// One sentence that the fast kernels handed back: its trees come in two parts, or its numbers leave the range of
// doubles, or a closed form would lose too many digits.
//
// Its scores are centred (batch/centred.hpp), the sentence is cut as structure.hpp says, and each part is solved alone: in
// doubles if they suffice, in numbers with an exponent of their own (careful_solve.hpp) if not. Where U plays ROOT's part
// for the rest, the edges u -> j are parallel edges from that root: the root edge has their total weight, and each of
// them its share.
//
// Nothing changes after construction: any number of threads may ask at the same time.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "../batch/centred.hpp"
#include "../batch/scratch_pool.hpp"
#include "../decode/best_tree.hpp"
#include "../simd/dispatch.hpp"
#include "careful_solve.hpp"
#include "gradient.hpp"
#include "group.hpp"
#include "structure.hpp"
#include "third.hpp"

namespace spantree {

/// A dense matrix of edges of one sentence, [head, dep].
struct EdgeTable {
    int words = 0;
    std::vector<double> data;
    explicit EdgeTable(int n = 0, double fill = 0.0)
        : words(n), data(static_cast<std::size_t>(n + 1) * (n + 1), fill) {}
    double& operator()(int h, int d) { return data[static_cast<std::size_t>(h) * (words + 1) + d]; }
    double operator()(int h, int d) const { return data[static_cast<std::size_t>(h) * (words + 1) + d]; }
    const double* row(int h) const { return data.data() + static_cast<std::size_t>(h) * (words + 1); }
    Sentence<double> sentence() const { return {data.data(), words, words + 1, 1}; }
};

/// How marginals move: along u, along g, and how the one moves along the other.
struct MarginalSlopes {
    EdgeTable u, g, mixed;
    explicit MarginalSlopes(int words = 0) : u(words), g(words), mixed(words) {}
};

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
        return static_cast<bool>(BestTree<double>()(scores, root, heads));
    });
}

/// Everything a solve of one sentence alone needs in memory.
class AloneSolver {
public:
    /// Returns whether doubles were enough. `edges`, in `memory`, afterwards holds V and E.
    Outcome solve(const EdgeTable& scores, bool several_roots, AlignedBuffer<double>& memory,
                  EdgeMatrices<Alone>& edges) {
        const int n = scores.words;
        solve_.reserve(n);
        edges = EdgeMatrices<Alone>(n, memory.reserve(2 * EdgeMatrices<Alone>::size(n)));
        EdgeSource<Alone> source{{stage_scores(scores.sentence(), n, staged_.reserve((n + 1) * round_up(n)))}, n};
        PivotReport<Alone> report{several_roots, {static_cast<double>(n)}};
        double root_shift = 0.0;
        Shifts<Alone> shifts{shifts_.reserve(round_up(n)), &root_shift};
        solve_group(solve_, walk_.reserve(n), source, true, shifts, edges, report);
        return outcome(shifts, report, 0);
    }

    std::size_t bytes() const { return solve_.bytes() + walk_.bytes() + staged_.bytes() + shifts_.bytes(); }

private:
    Solve<Alone> solve_;
    WalkBuffer<Alone> walk_;
    AlignedBuffer<double> staged_, shifts_;
};

inline ScratchPool<AloneSolver> alone_solvers;
inline ScratchPool<AlignedBuffer<double>> gradient_work;
template <int order>
inline ScratchPool<CarefulSolve<order>> careful_solves;

/// A distribution over trees none of whose parts is structurally impossible.
class PartSolution {
public:
    PartSolution(EdgeTable scores, bool several_roots, StopSignal& stop)
        : scores_(std::move(scores)), several_roots_(several_roots), marginals_(scores_.words) {
        const auto solver = alone_solvers.borrow();
        const Outcome outcome = (*solver).solve(scores_, several_roots, memory_, edges_);
        in_doubles_ = outcome.in_range;
        if (!in_doubles_) {
            log_partition_ = careful<0>(
                stop, [](int, int, int) { return 0.0; },
                [&](int h, int d, const double* part) { marginals_(h, d) = part[0]; });
            return;
        }
        log_partition_ = outcome.log_partition;
        for (int h = 0; h <= scores_.words; ++h)
            for (int d = 1; d <= scores_.words; ++d)
                marginals_(h, d) = edges_.weights.data[h * edges_.weights.stride + d - 1] *
                                   edges_.escape.data[h * edges_.escape.stride + d - 1];
    }

    const EdgeTable& marginals() const { return marginals_; }
    double log_partition() const { return log_partition_; }

    /// Gradient of E[sum of values].
    EdgeTable gradient(const EdgeTable& values, StopSignal& stop) const {
        const int n = scores_.words;
        EdgeTable result(n);
        if (in_doubles_) {
            const std::ptrdiff_t stride = EdgeMatrices<Alone>::stride(n);
            const auto work = gradient_work.borrow();
            double* const g = (*work).reserve(EdgeMatrices<Alone>::size(n) + Gradient<Alone>::work_size(n));
            for (int h = 0; h <= n; ++h)
                for (int d = 0; d < stride; ++d) g[h * stride + d] = d < n ? values(h, d + 1) : 0.0;
            double error = 0.0;
            double* const rest = g + EdgeMatrices<Alone>::size(n);
            dispatch_on_registers<GradientError<Alone>>(edges_, rest, &error);
            if (error <= tolerable_error) {
                dispatch_on_registers<Gradient<Alone>>(edges_, several_roots_, Rows{g, stride}, rest);
                for (int h = 0; h <= n; ++h)
                    for (int d = 1; d <= n; ++d) result(h, d) = h == d ? 0.0 : g[h * stride + d - 1];
                return result;
            }
        }
        // A constant taken off a column changes no gradient. With the value of the likeliest head taken off, slopes are
        // small where little can happen.
        const std::vector<double> likeliest = likeliest_values(values);
        careful<1>(
            stop, [&](int, int h, int d) { return marginals_(h, d) > 0.0 ? values(h, d) - likeliest[d] : 0.0; },
            [&](int h, int d, const double* part) { result(h, d) = part[1]; });
        return result;
    }

    /// How marginals move when scores move by u and by g; `own` is the mixed second derivative of the scores themselves.
    MarginalSlopes third(const EdgeTable& u, const EdgeTable& g, const EdgeTable& own, StopSignal& stop) const {
        const int n = scores_.words;
        MarginalSlopes result(n);
        if (in_doubles_ && third_in_doubles(u, g, own, result)) return result;
        const std::vector<double> off_u = likeliest_values(u), off_g = likeliest_values(g);
        careful<2>(
            stop,
            [&](int which, int h, int d) {
                if (!(marginals_(h, d) > 0.0)) return 0.0;
                return which == 0 ? u(h, d) - off_u[d] : which == 1 ? g(h, d) - off_g[d] : own(h, d);
            },
            [&](int h, int d, const double* part) {
                result.u(h, d) = part[1];
                result.g(h, d) = part[2];
                result.mixed(h, d) = part[3];
            });
        return result;
    }

private:
    /// By matrix products, unless their rounding errors would be too large.
    bool third_in_doubles(const EdgeTable& u, const EdgeTable& g, const EdgeTable& own, MarginalSlopes& result) const {
        const int n = scores_.words;
        const std::ptrdiff_t stride = EdgeMatrices<Alone>::stride(n);
        const std::size_t size = edge_matrix_size<Alone>(n);
        const auto work = gradient_work.borrow();
        double* const memory = (*work).reserve(3 * size + Third<Alone>::work_size(n));
        double error = 0.0, factor = 0.0;
        dispatch_on_registers<GradientError<Alone>>(edges_, memory, &error);
        dispatch_on_registers<ThirdError<Alone>>(edges_, &factor);
        if (!(error * std::max(factor, 1.0) <= tolerable_error)) return false;
        const std::vector<double> off_u = likeliest_values(u), off_g = likeliest_values(g);
        const Rows rows[] = {{memory, stride}, {memory + size, stride}, {memory + 2 * size, stride}};
        for (int h = 0; h <= n; ++h)
            for (int d = 0; d < stride; ++d) {
                const bool edge = d < n && h != d + 1;
                const double value_u = edge ? u(h, d + 1) - off_u[d + 1] : 0.0,
                             value_g = edge ? g(h, d + 1) - off_g[d + 1] : 0.0;
                rows[0].data[h * stride + d] = value_u;
                rows[1].data[h * stride + d] = value_g;
                rows[2].data[h * stride + d] = edge ? value_u * value_g + own(h, d + 1) : 0.0;
            }
        dispatch_on_registers<Third<Alone>>(edges_, several_roots_, rows[0], rows[1], rows[2], memory + 3 * size);
        for (int h = 0; h <= n; ++h)
            for (int d = 1; d <= n; ++d) {
                if (h == d) continue;
                const std::ptrdiff_t at = h * stride + d - 1;
                result.u(h, d) = rows[0].data[at];
                result.g(h, d) = rows[1].data[at];
                result.mixed(h, d) = rows[2].data[at];
            }
        return true;
    }

    std::vector<double> likeliest_values(const EdgeTable& values) const {
        std::vector<double> result(static_cast<std::size_t>(scores_.words) + 1, 0.0);
        for (int d = 1; d <= scores_.words; ++d) {
            int best = 0;
            for (int h = 1; h <= scores_.words; ++h)
                if (marginals_(h, d) > marginals_(best, d)) best = h;
            result[d] = values(best, d);
        }
        return result;
    }

    template <int order, class Slope, class Write>
    double careful(StopSignal& stop, Slope slope, Write write) const {
        const auto solve = careful_solves<order>.borrow();
        return (*solve)(scores_.words, several_roots_, stop, [&](int h, int d) { return scores_(h, d); }, slope, write);
    }

    EdgeTable scores_;
    bool several_roots_;
    bool in_doubles_ = false;
    AlignedBuffer<double> memory_;
    EdgeMatrices<Alone> edges_;
    EdgeTable marginals_;
    double log_partition_ = 0.0;
};

class SpecialSolution {
public:
    /// Null if there is no tree.
    static std::unique_ptr<const SpecialSolution> of(CentredScores centred, Root root, StopSignal& stop) {
        Structure structure = find_structure(
            centred.words(), root, [&](int h, int d) { return centred.if_it_matters(h, d) > minus_infinity<double>; });
        if (!structure.feasible) return nullptr;
        return std::unique_ptr<const SpecialSolution>(
            new SpecialSolution(std::move(centred), std::move(structure), stop));
    }

    const CentredScores& scores() const { return scores_; }
    /// Of the centred scores.
    double log_partition() const {
        return (core_ ? core_->log_partition() : 0.0) + (rest_ ? rest_->log_partition() : 0.0);
    }
    const EdgeTable& marginals() const { return marginals_; }

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
    SpecialSolution(CentredScores scores, Structure structure, StopSignal& stop)
        : scores_(std::move(scores)), structure_(std::move(structure)), marginals_(scores_.words()) {
        EdgeTable table(scores_.words(), minus_infinity<double>);
        for (int d = 1; d <= scores_.words(); ++d)
            for (int h = 0; h <= scores_.words(); ++h) table(h, d) = scores_.if_it_matters(h, d);
        if (!structure_.core.empty()) {
            core_.emplace(cut(table, structure_.core), false, stop);
            place(structure_.core, core_->marginals(), marginals_);
        }
        if (!structure_.rest.empty()) {
            EdgeTable rest = cut(table, structure_.rest);
            if (core_) {
                shares_ = EdgeTable(scores_.words());
                for (std::size_t j = 0; j < structure_.rest.size(); ++j)
                    rest(0, static_cast<int>(j) + 1) = contract(table, structure_.rest[j]);
            }
            rest_.emplace(std::move(rest), true, stop);
            place(structure_.rest, rest_->marginals(), marginals_);
            if (core_)
                each_parallel(
                    [&](int u, int j, int k) { marginals_(u, j) = shares_(u, j) * rest_->marginals()(0, k); });
        }
    }

    static EdgeTable cut(const EdgeTable& table, const std::vector<int>& words) {
        const int n = static_cast<int>(words.size());
        EdgeTable part(n);
        for (int d = 1; d <= n; ++d) {
            part(0, d) = table(0, words[d - 1]);
            for (int h = 1; h <= n; ++h) part(h, d) = table(words[h - 1], words[d - 1]);
        }
        return part;
    }

    /// Writes a part back. The rest's root row stands for edges from U, not from ROOT.
    void place(const std::vector<int>& words, const EdgeTable& part, EdgeTable& table) const {
        const bool root_is_root = &words == &structure_.core || structure_.core.empty();
        for (int d = 1; d <= part.words; ++d) {
            if (root_is_root) table(0, words[d - 1]) = part(0, d);
            for (int h = 1; h <= part.words; ++h) table(words[h - 1], words[d - 1]) = part(h, d);
        }
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
