// Slopes (slopes.hpp) along eight directions at once: side by side in a register, item after item.
//
// What a term has of its sum is the same for all directions. It is found for eight items at a time, as for one direction, and
// kept until each item's terms have been gone through. Sums have the order, and so the bits, that they have for one direction.
//
// Layout: squares of cells, [head, dep], of eight numbers each. Items that are headed by their left end, right(i, j) and its
// arc, lie in cell [i, j], their mirror images in [j, i]; what belongs to both lies in [i, j].
#pragma once

#include <algorithm>
#include <cstddef>

#include "../batch/aligned_buffer.hpp"
#include "../batch/parallel.hpp"
#include "../batch/sentence.hpp"
#include "../simd/dispatch.hpp"
#include "../simd/pack.hpp"
#include "inside_outside.hpp"
#include "slopes.hpp"

namespace spantree::projective {

class EightsSquare {
public:
    static constexpr int eight = pack_size;

    void resize(int nodes) {
        nodes_ = nodes;
        row_ = static_cast<std::ptrdiff_t>(nodes | 1) *
               eight;  // odd: cells of a column are not all in a few lines of the cache
        cells_.reserve(static_cast<std::size_t>(row_) * nodes);
    }
    void clear() { std::fill_n(cells_.data(), row_ * nodes_, 0.0); }

    int nodes() const { return nodes_; }
    std::ptrdiff_t row() const { return row_; }
    double* at(int head, int dep) { return cells_.data() + head * row_ + dep * eight; }
    const double* at(int head, int dep) const { return cells_.data() + head * row_ + dep * eight; }
    std::size_t bytes() const { return cells_.bytes(); }

private:
    int nodes_ = 0;
    std::ptrdiff_t row_ = 0;
    AlignedBuffer<double> cells_;
};

/// Eight numbers per edge.
class EightsOfEdges : public EightsSquare {
public:
    /// Edges into ROOT have a place, and 0 in it.
    void resize(int words, Root) {
        EightsSquare::resize(words + 1);
        for (int head = 0; head <= words; ++head) std::fill_n(at(head, 0), eight, 0.0);
    }
    double& operator()(int head, int dep, int which) { return at(head, dep)[which]; }

    template <class Visit>
    void for_each_edge(Visit visit) const {
        for (int head = 0; head < nodes(); ++head)
            for (int dep = 1; dep < nodes(); ++dep)
                if (head != dep) visit(head, dep);
    }
};

namespace details {

/// Where the slopes of a sum's factors lie, term after term: as Terms, of which this is for one item. A block has as many terms
/// as one of its items: others have none behind their last one, or before their first.
struct TermsOfEights {
    const double* a;
    std::ptrdiff_t step_a;
    const double* b;
    std::ptrdiff_t step_b;
    int count;
    bool end_with_block = false;
};

struct EightSquares {
    EightsSquare items, arcs, bar_items, bar_arcs, bar_links;

    // i < j; as in chart.hpp and outside.hpp.
    TermsOfEights link_terms(int i, int j) const { return {items.at(i, i), along, items.at(j, i + 1), along, j - i}; }
    TermsOfEights right_terms(int i, int j) const {
        return {arcs.at(i, i + 1), along, items.at(i + 1, j), row(), j - i};
    }
    TermsOfEights left_terms(int i, int j) const { return {items.at(i, i), row(), arcs.at(j, i), along, j - i}; }
    TermsOfEights right_terms_from_links(int i, int j) const {
        return {bar_links.at(i, j + 1), along, items.at(j + 1, j + 1), row(), to_the_right(j)};
    }
    TermsOfEights right_terms_from_rights(int i, int j) const {
        return {bar_items.at(0, j), row(), arcs.at(0, i), row(), i, true};
    }
    TermsOfEights left_terms_from_links(int i, int j) const {
        return {bar_links.at(0, j), row(), items.at(0, i) - along, row(), i, true};
    }
    TermsOfEights left_terms_from_lefts(int i, int j) const {
        return {bar_items.at(j, i) + row(), row(), arcs.at(j, j) + row(), row(), to_the_right(j)};
    }
    TermsOfEights arc_right_terms(int i, int j) const {
        return {bar_items.at(i, j), along, items.at(j, j), along, to_the_right(j) + 1};
    }
    TermsOfEights arc_left_terms(int i, int j) const {
        return {bar_items.at(j, 0), along, items.at(i, 0), along, i + 1, true};
    }

