"""Helpers for heads vectors: is it a tree, why not, and to and from 0/1 matrices.

All of them take one sentence, arrays with any number of leading axes, or a list of arrays of different sizes, which
gives a list. Nested lists of integers are arrays unless their rows differ in length. What stands at ROOT does not
matter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from . import _core
from ._options import RootMode, core_root
from ._read import IntArray, read_integers, refuse_masked

if TYPE_CHECKING:
    import numpy.typing as npt

    ListOfTrees = Sequence[npt.NDArray[Any]]
    Explanation: TypeAlias = str | list["Explanation"] | None  # lists nested like the axes of the sentences


@overload
def is_tree(heads: ListOfTrees, root: RootMode = "single", *, lengths: Any = None) -> list[bool]: ...
@overload
def is_tree(heads: npt.ArrayLike, root: RootMode = "single", *, lengths: Any = None) -> npt.NDArray[np.bool_]: ...
def is_tree(heads: Any, root: RootMode = "single", *, lengths: Any = None) -> Any:
    """Whether heads is a tree: every word reaches ROOT, and with ``root="single"`` exactly one word hangs on it.

    Parameters
    ----------
    heads : integers (..., n+1), or a list of such, or Trees
        Head of every word. Without `lengths`, trailing -1 are padding; a row of -1 alone is no tree unless it has no
        room for words.
    root : {"single", "multi"}
        Whether exactly one word may hang on ROOT, or any number from one up.
    lengths : integers (...), optional
        Words of each sentence; what stands behind them does not matter.

    Returns
    -------
    bool, boolean array (...), or a list of them
        True for trees.

    See Also
    --------
    explain_tree : Why it is no tree.

    Examples
    --------
    >>> import spantree
    >>> spantree.is_tree([-1, 2, 0])
    True
    >>> spantree.is_tree([-1, 2, 1])
    False
    >>> spantree.is_tree([[-1, 0, 0], [-1, 2, 0]], root="multi")
    array([ True,  True])
    """
    return _check_trees(_heads_of(heads), core_root(root), lengths, projective=False)


@overload
def is_projective(heads: ListOfTrees, *, lengths: Any = None) -> list[bool]: ...
@overload
def is_projective(heads: npt.ArrayLike, *, lengths: Any = None) -> npt.NDArray[np.bool_]: ...
def is_projective(heads: Any, *, lengths: Any = None) -> Any:
    """Whether heads is a tree, of any number of roots, whose arcs do not cross; ROOT stands left of the first word.

    Parameters
    ----------
    heads, lengths : as for `is_tree`
        Head of every word, words of every sentence.

    Returns
    -------
    bool, boolean array (...), or a list of them
        True for projective trees.

    Examples
    --------
    >>> import spantree
    >>> spantree.is_projective([-1, 2, 0, 2])
    True
    >>> spantree.is_projective([-1, 3, 0, 2])
    False
    """
    return _check_trees(_heads_of(heads), core_root("multi"), lengths, projective=True)


@overload
def explain_tree(heads: ListOfTrees, root: RootMode = "single", *, lengths: Any = None) -> list[str | None]: ...
@overload
def explain_tree(heads: npt.ArrayLike, root: RootMode = "single", *, lengths: Any = None) -> Explanation: ...
def explain_tree(heads: Any, root: RootMode = "single", *, lengths: Any = None) -> Any:
    """Why heads is no tree, in words: heads that are no nodes, the first cycle, roots that are too many.

    Parameters
    ----------
    heads, root, lengths : as for `is_tree`
        Head of every word, how many may hang on ROOT, words of every sentence.

    Returns
    -------
    str, or None
        None for a tree. For several sentences, a list.

    Examples
    --------
    >>> import spantree
    >>> spantree.explain_tree([-1, 2, 1, 0])
    'the heads of words 1 and 2 go round in a cycle: 1 -> 2 -> 1'
    >>> spantree.explain_tree([[0, 0, 0, 7], [0, 2, 0, 2]])
    ['word 3 has head 7, which is no node of a sentence of 3 words; 2 words hang on ROOT, 1 and 2, where one may', None]
    """
    core_root(root)
    heads = _heads_of(heads)
    if _is_list(heads):
        return _by_item(lambda row, n: explain_tree(row, root, lengths=n), heads, lengths)
    rows = _read_rows(heads, lengths)
    if rows.ndim > 1:
        return _by_item(lambda row, n: explain_tree(row, root, lengths=n), list(rows), lengths)
    return None if lengths is not None and not np.any(lengths) else _fault(rows.tolist(), root)


@overload
def heads_to_edges(heads: ListOfTrees) -> list[IntArray]: ...
@overload
def heads_to_edges(heads: npt.ArrayLike) -> IntArray: ...
def heads_to_edges(heads: Any) -> Any:
    """0/1 adjacency matrices ``[..., head, dep]`` of heads: the form torch-struct and SynJax use.

    Parameters
    ----------
    heads : integers (..., n+1), or a list of such
        Head of every word; -1 for none.

    Returns
    -------
    int64 array (..., n+1, n+1), or a list of them
        1 at every edge.

    Examples
    --------
    >>> import spantree
    >>> spantree.heads_to_edges([-1, 2, 0])
    array([[0, 0, 1],
           [0, 0, 0],
           [0, 1, 0]])
    """
    heads = _heads_of(heads)
    if _is_list(heads):
        return [heads_to_edges(item) for item in heads]
    array = _read_rows(heads, None)
    nodes = array.shape[-1]
    if array.size and (array.min() < -1 or array.max() >= nodes):
        raise ValueError(f"heads must lie between -1 and {nodes - 1}")
    edges: IntArray = (array[..., np.newaxis, :] == np.arange(nodes)[:, np.newaxis]).astype(np.int64)
    return edges


@overload
def edges_to_heads(matrix: Sequence[npt.NDArray[Any]]) -> list[IntArray]: ...
@overload
def edges_to_heads(matrix: npt.ArrayLike) -> IntArray: ...
def edges_to_heads(matrix: Any) -> Any:
    """Heads of 0/1 adjacency matrices ``[..., head, dep]``; -1 for a node no edge enters.

    Parameters
    ----------
    matrix : array (..., n+1, n+1) of zeros and ones, or a list of such
        1 at every edge.

    Returns
    -------
    int64 array (..., n+1), or a list of them
        Head of every node.

    Examples
    --------
    >>> import spantree
    >>> spantree.edges_to_heads([[0, 0, 1], [0, 0, 0], [0, 1, 0]])
    array([-1,  2,  0])
    """
    if _is_list(matrix):
        return [edges_to_heads(item) for item in matrix]
    refuse_masked(matrix, "an adjacency matrix")
    array = np.asarray(matrix)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"an adjacency matrix holds numbers, not {array.dtype}")
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise ValueError(f"an adjacency matrix must be square, not of shape {array.shape}")
    edges = array.astype(np.bool_)
    if not np.array_equal(edges, array):
        raise ValueError("an adjacency matrix holds only zeros and ones")
    several = np.argwhere(edges.sum(axis=-2) > 1)
    if len(several):
        raise ValueError(f"node {several[0][-1]} has more than one head")
    if array.shape[-1] == 0:
        raise ValueError("an adjacency matrix has a row and a column for ROOT at least")
    heads: IntArray = np.where(edges.any(axis=-2), edges.argmax(axis=-2), -1)
    return heads


_NO_NODE = -3  # neither -1, the padding, nor -2, unknown


def _heads_of(given: Any) -> Any:
    """Of `Trees` and of a `Sample`, their heads."""
    return getattr(given, "heads", given)


def _is_list(given: Any) -> bool:
    """Whether this is a list of arrays, or of rows that differ in length; an empty list is one of no sentences."""
    if not isinstance(given, (list, tuple)):
        return False
    if not given:
        return True
    if all(isinstance(item, (list, tuple)) for item in given):
        return len({len(item) for item in given}) > 1 or _is_list(given[0])
    return all(np.ndim(item) > 0 for item in given)


def _by_item(function: Callable[[Any, Any], Any], heads: Sequence[Any], lengths: Any) -> list[Any]:
    given = [None] * len(heads) if lengths is None else lengths
    if len(given) != len(heads):
        raise ValueError(f"lengths has {len(given)} entries, heads has {len(heads)}")
    return [function(item, n) for item, n in zip(heads, given, strict=True)]


def _read_rows(heads: Any, lengths: Any) -> IntArray:
    """Heads with -1 at ROOT, and behind the last word if lengths are given."""
    array = read_integers(heads, "heads")
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ValueError("heads must have one entry per node, ROOT included")
    array[..., 0] = -1
    if lengths is not None:
        words = read_integers(lengths, "lengths")
        if words.shape != array.shape[:-1]:
            raise ValueError(f"lengths has shape {words.shape}, heads has {array.shape}")
        if words.size and (words.min() < 0 or words.max() >= array.shape[-1]):
            raise ValueError(f"lengths must lie between 0 and {array.shape[-1] - 1}")
        node = np.arange(array.shape[-1])
        inside = (node > 0) & (node <= words[..., np.newaxis])
        array[inside & (array < 0)] = _NO_NODE
        array[~inside] = -1
    return array


def _check_trees(heads: Any, root: _core.Root, lengths: Any, projective: bool) -> Any:
    if _is_list(heads):
        return _by_item(lambda item, n: _check_trees(item, root, n, projective), heads, lengths)
    array = _read_rows(heads, lengths)
    rows = array.reshape(array.size // array.shape[-1], array.shape[-1])
    result = np.empty(len(rows), np.bool_)
    _core.are_trees(rows, root, projective, result)
    if lengths is not None:
        result |= np.ravel(lengths) == 0
    return bool(result[0]) if array.ndim == 1 else result.reshape(array.shape[:-1])


def _fault(heads: list[int], root: RootMode) -> str | None:
    """What keeps heads (n+1,) from being a tree."""
    padding = next((i for i, head in enumerate(reversed(heads[1:])) if head != -1), len(heads) - 1)
    words = len(heads) - 1 - padding
    if words == 0:
        return None if len(heads) == 1 else "no word has a head"
    faults = []
    for word, head in enumerate(heads[1 : words + 1], start=1):
        if not 0 <= head <= words:
            faults.append(f"word {word} has head {head}, which is no node of a sentence of {words} words")
            break
    cycle = _first_cycle(heads, words)
    if len(cycle) == 1:
        faults.append(f"word {cycle[0]} is its own head")
    elif cycle:
        names = f"{', '.join(map(str, cycle[:-1]))} and {cycle[-1]}"
        way = " -> ".join(map(str, [*cycle, cycle[0]]))
        faults.append(f"the heads of words {names} go round in a cycle: {way}")
    roots = [word for word in range(1, words + 1) if heads[word] == 0]
    if root == "single" and len(roots) > 1:
        names = f"{', '.join(map(str, roots[:-1]))} and {roots[-1]}"
        faults.append(f"{len(roots)} words hang on ROOT, {names}, where one may")
    elif not roots:
        faults.append("no word hangs on ROOT")
    return "; ".join(faults) or None


def _first_cycle(heads: list[int], words: int) -> list[int]:
    """The words of the cycle that the first word which does not reach ROOT runs into, head after dependent."""
    done: set[int] = set()
    for start in range(1, words + 1):
        path: dict[int, None] = {}
        word = start
        while 1 <= word <= words and word not in done:
            if word in path:
                on_path = list(path)
                return on_path[on_path.index(word) :]
            path[word] = None
            word = heads[word]
        done.update(path)
    return []
