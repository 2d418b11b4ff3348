// Sums over trees: log Z, marginals, expectations and their derivatives.
#include <vector>

#include "kept_solve.hpp"
#include "spantree/walk/sentence_third.hpp"

namespace spantree {

using namespace library;

namespace {

template <class T>
void write_log_partition(const KeptSolve<T>& solve, DType dtype, void* to) {
    std::vector<double> log_z;
    for (const SentenceReport& report : solve.reports()) log_z.push_back(report.log_partition);
    write_numbers(log_z, dtype, to);
}

/// body(sentences, solve, stop) for scores of either type.
template <class Body>
void with_solve(const ScoresView& scores, const Options& options, Status status, Body body) {
    with_type(scores.dtype, [&]<class T>(T) {
        const Sentences<T> sentences(scores);
        StopSignal stop = stop_signal_of(options);
        KeptSolve<T> solve(sentences, options, stop);
        body(sentences, solve, stop);
        write_status(solve, status);
    });
}

/// Expectations of the values, or entropies, from one kept solve, and their gradients.
template <class T>
void write_expectations(const ScoresView& scores, const Sentences<T>& sentences, const KeptSolve<T>& solve,
                        int directions, const EdgesView* values, void* expectations, const EdgesOut& gradients) {
    std::vector<double> totals(sentences.size());
    for (int direction = 0; direction < directions; ++direction) {
        ValueSource source;
        source.minus_scores = !values;
        std::optional<Values> given;
        if (values) source.given = given.emplace(*values, sentences, direction).all();
        with_type(gradients.dtype, [&]<class Out>(Out) {
            solve.expectation(source, totals.data(), targets<Out>(gradients, scores, direction));
        });
        write_numbers(totals, scores.dtype, expectations, direction * scores.batch);
    }
}

void check_directions(int directions) {
    if (directions < 0) throw InvalidInput("a negative number of directions");
}

}  // namespace

void log_partition(const ScoresView& scores, const Options& options, void* log_z, Status status) {
    with_solve(scores, options, status, [&](const auto&, auto& solve, StopSignal&) {
        solve.log_partition();
        write_log_partition(solve, scores.dtype, log_z);
    });
}

void marginals(const ScoresView& scores, const Options& options, void* log_z, EdgesOut marginals, Status status) {
    with_solve(scores, options, status, [&](const auto&, auto& solve, StopSignal&) {
        with_type(marginals.dtype, [&]<class Out>(Out) { solve.solve(false, targets<Out>(marginals, scores)); });
        write_log_partition(solve, scores.dtype, log_z);
    });
}

void hessian(const ScoresView& scores, const Options& options, int directions, EdgesView g, EdgesOut out,
             Status status) {
    check_directions(directions);
    with_solve(scores, options, status, [&](const auto& sentences, auto& solve, StopSignal&) {
        solve.solve(true, std::vector<EdgeTarget<double>>());
        write_expectations(scores, sentences, solve, directions, &g, nullptr, out);
    });
}

void third(const ScoresView& scores, const Options& options, int directions, EdgesView u, EdgesView g, EdgesOut out,
           Status status) {
    check_directions(directions);
    with_type(scores.dtype, [&]<class T>(T) {
        const Sentences<T> sentences(scores);
        StopSignal stop = stop_signal_of(options);
        std::vector<Values> along_u, along_g;
        for (int direction = 0; direction < directions; ++direction) {
            along_u.emplace_back(u, sentences, direction);
            along_g.emplace_back(g, sentences, direction);
        }
        const int threads = useful_threads(sentences, threads_of(options));
        const auto note = [&](std::size_t i, bool bad, int unattachable) {
            if (status.per_sentence) status.per_sentence[i] = bad ? Status::bad_score : unattachable;
        };
        with_type(out.dtype, [&]<class Out>(Out) {
            std::vector<std::vector<EdgeTarget<Out>>> to;
            for (int direction = 0; direction < directions; ++direction)
                to.push_back(targets<Out>(out, scores, direction));
            const auto each_direction = [&](std::size_t i, auto write) {
                for (std::size_t direction = 0; direction < to.size(); ++direction)
                    write(values_of(along_u[direction].all()[i]), values_of(along_g[direction].all()[i]),
                          to[direction][i]);
            };
            if (options.projective)
                projective::solve_batch(
                    sentences.all(), options.root, projective::Purpose::marginals, false, threads, stop,
                    [&](const projective::SolvedSentence& solved, auto& scratch, std::size_t i) {
                        note(i, solved.bad(), solved.unattachable());
                        each_direction(i, [&](auto value_u, auto value_g, const EdgeTarget<Out>& target) {
                            if (solved.bad())
                                clear_edges(target, sentences[i].labels);
                            else
                                solved.third(sentences[i], scratch, value_u, value_g, target, stop);
                        });
                    });
            else
                parallel_for(
                    sentences.size(), 1, threads, stop, [] { return 0; },
                    [&](int, std::size_t i) {
                        SentenceThird<T> solved(sentences[i], options.root, stop);
                        note(i, solved.bad(), solved.unattachable());
                        each_direction(i, [&](auto value_u, auto value_g, const EdgeTarget<Out>& target) {
                            solved.write(value_u, value_g, target, stop);
                        });
                    });
        });
        throw_if_stopped(stop);
    });
}

void entropy(const ScoresView& scores, const Options& options, void* entropy, EdgesOut gradient, Status status) {
    with_solve(scores, options, status, [&](const auto& sentences, auto& solve, StopSignal&) {
        solve.solve(true, std::vector<EdgeTarget<double>>());
        write_expectations(scores, sentences, solve, 1, nullptr, entropy, gradient);
    });
}

void expectation(const ScoresView& scores, const Options& options, int directions, EdgesView values, void* expectations,
                 EdgesOut gradients, Status status) {
    check_directions(directions);
    with_solve(scores, options, status, [&](const auto& sentences, auto& solve, StopSignal&) {
        solve.solve(true, std::vector<EdgeTarget<double>>());
        write_expectations(scores, sentences, solve, directions, &values, expectations, gradients);
    });
}

}  // namespace spantree
