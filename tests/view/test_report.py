"""The report in a real browser: it computes what the core computes, and every control does what it says."""

from __future__ import annotations

import io
import json
import re
import shutil

import numpy as np
import pytest

import spantree
from spantree.view.layout import in_line
from spantree.view.report import ReportSentence, write_report

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(
    BROWSER is None or shutil.which("chromedriver") is None,
    reason="needs Chromium and its driver: apt-get install chromium chromium-driver",
)
WORDS = ["She", "saw", "the", "man", "with", "a", "telescope", "<b>", "שלום", "日本"]


def sentences(seed=0):
    """Twenty sentences of different lengths and scales, names to search for, gold trees for all but one."""
    rng = np.random.default_rng(seed)
    out = []
    for i in range(20):
        n = int(rng.integers(1, 11))
        scores = (rng.normal(size=(n + 1, n + 1)) * (1 + i % 4)).astype(np.float32)
        gold = spantree.sample(scores, rng=i)
        labels = [f"dep{word}" for word in range(n)]
        out.append(ReportSentence(f"name-{i}", WORDS[:n], scores, labels, None if i == 3 else gold, labels))
    return out


def page_of(given, **options):
    stream = io.BytesIO()
    write_report(given, stream, title="A <title>", **options)
    return stream.getvalue()


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page.decode(), re.S)[1])


def test_what_is_in_the_page():
    given = sentences()
    page = page_of(given)
    assert b"{{" not in page.replace(b"`", b"")
    assert b"A &lt;title&gt;" in page
    assert b'"<b>"' not in page
    assert not re.search(rb"https?://(?!www\.w3\.org/2000/svg)", page)
    data = data_of(page)
    assert data["bits"] == 32
    for one, record in zip(given, data["sentences"], strict=True):
        dist = spantree.TreeDistribution(one.scores.astype(np.float64))
        assert record["heads"] == dist.argmax()[1:].tolist()
        assert record["entropy"] == pytest.approx(dist.entropy())
        assert [score for score, _ in record["best"]] == [s for s in dist.topk(10).scores.tolist() if np.isfinite(s)]
    assert sum(count for count, _, _ in data["calibration"]) == sum(len(s.words) for s in given if s.gold is not None)
    assert data_of(page_of([ReportSentence("a", ["x"], np.array([[0, 1 / 3], [0, 0]]))]))["bits"] == 64


def test_a_bad_sentence_is_named():
    with pytest.raises(ValueError, match=r"name-x: .*cannot be attached"):
        page_of([ReportSentence("name-x", ["a"], np.full((2, 2), -np.inf))])


@pytest.fixture(scope="module")
def browser():
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1200,900",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser, tmp_path):
    def go(given, **options):
        (tmp_path / "report.html").write_bytes(page_of(given, **options))
        browser.get((tmp_path / "report.html").as_uri())
        return browser

    yield go
    assert browser.get_log("browser") == []  # no error and no warning, whatever the test did


SOLVE = """
const [flat, n, temperature, single, projective] = arguments;
const scores = Float64Array.from(flat, (v) => (v === null ? -Infinity : v));
const found = (projective ? solveProjective : solveTrees)(scores, n, temperature, single);
return found && {marginals: Array.from(found.marginals), logZ: found.logZ};
"""


