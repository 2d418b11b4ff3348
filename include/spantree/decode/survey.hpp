// One look at every score, in the order they lie in memory: is any of them bad, how large are they, and which head
// suits each word best?
//
// The best head is asked for among *words*; how ROOT compares is a matter for whoever wants the best tree. O(n^2).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "../batch/bad_scores.hpp"
#include "../batch/sentence.hpp"
#include "../simd/dispatch.hpp"
#include "../simd/memory.hpp"
#include "../simd/vector.hpp"

namespace spantree {

template <class T>
struct Survey {
    // By word, [0] unused: the highest score from another word, and that word; the first among equals; 0: all are -inf.
    const T* best = nullptr;
    const IndexLike<T>* head = nullptr;
    T largest = 0;     // magnitude of a finite score
    bool bad = false;  // some score is NaN or +inf

    bool root_wins(const Sentence<T>& sentence, int dep) const { return sentence(0, dep) > best[dep]; }
};

namespace details {

/// What several words, or several heads of one word, have seen so far, one per lane.
template <class T, int Lanes>
struct Seen {
    using Index = IndexLike<T>;
    using Scores = Vector<T, Lanes>;
    using Indices = Vector<Index, Lanes>;

    Scores best = Scores{} + minus_infinity<T>;
    Indices head{};
    Indices largest{};  // magnitude of a score other than -inf, as bits: they order like magnitudes, then infinity, NaN

    [[gnu::always_inline]] void check(const Scores& x) {
        const Scores allowed = x == minus_infinity<T> ? Scores{} : x;
        const Indices magnitude = reinterpret_cast<Indices>(allowed) & std::numeric_limits<Index>::max();
        largest = magnitude > largest ? magnitude : largest;
    }
    [[gnu::always_inline]] void look(Scores x, const Indices& heads, const Indices& deps) {
        x = heads == deps ? Scores{} + minus_infinity<T> : x;
        check(x);
        head = x > best ? heads : head;
        best = x > best ? x : best;
    }
};

/// Adds up what the lanes have seen.
template <class T, int Lanes>
[[gnu::always_inline]] inline void report(const Seen<T, Lanes>& seen, T& largest, bool& bad) {
    for (int lane = 0; lane < Lanes; ++lane) {
        const T magnitude = std::bit_cast<T>(static_cast<IndexLike<T>>(seen.largest[lane]));
        bad |= is_bad(magnitude);
        largest = std::max<T>(largest, magnitude);
    }
}

/// The heads' rows are contiguous: a block of words advances together, one head at a time.
struct SurveyByHeads {
    template <class Registers>
    struct Kernel {
        template <class T, class Index>
        static void run(const T* scores, std::ptrdiff_t head_stride, int n, T* best, Index* head, T& largest,
                        bool& bad) {
            for_each_block<Registers::template lanes<T>>(n, [&]<int Lanes>(int before) __attribute__((always_inline)) {
                const int dep = before + 1;
                const auto deps = iota<Index, Lanes>() + static_cast<Index>(dep);
                Seen<T, Lanes> seen;
                seen.check(load<Lanes>(scores + dep));
                auto here = Vector<Index, Lanes>{};
                for (int h = 1; h <= n; ++h) {
                    here += 1;
                    seen.look(load<Lanes>(scores + h * head_stride + dep), here, deps);
                }
                store(best + dep, seen.best);
                store(head + dep, seen.head);
                report(seen, largest, bad);
            });
        }
    };
};

/// The same for long rows, tile by tile: memory is read in order, and every tile turned on the way.
struct SurveyAndTurn {
    template <class Registers>
    struct Kernel {
        template <class T, class Index>
        static void run(const T* scores, std::ptrdiff_t head_stride, int n, T* best, Index* head, T& largest, bool& bad,
                        T* turned, std::ptrdiff_t turned_stride) {
            constexpr int side = Registers::template lanes<T>;
            constexpr int ahead = 4 * side;  // prefetched: what is read in some tiles' time
            // Of a copy that is read again: half of what most machines' cores share.
            constexpr std::size_t cached_bytes = std::size_t{16} << 20;
            const bool past_caches = static_cast<std::size_t>((n + 1) * turned_stride) * sizeof(T) > cached_bytes;
            Seen<T, side> seen;
            std::fill(best, best + n + 1, minus_infinity<T>);
            std::fill(head, head + n + 1, Index{0});
            for (int first_head = 0; first_head <= n; first_head += side)
                for (int first_dep = 1; first_dep <= n; first_dep += side) {
                    const int dep = std::min(first_dep, n + 1 - side);  // the last tile may overlap the one before
                    const auto deps = iota<Index, side>() + static_cast<Index>(dep);
                    Vector<T, side> tile[side];
                    for (int r = 0; r < side; ++r)
                        tile[r] = load<side>(scores + std::min(first_head + r, n) * head_stride + dep);
                    for (int r = 0; past_caches && r < side; ++r)
                        __builtin_prefetch(scores + std::min(first_head + r, n) * head_stride + dep + ahead);
                    seen.best = load<side>(best + dep);
                    seen.head = load<side>(head + dep);
                    if (first_head == 0) seen.check(tile[0]);
                    for (int r = first_head == 0; r < side && first_head + r <= n; ++r)
                        seen.look(tile[r], Vector<Index, side>{} + static_cast<Index>(first_head + r), deps);
                    store(best + dep, seen.best);
                    store(head + dep, seen.head);
                    transpose(tile);
                    for (int c = 0; c < side; ++c) {
                        T* const to = turned + (dep + c) * turned_stride + first_head;
                        past_caches ? store_past_caches(to, tile[c]) : store(to, tile[c]);
                    }
                }
            finish_storing();
            report(seen, largest, bad);
        }
    };
};

/// The dependents' columns are contiguous: each word scans its heads, several at a time.
struct SurveyByWords {
    template <class Registers>
    struct Kernel {
        template <class T, class Index>
        static void run(const T* scores, std::ptrdiff_t dep_stride, int n, T* best, Index* head, T& largest,
                        bool& bad) {
            with_lanes<Registers::template lanes<T>>(n, [&]<int Lanes>() __attribute__((always_inline)) {
                columns<Lanes>(scores, dep_stride, n, best, head, largest, bad);
            });
        }

