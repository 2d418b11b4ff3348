"""Every published algorithm, readable: one small NumPy file each, under its published name.

The zoo is the independent oracle for the fast core, the place to learn from, and the subject of the
reproduced experiments. It is written to be read beside the papers, not to be fast, and nothing fast imports
it.

``scores[h, d]`` is the log-weight of the edge head ``h`` -> dependent ``d``, shape ``(n+1, n+1)``, node 0
is ROOT; column 0 and the diagonal are ignored, ``-inf`` forbids an edge. Trees are heads, shape ``(n+1,)``
with ``heads[0] = -1``. Every animal reads one sentence and raises `NoTreeError`, a ``ValueError``, when it
has no tree of the wanted kind. The sentence without words has one tree, the empty one.

Decoding
--------

===================  ==================  ================  ===============================================
animal               roots               cost              published in
===================  ==================  ================  ===============================================
`greedy`             maybe not a tree    O(n^2)            Stanojevic & Cohen (2021), Figures 9, 10
`arcmax`             as its decoder      O(n^2) + decoder  Stanojevic & Cohen (2021), Figure 9
`chu_liu_edmonds`    several             O(n^3)            Chu & Liu (1965), Edmonds (1967)
`tarjan`             several             O(n^2)            Stanojevic & Cohen (2021), Alg. 1, 2, Figure 12
`tarjan_sparse`      several             O(m log n)        Stanojevic & Cohen (2021), Alg. 1, 2
`naive_single_root`  one                 O(n^3)            Stanojevic & Cohen (2021), section 3
`root_preselection`  one                 O(n^3), avg n^2   Stanojevic & Cohen (2021), section 3
`reweighting`        one                 O(n^2)            Stanojevic & Cohen (2021), section 4, Figure 8
`gabow_tarjan`       one                 O(n^2)            Zmigrod et al. (2020), Alg. 1
`eisner`             either, projective  O(n^3)            Eisner (1996)
`camerini_kbest`     several             O(k n^2)          Camerini et al. (1980)
`single_root_kbest`  one                 O(k n^2)          Zmigrod et al. (2021c)
`kbest`              either              O(k n^2)          the two above
`enumerate_trees`    either              O(T n^2)          brute force
===================  ==================  ================  ===============================================

Zmigrod et al. (2020) is "Please Mind the Root", (2021c) "On Finding the K-best Non-projective Dependency
Trees"; Stanojevic & Cohen (2021) is "A Root of a Problem".

Inference
---------

=====================================  =======  ====================  ========================================
animal                                 roots    cost                  published in
=====================================  =======  ====================  ========================================
`laplacian`, `laplacian_pullback`      either   O(n^2)                Koo et al. (2007)
`sum_labels`                           -        O(n^2 Y)              Zmigrod et al. (2021a), proposition 2
`matrix_tree`, `labelled_matrix_tree`  either   O(n^3)                Tutte (1984); Koo et al. (2007)
`t1`                                   either   O(n^3 + n^2 R)        Zmigrod et al. (2021a), figure 2
`t2v`                                  either   O(R (n^3 + n^2 S))    Zmigrod et al. (2021a), figure 3
`t2h`                                  either   O(n^4 R + n^3 R S)    Zmigrod et al. (2021a), figure 3
`t2`                                   either   O(n^3 (R + S) + ...)  Zmigrod et al. (2021a), figure 3
`entropy`                              either   O(n^3)                Martins et al. (2010)
`entropy_smith_eisner`                 either   O(n^4)                Smith & Eisner (2007)
`kl`, `risk`                           either   O(n^3)                Zmigrod et al. (2021a), section 6
`generalized_expectation`              either   O(n^3 + n^2 F)        Zmigrod et al. (2021a), section 6.4
`generalized_expectation_druck_smith`  either   O(n^4 F)              Druck & Smith (2009)
`renyi_entropy`, `norm`                either   O(n^3)                Zmigrod et al. (2021a), footnote 10
=====================================  =======  ====================  ========================================

Sampling
--------

=====================================  =======  ====================  ========================================
animal                                 roots    cost of k trees       published in
=====================================  =======  ====================  ========================================
`wilson`                               several  O(k `mean_steps`)     Wilson (1996)
`wilson_rc` (biased)                   one      O(k h)                Zmigrod et al. (2021b), figure 3
`wilson_marginal`                      one      O(n^3 + k h)          Stanojevic (2022), algorithm 3
`wilson_reject`                        one      `mean_tries` wilsons  Stanojevic (2022), algorithm 4
`colbourn`                             either   O(k n^3)              Colbourn et al. (1996)
`swor_zmigrod`                         either   O(k n^3 + k^2 n)      Zmigrod et al. (2021b), figure 7
`trie_swor`                            either   O(k n^3)              Shi et al. (2020); Stanojevic (2022)
`sbs_swor`                             either   O(k n^3)              Kool et al. (2019); Stanojevic (2022)
=====================================  =======  ====================  ========================================

The state machine of `colbourn` is `initial_state`, `transition_probs` and `transit_state`. Zmigrod et al.
(2021a) is "Efficient Computation of Expectations under Spanning Tree Distributions", (2021b) "Efficient
Sampling of Dependency Structures"; h is the mean hitting time between words.
"""

