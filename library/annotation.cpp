// All that a corpus job wants to know about sentences of any sizes: trees, how sure they are, and the k best.
//
// With P(h -> d) the marginals, labels summed out, a word's head h has the log-odds
//
//     log P(h -> d)  -  log sum of P(h' -> d) over all other heads h'
//
// Sentences are taken in the order of their lengths, a few at a time, and everything is asked about these before the next
// are looked at: scores divided by a temperature, what a solve keeps and the marginals are in the cache as long as they are
// needed, and memory does not grow with the batch. Threads take such pieces; a piece is answered by one of them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "own_edges.hpp"
#include "questions.hpp"
#include "run.hpp"
#include "spantree/batch/plan.hpp"

namespace spantree {

using namespace library;

namespace {

/// A piece has enough sentences to fill the lanes of a solve, then more until there are so many scores, half a megabyte of
/// doubles; at most as many as `Solved` has memory for that need not be asked for (chart/solved_sentence.hpp).
constexpr std::size_t enough_scores = std::size_t{1} << 16, most_sentences = 64;

void check(const FlatScoresView& scores, const Annotate& asked, const AnnotationsOut& out) {
    const auto need = [](bool holds, const char* what) {
        if (!holds) throw InvalidInput(what);
    };
    need(scores.batch >= 0 && scores.size >= 0, "scores: a negative number of them");
    need(scores.batch <= most_numbers, "scores: more sentences than any memory holds");
    need(scores.labels >= 0 && scores.labels <= most_nodes, "scores: between 0 and 2^20 labels");
    need(asked.temperature > 0.0 && std::isfinite(asked.temperature), "the temperature must be above 0 and finite");
    need(asked.k >= 0, "a negative number of trees");
    need(asked.k <= most_numbers / std::int64_t{most_sentences}, "more trees than any memory holds");
    if (scores.batch == 0) return;
    need(scores.nodes && (scores.data || scores.size == 0), "scores: no data");
    need(scores.starts || (scores.cuts && scores.heads && (!scores.labels || scores.edge_labels)),
         "scores: neither starts nor candidates");
    need(out.heads && (!scores.labels || out.labels), "no place for the trees");
    need(!asked.confidence || (out.head_probs && out.log_odds && out.log_prob && out.entropy),
         "no place for the confidence");
    need(!asked.k || (out.best_heads && (!scores.labels || out.best_labels) && out.best_log_probs),
         "no place for the best trees");
}

/// Puts the numbers of some sentences where they belong in the batch.
void scatter(const double* numbers, std::span<const std::size_t> which, double* to) {
    for (const std::size_t i : which) to[i] = *numbers++;
}

/// For each word, of the marginals [head, dep, label], which are changed. NaN at ROOT and where there is no head.
template <class Out>
void write_certainty(const EdgeTarget<double>& marginals, int words, int labels, const GivenTree& tree, Out* head_probs,
                     Out* log_odds) {
    const int cell = std::max(labels, 1);
    const auto has_head = [&](int dep) { return tree.head(dep) >= 0 && tree.head(dep) <= words; };
    std::vector<double> of_head(static_cast<std::size_t>(words) + 1), of_others(of_head.size());
    for (int dep = 1; dep <= words; ++dep) {
        if (!has_head(dep)) continue;
        double* const edge = marginals.edge(static_cast<int>(tree.head(dep)), dep);
        of_head[dep] = sum_of_labels(edge, cell);
        std::fill_n(edge, cell, 0.0);
    }
    for (int head = 0; head <= words; ++head) {
        const double* const row = marginals.edge(head, 0);
        if (cell == 1)
            for (int dep = 1; dep <= words; ++dep) of_others[dep] += row[dep];
        else
            for (int dep = 1; dep <= words; ++dep) of_others[dep] += sum_of_labels(row + dep * cell, cell);
    }
    head_probs[0] = log_odds[0] = std::numeric_limits<Out>::quiet_NaN();
    for (int dep = 1; dep <= words; ++dep) {
        head_probs[dep] = has_head(dep) ? static_cast<Out>(std::min(of_head[dep], 1.0)) : head_probs[0];
        log_odds[dep] =
            has_head(dep) ? static_cast<Out>(std::log(of_head[dep]) - std::log(of_others[dep])) : log_odds[0];
    }
}

/// Marginals as scores of the edges that are not forbidden: the best tree has the highest expected number of right heads.
template <class T>
void write_rewards(const std::vector<Sentence<T>>& sentences, OwnEdges& marginals, OwnEdges& rewards) {
    for (std::size_t i = 0; i < sentences.size(); ++i)
        for (int head = 0; head <= sentences[i].words; ++head)
            for (int dep = 0; dep <= sentences[i].words; ++dep)
                for (int label = 0; label < std::max(sentences[i].labels, 1); ++label)
                    rewards.edge(i, head, dep)[label] = sentences[i](head, dep, label) > minus_infinity<T>
                                                            ? marginals.edge(i, head, dep)[label]
                                                            : minus_infinity<double>;
}

/// Sentences of the batch, from the longest on, in pieces.
template <class T>
class Annotator {
public:
    Annotator(const FlatScoresView& scores, const Annotate& asked, const AnnotationsOut& out)
        : scores_(scores), asked_(asked), out_(out), order_(static_cast<std::size_t>(scores.batch)) {
        for (std::int64_t i = 0; i < scores.batch; ++i) {
            sentences_.push_back(sentence(i));
            places_.push_back({nodes_, 0, sentences_.back().words + 1});
            nodes_ += places_.back().width;
        }
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
            return sentences_[a].words != sentences_[b].words ? sentences_[a].words > sentences_[b].words : a < b;
        });
        for (std::size_t first = 0, last = 0; first < order_.size(); first = last) {
            const std::size_t least = sentences_[order_[first]].words > longest_in_lanes ? 1 : pack_size;
            for (std::size_t size = 0; last < order_.size() && last - first < most_sentences; ++last) {
                if (last - first >= least && size >= enough_scores) break;
                size += edges_of(sentences_[order_[last]]);
            }
            pieces_.push_back(std::span(order_).subspan(first, last - first));
        }
    }
    Annotator(const Annotator&) = delete;
    Annotator& operator=(const Annotator&) = delete;

