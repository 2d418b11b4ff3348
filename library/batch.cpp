#include "batch.hpp"

#include <atomic>
#include <string>

#include "questions.hpp"
#include "run.hpp"
#include "spantree/batch/bad_scores.hpp"

namespace spantree::library {

namespace {

void check(const ScoresView& scores) {
    const auto fail = [](const std::string& what) { throw InvalidInput(what); };
    if (scores.batch < 0) fail("scores: a negative number of sentences");
    if (scores.nodes < 1 || scores.nodes > most_nodes) fail("scores: between 1 and 2^20 nodes, ROOT included");
    if (scores.labels < 0 || scores.labels > most_nodes) fail("scores: between 0 and 2^20 labels");
    const std::int64_t cells = std::int64_t{scores.nodes} * scores.nodes * std::max(scores.labels, 1);
    if (scores.batch > most_numbers / cells) fail("scores: more than any memory holds");
    if (!scores.data && scores.batch > 0) fail("scores: no data");
}

int words_of(const ScoresView& scores, std::int64_t i) {
    if (!scores.lengths) return scores.nodes - 1;
    const std::int64_t length = integer_at(scores.lengths, scores.lengths_type, i);
    if (length < 0 || length >= scores.nodes)
        throw InvalidInput("sentence " + std::to_string(i) + " cannot have " + std::to_string(length) +
                           " words: there is room for " + std::to_string(scores.nodes - 1));
    return static_cast<int>(length);
}

/// Copies all scores, labels of an edge, and edges with one head, next to each other.
template <class T>
void bring_together(std::vector<Sentence<T>>& sentences, std::vector<T>& copy) {
    std::size_t size = 0;
    for (const Sentence<T>& sentence : sentences) size += edges_of(sentence);
    copy.resize(size);
    T* to = copy.data();
    for (Sentence<T>& sentence : sentences) {
        const Sentence<T> from = sentence;
        const std::ptrdiff_t cell = std::max(from.labels, 1), nodes = from.words + 1;
        sentence = {to, from.words, nodes * cell, cell, from.labels, from.labels ? 1 : 0};
        for (int h = 0; h < nodes; ++h)
            for (int d = 0; d < nodes; ++d)
                for (int y = 0; y < cell; ++y) *to++ = from(h, d, y);
    }
}

}  // namespace

template <class T>
Batch::Sentences<T> Batch::read(const ScoresView& scores, Lie lie) {
    Sentences<T> result;
    result.all.reserve(static_cast<std::size_t>(scores.batch));
    const auto* const data = static_cast<const T*>(scores.data);
    for (std::int64_t i = 0; i < scores.batch; ++i)
        result.all.push_back({data + i * scores.batch_stride, words_of(scores, i), scores.head_stride,
                              scores.dep_stride, scores.labels, scores.labels ? scores.label_stride : 0});
    const bool apart = scores.labels == 0 && scores.head_stride != 1 && scores.dep_stride != 1;
    if ((scores.labels > 1 && scores.label_stride != 1) || (lie == Lie::rows_together && apart))
        bring_together(result.all, result.copy);
    for (Sentence<T>& sentence : result.all)
        if (sentence.labels == 1) sentence.label_stride = 1;
    return result;
}

Batch::Batch(const ScoresView& scores, Lie lie) {
    check(scores);
    with_type(scores.dtype, [&]<class T>(T) { sentences_ = read<T>(scores, lie); });
}

FlatBatch::FlatBatch(const ScoresView& scores, const std::int64_t* lengths, bool dep_major)
    : batch([&] {
          ScoresView with_lengths = scores;
          with_lengths.lengths = lengths;
          with_lengths.lengths_type = IntType::i64;
          return with_lengths;
      }()),
      dep_major(dep_major) {
    places.reserve(static_cast<std::size_t>(scores.batch));
    for (std::int64_t i = 0; i < scores.batch; ++i)
        add(scores.nodes, batch.words(static_cast<std::size_t>(i)), scores.labels);
}

EdgeTargets FlatBatch::edges(void* data, DType dtype) const {
    const std::ptrdiff_t cell = std::max(batch.labels(), 1);
    return with_type(dtype, [&]<class Out>(Out) -> EdgeTargets {
        std::vector<EdgeTarget<Out>> result;
        result.reserve(places.size());
        for (const Place& place : places) {
            const std::ptrdiff_t row = cell * place.width;
            result.push_back(
                {static_cast<Out*>(data) + place.edges, dep_major ? cell : row, dep_major ? row : cell, place.width});
        }
        return result;
    });
}

EdgeValues FlatBatch::values(const double* data) const {
    EdgeValues result;
    result.reserve(places.size());
    const int labels = batch.labels();
    const std::ptrdiff_t cell = std::max(labels, 1);
    batch.visit([&](const auto& sentences) {
        for (std::size_t i = 0; i < sentences.size(); ++i) {
            const std::ptrdiff_t row = cell * places[i].width;
            result.push_back({data + places[i].edges, sentences[i].words, dep_major ? cell : row,
                              dep_major ? row : cell, labels, 1});
        }
    });
    return result;
}

TreesOut FlatBatch::trees(Heads* heads, Heads* labels) const {
    return {{heads, IntType::i64, 0, 1, row_size}, {labels, IntType::i64, 0, 1, row_size}, 0, places.data()};
}

TreesIn FlatBatch::trees(const Heads* heads, const Heads* labels) const {
    return {{heads, IntType::i64, 0, 1, row_size}, {labels, IntType::i64, 0, 1, row_size}, 0, places.data()};
}

std::optional<BadScore> first_bad(const Batch& batch, const Options& options) {
    StopSignal stop = stop_signal_of(options);
    return batch.visit([&](const auto& sentences) -> std::optional<BadScore> {
        const std::size_t count = sentences.size(), piece = grain(batch);
        std::atomic<std::size_t> bad = count;
        parallel_for((count + piece - 1) / piece, 1, threads_to_look_at(batch, options), stop, [] { return nullptr; },
                     [&](auto&, std::size_t at) {
                         const std::size_t begin = at * piece, end = std::min(begin + piece, count);
                         const std::size_t found = first_bad_sentence(sentences, begin, end);
                         if (found == end) return;
                         for (std::size_t first = bad; found < first && !bad.compare_exchange_weak(first, found);)
                             continue;
                     });
        throw_if_stopped(stop);
        if (bad == count) return std::nullopt;
        const auto edge = first_bad_score(sentences[bad]);
        if (!edge) return std::nullopt;  // the scores have changed meanwhile
        return BadScore{bad, edge->head, edge->dep, edge->label};
    });
}

}  // namespace spantree::library