        template <int Lanes, class T, class Index>
        [[gnu::always_inline]] static void columns(const T* scores, std::ptrdiff_t dep_stride, int n, T* best,
                                                   Index* head, T& largest, bool& bad) {
            for (int dep = 1; dep <= n; ++dep) {
                const T* column = scores + dep * dep_stride;
                const auto self = Vector<Index, Lanes>{} + static_cast<Index>(dep);
                Seen<T, Lanes> seen;
                seen.check(Vector<T, Lanes>{} + column[0]);
                for (int first = 1; first <= n; first += Lanes) {
                    const int h = std::min(first, n + 1 - Lanes);  // the last block may overlap the one before
                    fetch_ahead(column + h);
                    seen.look(load<Lanes>(column + h), iota<Index, Lanes>() + static_cast<Index>(h), self);
                }
                report(seen, largest, bad);
                T winner = seen.best[0];
                Index at = seen.head[0];
                for (int lane = 1; lane < Lanes; ++lane) {
                    const T x = seen.best[lane];
                    const Index x_at = seen.head[lane];
                    const bool better = (x > winner) | ((x == winner) & (x_at < at));
                    winner = better ? x : winner;
                    at = better ? x_at : at;
                }
                best[dep] = winner;
                head[dep] = winner == minus_infinity<T> ? 0 : at;
            }
        }
    };
};

}  // namespace details

/// Whole vectors, so that tiles end where rows end.
template <class T>
constexpr std::ptrdiff_t turned_stride(int words) {
    return (words / lanes<T> + 1) * lanes<T>;
}

/// Surveys a sentence of unlabelled scores; `best` and `head` have room for words + 1 entries.
template <class T>
Survey<T> survey(const Sentence<T>& sentence, T* best, IndexLike<T>* head) {
    Survey<T> result{best, head};
    const int n = sentence.words;
    if (n == 0) return result;
    if (sentence.dep_stride == 1)
        dispatch_on_registers<details::SurveyByHeads>(sentence.scores, sentence.head_stride, n, best, head,
                                                      result.largest, result.bad);
    else
        dispatch_on_registers<details::SurveyByWords>(sentence.scores, sentence.dep_stride, n, best, head,
                                                      result.largest, result.bad);
    return result;
}

/// Surveys a sentence of at least lanes<T> words whose heads' rows are contiguous, and copies it to `turned`, where the
/// heads of a word lie next to each other: rows of turned_stride(words) scores.
template <class T>
Survey<T> survey_and_turn(const Sentence<T>& sentence, T* best, IndexLike<T>* head, T* turned) {
    Survey<T> result{best, head};
    dispatch_on_registers<details::SurveyAndTurn>(sentence.scores, sentence.head_stride, sentence.words, best, head,
                                                  result.largest, result.bad, turned, turned_stride<T>(sentence.words));
    return result;
}

/// Up to which magnitude scores matter, most likely: scores below -reach(...) may be taken for -reach(...) until a tree
/// turns out to have one of them. Nobody's tree contains what is e^-2048 times as likely as its neighbour, or a
/// thousand times worse than the worst that a word has to put up with.
template <class T>
double reach(const Sentence<T>& sentence, const Survey<T>& survey) {
    constexpr double most_nats = 2048.0, many_times = 1024.0;
    const double largest = survey.largest;
    if (largest <= most_nats) return largest;
    double ordinary = 0.0;  // the largest magnitude of a word's best score
    for (int dep = 1; dep <= sentence.words; ++dep) {
        const double best = std::max(sentence(0, dep), survey.best[dep]);
        if (std::isfinite(best)) ordinary = std::max(ordinary, std::fabs(best));
    }
    return std::min(largest, std::max(most_nats, many_times * ordinary));
}

/// The same if edges have other labels beside the best, whose scores the survey has not seen: on an edge that is good
/// with its best label, they are seldom much worse than the worst edges are with theirs. (If they are, the search is done
/// again in wide numbers: it costs time, not a tree.)
template <class T>
double reach(const Sentence<T>& sentence, const Survey<T>& survey, bool other_labels) {
    constexpr double much_worse = 16.0;
    const double far = reach(sentence, survey);
    return other_labels ? std::min(much_worse * far, std::numeric_limits<double>::max()) : far;
}

}  // namespace spantree
