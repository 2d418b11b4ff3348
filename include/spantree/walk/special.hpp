// One sentence that the fast kernels handed back: its trees come in two parts, or its numbers leave the range of
// doubles, or both.
//
// The sentence is cut as structure.hpp says, each part solved alone, in doubles if they suffice and with wide exponents
// (careful_solve.hpp) if not. Where U plays ROOT's part for the rest, the edges u -> j are parallel edges from that
// root: the root edge has their total weight, and each of them its share.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "../number/extended.hpp"
#include "../simd/dispatch.hpp"
#include "careful_solve.hpp"
#include "gradient.hpp"
#include "group.hpp"
#include "structure.hpp"

namespace spantree {

/// A dense matrix of edges of one sentence, [head, dep].
struct EdgeTable {
    int words = 0;
    std::vector<double> data;
    explicit EdgeTable(int n = 0, double fill = 0.0)
        : words(n), data(static_cast<std::size_t>(n + 1) * (n + 1), fill) {}
    double& operator()(int h, int d) { return data[static_cast<std::size_t>(h) * (words + 1) + d]; }
    double operator()(int h, int d) const { return data[static_cast<std::size_t>(h) * (words + 1) + d]; }
    Sentence<double> sentence() const { return {data.data(), words, words + 1, 1}; }
};

/// The scores of a sentence; labels summed out.
template <class T>
EdgeTable edge_table(const Sentence<T>& sentence) {
    EdgeTable scores(sentence.words, minus_infinity<double>);
    for (int h = 0; h <= sentence.words; ++h)
        for (int d = 1; d <= sentence.words; ++d)
            if (h != d)
                scores(h, d) = sentence.labels ? LabelTotal(sentence, h, d).log() : static_cast<double>(sentence(h, d));
    return scores;
}

inline Structure structure_of(const EdgeTable& scores, Root root) {
    return find_structure(scores.words, root, [&](int h, int d) { return scores(h, d) > minus_infinity<double>; });
}

/// Forbids edges that only matter if there is no tree without them, such as those with a soft mask of -1e9: beside the
/// others' scores, theirs would leave no digits.
///
/// Let B be the largest magnitude among the edges that stay. A tree of n of them scores at least -n B, one with an edge
/// scored M at most M + n B, and there are at most (n + 1)^n trees. Where M < -(2 n B + n log(n + 1) + 800), all trees
/// with such edges together weigh less than exp(-800) of one without.
inline void drop_hopeless_edges(EdgeTable& scores, Root root) {
    const int n = scores.words;
    std::vector<double> by_magnitude;
    for (const double x : scores.data)
        if (x > minus_infinity<double>) by_magnitude.push_back(x);
    std::sort(by_magnitude.begin(), by_magnitude.end(), [](double a, double b) { return std::fabs(a) < std::fabs(b); });
    std::size_t last_positive = by_magnitude.size();
    while (last_positive > 0 && by_magnitude[last_positive - 1] <= 0.0) --last_positive;
    for (std::size_t kept = std::max<std::size_t>(last_positive, 1); kept < by_magnitude.size(); ++kept) {
        const double largest = std::fabs(by_magnitude[kept - 1]);
        if (by_magnitude[kept] > -(2.0 * n * largest + n * std::log(n + 1.0) + 800.0)) continue;
        EdgeTable rest = scores;
        for (double& x : rest.data)
            if (std::fabs(x) > largest) x = minus_infinity<double>;
        if (!structure_of(rest, root).feasible) continue;
        scores = std::move(rest);
        return;
    }
}

/// Everything a solve of one sentence alone needs in memory.
class AloneSolver {
public:
    AlignedBuffer<double> work, values;

