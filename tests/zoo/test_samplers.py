"""Samplers with replacement: chi-square against enumeration, and each promise of their docstrings.

Seeds are fixed. With other seeds a correct sampler would fail one chi-square test in 10,000.
"""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from tree_oracle import FALSE_ALARM, all_trees, random_scores, sampler_p_value

from spantree import zoo
from spantree.zoo import wilson as wilson_function
from spantree.zoo.colbourn import condition, edge_marginals
from spantree.zoo.hitting_time import hitting_times

DRAWS = 2500
UNBIASED_SINGLE = (
    zoo.wilson_marginal,
    zoo.wilson_marginal_rooted,
    zoo.wilson_reject,
    zoo.colbourn,
    zoo.colbourn_robust,
)
ALL = (zoo.wilson, zoo.wilson_rc, *UNBIASED_SINGLE)

# Stanojevic (2022), figure 1: ROOT leads to A and C; two trees have root A, one has root C, all of equal
# weight.
FIGURE_1 = np.where([[0, 1, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 1, 0, 0]], 0.0, -np.inf)


def small_graphs():
    """Dense, sparse, skewed, and one where most root words lead to no tree."""
    only_word_two_leads_everywhere = np.full((4, 4), -np.inf)
    only_word_two_leads_everywhere[0, 1:] = [1.0, 0.0, 1.0]
    only_word_two_leads_everywhere[2, [1, 3]] = [0.5, 0.0]
    only_word_two_leads_everywhere[1, 3] = 1.0
    return [
        random_scores(3, seed=0),
        random_scores(4, seed=2),
        random_scores(4, seed=5, forbid=0.3),
        random_scores(3, seed=3, scale=3.0),
        only_word_two_leads_everywhere,
    ]


@pytest.mark.parametrize("graph", range(5))
@pytest.mark.parametrize("sampler", UNBIASED_SINGLE)
def test_single_root_samplers_are_unbiased(sampler, graph):
    scores = small_graphs()[graph]
    trees = all_trees(scores, "single")
    assert sampler_p_value(trees, sampler(scores, DRAWS, rng=graph)) > FALSE_ALARM


@pytest.mark.parametrize("graph", range(5))
def test_spanning_tree_samplers_are_unbiased(graph):
    scores = small_graphs()[graph]
    trees = all_trees(scores, "multi")
    assert sampler_p_value(trees, zoo.wilson(scores, DRAWS, rng=graph)) > FALSE_ALARM
    assert sampler_p_value(trees, zoo.colbourn(scores, DRAWS, rng=graph, root="multi")) > FALSE_ALARM
    assert sampler_p_value(trees, zoo.colbourn_robust(scores, DRAWS, rng=graph, root="multi")) > FALSE_ALARM


def test_the_same_test_rejects_wilson_rc():
    trees = all_trees(FIGURE_1, "single")
    np.testing.assert_allclose(trees.probs, 1 / 3)
    assert np.count_nonzero(trees.heads[:, 1] == 0) == 2
    heads = zoo.wilson_rc(FIGURE_1, DRAWS, rng=0)
    assert sampler_p_value(trees, heads) < 1e-12
    for sampler in UNBIASED_SINGLE:
        assert sampler_p_value(trees, sampler(FIGURE_1, DRAWS, rng=0)) > FALSE_ALARM
    # Appendix E, equation (9), says what it samples from instead.
    biased = trees._replace(probs=np.where(trees.heads[:, 1] == 0, 0.25, 0.5))
    assert sampler_p_value(biased, heads) > FALSE_ALARM


def test_wilson_rc_refuses_an_endless_walk():
    """Words 1 and 3 may be drawn as roots, and nothing leads from them to word 2."""
    with pytest.raises(RuntimeError, match=r"word [13] was drawn .* endless"):
        zoo.wilson_rc(small_graphs()[4], 50, rng=0)


