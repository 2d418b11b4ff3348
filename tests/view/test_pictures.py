"""Pictures of trees: arcs by nesting, arrowheads at the dependents, labels at the apex, any script."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wcwidth import wcswidth

import spantree
from spantree.samples import load_samples
from spantree.view import displacy, dot, heat_map, matplotlib_axes, text_arcs, text_rows, tikz, tree_svg
from spantree.view.layout import levels, spread

SVG = "{http://www.w3.org/2000/svg}"
SCRIPTS = [
    "a",
    "telescope",
    "日本語",
    "e\u0301tude",
    "שלום",
    "المدرسة",
    "नमस्ते",
    "<b>&\"'",
    "\x1b[2J\t\u202e\ufffe\uffff",
    "",
    "👩‍👩‍👧",
]

trees = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        st.lists(st.sampled_from(SCRIPTS), min_size=n, max_size=n),
        st.integers(0, 10**6).map(
            lambda seed: spantree.decode(np.random.default_rng(seed).normal(size=(n + 1, n + 1)))
        ),
        st.none() | st.lists(st.sampled_from(["", "root", "nsubj:pass", "宾语", "<&>"]), min_size=n, max_size=n),
    )
)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda s: s[0] < s[1]), max_size=12))
def test_levels(spans):
    found = levels(spans)
    for i, (a, b) in enumerate(spans):
        for j, (c, d) in enumerate(spans):
            if i != j and max(a, c) < min(b, d):
                assert found[i] != found[j]
                if a <= c and d <= b and (a, b) != (c, d):
                    assert found[i] > found[j]
    assert len(spans) < 2 or max(found) <= len(spans)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.data())
def test_boxes_stand_apart(widths, data):
    pair = st.tuples(st.integers(0, len(widths) - 1), st.integers(0, len(widths) - 1), st.integers(0, 40))
    wanted = data.draw(st.lists(pair.filter(lambda p: p[0] != p[1]), max_size=6))
    centres = spread(widths, 2, wanted)
    for i in range(1, len(widths)):
        assert centres[i] - centres[i - 1] >= (widths[i] + widths[i - 1]) / 2 + 2
    assert all(abs(centres[i] - centres[j]) >= distance for i, j, distance in wanted)


@settings(max_examples=200, deadline=None)
@given(trees)
def test_text(tree):
    """Every arrowhead stands above its word, whatever the words are made of."""
    words, heads, labels = tree
    *arcs, line = text_arcs(words, heads, labels).split("\n")
    assert all("\x1b" not in row for row in [*arcs, line])
    assert arcs[-1].count("▼") == len(words)
    columns = [wcswidth(arcs[-1][: match.start()]) for match in re.finditer("▼", arcs[-1])]
    at, cells = 0, []
    for piece in re.split("( +)", line):
        cells.append((at, at + max(wcswidth(piece), 0), piece.strip(" \u200e")))
        at += max(wcswidth(piece), 0)
    tokens = [(start, end) for start, end, text in cells if text and text != "ROOT"]
    if all(words) and not any(" " in word for word in words):
        assert len(tokens) == len(words)
        for column, (start, end) in zip(columns, tokens, strict=True):
            assert start - 1 <= column <= end
    for label in labels or ():
        assert label in "\n".join(arcs)


def test_a_sentence_from_right_to_left():
    *_, line = text_arcs(["ذهب", "الولد"], [-1, 0, 1]).split("\n")
    assert [piece for piece in re.split("[ \u200e]+", line) if piece] == ["الولد", "ذهب", "ROOT"]
    assert line.startswith("\u200e")


def test_text_is_what_it_was():
    heads = [-1, 2, 0, 4, 2, 7, 7, 2]
    words = load_samples()[0].words
    assert text_arcs(words, heads, ["nsubj", "root", "det", "obj", "case", "det", "nmod"]).split("\n") == [
        "                  ┌─────────────nmod─────────────┐",
        "   ┌────root─────┐├───obj────┐     ┌────case────┐│",
        "   │    ┌─nsubj─┐││   ┌─det─┐│     │     ┌─det──┤│",
        "   │    ▼       │▼│   ▼     │▼     ▼     ▼      │▼",
        "ROOT   She      saw  the    man  with   the  telescope",
    ]


def test_rows():
    shown = text_rows(["日本", "a"], [-1, 2, -1], None, [1, 0.25, 0.5])
    assert shown.split("\n") == ["1  日本  <- 2 a   0.25", "2  a     -        0.50"]
    assert text_rows([], [-1]) == ""


def shapes(picture):
    """Each arc of a picture: what it is called, the tip of its arrow, the text at its apex."""
    root = ElementTree.fromstring(picture)
    for group in root.iter(f"{SVG}g"):
        paths = [path.get("d") for path in group.iter(f"{SVG}path")]
        if group.find(f"{SVG}title") is not None and paths:
            tip = re.match(r"M([-\d.]+) ([-\d.]+)l", paths[1])
            texts = [(float(text.get("x")), float(text.get("y")), text.text) for text in group.iter(f"{SVG}text")]
            yield group.find(f"{SVG}title").text, (float(tip[1]), float(tip[2])), texts, paths[0]


@settings(max_examples=200, deadline=None)
@given(trees, st.booleans())
def test_svg(tree, probable):
    words, heads, labels = tree
    n = len(words)
    marginals = spantree.marginals(np.random.default_rng(n).normal(size=(n + 1, n + 1))) if probable else None
    picture = tree_svg(words, heads, labels, marginals=marginals, threshold=0.2)
    root = ElementTree.fromstring(re.sub("�", "?", picture))
    placed = [(float(text.get("x")), text.text) for text in root.findall(f"{SVG}text")]
    assert len(placed) == n
    arcs = list(shapes(picture))
    expected = (
        0
        if marginals is None
        else sum((marginals[:, dep] >= 0.2).sum() - (marginals[heads[dep], dep] >= 0.2) for dep in range(1, n + 1))
    )
    assert len(arcs) == n + expected
    width = float(root.get("width"))
    for (_, (x, _), texts, _), dep in zip(arcs, range(1, n + 1), strict=False):
        nearest = min(range(n), key=lambda i: abs(placed[i][0] - x))
        assert nearest == dep - 1
        assert all(0 < text_x < width for text_x, _, _ in texts)
    assert not re.search(r"<script|href|url\(|@import|onload", picture)


def test_svg_by_hand():
    sample = load_samples()[0]
    labels = ["nsubj", "root", "det", "obj", "case", "det", "nmod"]
    dist = spantree.TreeDistribution(sample.scores)
    picture = tree_svg(sample.words, dist.argmax(), labels, marginals=dist.marginals(), threshold=0.3)
    arcs = {title: (tip, texts) for title, tip, texts, _ in shapes(picture)}
    assert list(arcs)[-1] == f"man → telescope {dist.marginals()[4, 7]:.3f}"  # the one other head above 0.3, below
    assert arcs[list(arcs)[-1]][0][1] > arcs[next(iter(arcs))][0][1]
    apex = {title.split("(")[1].split(")")[0]: texts[0][1] for title, (_, texts) in arcs.items() if "(" in title}
    assert apex["root"] < apex["nmod"] < apex["obj"] < apex["nsubj"]  # higher is smaller
    assert apex["nmod"] < apex["case"]
    assert picture.count("entropy of its head") == 7
    assert "prefers-color-scheme:dark" in picture
    assert "style" not in tree_svg(sample.words, dist.argmax(), standalone=False)


def crossed_labels(picture):
    """Labels through which another arc goes up or down."""
    arcs = list(shapes(picture))
    for title, _, texts, _ in arcs:
        for x, y, label in texts:
            half = 0.57 * 11 * len(label) / 2
            for other, _, _, path in arcs:
                ups = re.findall(r"M([\d.]+) ([\d.]+)V([\d.]+)Q", path) + re.findall(
                    r"M([\d.]+) ([\d.]+)V([\d.]+)$", path
                )
                ups += [
                    (right, low, high)
                    for right, low, high in re.findall(r"Q[\d.]+ [\d.]+ ([\d.]+) ([\d.]+)V([\d.]+)$", path)
                ]
                for at, low, high in ups:
                    inside = min(float(low), float(high)) < y - 4 < max(float(low), float(high))
                    if other != title and abs(float(at) - x) < half and inside:
                        yield label, other


def test_no_arc_goes_through_a_label():
    """ROOT is a head of the word in the middle of an arc: its arrow would go through the arc's label."""
    marginals = np.zeros((6, 6))
    marginals[0, 3], marginals[1, 5] = 0.16, 0.19
    picture = tree_svg(list("abcde"), np.full(6, -1), marginals=marginals)
    (_, (arrow, _), root, _), (_, _, label, _) = shapes(picture)
    assert (root[0][2], label[0][2]) == ("0.16", "0.19")
    assert list(crossed_labels(picture)) == []
    assert abs(label[0][0] - arrow) >= 14
    straight = picture.replace(f'x="{label[0][0]:.1f}" y="{label[0][1]:.1f}"', f'x="{arrow}" y="{label[0][1]:.1f}"')
    assert len(list(crossed_labels(straight))) == 1