    /// Returns whether doubles were enough. `edges` afterwards holds V and E.
    Outcome solve(const EdgeTable& scores, bool several_roots, EdgeMatrices<Alone>& edges) {
        const int n = scores.words;
        solve_.reserve(n);
        edges = EdgeMatrices<Alone>(n, edges_memory_.reserve(2 * EdgeMatrices<Alone>::size(n)));
        EdgeSource<Alone> source{{stage_scores(scores.sentence(), n, staged_.reserve((n + 1) * round_up(n)))}, n};
        PivotReport<Alone> report{several_roots, {static_cast<double>(n)}};
        double root_shift = 0.0;
        Shifts<Alone> shifts{shifts_.reserve(round_up(n)), &root_shift};
        solve_group(solve_, walk_.reserve(n), source, true, shifts, edges, report);
        return outcome(shifts, report, 0);
    }

private:
    Solve<Alone> solve_;
    WalkBuffer<Alone> walk_;
    AlignedBuffer<double> staged_, shifts_, edges_memory_;
};

/// A distribution over trees none of whose parts is structurally impossible.
class PartSolution {
public:
    PartSolution(EdgeTable scores, bool several_roots)
        : scores_(std::move(scores)), several_roots_(several_roots), marginals_(scores_.words) {
        EdgeMatrices<Alone> edges;
        const Outcome outcome = solver_.solve(scores_, several_roots, edges);
        if (!outcome.in_range) {
            solve_extended();
            return;
        }
        edges_ = edges;
        log_partition_ = outcome.log_partition;
        for (int h = 0; h <= scores_.words; ++h)
            for (int d = 1; d <= scores_.words; ++d)
                marginals_(h, d) = edges.weights.data[h * edges.weights.stride + d - 1] *
                                   edges.escape.data[h * edges.escape.stride + d - 1];
    }

    const EdgeTable& scores() const { return scores_; }
    const EdgeTable& marginals() const { return marginals_; }
    double log_partition() const { return log_partition_; }

    /// Gradient of E[sum of values].
    EdgeTable gradient(const EdgeTable& values) {
        if (edges_) {
            const int n = scores_.words;
            const std::ptrdiff_t stride = EdgeMatrices<Alone>::stride(n);
            double* g = solver_.values.reserve(EdgeMatrices<Alone>::size(n));
            for (int h = 0; h <= n; ++h)
                for (int d = 0; d < stride; ++d) g[h * stride + d] = d < n ? values(h, d + 1) : 0.0;
            double error = 0.0;
            dispatch_on_registers<Gradient<Alone>>(*edges_, several_roots_, Rows{g, stride},
                                                   solver_.work.reserve(Gradient<Alone>::work_size(n)), &error);
            if (error <= tolerable_error) {
                EdgeTable result(n);
                for (int h = 0; h <= n; ++h)
                    for (int d = 1; d <= n; ++d) result(h, d) = g[h * stride + d - 1];
                return result;
            }
        }
        return careful_gradient(values);
    }

private:
    void solve_extended() {
        const int n = scores_.words;
        const auto weight = [&](int h, int d) {
            return Extended::from_log(h == d ? minus_infinity<double> : scores_(h, d));
        };
        const auto solution = careful<Extended>(weight);
        log_partition_ = solution.partition().log();
        for (int d = 1; d <= n; ++d) {
            std::vector<Extended> terms(n + 1);
            Extended total;
            for (int h = 0; h <= n; ++h)
                if (h != d) total += terms[h] = h == 0 ? weight(0, d) : weight(h, d) * solution.escape(h - 1, d - 1);
            for (int h = 0; h <= n; ++h) marginals_(h, d) = h == d ? 0.0 : (terms[h] / total).value();
        }
    }

    template <class Number, class Weight>
    CarefulSolve<Number> careful(Weight weight) const {
        const int n = scores_.words;
        std::vector<Number> a, root;
        for (int d = 1; d <= n; ++d) {
            root.push_back(weight(0, d));
            for (int h = 1; h <= n; ++h) a.push_back(h == d ? Number{} : weight(h, d));
        }
        return CarefulSolve<Number>(std::move(a), std::move(root), several_roots_);
    }

