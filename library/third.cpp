// The third derivative of log Z, and Z with weights of either sign: sentence by sentence.
#include "questions.hpp"
#include "run.hpp"
#include "spantree/chart/solved_sentence.hpp"
#include "spantree/walk/sentence_third.hpp"
#include "spantree/walk/signed_product.hpp"

namespace spantree::library {

Statuses third(const Batch& batch, const Options& options, std::span<const EdgeValues> u, std::span<const EdgeValues> g,
               std::span<const EdgeTargets> to) {
    StopSignal stop = stop_signal_of(options);
    const int threads = threads_to_solve(batch, options);
    Statuses statuses(batch.size());
    // Calls write(u, g, target) of sentence i for each direction.
    const auto each_direction = [&](std::size_t i, auto write) {
        for (std::size_t direction = 0; direction < to.size(); ++direction)
            std::visit(
                [&](const auto& targets) { write(values_of(u[direction][i]), values_of(g[direction][i]), targets[i]); },
                to[direction]);
    };
    batch.visit([&]<class T>(const std::vector<Sentence<T>>& sentences) {
        if (options.projective)
            projective::solve_batch(sentences.size(), false, threads, stop,
                                    [&](projective::SolvedSentence& solved, auto& scratch, std::size_t i) {
                                        solved.solve(sentences[i], options.root, projective::Purpose::marginals, stop);
                                        statuses[i] = status_of(solved.found());
                                        each_direction(i, [&](auto value_u, auto value_g, const auto& target) {
                                            solved.third(sentences[i], scratch, value_u, value_g, target, stop);
                                        });
                                    });
        else
            for_each_sentence(
                sentences, threads, stop, [] { return 0; },
                [&](int, const Sentence<T>& sentence, std::size_t i) {
                    SentenceThird<T> solved(sentence, options.root, stop);
                    statuses[i] = status_of(solved.feasible());
                    each_direction(i, [&](auto value_u, auto value_g, const auto& target) {
                        solved.write(value_u, value_g, target, stop);
                    });
                });
    });
    throw_if_stopped(stop);
    return statuses;
}

void signed_product(const Batch& batch, const Options& options, const EdgeValues& values, double* sign,
                    double* log_magnitude, const EdgeTargets& gradient) {
    StopSignal stop = stop_signal_of(options);
    for_each_sentence(
        batch, threads_to_solve(batch, options), stop, [] { return 0; },
        [&]<class T>(int, const Sentence<T>& sentence, std::size_t i) {
            EdgeTable scores(sentence.words, minus_infinity<double>), factors(sentence.words);
            for (int h = 0; h <= sentence.words; ++h)
                for (int d = 1; d <= sentence.words; ++d)
                    if (h != d && sentence(h, d) > minus_infinity<T>) {
                        scores(h, d) = sentence(h, d);
                        factors(h, d) = values[i](h, d);
                    }
            const SignedProduct product(scores, factors, options.root, stop);
            sign[i] = product.sign();
            log_magnitude[i] = product.log_magnitude();
            std::visit(
                [&](const auto& targets) {
                    if (targets.empty()) return;
                    const EdgeTable slope =
                        product.sign() ? product.gradient(options.root, stop) : EdgeTable(sentence.words);
                    write_edges(sentence, targets[i], [&](int h, int d) { return slope(h, d); });
                },
                gradient);
        });
}

}  // namespace spantree::library
