"""Every published algorithm, readable: one small NumPy file each, under its published name.

The zoo is the independent oracle for the fast core, the place to learn from, and the subject of the reproduced
experiments. It is written to be read beside the papers, not to be fast, and nothing fast imports it.

``scores[h, d]`` is the log-weight of the edge head ``h`` -> dependent ``d``, shape ``(n+1, n+1)``, node 0 is ROOT; column 0
and the diagonal are ignored, ``-inf`` forbids an edge. Trees are heads, shape ``(n+1,)`` with ``heads[0] = -1``. Every animal
reads one sentence and raises `NoTreeError`, a ``ValueError``, when it has no tree of the wanted kind. The sentence
without words has one tree, the empty one.

Decoding
--------

=====================  ==================  ================  ===============================================================
animal                 roots               cost              published in
=====================  ==================  ================  ===============================================================
`greedy`               maybe not a tree    O(n^2)            Stanojevic & Cohen (2021), section 5, Figures 9, 10
`arcmax`               as its decoder      O(n^2) + decoder  Stanojevic & Cohen (2021), section 5, Figure 9
`chu_liu_edmonds`      several             O(n^3)            Chu & Liu (1965), Edmonds (1967); Zmigrod et al. (2020), Alg. 1
`tarjan`               several             O(n^2)            Tarjan (1977); Stanojevic & Cohen (2021), Alg. 1, 2, Figure 12
`tarjan_sparse`        several             O(m log n)        Tarjan (1977); Stanojevic & Cohen (2021), Alg. 1, 2
`naive_single_root`    one                 O(n^3)            Stanojevic & Cohen (2021), section 3
`root_preselection`    one                 O(n^3), avg n^2   Stanojevic & Cohen (2021), section 3
`reweighting`          one                 O(n^2)            Stanojevic & Cohen (2021), section 4, Figure 8
`gabow_tarjan`         one                 O(n^2)            Gabow & Tarjan (1984); Zmigrod et al. (2020), Alg. 1
`eisner`               either, projective  O(n^3)            Eisner (1996); one root: Stanojevic & Cohen (2021), section 4
`camerini_kbest`       several             O(k n^2)          Camerini et al. (1980)
`single_root_kbest`    one                 O(k n^2)          Zmigrod et al. (2021), "On Finding the K-best ..."
`kbest`                either              O(k n^2)          the two above
`enumerate_trees`      either              O(T n^2)          brute force
=====================  ==================  ================  ===============================================================
"""

# decoding
from ._graph import NoTreeError
from .camerini_kbest import camerini_kbest
from .chu_liu_edmonds import chu_liu_edmonds
from .eisner import eisner
from .enumerate_trees import enumerate_trees
from .gabow_tarjan import gabow_tarjan
from .greedy import arcmax, greedy, is_projective_tree, is_tree
from .kbest import kbest
from .naive_single_root import naive_single_root
from .reweighting import reweighting
from .root_preselection import root_preselection
from .single_root_kbest import single_root_kbest
from .tarjan import tarjan
from .tarjan_sparse import tarjan_sparse

__all__ = [
    "NoTreeError",
    "arcmax",
    "camerini_kbest",
    "chu_liu_edmonds",
    "eisner",
    "enumerate_trees",
    "gabow_tarjan",
    "greedy",
    "is_projective_tree",
    "is_tree",
    "kbest",
    "naive_single_root",
    "reweighting",
    "root_preselection",
    "single_root_kbest",
    "tarjan",
    "tarjan_sparse",
]