def test_an_arrow_from_nowhere_says_from_where():
    texts = [text.text for text in ElementTree.fromstring(tree_svg(["Go"], [-1, 0])).iter(f"{SVG}text")]
    assert texts == ["ROOT", "Go"]
    texts = [text.text for text in ElementTree.fromstring(tree_svg(["Go"], [-1, 0], ["root"])).iter(f"{SVG}text")]
    assert texts == ["root", "Go"]


def test_heat_map_above_a_threshold():
    sample = load_samples()[0]
    dist = spantree.TreeDistribution(sample.scores)
    marginals, heads = dist.marginals(), dist.argmax()
    root = ElementTree.fromstring(heat_map(sample.words, marginals, heads, threshold=0.99))
    in_tree = np.zeros(marginals.shape, bool)
    in_tree[heads[1:], np.arange(1, 8)] = True
    assert (
        7 <= len(list(root.iter(f"{SVG}title"))) == ((marginals >= 0.99) | in_tree).sum() < (marginals >= 0.005).sum()
    )


def test_heat_map():
    sample = load_samples()[0]
    dist = spantree.TreeDistribution(sample.scores)
    root = ElementTree.fromstring(heat_map(sample.words, dist.marginals(), dist.argmax()))
    titles = [title.text for title in root.iter(f"{SVG}title")]
    assert len(titles) == (dist.marginals() >= 0.005).sum()
    assert f"ROOT → saw {dist.marginals()[0, 2]:.3f}" in titles
    assert sum(rect.get("stroke-width") == "1.5" for rect in root.iter(f"{SVG}rect")) == 7