@needs_browser
@pytest.mark.parametrize("projective", [False, True])
@pytest.mark.parametrize("root", ["single", "multi"])
def test_the_page_computes_what_the_core_computes(opened, root, projective):
    driver = opened(sentences())
    rng = np.random.default_rng(1)
    for i, (n, scale) in enumerate([(1, 1), (2, 5), (5, 1), (9, 20), (17, 3), (30, 1), (30, 100), (12, 1000), (40, 6)]):
        scores = rng.normal(size=(n + 1, n + 1)) * scale
        if i % 2:
            scores[rng.random(scores.shape) < 0.3] = -np.inf
            scores[0, 1 : 1 + n // 2] = -np.inf
            scores[np.arange(n), np.arange(1, n + 1)] = rng.normal(size=n)  # a chain from ROOT: there is a tree
        np.fill_diagonal(scores, 0)
        for temperature in (1.0, 0.3, 7.0):
            flat = [None if np.isneginf(value) else float(value) for value in scores.ravel()]
            found = driver.execute_script(SOLVE, flat, n, temperature, root == "single", projective)
            dist = spantree.TreeDistribution(scores / temperature, root=root, projective=projective)
            expected = dist.marginals()
            np.testing.assert_allclose(np.reshape(found["marginals"], (n + 1, n + 1)), expected, atol=1e-9, rtol=0)
            assert found["logZ"] == pytest.approx(float(dist.log_partition()), rel=1e-12, abs=1e-9)


@needs_browser
def test_the_page_sees_that_there_is_no_tree(opened):
    driver = opened(sentences())
    two_roots = [0, 1, 1, 0, 0, None, 0, None, 0]
    for projective in (False, True):
        assert driver.execute_script(SOLVE, [0, None, 0, None], 1, 1.0, True, projective) is None
        assert driver.execute_script(SOLVE, two_roots, 2, 1.0, True, projective) is None
        assert driver.execute_script(SOLVE, two_roots, 2, 1.0, False, projective)["logZ"] == pytest.approx(2)


@needs_browser
def test_a_report_of_projective_trees(opened):
    given = sentences(seed=4)
    driver = opened(given, projective=True)
    found = driver.execute_script("return report.sentences.map((s) => Array.from(solve(s, 1).marginals))")
    crossing = 0
    for one, marginals in zip(given, found, strict=True):
        dist = spantree.TreeDistribution(one.scores.astype(np.float64), projective=True)
        np.testing.assert_allclose(np.reshape(marginals, one.scores.shape), dist.marginals(), atol=1e-9, rtol=0)
        crossing += not spantree.is_projective(spantree.decode(one.scores))
    assert crossing  # trees that the page does not show
    heads = [[-1, *sentence["heads"]] for sentence in data_of(page_of(given, projective=True))["sentences"]]
    assert all(map(spantree.is_projective, heads))
    assert "no crossing arcs" in driver.find_element("tag name", "header").text


def text(driver, name):
    return driver.find_element("id", name).text


def slide(driver, name, value):
    script = """
    const input = document.getElementById(arguments[0]);
    input.value = arguments[1];
    for (const kind of ["input", "change"]) input.dispatchEvent(new Event(kind));
    """
    driver.execute_script(script, name, str(value))


@needs_browser
def test_every_control(opened):
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select

    given = sentences()
    by_name = {one.name: one for one in given}
    driver = opened(given)
    names = lambda: [e.text.split("\n")[0] for e in driver.find_elements("css selector", "#list li")]  # noqa: E731
    entropy = {one.name: float(spantree.TreeDistribution(one.scores.astype(float)).entropy()) for one in given}

    # order
    assert names() == sorted(entropy, key=lambda name: -entropy[name])
    Select(driver.find_element("id", "order")).select_by_value("certain")
    assert names()[0] == min(entropy, key=lambda name: entropy[name])
    Select(driver.find_element("id", "order")).select_by_value("word")
    assert names() == sorted(entropy, key=lambda name: -entropy[name] / len(by_name[name].words))
    Select(driver.find_element("id", "order")).select_by_value("file")
    assert names() == [one.name for one in given]
    Select(driver.find_element("id", "order")).select_by_value("long")
    assert len(by_name[names()[0]].words) == max(len(one.words) for one in given)

    # search and filter
    driver.find_element("id", "search").send_keys("NAME-7")
    assert names() == ["name-7"]
    assert text(driver, "count").startswith("1 of 20 sentences")
    assert text(driver, "title") == "name-7"
    driver.find_element("id", "search").clear()
    driver.find_element("id", "search").send_keys(Keys.ESCAPE)
    Select(driver.find_element("id", "filter")).select_by_value("wrong")
    best = {one.name: spantree.decode(one.scores) for one in given}
    assert set(names()) == {one.name for one in given if one.gold is not None and (one.gold != best[one.name]).any()}
    Select(driver.find_element("id", "filter")).select_by_value("mbr")
    mbr = {one.name: spantree.TreeDistribution(one.scores.astype(float)).mbr() for one in given}
    assert set(names()) == {name for name in best if (mbr[name] != best[name]).any()}
    Select(driver.find_element("id", "filter")).select_by_value("all")
    Select(driver.find_element("id", "order")).select_by_value("file")

    # keys and clicks
    driver.find_element("css selector", "#list li:nth-child(2) button").click()
    assert text(driver, "title") == "name-1"
    body = driver.find_element("tag name", "body")
    for key, title in (("j", "name-2"), (Keys.ARROW_DOWN, "name-3"), ("k", "name-2"), (Keys.ARROW_UP, "name-1")):
        body.send_keys(key)
        assert text(driver, "title") == title
    body.send_keys("/")
    assert driver.switch_to.active_element.get_attribute("id") == "search"
    driver.switch_to.active_element.send_keys(Keys.ESCAPE)

    # buttons; and keys where a slider or a choice has the focus, which keep only the arrows to themselves
    for button, title in (("next", "name-2"), ("next", "name-3"), ("previous", "name-2"), ("previous", "name-1")):
        driver.find_element("id", button).click()
        assert text(driver, "title") == title
        assert text(driver, "place") == f"{int(title[-1]) + 1} of 20"
    assert driver.find_element("id", "previous").is_enabled()
    body.send_keys("k")
    assert not driver.find_element("id", "previous").is_enabled()
    driver.find_element("id", "threshold").send_keys("j")
    assert text(driver, "title") == "name-1"
    driver.find_element("id", "threshold").send_keys(Keys.ARROW_UP)
    assert (text(driver, "title"), text(driver, "threshold-value")) == ("name-1", "0.11")

    # threshold and temperature
    one = max(given, key=lambda one: len(one.words))
    driver.find_element("id", "search").send_keys(one.name)
    nodes = len(one.words) + 1
    for temperature, threshold in ((1.0, 0.05), (1.0, 0.3), (2.0, 0.05), (0.5, 0.05)):
        slide(driver, "threshold", threshold)
        slide(driver, "temperature", np.log10(temperature).round(2))
        shown = 10 ** float(np.log10(temperature).round(2))
        assert text(driver, "temperature-value") == f"{shown:.2f}"
        dist = spantree.TreeDistribution(one.scores.astype(float) / shown)
        marginals = dist.marginals()
        heads = best[one.name]
        others = sum(marginals[h, d] >= threshold and h != heads[d] for h in range(nodes) for d in range(1, nodes))
        assert len(driver.find_elements("css selector", "#picture .arc.other")) == others
        assert len(driver.find_elements("css selector", "#picture .arc:not(.other)")) == nodes - 1
        titles = [e.get_attribute("textContent") for e in driver.find_elements("css selector", "#picture .arc title")]
        d = nodes - 1
        head = "ROOT" if heads[d] == 0 else one.words[heads[d] - 1]
        said = f"{in_line(head)} → {in_line(one.words[d - 1])} (dep{d - 1}) {marginals[heads[d], d]:.3f}"
        assert said + (", not in the gold tree" if one.gold[d] != heads[d] else "") in titles
        chances = np.exp(dist.log_prob(dist.topk(10).heads))
        cells = [e.text for e in driver.find_elements("css selector", "#best td:nth-child(3)")]
        assert cells == [f"{p:.4f}" for p in chances]
        sums = [e.text for e in driver.find_elements("css selector", "#best td:nth-child(4)")]
        assert sums == [f"{p:.4f}" for p in np.minimum(np.cumsum(chances), 1)]
        assert float(re.search("probability ([-e0-9.]+);", text(driver, "facts"))[1]) == pytest.approx(
            chances[0], rel=0.05
        )

    # which tree
    slide(driver, "temperature", 0)
    driver.find_element("css selector", "input[value=gold]").click()
    drawn = [
        e.get_attribute("textContent") for e in driver.find_elements("css selector", "#picture .arc:not(.other) title")
    ]
    for d in range(1, nodes):
        head = "ROOT" if one.gold[d] == 0 else one.words[one.gold[d] - 1]
        assert any(title.startswith(f"{in_line(head)} → {in_line(one.words[d - 1])} ") for title in drawn)

    # where the best tree is not the gold one; and sentences that do not have the tree that was asked for
    driver.find_element("css selector", "input[value=best]").click()
    wrong = int((one.gold != best[one.name]).sum())
    assert wrong == len(driver.find_elements("css selector", "#picture .arc.wrong")) > 0
    driver.find_element("css selector", "input[value=gold]").click()
    assert not driver.find_elements("css selector", "#picture .arc.wrong")
    checked = lambda: driver.find_element("css selector", "input[name=tree]:checked").get_attribute("value")  # noqa: E731
    search = driver.find_element("id", "search")
    for name, shown in (("name-3", "best"), (one.name, "gold")):  # name-3 has no gold tree
        search.clear()
        search.send_keys(name)
        assert checked() == shown

    # calibration
    assert "expected calibration error" in text(driver, "error")
    before = text(driver, "error")
    slide(driver, "temperature", 0.5)
    assert text(driver, "error") != before
    slide(driver, "temperature", 0)
    assert text(driver, "error") == before


@needs_browser
def test_long_sentences_are_heat_maps(opened):
    scores = np.random.default_rng(0).normal(size=(81, 81)) * 5
    driver = opened([ReportSentence("long", [f"w{i}" for i in range(80)], scores)])
    assert driver.find_elements("css selector", "#picture svg.heat")
    dist = spantree.TreeDistribution(scores)
    in_tree = np.zeros((81, 81), bool)
    in_tree[dist.argmax()[1:], np.arange(1, 81)] = True
    for threshold in (0.1, 0.5):
        slide(driver, "threshold", threshold)
        assert len(driver.find_elements("css selector", "#picture .chosen rect")) == 80
        cells = len(driver.find_elements("css selector", "#picture rect"))
        assert cells == ((dist.marginals() >= threshold) | in_tree).sum()


@needs_browser
@pytest.mark.parametrize(("word", "backwards"), [("שלום", True), ("hello", False)])
def test_pictures_begin_at_the_first_word(opened, word, backwards):
    scores = np.random.default_rng(0).normal(size=(31, 31))
    driver = opened([ReportSentence("s", [word] * 30, scores)])
    left, width, inside = driver.execute_script(
        "const box = document.getElementById('picture'); return [box.scrollLeft, box.clientWidth, box.scrollWidth]"
    )
    assert inside > width
    assert abs(left - (inside - width if backwards else 0)) <= 1
    texts = driver.find_elements("css selector", "#picture svg > text")
    assert (texts[0].location["x"] > texts[-1].location["x"]) == backwards
    direction = "return getComputedStyle(document.getElementById('text')).direction"
    assert driver.execute_script(direction) == ("rtl" if backwards else "ltr")


CONTRAST = """
const rgb = (c) => c.match(/[\\d.]+/g).slice(0, 3).map(Number);
const light = (c) => rgb(c).map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const back = light(getComputedStyle(document.body).backgroundColor);
return [...document.querySelectorAll("h1, h2, p, label, td, th, .quiet, #count, #picture text")].map((e) => {
  const own = light(e.namespaceURI.endsWith("svg") ? getComputedStyle(e).fill : getComputedStyle(e).color);
  return (Math.max(own, back) + 0.05) / (Math.min(own, back) + 0.05);
});
"""


@needs_browser
@pytest.mark.parametrize(
    ("name", "scheme", "size"),
    [("light", "light", (1200, 900)), ("dark", "dark", (1200, 900)), ("phone", "light", (390, 800))],
)
def test_light_dark_and_phone(opened, tmp_path, name, scheme, size):
    driver = opened(sentences())
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": name == "phone"},
    )
    assert (
        driver.execute_script("return document.documentElement.scrollWidth") <= size[0]
    )  # nothing sticks out sideways
    assert min(driver.execute_script(CONTRAST)) >= 4.5  # WCAG AA
    for control in driver.find_elements("css selector", "input, select"):
        assert driver.execute_script("return arguments[0].labels.length", control) > 0
    assert driver.save_screenshot(str(tmp_path / f"{name}.png"))
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
