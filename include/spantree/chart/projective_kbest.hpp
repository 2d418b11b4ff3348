// The k best projective trees, best first, one at a time: lazy enumeration over Eisner's chart (Huang & Chiang 2005,
// algorithm 3).
//
// An item's derivations are pairs: a term of its sum (chart.hpp), and a rank in each factor's own list of derivations.
// Each list starts with the best one, which the chart knows, and is extended only when somebody asks. After (term, p,
// q) come (term, p, q+1) and, if q = 0, (term, p+1, 0): every pair is reached once. Trees have one derivation each, so
// each tree comes once.
//
// For labelled scores the derivations of an arc pair those of its link with the edge's labels, best first: the k best
// labelled trees. Without labels an arc has the derivations of its link, in the same order, and no list of its own.
//
// Cost after the chart: a new tree extends at most one list per level of its derivation, each O(log) after a first
// O(n). What depends on the sentence's length is kept on explicit stacks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "../batch/labels.hpp"
#include "../batch/parallel.hpp"
#include "../batch/sentence.hpp"
#include "../batch/tree.hpp"
#include "../decode/own_scores.hpp"
#include "../decode/survey.hpp"
#include "../decode/tree_stream.hpp"
#include "../decode/weight.hpp"
#include "eisner.hpp"

namespace spantree::projective {

namespace details {

/// The labels of single edges, best first; unlabelled edges have one.
template <class T>
class LabelRanks {
public:
    explicit LabelRanks(const Sentence<T>& sentence) : sentence_(sentence) {
        const std::size_t nodes = static_cast<std::size_t>(sentence.words) + 1;
        if (sentence.labels > 0) order_.resize(nodes * nodes);
    }

    bool has(int head, int dep, int rank) {
        if (sentence_.labels == 0 || rank == 0) return rank == 0;
        const auto& order = sorted(head, dep);
        return rank < static_cast<int>(order.size());
    }
    int label(int head, int dep, int rank) {
        return rank == 0 ? best_label(sentence_, head, dep) : sorted(head, dep)[static_cast<std::size_t>(rank)];
    }
    double score(int head, int dep, int rank) {
        return sentence_.labels == 0 ? sentence_(head, dep) : sentence_(head, dep, label(head, dep, rank));
    }

private:
    /// Labels that are not forbidden, the lowest index first among equals. Scores are copied before they are sorted:
    /// while they change, no order among them could be relied on.
    const std::vector<std::int32_t>& sorted(int head, int dep) {
        auto& order = order_[static_cast<std::size_t>(head) * (static_cast<std::size_t>(sentence_.words) + 1) + dep];
        if (order.empty()) {
            scored_.clear();
            for (int label = 0; label < sentence_.labels; ++label)
                if (const T score = sentence_(head, dep, label); score > minus_infinity<T>)
                    scored_.emplace_back(-score, label);
            std::sort(scored_.begin(), scored_.end());
            for (const auto& [score, label] : scored_) order.push_back(label);
        }
        return order;
    }

    Sentence<T> sentence_;
    std::vector<std::vector<std::int32_t>> order_;  // by edge
    std::vector<std::pair<T, std::int32_t>> scored_;
};

}  // namespace details

template <class T, class Weight>
class ProjectiveKBest final : public TreeSearch {
public:
    /// `plain` has the scores of each edge's best label, or is the sentence if that has no labels. The sentence's scores
    /// must stay where they are.
    ProjectiveKBest(const Sentence<T>& sentence, const Sentence<T>& plain, Root root, const Rounding<Weight>& rounding,
                    StopSignal& stop, std::unique_ptr<const OwnScores> own = nullptr)
        : own_(std::move(own)), sentence_(sentence), rounding_(rounding), labels_(sentence) {
        chart_.fill(plain, rounding, root, stop);
        inexact_ = chart_.tolerance() >= 0;
        const std::size_t nodes = static_cast<std::size_t>(chart_.nodes());
        list_of_.assign(nodes * nodes * static_cast<std::size_t>(labelled() ? Kind::edge : Kind::arc_right), none);
        goal_ = root == Root::multi ? Item{Kind::right, 0, chart_.nodes() - 1} : Item{Kind::goal, 0, 0};
        if (sentence.words > 0) started_list(goal_);
    }

