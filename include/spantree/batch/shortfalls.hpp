// By how much projective trees fall short of the best one: the least that they do, for every step of a derivation.
//
// A tree is a derivation from items of Eisner's chart (chart/chart.hpp says which). Let v be what edges add. With V(item) the
// best that an item's derivations add up to, and U(item) the best that what surrounds the item does, the best tree that takes
// the step  t <- a, b (and an edge)  falls short by
//
//     V(all)  -  U(t)  -  V(a) - V(b) - v
//
// Number: a double, or one in which sums are exact. O(n^3) time, O(n^2) memory.
#pragma once

#include <cstddef>
#include <vector>

#include "parallel.hpp"
#include "sentence.hpp"

namespace spantree {

template <class Number>
class Shortfalls {
public:
    enum Kind : int { right, left, link, whole };
    struct Item {
        Kind kind;
        int i, j;
    };
    /// One way to make an item of two; `edge` is what it adds, or none.
    struct Step {
        Item a, b;
        int edge;
    };
    static constexpr int none = -1;

    Shortfalls(int words, Root root)
        : words_(words), first_(root == Root::single ? 1 : 0), nodes_(words + 1 - first_) {}

    /// By edge, head * (words + 1) + dep: v, and whether trees may have it. There is a tree.
    void find(const std::vector<Number>& v, const std::vector<bool>& possible, StopSignal& stop) {
        v_ = &v;
        possible_ = &possible;
        find_inside(stop);
        find_outside(stop);
    }

    /// Calls visit(item, choice, step, shortfall) for all steps that a tree has, wide items first; v and possible are unchanged.
    template <class Visit>
    void each_step(StopSignal& stop, Visit visit) const {
        const Number most = inside_[id(goal())];
        each_item(false, stop, [&](const Item& item) {
            if (!present(item)) return;
            const Number around = most - outside_[id(item)];
            for (int choice = 0; choice < choices(item); ++choice)
                if (const Step s = step(item, choice); possible(s)) visit(item, choice, s, around - sum(s));
        });
    }

    /// Calls visit(item, step) with the best step of all items that a tree has, narrow items first.
    template <class Visit>
    void each_best_step(StopSignal& stop, Visit visit) const {
        each_item(true, stop, [&](const Item& item) {
            if (present(item)) visit(item, step(item, best_[id(item)]));
        });
    }

    /// Calls visit(edge) for all edges of the best derivation of an item that a tree has.
    template <class Visit>
    void each_edge_of_best(const Item& of, Visit visit) const {
        std::vector<Item> left_to_do{of};
        while (!left_to_do.empty()) {
            const Item item = left_to_do.back();
            left_to_do.pop_back();
            if (item.i == item.j && item.kind != whole) continue;
            const Step s = step(item, best_[id(item)]);
            if (s.edge != none) visit(s.edge);
            left_to_do.insert(left_to_do.end(), {s.a, s.b});
        }
    }

    std::size_t items() const { return static_cast<std::size_t>(3 * nodes_ * nodes_) + 1; }
    std::size_t id(const Item& x) const {
        return static_cast<std::size_t>(x.kind == whole ? 3 * nodes_ * nodes_ : (x.kind * nodes_ + x.i) * nodes_ + x.j);
    }

private:
    int edge(int head, int dep) const { return (head + first_) * (words_ + 1) + dep + first_; }
    Item goal() const { return first_ == 1 ? Item{whole, 0, nodes_ - 1} : Item{right, 0, nodes_ - 1}; }
    static int choices(const Item& x) { return x.kind == whole ? x.j + 1 : x.j - x.i; }

    Step step(const Item& x, int choice) const {
        const int split = x.i + choice;
        switch (x.kind) {
            case right: return {{link, x.i, split + 1}, {right, split + 1, x.j}, edge(x.i, split + 1)};
            case left: return {{left, x.i, split}, {link, split, x.j}, edge(x.j, split)};
            case link: return {{right, x.i, split}, {left, split + 1, x.j}, none};
            case whole: break;
        }
        return {{left, 0, split}, {right, split, x.j}, edge(-1, split)};  // ROOT is the node before the first
    }

    /// Calls visit(item), narrow items first or last; an item comes after all, or before all, that it is made of.
    template <class Visit>
    void each_item(bool narrow_first, StopSignal& stop, Visit visit) const {
        const auto all = [&](Kind kind, int width) {
            for (int i = 0; i + width < nodes_; ++i) visit(Item{kind, i, i + width});
        };
        if (!narrow_first && first_ == 1) visit(goal());
        for (int w = 1; w < nodes_; ++w) {
            stop.check();
            const int width = narrow_first ? w : nodes_ - w;
            if (narrow_first) all(link, width);
            all(right, width);
            all(left, width);
            if (!narrow_first) all(link, width);
        }
        if (narrow_first && first_ == 1) visit(goal());
    }

    bool present(const Item& x) const { return (x.i == x.j && x.kind != whole) || best_[id(x)] != none; }
    bool possible(const Step& s) const {
        return (s.edge == none || (*possible_)[static_cast<std::size_t>(s.edge)]) && present(s.a) && present(s.b);
    }
    Number sum(const Step& s) const {
        const Number both = inside_[id(s.a)] + inside_[id(s.b)];
        return s.edge == none ? both : both + (*v_)[static_cast<std::size_t>(s.edge)];
    }

    void find_inside(StopSignal& stop) {
        inside_.assign(items(), Number{});
        best_.assign(items(), none);
        each_item(true, stop, [&](const Item& item) {
            Number& most = inside_[id(item)];
            int& best = best_[id(item)];
            for (int choice = 0; choice < choices(item); ++choice) {
                const Step s = step(item, choice);
                if (!possible(s)) continue;
                const Number x = sum(s);
                if (best != none && !(most < x)) continue;
                most = x;
                best = choice;
            }
        });
    }

    /// Items that no tree has lose their best step.
    void find_outside(StopSignal& stop) {
        outside_.assign(items(), Number{});
        std::vector<bool> reached(items(), false);
        const auto offer = [&](const Item& item, const Number& x) {
            const std::size_t at = id(item);
            if (!reached[at] || outside_[at] < x) outside_[at] = x;
            reached[at] = true;
        };
        offer(goal(), Number{});
        each_item(false, stop, [&](const Item& item) {
            if (!reached[id(item)]) best_[id(item)] = none;
            if (!present(item)) return;
            const Number around = outside_[id(item)];
            for (int choice = 0; choice < choices(item); ++choice) {
                const Step s = step(item, choice);
                if (!possible(s)) continue;
                const Number all = around + sum(s);
                offer(s.a, all - inside_[id(s.a)]);
                offer(s.b, all - inside_[id(s.b)]);
            }
        });
    }

    int words_, first_, nodes_;  // nodes of the chart: with one root, words only
    const std::vector<Number>* v_ = nullptr;
    const std::vector<bool>* possible_ = nullptr;
    std::vector<Number> inside_, outside_;  // V and U, by item
    std::vector<int> best_;                 // by item: the step that V comes from, or none
};

}  // namespace spantree