def test_wilson_rc_samples_from_equation_9():
    scores = random_scores(3, seed=1)
    trees = all_trees(scores, "single")
    root_word = np.argmax(trees.heads == 0, axis=1)
    root_weight = np.exp(scores[0, 1:])
    share = root_weight / root_weight.sum()
    probs = trees.probs * share[root_word - 1] / trees.marginals()[0, root_word]
    assert probs.sum() == pytest.approx(1)
    heads = zoo.wilson_rc(scores, DRAWS, rng=1)
    assert sampler_p_value(trees._replace(probs=probs), heads) > FALSE_ALARM
    assert sampler_p_value(trees, heads) < 1e-12


@pytest.mark.parametrize("sampler", ALL)
def test_shape_dtype_seed_and_errors(sampler):
    scores = random_scores(4, seed=6)
    before = scores.copy()
    heads = sampler(scores, 5, 7)
    assert heads.shape == (5, 5)
    assert heads.dtype == np.int64
    assert (heads[:, 0] == -1).all()
    np.testing.assert_array_equal(heads, sampler(scores, 5, np.random.default_rng(7)))
    np.testing.assert_array_equal(scores, before)
    assert sampler(scores, 2, None).shape == (2, 5)
    assert sampler(scores, 0, 0).shape == (0, 5)
    assert sampler([[0.0]], 2, 0).tolist() == [[-1], [-1]]
    assert sampler([[0, 5], [0, 0]], 1, 0).tolist() == [[-1, 0]]
    with pytest.raises(ValueError, match="negative"):
        sampler(scores, -1, 0)
    unreachable = np.zeros((3, 3))
    unreachable[:, 2] = -np.inf
    with pytest.raises(zoo.NoTreeError):
        sampler(unreachable, 1, 0)
    if sampler is not zoo.wilson:
        with pytest.raises(zoo.NoTreeError):
            sampler([[0, 0, 0], [0, 0, -np.inf], [0, -np.inf, 0]], 1, 0)


class CountingGenerator(np.random.Generator):
    """Counts the uniform numbers drawn."""

    count = 0

    def random(self, *args, **kwargs):
        self.count += 1
        return super().random(*args, **kwargs)


def test_mean_steps_is_the_mean_number_of_steps_of_wilson():
    """Also the slowness promised: words that prefer each other by x nats hold the walk for exp(x) steps."""
    scores = random_scores(4, seed=8)
    scores[0] += 2.0
    rng = CountingGenerator(np.random.PCG64(0))
    counts = []
    for _ in range(2000):
        before = rng.count
        wilson_function(scores, 1, rng)
        counts.append(rng.count - before)
    error = np.mean(counts) - zoo.mean_steps(scores)
    assert abs(error) < 4 * np.std(counts) / np.sqrt(len(counts))  # false alarm 6e-5
    trap = np.array([[0, 0, 0], [0, 0, 12], [0, 12, 0]])
    assert zoo.mean_steps(trap) == pytest.approx(np.exp(12), rel=1e-2)


def test_mean_hitting_time_is_that_of_its_definition():
    """Equation (9) by solving for h(., j) directly; the stationary distribution by long division of the chain."""
    for seed in range(5):
        scores = random_scores(5, seed, forbid=0.2)
        weights = np.exp(np.where(np.eye(5, dtype=bool), -np.inf, scores[1:, 1:]))
        step = (weights / weights.sum(axis=0)).T  # from a word to its head
        pi = np.linalg.matrix_power(0.5 * (np.eye(5) + step), 4096)[0]
        h = np.zeros((5, 5))
        for j in range(5):
            others = [i for i in range(5) if i != j]
            h[others, j] = np.linalg.solve(np.eye(4) - step[np.ix_(others, others)], np.ones(4))
        assert zoo.mean_hitting_time(scores) == pytest.approx(pi @ h @ pi, rel=1e-9)
        np.testing.assert_allclose(hitting_times(scores)[1], h, rtol=1e-9, atol=1e-9)


