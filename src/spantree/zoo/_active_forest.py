"""Fibonacci heaps that share one forest, so that an item changes heap in O(1); the largest weight comes first.

Fredman and Tarjan (1987), "Fibonacci heaps and their uses in improved network optimization algorithms", with the change
of heap of Gabow, Galil, Spencer and Tarjan (1986). An item that changes heap is cut off its parent, as in a
decrease-key, and takes its subtree with it. So a child may belong to another heap than its parent, but a root never
does, and children that lose their parent become roots of their own heaps.

Heaps come one after the other, as the nodes of the path do, and only the last is asked for its best item: the root of
largest weight, if no child in the heap of its parent weighs more than it. The caller sees to that. An item changes its
edge for a better one of the same heap, or for one of a later heap; and when two heaps are melded, it gets back the edge
it had in the earlier one, under which its children were linked, if that is the better.

Amortised, with the number of trees and twice that of the marks as potential: `insert`, `change` and `meld` cost O(1),
`best` and `delete` O(log n) for n items. As in every Fibonacci heap an item with k children has at least F(k+2), the
Fibonacci number, items in its subtree: cutting, marking and linking know no heaps.
"""

from __future__ import annotations

from collections.abc import Callable

from .tarjan import Edge


class Item:
    """An item of a heap and node of the forest."""

    __slots__ = ("children", "edge", "lost_a_child", "parent")

    def __init__(self, edge: Edge) -> None:
        self.edge = edge
        self.parent: Item | None = None
        self.children: dict[Item, None] = {}
        """A set that remembers the order, so that ties are broken the same way every time."""
        self.lost_a_child = False
        """Since it got its parent; the mark of Fredman and Tarjan."""


class ActiveForest:
    """Heaps, named by numbers, of items that each have an edge."""

    def __init__(self, heap_of: Callable[[Edge], int], weight: Callable[[Edge], float]) -> None:
        self.heap_of = heap_of
        self.weight = weight
        self.roots: dict[int, dict[Item, None]] = {}
        """The roots of each heap's trees."""

    def insert(self, edge: Edge) -> Item:
        """Add an item with that edge to the heap of the edge."""
        item = Item(edge)
        self.make_root(item)
        return item

    def change(self, item: Item, edge: Edge) -> None:
        """Give the item a better edge of the same heap, or an edge of a later one."""
        self.cut(item)
        item.edge = edge
        self.make_root(item)

    def delete(self, item: Item) -> None:
        """Take the item out of its heap."""
        self.cut(item)
        for child in item.children:
            self.make_root(child)

    def best(self, heap: int) -> Item | None:
        """The item of largest weight, which stays, or None for an empty heap; links trees of equal rank before."""
        of_rank: dict[int, Item] = {}
        for item in self.roots.get(heap, ()):
            while (other := of_rank.pop(len(item.children), None)) is not None:
                item = self.link(other, item)
            of_rank[len(item.children)] = item
        self.roots[heap] = dict.fromkeys(of_rank.values())
        return max(of_rank.values(), key=lambda item: self.weight(item.edge), default=None)

    def meld(self, heaps: list[int], melded: int) -> None:
        """Put the heaps together under a new name; `heap_of` and `weight` know of it by now.

        Roots are moved one by one: the next call of `best` passes over all of them anyway.
        """
        self.roots[melded] = {root: None for heap in heaps for root in self.roots.pop(heap, ())}

    def make_root(self, item: Item) -> None:
        item.parent = None
        item.lost_a_child = False
        self.roots.setdefault(self.heap_of(item.edge), {})[item] = None

    def link(self, x: Item, y: Item) -> Item:
        """Make the lighter of two roots of a heap a child of the other, which is returned; of equals the first wins."""
        if self.weight(x.edge) < self.weight(y.edge):
            x, y = y, x
        x.children[y] = None
        y.parent = x
        return x

    def cut(self, item: Item) -> None:
        """Take the item from its siblings; a parent that so loses a second child is cut off too, and so on upwards."""
        parent = item.parent
        if parent is None:
            del self.roots[self.heap_of(item.edge)][item]
            return
        del parent.children[item]
        while parent.parent is not None:
            if not parent.lost_a_child:
                parent.lost_a_child = True
                return
            item, parent = parent, parent.parent
            del parent.children[item]
            self.make_root(item)