from ._graph import NoTreeError
from .camerini_kbest import camerini_kbest
from .chu_liu_edmonds import chu_liu_edmonds
from .colbourn import colbourn, initial_state, transit_state, transition_probs
from .druck_smith import generalized_expectation_druck_smith
from .eisner import eisner
from .entropy import entropy
from .entropy_smith_eisner import entropy_smith_eisner
from .enumerate_trees import enumerate_trees
from .gabow_tarjan import gabow_tarjan
from .generalized_expectation import generalized_expectation
from .greedy import arcmax, greedy, is_projective_tree, is_tree
from .kbest import kbest
from .kl import kl
from .laplacian import laplacian, laplacian_pullback, sum_labels
from .matrix_tree import labelled_matrix_tree, log_partition, matrix_tree
from .naive_single_root import naive_single_root
from .reweighting import reweighting
from .risk import risk
from .root_preselection import root_preselection
from .sbs_swor import sbs_swor
from .single_root_kbest import single_root_kbest
from .swor_zmigrod import swor_zmigrod
from .t1 import t1
from .t2 import t2
from .t2h import t2h
from .t2v import t2v
from .tarjan import tarjan
from .tarjan_sparse import tarjan_sparse
from .trie_swor import trie_swor
from .wilson import mean_steps, wilson
from .wilson_marginal import wilson_marginal
from .wilson_rc import wilson_rc
from .wilson_reject import mean_tries, wilson_reject
from .zeroth_order import norm, renyi_entropy

__all__ = [
    "NoTreeError",
    "arcmax",
    "camerini_kbest",
    "chu_liu_edmonds",
    "colbourn",
    "eisner",
    "entropy",
    "entropy_smith_eisner",
    "enumerate_trees",
    "gabow_tarjan",
    "generalized_expectation",
    "generalized_expectation_druck_smith",
    "greedy",
    "initial_state",
    "is_projective_tree",
    "is_tree",
    "kbest",
    "kl",
    "labelled_matrix_tree",
    "laplacian",
    "laplacian_pullback",
    "log_partition",
    "matrix_tree",
    "mean_steps",
    "mean_tries",
    "naive_single_root",
    "norm",
    "renyi_entropy",
    "reweighting",
    "risk",
    "root_preselection",
    "sbs_swor",
    "single_root_kbest",
    "sum_labels",
    "swor_zmigrod",
    "t1",
    "t2",
    "t2h",
    "t2v",
    "tarjan",
    "tarjan_sparse",
    "transit_state",
    "transition_probs",
    "trie_swor",
    "wilson",
    "wilson_marginal",
    "wilson_rc",
    "wilson_reject",
]