    bool feasible() { return sentence_.words == 0 || !list(goal_).found.empty(); }

    bool next(Heads* heads, Heads* labels, StopSignal& stop) override {
        stop.check();
        if (!(sentence_.words > 0 ? extend(goal_, rank_) : rank_ == 0) || doubtful_) return false;
        heads[0] = no_head;
        if (labelled()) labels[0] = no_head;
        if (sentence_.words > 0) write_tree(rank_, heads, labels);
        ++rank_;
        return !doubtful_;
    }

    bool doubtful() const override { return doubtful_; }

private:
    using Ring = MaxPlus<Weight>;

    // From arc_right on: an item and an edge, with a list of its own only if edges have labels. An edge has none at all.
    enum class Kind : std::int8_t { right, left, link, goal, arc_right, arc_left, rooted_left, edge };
    static constexpr int spans = static_cast<int>(Kind::link) + 1;  // how many kinds are spans
    static constexpr std::int32_t none = -1;

    /// Nodes i, j of the chart; for an edge: head and dependent in the sentence.
    struct Item {
        Kind kind;
        std::int32_t i, j;
        bool is_empty() const { return (kind == Kind::right || kind == Kind::left) && i == j; }
    };
    /// A derivation: a term of the item's sum, and a rank in the list of each factor.
    struct RankedTerm {
        Weight weight;
        std::int32_t term, rank_a, rank_b;
        friend bool operator<(const RankedTerm& x, const RankedTerm& y) {
            if (x.weight != y.weight) return x.weight < y.weight;
            return std::tie(x.term, x.rank_a, x.rank_b) > std::tie(y.term, y.rank_a, y.rank_b);
        }
    };
    struct List {
        std::vector<RankedTerm> found;  // best first
        std::vector<RankedTerm> heap;   // candidates for the next
        bool started = false;
        bool successors_known = false;  // of the last one found
        bool exhausted() const { return started && heap.empty() && (found.empty() || successors_known); }
    };
    struct Factors {
        Item a, b;
    };
    enum class Answer { yes, no, unknown };

    bool labelled() const { return sentence_.labels > 0; }

    /// Whether the item's derivations are those of its first factor; an edge's, itself.
    bool has_no_list(const Item& item) const { return item.kind >= Kind::arc_right && !labelled(); }

    static bool is_span(const Item& item) { return item.kind <= Kind::link; }

    Terms<Weight> chart_terms(const Item& item) const {
        switch (item.kind) {
            case Kind::right: return chart_.right_terms(item.i, item.j);
            case Kind::left: return chart_.left_terms(item.i, item.j);
            default: return chart_.link_terms(item.i, item.j);
        }
    }

    Factors factors(const Item& item, int term) const {
        const auto [kind, i, j] = item;
        const int first = chart_.first();
        switch (kind) {
            case Kind::right: return {{Kind::arc_right, i, i + 1 + term}, {Kind::right, i + 1 + term, j}};
            case Kind::left: return {{Kind::left, i, i + term}, {Kind::arc_left, i + term, j}};
            case Kind::link: return {{Kind::right, i, i + term}, {Kind::left, i + term + 1, j}};
            case Kind::arc_right: return {{Kind::link, i, j}, {Kind::edge, i + first, j + first}};
            case Kind::arc_left: return {{Kind::link, i, j}, {Kind::edge, j + first, i + first}};
            case Kind::rooted_left: return {{Kind::left, 0, i}, {Kind::edge, 0, i + first}};
            default: return {{Kind::rooted_left, term, 0}, {Kind::right, term, chart_.nodes() - 1}};
        }
    }