    void resize(int nodes) {
        for (auto* square : {&items, &arcs, &bar_items, &bar_arcs, &bar_links}) square->resize(nodes);
        items.clear();
        bar_items.clear();
    }
    std::size_t bytes() const {
        return items.bytes() + arcs.bytes() + bar_items.bytes() + bar_arcs.bytes() + bar_links.bytes();
    }

private:
    std::ptrdiff_t row() const { return items.row(); }
    static constexpr std::ptrdiff_t along = EightsSquare::eight;
    int to_the_right(int j) const { return items.nodes() - 1 - j; }
};

/// What the terms of a block's sums have of them: parts[u * 8 + lane] * unit[lane], u < count[lane].
struct PartsOfTerms {
    double* parts;
    alignas(64) double unit[EightsSquare::eight];
    int count[EightsSquare::eight];

    /// terms(i, j) are those of the items from i on, sums those in `table`.
    template <class In, class Of, class MakeTerms>
    [[gnu::always_inline]] void find(const Table<Of>& table, int i, int width, MakeTerms terms) {
        for (int lane = 0; lane < EightsSquare::eight && i + lane + width < table.nodes(); lane += In::lanes) {
            const int at = i + lane;
            const Terms<double> some = terms(at, at + width);
            const typename In::Shares share(some, table.plane(), In::load(table.at(at, at + width), table.plane()));
            for (int u = 0; u < some.count; ++u) store(parts + u * EightsSquare::eight + lane, share(u));
            store(unit + lane, share.unit());
            std::fill_n(count + lane, In::lanes, some.count);
        }
    }