    std::size_t pieces() const { return pieces_.size(); }

    void answer(std::size_t piece, const Options& options, Status status) const {
        std::vector<Sentence<T>> sentences;
        std::size_t size = 0;
        for (const std::size_t i : pieces_[piece]) {
            sentences.push_back(sentences_[i]);
            size += edges_of(sentences_[i]);
        }
        if (asked_.temperature == 1.0 && !scores_.cuts)
            return answer(pieces_[piece], std::move(sentences), options, status);
        const auto memory = own_numbers.borrow();
        std::vector<Sentence<double>> ours;
        double* to = (*memory).reserve(size);
        for (std::size_t i = 0; i < sentences.size(); ++i) {
            const Sentence<T>& from = sentences[i];
            ours.push_back({to, from.words, from.head_stride, from.dep_stride, from.labels, from.label_stride});
            if (scores_.cuts)
                place_candidates(pieces_[piece][i], from, to);
            else
                std::transform(from.scores, from.scores + edges_of(from), to,
                               [temperature = asked_.temperature](T score) { return score / temperature; });
            to += edges_of(from);
        }
        answer(pieces_[piece], std::move(ours), options, status);
    }

private:
    using Which = std::span<const std::size_t>;

    /// Of candidates, which have no place yet, only the shape.
    Sentence<T> sentence(std::int64_t i) const {
        const std::int64_t nodes = scores_.nodes[i], cell = std::max(scores_.labels, 1);
        if (nodes < 1 || nodes > most_nodes) throw outside(i);
        const std::ptrdiff_t row = nodes * cell;
        if (scores_.cuts)
            return {nullptr, static_cast<int>(nodes) - 1, row, cell, scores_.labels, scores_.labels ? 1 : 0};
        const std::int64_t start = scores_.starts[i];
        if (start < 0 || start > scores_.size || nodes * nodes > (scores_.size - start) / cell) throw outside(i);
        return {static_cast<const T*>(scores_.data) + start,
                static_cast<int>(nodes) - 1,
                scores_.dep_major ? cell : row,
                scores_.dep_major ? row : cell,
                scores_.labels,
                scores_.labels ? 1 : 0};
    }

    static InvalidInput outside(std::int64_t i) {
        return InvalidInput("sentence " + std::to_string(i) + " is not inside of the scores");
    }

    void place_candidates(std::size_t i, const Sentence<T>& sentence, double* to) const {
        std::fill_n(to, edges_of(sentence), minus_infinity<double>);
        const std::int64_t* const cuts = scores_.cuts + (places_[i].row - static_cast<std::ptrdiff_t>(i));
        for (int dep = 1; dep <= sentence.words; ++dep) {
            const std::int64_t begin = cuts[dep - 1], end = cuts[dep];
            if (begin < 0 || begin > end || end > scores_.size) throw outside(static_cast<std::int64_t>(i));
            for (std::int64_t at = begin; at < end; ++at) {
                const std::int64_t head = integer_at(scores_.heads, scores_.heads_type, at);
                const std::int64_t label =
                    sentence.labels ? integer_at(scores_.edge_labels, scores_.edge_labels_type, at) : 0;
                if (head < 0 || head > sentence.words || label < 0 || label >= std::max(sentence.labels, 1))
                    throw outside(static_cast<std::int64_t>(i));
                to[head * sentence.head_stride + dep * sentence.dep_stride + label] =
                    static_cast<const T*>(scores_.data)[at] / asked_.temperature;
            }
        }
    }

