// One sentence solved alone, whatever its numbers: in doubles if they suffice, in numbers with an exponent of their own
// (careful_solve.hpp) if not.
//
// Its edges are such that every word can reach ROOT, and, with one root allowed, each other: structure.hpp cuts other
// sentences in two. O(n^3).
#pragma once

#include <algorithm>
#include <vector>

#include "../batch/scratch_pool.hpp"
#include "../simd/dispatch.hpp"
#include "careful_solve.hpp"
#include "edge_table.hpp"
#include "gradient.hpp"
#include "group.hpp"
#include "third.hpp"

namespace spantree {

/// How marginals move: along u, along g, and how the one moves along the other.
struct MarginalSlopes {
    EdgeTable u, g, mixed;
    explicit MarginalSlopes(int words = 0) : u(words), g(words), mixed(words) {}
};

/// Everything a solve of one sentence alone needs in memory.
class AloneSolver {
public:
    /// Returns whether doubles were enough. `edges`, in `memory`, afterwards holds V and E.
    Outcome solve(const EdgeTable& scores, bool several_roots, AlignedBuffer<double>& memory,
                  EdgeMatrices<Alone>& edges, StopSignal* stop = nullptr) {
        const int n = scores.words;
        solve_.reserve(n, stop);
        edges = EdgeMatrices<Alone>(n, memory.reserve(2 * EdgeMatrices<Alone>::size(n)));
        EdgeSource<Alone> source{{stage_scores(scores.sentence(), n, staged_.reserve((n + 1) * round_up(n)))}, n};
        PivotReport<Alone> report(several_roots);
        report.words[0] = n;
        double root_shift = 0.0;
        Shifts<Alone> shifts{shifts_.reserve(round_up(n)), &root_shift};
        solve_group(solve_, walk_.reserve(n), source, Wanted::matrices, shifts, edges, report);
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
    /// `try_doubles`: not if it is known that they are not enough.
    PartSolution(EdgeTable scores, bool several_roots, bool try_doubles, StopSignal& stop)
        : scores_(std::move(scores)), several_roots_(several_roots), marginals_(scores_.words) {
        const Outcome outcome =
            try_doubles ? (*alone_solvers.borrow()).solve(scores_, several_roots, memory_, edges_, &stop) : Outcome{};
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
    /// V and E; null if doubles were not enough.
    const EdgeMatrices<Alone>* edges() const { return in_doubles_ ? &edges_ : nullptr; }

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
                dispatch_on_registers<Gradient<Alone>>(edges_, several_roots_, Rows{g, stride}, rest, &stop);
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
        if (in_doubles_ && third_in_doubles(u, g, own, result, stop)) return result;
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
    bool third_in_doubles(const EdgeTable& u, const EdgeTable& g, const EdgeTable& own, MarginalSlopes& result,
                          StopSignal& stop) const {
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
        dispatch_on_registers<Third<Alone>>(edges_, several_roots_, rows[0], rows[1], rows[2], memory + 3 * size,
                                            &stop);
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

}  // namespace spantree