    /// The weight of an item's best derivation.
    Weight best(const Item& item) {
        switch (item.kind) {
            case Kind::right: return *chart_.right.at(item.i, item.j);
            case Kind::left: return *chart_.left.at(item.i, item.j);
            case Kind::arc_right: return *chart_.arc_right.at(item.i, item.j);
            case Kind::arc_left: return *chart_.arc_left.at(item.i, item.j);
            case Kind::rooted_left: return chart_.rooted_left(item.i);
            case Kind::edge: return edge_weight(item, 0);
            case Kind::link: return *chart_.link.at(item.i, item.j);
            default: return list(item).found.front().weight;
        }
    }

    std::size_t number(const Item& item) const {
        const std::size_t nodes = static_cast<std::size_t>(chart_.nodes());
        return (static_cast<std::size_t>(item.kind) * nodes + item.i) * nodes + item.j;
    }

    List& list(const Item& item) {
        std::int32_t& at = list_of_[number(item)];
        if (at == none) {
            at = static_cast<std::int32_t>(lists_.size());
            lists_.emplace_back();
        }
        return lists_[static_cast<std::size_t>(at)];
    }

    /// With the best derivation of each term as a candidate, and the best of all found.
    List& started_list(const Item& item) {
        List& all = list(item);
        if (all.started) return all;
        all.started = true;
        const auto add = [&](const Weight& weight, int term) {
            if (!Ring::is_zero(weight)) all.heap.push_back({weight, term, 0, 0});
        };
        if (is_span(item)) {
            const Terms<Weight> all_terms = chart_terms(item);
            all.heap.reserve(static_cast<std::size_t>(all_terms.count) + 1);  // each one found makes way for two
            for (int u = 0; u < all_terms.count; ++u)
                add(Ring::times(all_terms.a[u * all_terms.step_a], all_terms.b[u * all_terms.step_b]), u);
        } else {
            const int count = item.kind == Kind::goal ? chart_.nodes() : 1;
            for (int term = 0; term < count; ++term) {
                const auto [a, b] = factors(item, term);
                add(Ring::times(best(a), best(b)), term);
            }
        }
        std::make_heap(all.heap.begin(), all.heap.end());
        if (!all.heap.empty()) take_best(all);
        return all;
    }

    Weight edge_weight(const Item& edge, std::size_t rank) {
        if (rank == 0) return chart_.edge(edge.i, edge.j);
        return rounding_(labels_.score(edge.i, edge.j, static_cast<int>(rank)), inexact_);
    }

    /// How close two sums of weights must come to be in doubt; -1: never.
    double tolerance() const { return inexact_ ? sentence_.words : -1.0; }

    void take_best(List& all) {
        std::pop_heap(all.heap.begin(), all.heap.end());
        all.found.push_back(all.heap.back());
        all.heap.pop_back();
        all.successors_known = false;
        if constexpr (WeightTraits<Weight>::rounds)
            if (!all.heap.empty()) doubtful_ |= all.found.back().weight - all.heap.front().weight <= tolerance();
    }

    /// Whether an item that has a derivation has more than `rank` of them.
    Answer has(const Item& item, std::size_t rank) {
        if (rank == 0) return Answer::yes;
        if (item.is_empty()) return Answer::no;
        if (has_no_list(item)) return item.kind == Kind::edge ? Answer::no : has(factors(item, 0).a, rank);
        if (item.kind == Kind::edge)
            return labels_.has(item.i, item.j, static_cast<int>(rank)) ? Answer::yes : Answer::no;
        const List& all = list(item);
        if (all.found.size() > rank) return Answer::yes;
        return all.exhausted() ? Answer::no : Answer::unknown;
    }

    Weight weight(const Item& item, std::size_t rank) {
        if (item.kind == Kind::edge) return edge_weight(item, rank);
        if (rank == 0) return best(item);
        if (!has_no_list(item)) return list(item).found[rank].weight;
        const auto [rest, edge] = factors(item, 0);
        return Ring::times(list(rest).found[rank].weight, edge_weight(edge, 0));
    }

    void request(const Item& item, std::size_t rank) {
        requests_.push_back({has_no_list(item) ? factors(item, 0).a : item, rank});
    }

