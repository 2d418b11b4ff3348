"""Every published algorithm, readable: one small NumPy file each, under its published name.

The zoo is the independent oracle for the fast core, the place to learn from, and the subject of the
reproduced experiments. It is written to be read beside the papers, not to be fast, and nothing fast imports
it. `docs/papers.md` says for each algorithm, equation, figure and table of the papers where it is, and
`docs/errata.md` what is misprinted there.

The contract
------------
What follows holds for every animal and is not repeated in its docstring.

- ``scores[h, d]`` is the log-weight of the edge head ``h`` -> dependent ``d``, shape ``(n+1, n+1)``, node 0 is ROOT;
  column 0 and the diagonal are ignored, ``-inf`` forbids an edge. Labelled scores have a last axis of labels. One
  sentence a call; anything NumPy turns into an array; never modified.
- ``root="single"``: exactly one edge leaves ROOT. ``"multi"``: at least one.
- A tree is its heads, int64 of shape ``(n+1,)`` with ``heads[0] = -1``. The sentence without words has one tree, the
  empty one, whatever `root` says.
- ``k`` is a number of trees, not negative; ``rng`` is None, a seed, or a ``numpy.random.Generator``.
- ``ValueError``: the scores are not a square matrix, or a true edge scores NaN or ``+inf`` (the message names it); so
  for any argument that makes no sense. `NoTreeError`, a ``ValueError``: no tree of the wanted kind exists.
- ``FloatingPointError`` or ``numpy.linalg.LinAlgError``, from inference and sampling: every tree has an edge whose
  weight underflows beside the best one into the same word, or the Laplacian is singular to working precision.
- Ties are broken the same way every time. Costs count everything, reading and checking too, and hold for every graph; m
  is the number of edges that are not forbidden.

Decoding
--------

============================  ==================  ================  ===============================================
animal                        roots               cost              published in
============================  ==================  ================  ===============================================
`greedy`                      maybe not a tree    O(n^2)            Stanojevic & Cohen (2021), Figures 9, 10
`arcmax`                      as its decoder      O(n^2) + decoder  Stanojevic & Cohen (2021), Figure 9, App. B.2
`chu_liu_edmonds`             several             O(n^3)            Chu & Liu (1965), Edmonds (1967)
`tarjan`                      several             O(n^2)            Stanojevic & Cohen (2021), Alg. 1, 2, Figure 12
`tarjan_sparse`               several             O(m log n)        Stanojevic & Cohen (2021), Alg. 1, 2
`gabow_galil_spencer_tarjan`  several             O(m + n log n)    Gabow, Galil, Spencer & Tarjan (1986)
`naive_single_root`           one                 n decoders        Stanojevic & Cohen (2021), section 3
`root_preselection`           one                 r + 1 decoders    Stanojevic & Cohen (2021), section 3
`reweighting`                 one                 one decoder       Stanojevic & Cohen (2021), section 4, Figure 8
`reweighting_kbest`           one                 one k-best        Stanojevic & Cohen (2021), section 4
`gabow_tarjan`                one, or q           O(n^2)            Zmigrod et al. (2020), Alg. 1
`gabow_tarjan_sparse`         one                 O(m log n)        Zmigrod et al. (2020), Alg. 1
`eisner`                      either, projective  O(n^3)            Eisner (1996)
`camerini_kbest`              several             O(k n^2)          Camerini et al. (1980)
`single_root_kbest`           one                 O(k n^2)          Zmigrod et al. (2021c)
`kbest`                       either              O(k n^2)          the two above
`enumerate_trees`             either              O(T n^2)          brute force
============================  ==================  ================  ===============================================

Zmigrod et al. (2020) is "Please Mind the Root", (2021c) "On Finding the K-best Non-projective Dependency
Trees"; Stanojevic & Cohen (2021) is "A Root of a Problem". Sparse graphs are an `EdgeList` or a SciPy matrix.

Inference
---------

=========================================  =======  =======================  =================================
animal                                     roots    cost                     in Zmigrod et al. (2021a)
=========================================  =======  =======================  =================================
`laplacian`, `laplacian_pullback`          either   O(n^2)                   section 2, Koo et al. (2007)
`sum_labels`                               -        O(n^2 Y)                 proposition 2
`matrix_tree`, `labelled_matrix_tree`      either   O(n^3)                   section 2, equations (14), (22)
`log_partition`                            either   O(n^3)                   theorem 1, proposition 1
`adjugate_gradient`                        either   O(n^3)                   footnote 16
`zeroth_order`, `renyi_entropy`, `norm`    either   O(n^3) each              equation (12), footnote 10
`t1`                                       either   O(n^3 + n^2 R')          figure 2
`t2v`                                      either   O(R (n^3 + n^2 S'))      figure 3
`t2h`                                      either   O(n^4 R' S')             figure 3
`t2`                                       either   O(n^3 (R' + S') + ...)   figure 3
`entropy`, `kl`, `cross_entropy`           either   O(n^3)                   sections 6.2, 6.3
`entropy_smith_eisner`                     either   O(n^4)                   footnote 21, the past approach
`risk`, `labelled_risk`                    either   O(n^3)                   section 6.1
`entropy_gradient`, `kl_gradient`,
`cross_entropy_gradient`, `risk_gradient`,
`labelled_risk_gradient`                   either   O(n^3)                   remark after proposition 7, (21)
`generalized_expectation`                  either   O(n^3 + n^2 F')          section 6.4, footnote 23
`generalized_expectation_druck_smith`      either   O(n^4 F')                section 6.4, the past approach
=========================================  =======  =======================  =================================

R' of R features are nonzero on an edge. Features are arrays or `EdgeFeatures`; `edge_indicators` are the one-hot edges.

Sampling
--------

=====================================  =======  ====================  ========================================
animal                                 roots    cost of k trees       published in
=====================================  =======  ====================  ========================================
`wilson`                               several  O(n^2) + k walks      Wilson (1996)
`wilson_rc` (biased)                   one      O(n^2) + k walks      Zmigrod et al. (2021b), figure 3
`wilson_marginal`                      one      O(n^3) + k walks      Stanojevic (2022), algorithm 3
`wilson_marginal_rooted`               one      O(n^3) + k walks      Stanojevic (2022), sections 4.1, 4.2
`wilson_reject`                        one      `mean_tries` wilsons  Stanojevic (2022), algorithm 4
`colbourn`                             either   O(k n^3)              Zmigrod et al. (2021b), figure 5
`colbourn_robust`                      either   O(k n^3)              not published in this form
`swor_zmigrod`                         either   O(k n^3 + k^2 n)      Zmigrod et al. (2021b), figure 7
`swor_zmigrod_robust`                  either   O(k n^3 + k^2 n)      not published in this form
`trie_swor`                            either   O(k n^3)              Shi et al. (2020); Stanojevic (2022)
`sbs_swor`                             either   O(k n^3)              Kool et al. (2019); Stanojevic (2022)
=====================================  =======  ====================  ========================================

The state machine of `trie_swor` and `sbs_swor` is `initial_state`, `transition_probs` and `transit_state`, Stanojevic
(2022), algorithm 8, as `PUBLISHED`; `ROBUST` is ours. Walks take steps of O(log n), as many as `mean_steps` says for
`wilson` and `mean_hitting_time` for walks between words.
Zmigrod et al. (2021a) is "Efficient Computation of Expectations under Spanning Tree Distributions", (2021b) "Efficient
Sampling of Dependency Structures"; Stanojevic (2022) is "Unbiased and Efficient Sampling of Dependency Trees".
"""