def test_wilson_rc_takes_the_steps_that_hitting_times_say():
    """From root word r, in expectation, the sum of pi(u) (h(u, r) + h(r, u)); 2 H on average over pi."""
    scores = random_scores(6, seed=14)
    pi, h = hitting_times(scores)
    steps = pi @ (h + h.T)
    weights = np.exp(np.where(np.eye(6, dtype=bool), -np.inf, scores[1:, 1:]))
    L = np.diag(weights.sum(axis=0)) - weights
    for r in range(6):
        others = [u for u in range(6) if u != r]
        rooted = L[np.ix_(others, others)]
        assert steps[r] == pytest.approx((rooted.diagonal() * np.linalg.inv(rooted).diagonal()).sum(), rel=1e-9)
    assert pi @ steps == pytest.approx(2 * zoo.mean_hitting_time(scores), rel=1e-12)
    rng = CountingGenerator(np.random.PCG64(2))
    only_word_3 = scores.copy()
    only_word_3[0] = -np.inf
    only_word_3[0, 3] = 0.0
    zoo.wilson_rc(only_word_3, 4000, rng)
    # one draw a tree for the root; 5 standard errors if a walk's length deviates by its mean: false alarm 6e-7
    assert rng.count / 4000 - 1 == pytest.approx(steps[2], abs=5 * steps[2] / np.sqrt(4000))


def test_mean_hitting_time_where_the_walk_cannot_go_everywhere():
    chain = np.full((4, 4), -np.inf)
    chain[1, 2] = chain[2, 3] = chain[0, 1] = 0.0
    assert zoo.mean_hitting_time(chain) == 0.0  # all of pi lies on word 1
    assert zoo.mean_hitting_time([[0.0]]) == 0.0
    assert zoo.mean_hitting_time([[0, 1], [0, 0]]) == 0.0
    with pytest.raises(ValueError, match="no word leads to all"):
        zoo.mean_hitting_time([[0, 0, 0], [0, 0, -np.inf], [0, -np.inf, 0]])


def test_the_published_wilson_marginal_walks_away_from_its_root():
    """It takes more steps than the variant that does not, by those of the walks from the root word."""
    scores = random_scores(6, seed=15)
    counts = {}
    for sampler in (zoo.wilson_marginal, zoo.wilson_marginal_rooted):
        rng = CountingGenerator(np.random.PCG64(3))
        sampler(scores, 500, rng)
        counts[sampler] = rng.count
    assert counts[zoo.wilson_marginal] > 1.2 * counts[zoo.wilson_marginal_rooted]


@pytest.mark.parametrize("shift", [-3.0, 50.0, 800.0])
def test_wilson_marginal_takes_root_scores_on_any_level_above(shift):
    """Trees with one root do not know the level of the root scores; `exp` of 800 nats overflows, of -800 is 0."""
    scores = random_scores(3, seed=16)
    trees = all_trees(scores, "single")
    scores[0] += shift
    for sampler in (zoo.wilson_marginal, zoo.wilson_marginal_rooted):
        assert sampler_p_value(trees, sampler(scores, DRAWS, rng=4)) > FALSE_ALARM


def test_wilson_marginal_refuses_a_way_to_root_that_underflows():
    """As printed, the walk would leave the drawn word for others some exp(800) times."""
    scores = random_scores(3, seed=16)
    scores[0] -= 800.0
    with pytest.raises(FloatingPointError, match="underflows"):
        zoo.wilson_marginal(scores, 1, rng=0)
    assert zoo.wilson_marginal_rooted(scores, 1, rng=0).shape == (1, 4)


def test_mean_tries_is_the_mean_number_of_tries_of_wilson_reject(monkeypatch):
    scores = random_scores(5, seed=9)
    tries = 0
    module = importlib.import_module("spantree.zoo.wilson_reject")
    tree = module.spanning_tree

    def counted(steps, rng):
        nonlocal tries
        tries += 1
        return tree(steps, rng)

    monkeypatch.setattr(module, "spanning_tree", counted)
    zoo.wilson_reject(scores, 3000, 0)
    success = 1 / zoo.mean_tries(scores)
    deviation = np.sqrt(1 - success) / success / np.sqrt(3000)
    assert abs(tries / 3000 - 1 / success) < 4 * deviation  # false alarm 6e-5