    /// Makes the item's list longer than `rank`. False: it has no more derivations.
    bool extend(const Item& item, std::size_t rank) {
        requests_.assign(1, {item, rank});
        while (!requests_.empty()) {
            const Request request = requests_.back();
            List& all = started_list(request.item);
            if (all.found.size() > request.rank || all.exhausted()) {
                requests_.pop_back();
                continue;
            }
            if (!all.successors_known && !add_successors(request.item, all)) continue;  // asked for a factor's first
            if (!all.heap.empty()) take_best(all);
        }
        return list(item).found.size() > rank;
    }

    /// Adds what follows the last derivation found. If that depends on factors not yet extended, requests them instead:
    /// false.
    bool add_successors(const Item& item, List& all) {
        const RankedTerm last = all.found.back();
        const auto both = factors(item, last.term);
        const Item &a = both.a, &b = both.b;
        const std::size_t rank_a = static_cast<std::size_t>(last.rank_a),
                          rank_b = static_cast<std::size_t>(last.rank_b);
        const Answer more_b = has(b, rank_b + 1);
        if (more_b == Answer::unknown) request(b, rank_b + 1);
        const Answer more_a = rank_b == 0 ? has(a, rank_a + 1) : Answer::no;
        if (more_a == Answer::unknown) request(a, rank_a + 1);
        if (more_a == Answer::unknown || more_b == Answer::unknown) return false;
        const auto add = [&](std::size_t p, std::size_t q) {
            all.heap.push_back({Ring::times(weight(a, p), weight(b, q)), last.term, static_cast<std::int32_t>(p),
                                static_cast<std::int32_t>(q)});
            std::push_heap(all.heap.begin(), all.heap.end());
        };
        if (more_b == Answer::yes) add(rank_a, rank_b + 1);
        if (more_a == Answer::yes) add(rank_a + 1, 0);
        all.successors_known = true;
        return true;
    }

    /// One of the derivations found.
    RankedTerm ranked_term(const Item& item, std::size_t rank) {
        if (has_no_list(item)) return {{}, 0, static_cast<std::int32_t>(rank), 0};
        if (rank > 0 || item.kind == Kind::goal) return list(item).found[rank];
        if (!is_span(item)) return {{}, 0, 0, 0};
        const std::int32_t at = list_of_[number(item)];
        if (at != none && lists_[static_cast<std::size_t>(at)].started) return list(item).found.front();
        // The first best, without starting a list for it.
        const BestTerm<Weight> best = best_term(chart_terms(item));
        doubtful_ |= best.is_doubtful(tolerance());
        return {best.weight, best.at, 0, 0};
    }

    /// Most parts of a tree are the best there are for their words: these are copied from a tree that had them before. Not
    /// from the first, which is often the only one that is asked for.
    void write_tree(std::size_t rank, Heads* heads, Heads* labels) {
        const bool first = rank == 0;
        const std::size_t nodes = static_cast<std::size_t>(sentence_.words) + 1, kept = kept_heads_.size();
        bool keep = false;
        if (!first) {  // room comes first: if there is none, nothing has been promised
            best_in_.resize(static_cast<std::size_t>(chart_.nodes()) * chart_.nodes() * spans, none);
            kept_heads_.resize(kept + nodes);
            if (labelled()) kept_labels_.resize(kept + nodes);
        }
        parts_.assign(1, {goal_, rank});
        while (!parts_.empty()) {
            const auto [item, at] = parts_.back();
            parts_.pop_back();
            if (item.is_empty()) continue;
            if (item.kind == Kind::edge) {
                heads[item.j] = item.i;
                const int label = labelled() ? labels_.label(item.i, item.j, static_cast<int>(at)) : 0;
                if (labelled()) labels[item.j] = label;
                doubtful_ |= !rounding_.reaches(sentence_(item.i, item.j, label));
                continue;
            }
            if (at == 0 && is_span(item) && !first) {
                std::int32_t& in = best_in_[number(item)];
                if (in != none) {
                    copy_words(item, kept_heads_, in, heads);
                    if (labelled()) copy_words(item, kept_labels_, in, labels);
                    continue;
                }
                in = static_cast<std::int32_t>(kept / nodes);
                keep = true;
            }
            const RankedTerm derivation = ranked_term(item, at);
            const auto [a, b] = factors(item, derivation.term);
            parts_.push_back({a, static_cast<std::size_t>(derivation.rank_a)});
            parts_.push_back({b, static_cast<std::size_t>(derivation.rank_b)});
        }
        if (first) return;
        if (keep) std::copy_n(heads, nodes, kept_heads_.end() - static_cast<std::ptrdiff_t>(nodes));
        if (keep && labelled()) std::copy_n(labels, nodes, kept_labels_.end() - static_cast<std::ptrdiff_t>(nodes));
        kept_heads_.resize(keep ? kept + nodes : kept);
        if (labelled()) kept_labels_.resize(kept_heads_.size());
    }