    template <class Pack>
    [[gnu::always_inline]] Pack mean(int lane, const TermsOfEights& slopes) const {
        const int before = slopes.end_with_block ? count[lane] - slopes.count : 0;
        const double* const part = parts + before * EightsSquare::eight + lane;
        const auto term = [&](int u) __attribute__((always_inline)) {
            return Pack::broadcast(part[u * EightsSquare::eight]) *
                   (Pack::load(slopes.a + u * slopes.step_a) + Pack::load(slopes.b + u * slopes.step_b));
        };
        Pack even = {}, odd = {};
        int u = 0;
        for (; u + 1 < slopes.count; u += 2) {
            even += term(u);
            odd += term(u + 1);
        }
        if (u < slopes.count) even += term(u);
        return Pack::broadcast(unit[lane]) * (even + odd);
    }
};

/// Calls body(lane, i, j) for the items of a block.
template <class Body>
[[gnu::always_inline]] inline void for_each_item(int i, int width, int nodes, Body body) {
    for (int lane = 0; lane < EightsSquare::eight && i + lane + width < nodes; ++lane)
        body(lane, i + lane, i + lane + width);
}

template <class Ring>
struct InsideEights {
    template <class Registers>
    struct Kernel {
        static void run(const Chart<Ring>& inside, const EightsOfEdges& r, EightSquares& squares, double* memory, int i,
                        const Widths& widths) {
            using In = typename Ring::template In<Registers::width>;
            using Pack = PackOf<Registers::width>;
            PartsOfTerms of{memory, {}, {}};
            const int first = inside.first();
            for (int width = widths.first; width <= widths.last; ++width) {
                const auto each = [&](auto body)
                                      __attribute__((always_inline)) { for_each_item(i, width, inside.nodes(), body); };
                of.find<In>(inside.link, i, width, [&](int at, int j) { return inside.link_terms(at, j); });
                each([&](int lane, int at, int j) __attribute__((always_inline)) {
                    const Pack link = of.mean<Pack>(lane, squares.link_terms(at, j));
                    (link + Pack::load(r.at(at + first, j + first))).store(squares.arcs.at(at, j));
                    (link + Pack::load(r.at(j + first, at + first))).store(squares.arcs.at(j, at));
                });
                of.find<In>(inside.right, i, width, [&](int at, int j) { return inside.right_terms(at, j); });
                each([&](int lane, int at, int j) __attribute__((always_inline)) {
                    of.mean<Pack>(lane, squares.right_terms(at, j)).store(squares.items.at(at, j));
                });
                of.find<In>(inside.left, i, width, [&](int at, int j) { return inside.left_terms(at, j); });
                each([&](int lane, int at, int j) __attribute__((always_inline)) {
                    of.mean<Pack>(lane, squares.left_terms(at, j)).store(squares.items.at(j, at));
                });
            }
        }
    };
};

template <class Ring>
struct OutsideEights {
    template <class Registers>
    struct Kernel {
        static void run(const InsideOutside<Ring>& sums, const EightsOfEdges& r, EightSquares& squares, double* memory,
                        int i, const Widths& widths) {
            using In = typename Ring::template In<Registers::width>;
            using Pack = PackOf<Registers::width>;
            const Chart<Ring>& inside = sums.inside();
            const OutsideChart<Ring>& outside = sums.outside();
            PartsOfTerms of{memory, {}, {}};
            const int first = inside.first();
            for (int width = widths.last; width >= widths.first; --width) {
                const auto each = [&](auto body)
                                      __attribute__((always_inline)) { for_each_item(i, width, inside.nodes(), body); };
                const auto find = [&]<class Kind>(Kind, const Table<Ring>& table) __attribute__((always_inline)) {
                    of.find<In>(table, i, width, [&](int at, int j) { return Kind::of(outside, inside, at, j); });
                };
                const auto add = [&](int lane, const TermsOfEights& slopes, double* to) __attribute__((always_inline)) {
                    (Pack::load(to) + of.mean<Pack>(lane, slopes)).store(to);
                };
                find(FromLinksToRight{}, outside.right);
                each([&](int lane, int at, int j) __attribute__((always_inline)) {
                    add(lane, squares.right_terms_from_links(at, j), squares.bar_items.at(at, j));
                });
                find(FromRightsToRight{}, outside.right);
                each([&](int lane, int at, int j) __attribute__((always_inline)) {
                    add(lane, squares.right_terms_from_rights(at, j), squares.bar_items.at(at, j));
                });
                find(FromLinksToLeft{}, outside.left);
                each([&](int lane, int at, int j) __attribute__((always_inline)) {
                    add(lane, squares.left_terms_from_links(at, j), squares.bar_items.at(j, at));
                });
                find(FromLeftsToLeft{}, outside.left);
                each([&](int lane, int at, int j) __attribute__((always_inline)) {
                    add(lane, squares.left_terms_from_lefts(at, j), squares.bar_items.at(j, at));
                });
                find(ToArcRight{}, outside.arc_right);
                each([&](int lane, int at, int j) __attribute__((always_inline)) {
                    of.mean<Pack>(lane, squares.arc_right_terms(at, j)).store(squares.bar_arcs.at(at, j));
                });
                find(ToArcLeft{}, outside.arc_left);
                each([&](int lane, int at, int j) __attribute__((always_inline)) {
                    of.mean<Pack>(lane, squares.arc_left_terms(at, j)).store(squares.bar_arcs.at(j, at));
                });
                alignas(64) double right[EightsSquare::eight], left[EightsSquare::eight];
                for (int lane = 0; lane < EightsSquare::eight; lane += In::lanes) {
                    if (i + lane + width >= inside.nodes()) break;
                    const LinkShares<In> share(sums, i + lane, i + lane + width);
                    store(right + lane, share.right);
                    store(left + lane, share.left);
                }
                each([&](int lane, int at, int j) __attribute__((always_inline)) {
                    const auto of_arc = [&](int head, int dep) __attribute__((always_inline)) {
                        return Pack::load(squares.bar_arcs.at(head, dep)) + Pack::load(r.at(head + first, dep + first));
                    };
                    (Pack::broadcast(right[lane]) * of_arc(at, j) + Pack::broadcast(left[lane]) * of_arc(j, at))
                        .store(squares.bar_links.at(at, j));
                });
            }
        }
    };
};

}  // namespace details

/// Scratch memory; reused from sentence to sentence on one thread.
class EightSlopes {
public:
    /// `sums` after run_outside. Directions that nobody asks for may be anything finite.
    template <class Ring>
    void run(const InsideOutside<Ring>& sums, const EightsOfEdges& r, StopSignal& stop) {
        constexpr int eight = EightsSquare::eight;
        const int nodes = sums.last() + 1;
        first_ = sums.inside().first();
        squares_.resize(nodes);
        double* const memory = parts_.reserve(static_cast<std::size_t>(nodes + eight) * eight);
        details::for_each_block_and_widths<eight>(nodes, true, stop, [&](int i, const Widths& widths) {
            dispatch_on_registers<details::InsideEights<Ring>>(sums.inside(), r, squares_, memory, i, widths);
        });
        std::fill_n(total_, eight, 0.0);
        if (sums.root() == Root::multi)
            std::copy_n(squares_.items.at(0, sums.last()), eight, total_);
        else
            seed(sums, r);
        details::for_each_block_and_widths<eight>(nodes, false, stop, [&](int i, const Widths& widths) {
            dispatch_on_registers<details::OutsideEights<Ring>>(sums, r, squares_, memory, i, widths);
        });
    }