from ._edges import EdgeList
from ._features import EdgeFeatures, edge_indicators
from ._graph import NoTreeError
from .adjugate import adjugate_gradient
from .camerini_kbest import camerini_kbest
from .chu_liu_edmonds import chu_liu_edmonds
from .colbourn import colbourn
from .colbourn_robust import ROBUST, colbourn_robust
from .eisner import eisner
from .entropy import entropy
from .entropy_smith_eisner import entropy_smith_eisner
from .enumerate_trees import enumerate_trees
from .gabow_galil_spencer_tarjan import gabow_galil_spencer_tarjan
from .gabow_tarjan import gabow_tarjan
from .gabow_tarjan_sparse import gabow_tarjan_sparse
from .generalized_expectation import generalized_expectation, generalized_expectation_druck_smith
from .gradients import (
    cross_entropy_gradient,
    entropy_gradient,
    kl_gradient,
    labelled_risk_gradient,
    risk_gradient,
)
from .greedy import arcmax, greedy, is_projective_tree, is_tree
from .hitting_time import mean_hitting_time
from .kbest import kbest
from .kl import cross_entropy, kl
from .laplacian import laplacian, laplacian_pullback, sum_labels
from .matrix_tree import labelled_matrix_tree, log_partition, matrix_tree
from .naive_single_root import naive_single_root
from .reweighting import reweighting, reweighting_kbest
from .risk import labelled_risk, risk
from .root_preselection import root_preselection
from .sbs_swor import sbs_swor
from .single_root_kbest import single_root_kbest
from .state_machine import PUBLISHED, Machine, initial_state, transit_state, transition_probs
from .swor_zmigrod import swor_zmigrod
from .swor_zmigrod_robust import swor_zmigrod_robust
from .t1 import t1
from .t2 import t2
from .t2h import t2h
from .t2v import t2v
from .tarjan import tarjan
from .tarjan_sparse import tarjan_sparse
from .trie_swor import trie_swor
from .wilson import mean_steps, wilson
from .wilson_marginal import wilson_marginal, wilson_marginal_rooted
from .wilson_rc import wilson_rc
from .wilson_reject import mean_tries, wilson_reject
from .zeroth_order import norm, renyi_entropy, zeroth_order

__all__ = [
    "PUBLISHED",
    "ROBUST",
    "EdgeFeatures",
    "EdgeList",
    "Machine",
    "NoTreeError",
    "adjugate_gradient",
    "arcmax",
    "camerini_kbest",
    "chu_liu_edmonds",
    "colbourn",
    "colbourn_robust",
    "cross_entropy",
    "cross_entropy_gradient",
    "edge_indicators",
    "eisner",
    "entropy",
    "entropy_gradient",
    "entropy_smith_eisner",
    "enumerate_trees",
    "gabow_galil_spencer_tarjan",
    "gabow_tarjan",
    "gabow_tarjan_sparse",
    "generalized_expectation",
    "generalized_expectation_druck_smith",
    "greedy",
    "initial_state",
    "is_projective_tree",
    "is_tree",
    "kbest",
    "kl",
    "kl_gradient",
    "labelled_matrix_tree",
    "labelled_risk",
    "labelled_risk_gradient",
    "laplacian",
    "laplacian_pullback",
    "log_partition",
    "matrix_tree",
    "mean_hitting_time",
    "mean_steps",
    "mean_tries",
    "naive_single_root",
    "norm",
    "renyi_entropy",
    "reweighting",
    "reweighting_kbest",
    "risk",
    "risk_gradient",
    "root_preselection",
    "sbs_swor",
    "single_root_kbest",
    "sum_labels",
    "swor_zmigrod",
    "swor_zmigrod_robust",
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
    "wilson_marginal_rooted",
    "wilson_rc",
    "wilson_reject",
    "zeroth_order",
]