    /// What a kept tree has for the words that hang on a span's ends.
    void copy_words(const Item& span, const std::vector<Heads>& kept, std::int32_t tree, Heads* to) const {
        const int from = span.i + chart_.first() + (span.kind != Kind::left);
        const int end = span.j + chart_.first() + (span.kind == Kind::right);
        const Heads* const words = kept.data() + static_cast<std::size_t>(tree) * (sentence_.words + 1);
        std::copy(words + from, words + end, to + from);
    }

    struct Request {
        Item item;
        std::size_t rank;
    };

    std::unique_ptr<const OwnScores> own_;  // where the scores lie, if not in the caller's memory
    Sentence<T> sentence_;
    Rounding<Weight> rounding_;
    std::int64_t inexact_ = 0;  // not zero: a weight used so far was rounded
    bool doubtful_ = false;
    BestChart<Weight> chart_;
    details::LabelRanks<T> labels_;
    Item goal_;
    std::size_t rank_ = 0;  // of the next tree
    std::deque<List> lists_;
    std::vector<std::int32_t> list_of_;            // by kind, i, j
    std::vector<std::int32_t> best_in_;            // by kind, i, j: the kept tree with the best derivation of this span
    std::vector<Heads> kept_heads_, kept_labels_;  // trees that were the first to have some span's best derivation
    std::vector<Request> requests_, parts_;
};

/// All projective trees of one sentence, best first; null if there are none. The scores must stay where they are.
template <class T>
std::unique_ptr<TreeStream> best_projective_trees(const Sentence<T>& sentence, Root root, Feasibility& feasible,
                                                  StopSignal& stop) {
    std::vector<T> arcs;
    const Sentence<T> plain = sentence.labels > 0 ? best_labels(sentence, arcs) : sentence;
    BestProjectiveTree<T> reader;
    const Survey<T>& survey = reader.read(plain);
    feasible.bad_score = survey.bad;
    if (survey.bad) return nullptr;
    const Rounding<double> rounding = fast_rounding(plain, survey, sentence.labels > 0);
    auto fast = std::make_unique<ProjectiveKBest<T, double>>(sentence, plain, root, rounding, stop);
    if (!fast->feasible()) {
        feasible = find_unattachable(plain, root, stop);
        return nullptr;
    }
    auto make_wide = [sentence, root](StopSignal& stop) -> std::unique_ptr<TreeSearch> {
        auto own = std::make_unique<const OwnScores>(sentence);
        return with_wide_weights(own->bits(), more_bits(sentence.words),
                                 [&]<class Weight>(const Rounding<Weight>& rounding) -> std::unique_ptr<TreeSearch> {
                                     const OwnScores& scores = *own;
                                     return std::make_unique<ProjectiveKBest<double, Weight>>(
                                         scores.sentence(), scores.plain(), root, rounding, stop, std::move(own));
                                 });
    };
    return std::make_unique<DoubtingTreeStream<T, decltype(make_wide)>>(sentence, std::move(fast),
                                                                        std::move(make_wide));
}

}  // namespace spantree::projective