@settings(max_examples=50, deadline=None)
@given(trees)
def test_exports(tree):
    words, heads, labels = tree
    edges = [(int(head), dep) for dep, head in enumerate(heads) if dep > 0]
    document = json.loads(json.dumps(displacy(words, heads, labels)))
    found = {
        (a["end"] + 1, a["start"] + 1) if a["dir"] == "left" else (a["start"] + 1, a["end"] + 1)
        for a in document["arcs"]
    }
    assert found == {edge for edge in edges if edge[0] > 0}
    assert all(arc["start"] < arc["end"] for arc in document["arcs"])
    assert {tuple(map(int, edge)) for edge in re.findall(r"^  (\d+) -> (\d+)", dot(words, heads, labels), re.M)} == set(
        edges
    )
    latex = tikz(words, heads, labels)
    assert {tuple(map(int, edge)) for edge in re.findall(r"depedge{(\d+)}{(\d+)}", latex)} == found
    assert re.findall(r"deproot{(\d+)}", latex) == [str(dep) for head, dep in edges if head == 0]


@pytest.mark.parametrize(
    "draw",
    [
        lambda **options: tree_svg(["Go"], [-1, 0], **options),
        lambda **options: heat_map(["Go"], [[0, 1], [0, 0]], **options),
    ],
)
def test_options_that_make_no_sense(draw):
    for option, value in (("standalone", "no"), ("standalone", 1), ("threshold", "0.1"), ("threshold", True)):
        with pytest.raises(TypeError, match=f"{option} must be"):
            draw(**{option: value})


def test_latex_is_escaped():
    assert r"100\% \& \textbackslash{}x\_\{\}" in tikz(["100%", "\\x_{}"], [-1, 0, 1])


def test_matplotlib():
    import matplotlib.pyplot as plt

    axes = matplotlib_axes(["She", "sleeps", "well"], [-1, 2, 0, 2], ["nsubj", "root", "advmod"])
    assert [text.get_text() for text in axes.texts] == ["She", "sleeps", "well", "nsubj", "root", "advmod"]
    assert len(axes.patches) == 3
    assert matplotlib_axes(["Go"], [-1, 0], ax=axes) is axes
    words = ["ذهب", "الولد", "إلى", "المدرسة"]
    axes = matplotlib_axes(words, [-1, 0, 1, 4, 1])
    places = [text.get_position()[0] for text in axes.texts[:4]]
    assert places == sorted(places, reverse=True)  # the first word stands on the right
    starts = {round(patch.get_path().vertices[0, 0], 3) for patch in axes.patches}
    assert len(starts) == 4  # no two arcs leave a word at the same place
    plt.close("all")


@pytest.mark.parametrize("draw", [text_arcs, text_rows, tree_svg, displacy, dot, tikz, matplotlib_axes])
def test_what_is_no_tree_of_the_sentence(draw):
    with pytest.raises(ValueError, match="2 words need 3 heads"):
        draw(["a", "b"], [-1, 0])
    with pytest.raises(ValueError, match="no other node"):
        draw(["a"], [-1, 5])
    with pytest.raises(ValueError, match="1 words need 1 labels"):
        draw(["a"], [-1, 0], ["x", "y"])


def test_no_words():
    assert text_arcs([], [-1]).strip() == "ROOT"
    ElementTree.fromstring(tree_svg([], [-1], marginals=[[0]]))


def test_a_distribution_in_a_notebook():
    sample = load_samples()[0]
    shown = spantree.TreeDistribution(sample.scores, words=sample.words)._repr_html_()
    picture = shown[shown.index("<svg") :]
    ElementTree.fromstring(picture)
    assert "<title>saw → She 0.8" in picture
    transposed = spantree.TreeDistribution(sample.scores.T, words=sample.words, layout="dep_head")._repr_html_()
    assert picture in transposed
    assert "<svg" not in spantree.TreeDistribution(sample.scores)._repr_html_()
    assert "<svg" not in spantree.TreeDistribution(np.full((2, 2), -np.inf), words=["a"])._repr_html_()
    labelled = spantree.TreeDistribution(np.zeros((2, 2, 2)), labelled=True, words=["Go"], labels=["x", "y"])
    assert "ROOT → Go (x) 1.000" in labelled._repr_html_()
    long = spantree.TreeDistribution(np.zeros((71, 71)), words=["w"] * 70)._repr_html_()
    assert "Probability of each head" in long