    template <class Score>
    void answer(Which which, std::vector<Sentence<Score>> sentences, const Options& options, Status status) const {
        std::vector<Place> places;
        for (const std::size_t i : which) places.push_back(places_[i]);
        const TreesOut trees = rows<HeadsOut>(out_.heads, out_.labels, places);
        Batch batch(sentences);
        const Statuses statuses = library::argmax(batch, options, trees, nullptr);
        std::vector<Score> forbidden;  // every edge of a sentence with a bad score, so that it has no tree
        for (std::size_t i = 0; i < which.size(); ++i) {
            if (status.per_sentence) status.per_sentence[which[i]] = statuses[i];
            if (statuses[i] == Status::bad_score)
                forbidden.resize(std::max(forbidden.size(), edges_of(sentences[i])), minus_infinity<Score>);
        }
        if (!forbidden.empty()) {
            for (std::size_t i = 0; i < which.size(); ++i)
                if (statuses[i] == Status::bad_score) sentences[i].scores = forbidden.data();
            batch = Batch(std::move(sentences));
        }
        if (asked_.mbr || asked_.confidence) {
            OwnEdges marginals(batch);
            const Solved solved(batch, options, Solved::For::questions, marginals.targets());
            if (asked_.mbr) {
                OwnEdges rewards(batch);
                batch.visit([&](const auto& all) { write_rewards(all, marginals, rewards); });
                library::argmax(Batch(rewards.values()), options, trees, nullptr);
            }
            if (asked_.confidence) write_confidence(which, batch, solved, marginals, places, options);
            if (asked_.k) write_best(which, batch, solved, places, options);
        } else if (asked_.k) {
            const auto purpose = options.projective ? Solved::For::draws : Solved::For::questions;
            write_best(which, batch, Solved(batch, options, purpose), places, options);
        }
    }

    void write_confidence(Which which, const Batch& batch, const Solved& solved, const OwnEdges& marginals,
                          const std::vector<Place>& places, const Options& options) const {
        const TreesIn trees = rows<HeadsView>(out_.heads, out_.labels, places);
        GivenTree tree;
        for (std::size_t i = 0; i < which.size(); ++i) {
            tree.read(trees, i, 0, batch.words(i), batch.labels() > 0);
            write_certainty(marginals.targets()[i], batch.words(i), batch.labels(), tree,
                            static_cast<T*>(out_.head_probs) + places[i].row,
                            static_cast<T*>(out_.log_odds) + places[i].row);
        }
        std::vector<double> numbers(which.size());
        solved.exact_log_probs(options, 1, trees, numbers.data(), nullptr);
        scatter(numbers.data(), which, out_.log_prob);
        solved.entropy(options, numbers.data(), {});
        scatter(numbers.data(), which, out_.entropy);
    }

    void write_best(Which which, const Batch& batch, const Solved& solved, const std::vector<Place>& places,
                    const Options& options) const {
        std::vector<double> numbers(static_cast<std::size_t>(asked_.k) * which.size());
        library::topk(batch, options, asked_.k, rows<HeadsOut>(out_.best_heads, out_.best_labels, places),
                      numbers.data());
        const TreesIn trees = rows<HeadsView>(out_.best_heads, out_.best_labels, places);
        solved.exact_log_probs(options, asked_.k, trees, numbers.data(), nullptr);
        for (std::int64_t t = 0; t < asked_.k; ++t) {
            double* const row = numbers.data() + static_cast<std::size_t>(t) * which.size();
            for (std::size_t i = 0; t > 0 && i < which.size(); ++i)
                if (batch.words(i) == 0) row[i] = minus_infinity<double>;  // without words there is one tree
            scatter(row, which, out_.best_log_probs + t * scores_.batch);
        }
    }

    template <class View>
    TreeRows<View> rows(Heads* heads, Heads* labels, const std::vector<Place>& places) const {
        return {{heads, IntType::i64, 0, 1, nodes_}, {labels, IntType::i64, 0, 1, nodes_}, 0, places.data()};
    }

    FlatScoresView scores_;
    Annotate asked_;
    AnnotationsOut out_;
    std::vector<Sentence<T>> sentences_;
    std::vector<Place> places_;
    std::ptrdiff_t nodes_ = 0;        // of all sentences
    std::vector<std::size_t> order_;  // of the sentences
    std::vector<Which> pieces_;       // of the order
};

}  // namespace

void annotate(const FlatScoresView& scores, const Options& options, const Annotate& asked, const AnnotationsOut& out,
              Status status) {
    check(scores, asked, out);
    with_type(scores.dtype, [&]<class T>(T) {
        const Annotator<T> annotator(scores, asked, out);
        StopSignal stop = stop_signal_of(options);
        Options on_one_thread = options;
        on_one_thread.threads = 1;
        on_one_thread.stop = [&] { return stop.asked(); };
        parallel_for(
            annotator.pieces(), 1, threads_of(options), stop, [] { return nullptr; },
            [&](auto&, std::size_t piece) { annotator.answer(piece, on_one_thread, status); });
        throw_if_stopped(stop);
    });
}

}  // namespace spantree