    /// The slope of an edge's marginal.
    double of_marginal(const EightsOfEdges& r, int head, int dep, int k) const {
        const int h = head - first_, d = dep - first_;
        const double arc = h < 0 ? rooted(r, d, k) : squares_.arcs.at(h, d)[k] + squares_.bar_arcs.at(h, d)[k];
        return arc - total_[k];
    }

    /// All eight.
    void of_marginals(const EightsOfEdges& r, int head, int dep, double* to) const {
        const int h = head - first_, d = dep - first_;
        if (h < 0)
            for (int k = 0; k < EightsSquare::eight; ++k) to[k] = rooted(r, d, k) - total_[k];
        else
            for (int k = 0; k < EightsSquare::eight; ++k)
                to[k] = (squares_.arcs.at(h, d)[k] + squares_.bar_arcs.at(h, d)[k]) - total_[k];
    }

    std::size_t bytes() const { return squares_.bytes() + parts_.bytes(); }

private:
    // Single root, as in ChartSlopes.
    template <class Ring>
    void seed(const InsideOutside<Ring>& sums, const EightsOfEdges& r) {
        for (int node = 0; node <= sums.last(); ++node) {
            const SeedShares<Ring> share(sums, node);
            for (int k = 0; k < EightsSquare::eight; ++k) {
                const double value = r.at(0, node + 1)[k];
                squares_.bar_items.at(node, 0)[k] = (after(node, k) + value) * share.left;
                squares_.bar_items.at(node, sums.last())[k] = (before(node, k) + value) * share.right;
                total_[k] += sums.root_marginal(node) * rooted(r, node, k);
            }
        }
    }
    double before(int node, int k) const { return squares_.items.at(node, 0)[k]; }
    double after(int node, int k) const { return squares_.items.at(node, squares_.items.nodes() - 1)[k]; }
    double rooted(const EightsOfEdges& r, int node, int k) const {
        return before(node, k) + r.at(0, node + 1)[k] + after(node, k);
    }

    int first_ = 0;
    details::EightSquares squares_;
    AlignedBuffer<double> parts_;
    double total_[EightsSquare::eight] = {};
};

}  // namespace spantree::projective