@pytest.mark.parametrize("n", [2, 5, 20, 100])
def test_wilson_reject_needs_fewer_than_e_tries_on_equal_weights(n):
    tries = zoo.mean_tries(np.zeros((n + 1, n + 1)))
    assert tries == pytest.approx(((n + 1) / n) ** (n - 1))
    assert tries < np.e


def test_wilson_reject_slows_down_without_bound():
    scores = np.zeros((5, 5))
    scores[0] = 20.0
    assert zoo.mean_tries(scores) == pytest.approx(np.exp(3 * 20.0) / 4**3, rel=1e-6)


@pytest.mark.parametrize("root", ["single", "multi"])
def test_the_state_machine_multiplies_to_the_probability_of_every_tree(root):
    for scores in (random_scores(4, seed=10), random_scores(4, seed=11, forbid=0.3)):
        trees = all_trees(scores, root)
        for heads, prob in zip(trees.heads, trees.probs, strict=True):
            for machine in (zoo.PUBLISHED, zoo.ROBUST):
                assert tree_prob(scores, heads, root, machine) == pytest.approx(prob, rel=1e-10)


def tree_prob(scores, heads, root, machine=zoo.ROBUST):
    state = zoo.initial_state(scores, root)
    prob = 1.0
    for head in heads[1:].tolist():
        probs = machine.transition_probs(state)
        assert probs.sum() == pytest.approx(1)
        prob *= probs[head]
        state = machine.transit_state(state, head)
    return prob


def test_rank_one_updates_keep_the_inverse_of_the_conditioned_graph():
    for root in ("single", "multi"):
        start = zoo.initial_state(random_scores(8, seed=12), root)
        for machine in (zoo.PUBLISHED, zoo.ROBUST):
            state = start
            for head in (2, 3, 4, 5, 6, 7, 0):
                state = machine.transit_state(state, head)
                np.testing.assert_allclose(state.L, zoo.laplacian(state.W, root))
                np.testing.assert_allclose(state.B.T @ state.L, np.eye(8), atol=1e-9)
        # figure 5 keeps the same matrices in place
        L, B = start.L.copy(), start.B.copy()
        state = start
        for word, head in enumerate((2, 3, 4, 5, 6, 7, 0), start=1):
            np.testing.assert_allclose(
                edge_marginals(start.W, B, word, root), zoo.transition_probs(state), atol=1e-10, rtol=1e-8
            )
            condition(start.W, L, B, head, word, root)
            state = zoo.transit_state(state, head)
            np.testing.assert_allclose(L, state.L)
            np.testing.assert_allclose(B, state.B, atol=1e-8)


def test_heads_that_close_a_cycle_have_probability_exactly_zero_in_the_robust_machine():
    state = zoo.initial_state(random_scores(4, seed=13))
    for head in (2, 3):
        state = zoo.ROBUST.transit_state(state, head)
    probs = zoo.ROBUST.transition_probs(state)
    assert probs[1] == probs[2] == probs[3] == 0.0
    published = zoo.transition_probs(state)
    assert np.abs(published[1:4]).max() < 1e-15
    assert published[1:4].any()


def test_sharp_scores_break_colbourn():
    """Fine at 1 nat; at 20 nats with several roots, conditional probabilities are wrong or gone."""
    wrong = 0
    for seed in range(10):
        smooth = random_scores(5, seed)
        for scale in (1.0, 20.0):
            trees = all_trees(scale * smooth, "multi")
            best = int(np.argmax(trees.probs))
            try:
                prob = tree_prob(scale * smooth, trees.heads[best], "multi")
            except (FloatingPointError, np.linalg.LinAlgError):
                prob = np.nan
            if scale == 1.0:
                assert prob == pytest.approx(trees.probs[best], rel=1e-10)
            elif not abs(prob - trees.probs[best]) < 0.1:
                wrong += 1
    assert wrong >= 1