    /// The derivative of every marginal in the direction of `values`: by symmetry of the Hessian of log Z, the
    /// gradient.
    EdgeTable careful_gradient(const EdgeTable& values) const {
        using Number = Sloped<Extended>;
        const int n = scores_.words;
        const auto weight = [&](int h, int d) {
            if (h == d || scores_(h, d) == minus_infinity<double>) return Number{};
            return Number{Extended::from_log(scores_(h, d)), values(h, d)};
        };
        const auto solution = careful<Number>(weight);
        EdgeTable result(n);
        for (int d = 1; d <= n; ++d) {
            std::vector<Number> terms(n + 1);
            Number total;
            for (int h = 0; h <= n; ++h)
                if (h != d) total += terms[h] = h == 0 ? weight(0, d) : weight(h, d) * solution.escape(h - 1, d - 1);
            for (int h = 0; h <= n; ++h)
                if (terms[h]) result(h, d) = (terms[h].value / total.value).value() * (terms[h].slope - total.slope);
        }
        return result;
    }

    EdgeTable scores_;
    bool several_roots_;
    AloneSolver solver_;
    std::optional<EdgeMatrices<Alone>> edges_;
    EdgeTable marginals_;
    double log_partition_ = 0.0;
};

class SpecialSolution {
public:
    /// Null if there is no tree.
    static std::unique_ptr<SpecialSolution> of(EdgeTable scores, Root root) {
        drop_hopeless_edges(scores, root);
        const Structure structure = structure_of(scores, root);
        return structure.feasible ? std::make_unique<SpecialSolution>(scores, structure) : nullptr;
    }

    /// `scores` has a tree, and `structure` is its structure.
    SpecialSolution(const EdgeTable& scores, const Structure& structure)
        : structure_(structure), marginals_(scores.words) {
        if (!structure_.core.empty()) {
            core_.emplace(cut(scores, structure_.core), false);
            place(structure_.core, core_->marginals(), marginals_);
        }
        if (!structure_.rest.empty()) {
            EdgeTable rest = cut(scores, structure_.rest);
            if (core_) {
                shares_ = EdgeTable(scores.words);
                for (std::size_t j = 0; j < structure_.rest.size(); ++j)
                    rest(0, static_cast<int>(j) + 1) = contract(scores, structure_.rest[j]);
            }
            rest_.emplace(std::move(rest), true);
            place(structure_.rest, rest_->marginals(), marginals_);
            if (core_)
                each_parallel(
                    [&](int u, int j, int k) { marginals_(u, j) = shares_(u, j) * rest_->marginals()(0, k); });
        }
    }

    double log_partition() const {
        return (core_ ? core_->log_partition() : 0.0) + (rest_ ? rest_->log_partition() : 0.0);
    }
    const EdgeTable& marginals() const { return marginals_; }

    EdgeTable gradient(const EdgeTable& values) {
        EdgeTable result(marginals_.words);
        if (core_) place(structure_.core, core_->gradient(cut(values, structure_.core)), result);
        if (!rest_) return result;
        EdgeTable inner = cut(values, structure_.rest);
        if (core_) {
            for (std::size_t k = 1; k <= structure_.rest.size(); ++k) inner(0, static_cast<int>(k)) = 0.0;
            each_parallel([&](int u, int j, int k) { inner(0, k) += shares_(u, j) * values(u, j); });
        }
        const EdgeTable gradient = rest_->gradient(inner);
        place(structure_.rest, gradient, result);
        if (core_)
            each_parallel([&](int u, int j, int k) {
                result(u, j) =
                    shares_(u, j) * ((values(u, j) - inner(0, k)) * rest_->marginals()(0, k) + gradient(0, k));
            });
        return result;
    }

private:
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

    Structure structure_;
    std::optional<PartSolution> core_, rest_;
    EdgeTable shares_, marginals_;
};

}  // namespace spantree
