"""Every command, as a user calls it."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spantree
from spantree.__main__ import main
from spantree._permutation import paired_permutation_test
from spantree.cli import app, shards
from spantree.files import read_trees, sentences_of
from spantree.files import scores as scores_module

convert_module = sys.modules["spantree.cli.convert"]
annotate_module = sys.modules["spantree.cli.annotate"]  # the name in the package is that of the command
DATA = Path(__file__).parents[3] / "shared" / "data" / "scores"
WORDS = ["She", "saw", "the", "man", "with", "a", "telescope"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Scores and gold trees of twenty sentences; the working directory is theirs."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    scores = [rng.normal(size=(n + 1, n + 1)).astype(np.float32) * 3 for n in rng.integers(1, 8, 20)]
    gold = [spantree.sample(one, rng=1) for one in scores]
    text = "\ufeff# newdoc\n\n"
    for i, heads in enumerate(gold):
        text += f"# sent_id = s{i}\n1-2\tx\t_\t_\t_\t_\t_\t_\t_\t_\n"
        for word, head in enumerate(heads[1:].tolist(), start=1):
            label = "root" if head == 0 else "nsubj:pass"
            text += f"{word}\t{WORDS[word - 1]}\t_\t_\t_\t_\t{head}\t{label}\t_\tSpaceAfter=No\r\n"
        text += "\n"
    Path("gold.conllu").write_bytes((text + "# end\n").encode())
    lengths = [len(one) - 1 for one in scores]
    np.savez(
        "scores.npz",
        lengths=lengths,
        scores=np.concatenate([s.ravel() for s in scores]),
        heads=np.concatenate([h[1:] for h in gold]),
    )
    return scores, gold


@pytest.fixture
def run(capfdbinary):
    def go(*arguments, code=0):
        found = main(list(arguments))
        shown = capfdbinary.readouterr()
        assert found == code, shown.err.decode()
        return (shown.out if code == 0 else shown.err if code == 2 else shown.out + shown.err).decode()

    return go


# annotate


def test_annotate_patches_the_treebank(folder, run):
    scores, _ = folder
    run("annotate", "scores.npz", "--trees", "gold.conllu", "-o", "out.conllu", "--confidence")
    found = [s for s in sentences_of("out.conllu") if len(s)]
    for sentence, one in zip(found, scores, strict=True):
        dist = spantree.TreeDistribution(one)
        heads = dist.argmax()
        np.testing.assert_array_equal(sentence.heads(), heads)
        chances = dist.marginals()[heads[1:], np.arange(1, len(heads))]
        assert sentence.misc("HeadProb") == [f"{p:.4f}" for p in chances]
        assert sentence.misc("SpaceAfter") == ["No"] * len(sentence)
    before, after = Path("gold.conllu").read_bytes().split(b"\n"), Path("out.conllu").read_bytes().split(b"\n")
    for old, new in zip(before, after, strict=True):
        old_cells, new_cells = old.split(b"\t"), new.split(b"\t")
        assert [cell for i, cell in enumerate(old_cells) if i not in (6, 9)] == [
            c for i, c in enumerate(new_cells) if i not in (6, 9)
        ]
        assert old.endswith(b"\r") == new.endswith(b"\r")
    assert not Path("out.conllu.parts").exists()


def test_labels_with_confidence_and_comments_behind_the_last_sentence(folder, run):
    scores, _ = folder
    labelled = [np.stack([one, one - 1], axis=-1) for one in scores]
    values = np.concatenate([one.ravel() for one in labelled])
    np.savez("labelled.npz", lengths=[len(one) - 1 for one in scores], scores=values, labels=["dep", "root"])
    run("annotate", "labelled.npz", "--trees", "gold.conllu", "-o", "out.conllu", "--confidence")
    assert Path("out.conllu").read_bytes().endswith(b"\n\n# end\n")
    np.savez("none.npz", lengths=np.zeros(0, int), scores=values[:0], labels=["dep", "root"])
    assert run("annotate", "none.npz", "--confidence", "-k", "2") == ""


def test_annotate_to_every_format(folder, run):
    scores, _ = folder
    run("annotate", "scores.npz", "-o", "out.parquet", "--k", "3", "--confidence")
    run("annotate", "scores.npz", "-o", "out.jsonl", "--k", "3", "--confidence")
    table, lines = (
        pq.read_table("out.parquet").to_pylist(),
        list(map(json.loads, Path("out.jsonl").read_text().splitlines())),
    )
    for one, row, line in zip(scores, table, lines, strict=True):
        trees = spantree.topk(one, 3)
        there = np.isfinite(trees.scores)
        assert row["heads"] == line["heads"] == trees.heads[0, 1:].tolist()
        assert row["best_heads"] == [tree["heads"] for tree in line["best"]] == trees.heads[there, 1:].tolist()
        assert row["id"] == line["id"]
    run("annotate", "scores.npz", "--trees", "gold.conllu", "-o", "w.jsonl")
    words = [json.loads(line)["words"] for line in Path("w.jsonl").read_text().splitlines()]
    assert words == [WORDS[: len(one) - 1] for one in scores]
    run("annotate", "scores.npz", "--trees", "gold.conllu", "-o", "w.parquet")
    for name in ("w.parquet", "w.jsonl", "out.parquet"):  # which can all be read again; without words, by numbers
        found = list(read_trees(name))
        assert [tree.heads.tolist() for tree in found] == [spantree.decode(one).tolist() for one in scores]
        assert [tree.words for tree in found] == words or name == "out.parquet"
        assert "sentences         20" in run("stats", name)
        assert found[0].words[0] in run("view", name, "--sentence", "1")


def test_annotate_options_reach_the_library(folder, run):
    scores, _ = folder
    np.savez(
        "t.npz", lengths=[len(one) - 1 for one in scores], scores=np.concatenate([one.T.ravel() for one in scores])
    )
    for options, expected in (
        (["--root", "multi"], {"root": "multi"}),
        (["--projective"], {"projective": True}),
    ):
        lines = run("annotate", "scores.npz", *options).splitlines()
        assert [json.loads(line)["heads"] for line in lines] == [
            spantree.decode(one, **expected)[1:].tolist() for one in scores
        ]
    assert run("annotate", "t.npz", "--layout", "dep_head") == run("annotate", "scores.npz")
    hot = [
        json.loads(line) for line in run("annotate", "scores.npz", "--temperature", "2", "--confidence").splitlines()
    ]
    for one, line in zip(scores, hot, strict=True):
        assert line["entropy"] == pytest.approx(spantree.TreeDistribution(one.astype(float) / 2).entropy(), rel=1e-5)
    assert run("annotate", "scores.npz", "--mbr") != run("annotate", "scores.npz")


def test_the_same_bytes_for_any_number_of_threads_and_to_stdout(folder, run):
    arguments = ("annotate", "scores.npz", "--trees", "gold.conllu", "--confidence")
    shown = [run(*arguments, "-j", j) for j in ("1", "2", "3")]
    run(*arguments, "-o", "out.conllu")
    assert shown == [Path("out.conllu").read_bytes().decode()] * 3


def test_standard_input(folder):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "spantree", "annotate", "scores.npz", "--trees", "-"]
    done = subprocess.run(
        command, input=Path("gold.conllu").read_bytes(), capture_output=True, env=environment, check=True
    )
    assert done.stdout.count(b"sent_id") == 20
    assert done.stderr == b""
    done = subprocess.run(
        f"{sys.executable} -m spantree convert scores.npz - | {sys.executable} -m spantree annotate -",
        shell=True,
        capture_output=True,
        env=environment,
        check=True,
    )
    assert [json.loads(line)["heads"] for line in done.stdout.splitlines()] == [
        spantree.decode(one)[1:].tolist() for one in folder[0]
    ]
    done = subprocess.run([*command[:4], "-"], input=b"# x\n", capture_output=True, env=environment)
    assert done.returncode == 2
    assert done.stderr.startswith(b"spantree: standard input: no stream of Arrow: ")


@pytest.mark.parametrize("arguments", [["view", "gold.conllu"], ["annotate", "scores.npz"], ["--help"]])
def test_standard_output_that_takes_nothing(folder, arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "spantree", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as running:
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 0 or arguments == ["--help"]
    if Path("/dev/full").exists():
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=environment)
        assert done.returncode == 2
        assert done.stderr == b"spantree: [Errno 28] No space left on device\n"


@pytest.mark.parametrize("module", ["numpy", "spantree._core", "typer", "spantree.cli.look"])
def test_interrupted_while_modules_are_imported(module):
    program = f"""
import sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from spantree_command import main
raise SystemExit(main())
"""
    path = os.pathsep.join([*sys.path, str(Path(__file__).parents[2] / "src")])
    done = subprocess.run(
        [sys.executable, "-c", program, "--help"], capture_output=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"spantree: interrupted\n")


@pytest.mark.parametrize(
    ("arguments", "closed", "problem"),
    [
        (["annotate", "scores.npz"], "stdout", "standard output: is closed"),
        (["sample", "scores.npz"], "stdout", "standard output: is closed"),
        (["repair", "gold.conllu"], "stdout", "standard output: is closed"),
        (["annotate", "-"], "stdin", "standard input: is closed"),
        (["validate", "-"], "stdin", "standard input: is closed"),
    ],
)
def test_closed_streams(folder, monkeypatch, capfd, arguments, closed, problem):
    with monkeypatch.context() as patch:
        patch.setattr(sys, closed, None)
        assert main(arguments) == 2
    assert problem in capfd.readouterr().err
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["annotate", "scores.npz", "-o", "out.jsonl"]) == 0


@pytest.mark.parametrize("command", [["annotate", "scores.npz"], ["sample", "scores.npz"], ["repair", "gold.conllu"]])
def test_an_empty_name_is_no_folder(folder, capfd, command):
    before = sorted(Path().iterdir())
    assert main([*command, "-o", ""]) == 2
    assert "the name is empty" in capfd.readouterr().err
    assert sorted(Path().iterdir()) == before


def test_a_folder_that_is_not_there_is_named_by_its_file(folder, capfd):
    assert main(["convert", "gold.conllu", "nowhere/trees.jsonl"]) == 2
    assert capfd.readouterr().err == f"spantree: {Path('nowhere/trees.jsonl')}: No such file or directory\n"


KILLED = """
import os, signal, sys
import spantree.cli.shards as shards
from spantree.__main__ import main
import spantree.files.scores
spantree.files.scores._SENTENCES = 3
shards.SENTENCES = 5
write, count = shards.Shards._write, 0
def once(self, end):
    global count
    write(self, end)
    count += 1
    if count == int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)
shards.Shards._write = once
raise SystemExit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("output", ["out.conllu", "out.parquet", "out.jsonl"])
def test_killed_and_taken_up_again(folder, output):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    trees = ["--trees", "gold.conllu"] if output == "out.conllu" else []
    command = ["annotate", "scores.npz", *trees, "--confidence", "-o"]

    def go(kill_after, *arguments):
        return subprocess.run(
            [sys.executable, "-c", KILLED, str(kill_after), *command, *arguments], env=environment, capture_output=True
        )

    assert go(-1, "whole" + output).returncode == 0
    assert go(2, output).returncode == -signal.SIGKILL
    assert not Path(output).exists()
    shards = sorted(path.name for path in Path(output + ".parts").glob("part-*"))
    assert len(shards) == 2
    times = [path.stat().st_mtime_ns for path in sorted(Path(output + ".parts").glob("part-*"))]
    assert go(1, output, "--resume").returncode == -signal.SIGKILL
    assert times == [path.stat().st_mtime_ns for path in sorted(Path(output + ".parts").glob("part-*"))[:2]]
    other = go(-1, output, "--resume", "--root", "multi")
    assert other.returncode == 2
    assert b"was begun with other options" in other.stderr
    assert go(-1, output, "--resume").returncode == 0
    assert Path(output).read_bytes() == Path("whole" + output).read_bytes()
    assert not Path(output + ".parts").exists()
    assert go(5 if trees else 4, output).returncode == -signal.SIGKILL  # before they are put together
    assert go(-1, output, "--resume").returncode == 0
    assert Path(output).read_bytes() == Path("whole" + output).read_bytes()


def test_a_folder_keeps_its_shards(folder, run, monkeypatch):
    monkeypatch.setattr("spantree.cli.shards.SENTENCES", 5)
    monkeypatch.setattr("spantree.files.scores._SENTENCES", 3)
    run("annotate", "scores.npz", "-o", "out/")
    shards = sorted(Path("out").glob("part-*.parquet"))
    assert len(shards) == 4
    assert sum(pq.read_metadata(path).num_rows for path in shards) == 20


def test_bad_sentences(folder, run):
    scores, _ = folder
    scores[3][:, 1] = -np.inf
    scores[5][0, 1] = np.nan
    np.savez(
        "bad.npz", lengths=[len(one) - 1 for one in scores], scores=np.concatenate([one.ravel() for one in scores])
    )
    error = run("annotate", "bad.npz", "-o", "out.jsonl", code=2)
    assert re.fullmatch(r"spantree: bad\.npz: sentence 4: .*word 1 cannot be attached\n", error)
    assert not Path("out.jsonl").exists()
    shown = run("annotate", "bad.npz", "-o", "out.jsonl", "--on-error", "skip", code=1)
    assert shown.count("spantree: skipped: bad.npz: sentence") == 2
    assert [json.loads(line)["id"] for line in Path("out.jsonl").read_text().splitlines()] == [
        str(i) for i in range(1, 21) if i not in (4, 6)
    ]
    run("annotate", "bad.npz", "--trees", "gold.conllu", "-o", "out.conllu", "--on-error", "skip", code=1)
    skipped = [s.raw for s in sentences_of("gold.conllu") if len(s)][3]
    assert skipped in Path("out.conllu").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["annotate", "none.npz"], "none.npz: No such file or directory"),
        (["annotate", "scores.npz", "-o", "out.conllu"], "CoNLL-U needs words"),
        (["annotate", "scores.npz", "-o", "none/out.jsonl"], "none/out.jsonl: there is no folder none"),
        (["annotate", "scores.npz", "-o", "out.txt"], "must end in .conllu, .parquet or .jsonl"),
        (["annotate", "scores.npz", "--trees", "gold.conllu", "-o", "o.conllu", "--k", "2"], "k best trees go to"),
        (["annotate", "scores.npz", "--temperature", "0"], "temperature must be positive and finite"),
        (["annotate", "scores.npz", "--k", "0"], "k must be a positive integer"),
        (["annotate", "gold.conllu"], "not the name of a score file"),
        (["annotate", "scores.npz", "--trees", "scores.npz"], "neither a comment nor a word"),
        (["annotate", "scores.npz", "--trees", "short.conllu"], "sentence 20: is missing"),
        (["annotate", "short.npz", "--trees", "gold.conllu"], "short.npz: has fewer sentences than gold.conllu"),
        (["annotate", "scores.npz", "--trees", "other.conllu"], "words, but scores.npz has scores for"),
        (["sample", "scores.npz", "-k", "0"], "-k must be at least 1"),
        (["sample", "scores.npz", "-o", "x.parquet"], "x.parquet: the output must end in .jsonl or .conllu"),
        (["view", "gold.conllu", "-o", "x.html"], "x.html: the report is made of scores; trees go to .svg, .dot, .tex"),
        (["repair", "gold.conllu", "-o", "x.conllu.gz"], "x.conllu.gz: what is written is CoNLL-U"),
        (["complete", "gold.conllu", "scores.npz", "-o", "x.jsonl"], "x.jsonl: what is written is CoNLL-U"),
        (["sample", "scores.npz", "--seed", "-1"], "--seed must not be negative"),
        (["eval", "gold.conllu", "short.conllu"], "short.conllu: sentence 20: is missing"),
        (["view", "scores.npz", "--sentence", "99"], "has no such sentence"),
        (["view", "gold.conllu", "-o", "x.png"], "must end in .html, .svg, .dot, .tex or .json"),
        (["convert", "scores.npz", "x.conllu"], "scores go to .parquet or .arrow"),
        (["convert", "gold.conllu", "x.txt"], "trees go to .conllu, .jsonl or .parquet"),
        (["calibrate", "short.npz"], "has no gold heads"),
    ],
)
def test_one_line_and_exit_code_2(folder, run, arguments, message):
    scores, _ = folder
    text = Path("gold.conllu").read_bytes().decode()
    Path("short.conllu").write_bytes(text[: text.index("# sent_id = s19")].encode())
    Path("other.conllu").write_bytes(text[text.index("# sent_id = s1") :].encode())
    np.savez("short.npz", lengths=[len(scores[0]) - 1], scores=scores[0].ravel())
    error = run(*arguments, code=2)
    assert message in error
    assert error.startswith("spantree: ")
    assert error.count("\n") == 1
    assert not [path for path in Path().iterdir() if "part" in path.name]  # nothing half-written


def test_usage_errors_are_2_as_well(capfd):
    assert main(["annotate"]) == 2
    assert main(["annotate", "x.npz", "--root", "three"]) == 2
    assert main(["nonsense"]) == 2


def test_the_example_of_every_command_runs(folder, run):
    for command in app.registered_commands:
        name = command.name or command.callback.__name__
        example = re.search(r"\n  Example:\n    spantree (.*)\n", run(name, "--help"))[1].split()
        assert example[0] == name
        Path("treebank.conllu").write_bytes(Path("gold.conllu").read_bytes())
        for other in ("system.conllu", "other.conllu", "dev.conllu", "broken.conllu", "partial.conllu"):
            Path(other).write_bytes(Path("gold.conllu").read_bytes())
        Path("dev.npz").write_bytes(Path("scores.npz").read_bytes())
        run(*example)
        for written in example[1:]:
            assert written[0] == "-" or written.isdigit() or Path(written).stat().st_size > 0


def test_the_library_does_without(monkeypatch, capfd):
    code = "import sys, spantree; print({'typer', 'rich', 'pyarrow', 'wcwidth', 'safetensors'} & set(sys.modules))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "set()\n"
    monkeypatch.setitem(sys.modules, "typer", None)
    for name in [name for name in sys.modules if name.startswith("spantree.cli")]:
        monkeypatch.delitem(sys.modules, name)
    assert main(["demo"]) == 2
    assert "pip install 'spantree[cli]'" in capfd.readouterr().err


def test_no_column_for_keys(folder, run):
    text = Path("gold.conllu").read_text(encoding="utf-8-sig")
    Path("nine.conllu").write_text("".join(line.rpartition("\t")[0] + "\n" for line in text.splitlines()))
    assert run("annotate", "scores.npz", "--trees", "nine.conllu", "--confidence", "-o", "out.conllu", code=2) == (
        "spantree: nine.conllu: line 5: 9 columns: there is no MISC to write to; leave out --confidence, or write "
        ".parquet or .jsonl\n"
    )
    assert not list(Path().glob("out*"))
    run("annotate", "scores.npz", "--trees", "nine.conllu", "-o", "out.conllu")
    assert [len(one) for one in sentences_of("out.conllu")] == [len(one) for one in sentences_of("nine.conllu")]


# sample


def test_what_a_killed_run_left_is_cleared_away(folder, run):
    Path("out").mkdir()
    Path("out/.part-000000000.jsonl.1.part").write_bytes(b"half of")
    run("sample", "scores.npz", "-o", "out/", "--resume")
    assert sorted(path.name for path in Path("out").iterdir()) == [".settings", "part-000000000-000000020.jsonl"]


def test_samples_taken_up_again(folder, run, monkeypatch):
    monkeypatch.setattr(shards, "SENTENCES", 5)
    monkeypatch.setattr(scores_module, "_SENTENCES", 5)
    arguments = ["sample", "scores.npz", "-k", "3", "-o"]
    run(*arguments, "whole.jsonl")
    drawn = annotate_module._drawn
    calls = []

    def interrupted(*given):
        calls.append(given)
        if len(calls) == 13:
            raise KeyboardInterrupt
        return drawn(*given)

    monkeypatch.setattr(annotate_module, "_drawn", interrupted)
    assert main([*arguments, "part.jsonl"]) == 130
    assert len(list(Path("part.jsonl.parts").glob("part-*"))) == 2
    run(*arguments, "part.jsonl", "--resume")
    assert len(calls) == 13 + 10
    assert Path("part.jsonl").read_bytes() == Path("whole.jsonl").read_bytes()
    assert not Path("part.jsonl.parts").exists()


@pytest.mark.parametrize("options", [[], ["--projective"], ["--distinct"]])
@pytest.mark.parametrize("scores", ["scores.npz", "labelled.npz"])
def test_samples_are_drawn_and_written_a_few_at_a_time(folder, run, monkeypatch, options, scores):
    """What is asked of the core at once does not grow with -k, and text leaves tree by tree."""
    np.savez("labelled.npz", scores=np.random.default_rng(0).normal(size=(3, 4, 4, 2)), labels=["a", "root"])
    arguments = ["sample", scores, "-k", "40", "--seed", "3", *options]
    expected = run(*arguments)
    asked, written = [], []
    sample, add = spantree.TreeDistribution.sample, shards.Shards.add

    def watched(self, k, **others):
        asked.append(k)
        return sample(self, k, **others)

    def seen(self, end, pieces):
        add(self, end, (written.append(len(piece)) or piece for piece in pieces))
        assert not self._batches  # nothing is kept for later

    monkeypatch.setattr(annotate_module, "_AT_ONCE", 7)
    monkeypatch.setattr(spantree.TreeDistribution, "sample", watched)
    monkeypatch.setattr(shards.Shards, "add", seen)
    assert run(*arguments) == expected
    run(*arguments, "-o", "out.jsonl")
    assert Path("out.jsonl").read_text() == expected
    assert max(asked, default=0) <= 7
    longest = max(len(json.dumps(tree)) for line in expected.splitlines() for tree in json.loads(line)["samples"])
    assert max(written) <= longest + len(", ")


@pytest.mark.parametrize("options", [[], ["--confidence", "-k", "2"]])
def test_no_sentences_have_the_same_columns(folder, run, options):
    none = {"lengths": np.zeros(0, np.int64), "scores": np.zeros(0, np.float32)}
    for labels in ({}, {"labels": ["a", "root"]}):
        np.savez("none.npz", **none, **labels)
        one = np.zeros(8 if labels else 4, np.float32)
        np.savez("one.npz", lengths=[1], scores=one, **labels)
        for name in ("none", "one"):
            run("annotate", f"{name}.npz", *options, "-o", f"{name}.parquet")
        assert pq.read_table("none.parquet").num_rows == 0
        assert pq.read_schema("none.parquet") == pq.read_schema("one.parquet")
        assert run("annotate", "none.npz", *options) == ""


def test_candidates_have_no_layout(folder, capfd):
    rows = {"n": [2], "heads": [[[0, 2], [0]]], "scores": [[[1.0, 2.0], [3.0]]]}
    pq.write_table(pa.table(rows), "few.parquet")
    for command in ("annotate", "sample", "stats"):
        assert main([command, "few.parquet", "--layout", "dep_head"]) == 2
        assert "leave out the layout" in capfd.readouterr().err
        assert main([command, "few.parquet"]) == 0


def test_sample(folder, run):
    scores, _ = folder
    lines = [json.loads(line) for line in run("sample", "scores.npz", "-k", "50", "--seed", "3").splitlines()]
    for line in lines:
        heads = np.array([[-1, *tree["heads"]] for tree in line["samples"]])
        assert spantree.is_tree(heads).all()
        assert len(heads) == 50
    assert lines == [json.loads(line) for line in run("sample", "scores.npz", "-k", "50", "--seed", "3").splitlines()]
    assert lines != [json.loads(line) for line in run("sample", "scores.npz", "-k", "50", "--seed", "4").splitlines()]
    distinct = [
        json.loads(line)["samples"] for line in run("sample", "scores.npz", "-k", "50", "--distinct").splitlines()
    ]
    for one, trees in zip(scores, distinct, strict=True):
        assert len({tuple(tree["heads"]) for tree in trees}) == len(trees)
        found = spantree.TreeDistribution(one).log_prob([[-1, *tree["heads"]] for tree in trees])
        np.testing.assert_allclose([tree["log_prob"] for tree in trees], found, atol=1e-4)
    run("sample", "scores.npz", "--trees", "gold.conllu", "-k", "2", "-o", "out.conllu")
    assert [tree.id for tree in read_trees("out.conllu")][:3] == ["s0-1", "s0-2", "s1-1"]


# eval


def test_eval_agrees_with_the_official_scorer(tmp_path, run):
    pytest.importorskip("udtools")
    if not DATA.exists():
        pytest.skip("needs the scored treebanks in ../shared/data")
    from udtools.udeval import evaluate, load_conllu

    rng = np.random.default_rng(0)
    labels = ["nsubj", "nsubj:pass", "punct", "case", "det", "obl", "root", "x:y"]
    for path in sorted(DATA.glob("*.conllu")):
        system = tmp_path / path.name
        run("annotate", str(path.with_suffix(".npz")), "--trees", str(path), "-o", str(system))
        pieces = [
            s.patched(labels=[str(rng.choice(labels)) if rng.random() < 0.2 else label for label in s.labels])
            if len(s)
            else s.raw
            for s in sentences_of(system)
        ]
        system.write_bytes(b"".join(pieces))
        with path.open(encoding="utf-8") as gold_file, system.open(encoding="utf-8") as system_file:
            official = evaluate(load_conllu(gold_file, str(path), {}), load_conllu(system_file, str(system), {}))
        shown = run("eval", str(path), str(system))
        for metric in ("UAS", "LAS", "CLAS"):
            assert f"{100 * official[metric].f1:9.2f} %" in next(
                line for line in shown.splitlines() if line.startswith(metric)
            )


def test_eval_by_hand(folder, run):
    Path("a.conllu").write_text(
        "1\ta\t_\t_\t_\t_\t2\tdet\t_\tHeadProb=0.95\n2\tb\t_\t_\t_\t_\t0\troot\t_\tHeadProb=0.65\n3\tc\t_\t_\t_\t_\t2\tobj\t_\t_\n\n"
        "1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n".replace("\\t", "\t")
    )
    Path("b.conllu").write_text(
        Path("a.conllu").read_text().replace("2\tobj", "1\tobj").replace("0\troot\t_\tHead", "3\tdep\t_\tHead")
    )
    shown = run("eval", "a.conllu", "b.conllu")
    assert "2 sentences, 4 words" in shown
    for line in (
        "UAS               50.00 %",
        "LAS               50.00 %",
        "exact match       50.00 %",
        "root accuracy     50.00 %",
        "malformed         50.00 %",
    ):
        assert line in shown
    assert "0.6-0.7  said 0.650  right 0.000  words 1" in shown
    assert "expected calibration error 0.3500" in shown
    two = run("eval", "a.conllu", "b.conllu", "a.conllu")
    assert "exact paired-permutation test (Zmigrod et al. 2022)" in two
    assert "UAS: p = 1" in two


def test_standard_input_has_a_name(folder, run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"hello\n")))
    said = run("stats", "-", code=2)
    assert said == "spantree: standard input: line 1: neither a comment nor a word: it starts with 'hello'\n"


def test_eval_of_other_words(folder, run):
    """As many words, but others: figures would say nothing. A system may leave words out."""
    word = "{}\t{}\t_\t_\t_\t_\t{}\tdep\t_\t_\n"
    for name, words in (("gold", "ab"), ("other", "ac"), ("none", "__")):
        Path(f"{name}.conllu").write_text("".join(word.format(i + 1, w, i) for i, w in enumerate(words)) + "\n")
    said = run("eval", "gold.conllu", "other.conllu", code=2)
    assert said == "spantree: other.conllu: line 2: sentence 1: word 2 is 'c', but 'b' in gold.conllu\n"
    assert "100.00 %" in run("eval", "gold.conllu", "none.conllu")
    Path("short.conllu").write_text(word.format(1, "a", 0) + "\n")
    assert "1 words, but 2 in gold.conllu" in run("eval", "gold.conllu", "short.conllu", code=2)


@pytest.mark.parametrize("seed", range(20))
def test_the_permutation_test_enumerated(seed):
    rng = np.random.default_rng(seed)
    differences = rng.integers(-4, 5, rng.integers(0, 11))
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences.tolist(), strict=True)))
        for signs in product((-1, 1), repeat=len(differences))
    ]
    expected = sum(one >= abs(differences.sum()) for one in sums) / len(sums)
    assert paired_permutation_test(differences) == pytest.approx(expected, rel=1e-13)


def test_the_permutation_test_in_rationals():
    """Three hundred sentences, p about 1e-20: all digits stay."""
    differences = np.random.default_rng(1).integers(-1, 4, 300).tolist()
    chances = {0: Fraction(1)}
    for d in differences:
        new: dict[int, Fraction] = {}
        for total, p in chances.items():
            for sign in (-1, 1):
                new[total + sign * d] = new.get(total + sign * d, Fraction(0)) + p / 2
        chances = new
    expected = sum(p for total, p in chances.items() if abs(total) >= abs(sum(differences)))
    assert float(expected) < 1e-15
    assert paired_permutation_test(differences) == pytest.approx(float(expected), rel=1e-11)


# stats, calibrate


def test_stats(folder, run):
    scores, gold = folder
    shown = run("stats", "gold.conllu")
    crossing = sum(not spantree.is_projective(heads) for heads in gold)
    assert "sentences         20\n" in shown
    assert f"non-projective    {crossing} (" in shown
    assert "labels            2\n" in shown
    shown = run("stats", "scores.npz")
    entropies = [spantree.TreeDistribution(one).entropy() for one in scores]
    assert f"entropy           {np.mean(entropies):.3f} nats" in shown


def test_calibrate_finds_the_temperature(tmp_path, monkeypatch, run):
    """Gold trees drawn at temperature 2.5: with 4,000 words the estimate is within 10 %, five times its deviation."""
    monkeypatch.chdir(tmp_path)
    scores = np.random.default_rng(0).normal(size=(400, 11, 11)) * 3
    gold = spantree.sample(scores / 2.5, rng=0)
    np.savez("s.npz", lengths=np.full(400, 10), scores=scores.ravel(), heads=gold[:, 1:].ravel())
    shown = run("calibrate", "s.npz")
    temperature = float(re.search(r"temperature ([\d.]+)", shown)[1])
    assert temperature == pytest.approx(2.5, rel=0.1)
    grid = [2.2, temperature, 2.8]
    likelihood = [spantree.TreeDistribution(scores / t).log_prob(gold).sum() for t in grid]
    assert likelihood[1] > max(likelihood[0], likelihood[2])
    errors = [float(error) for error in re.findall("calibration error ([0-9.]+)", shown)]
    assert errors[1] < errors[0]


def test_what_is_shown_moves_no_cursor(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    Path("a.conllu").write_text("# sent_id = \x1b[31m\n1\t\x1b[2J\t_\t_\t_\t_\t1\t\x9b\t_\t_\n\n")
    assert "\x1b" not in run("view", "a.conllu") + run("validate", "a.conllu", code=1)


def test_a_word_that_is_its_own_head_is_shown_without_an_arc(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text('{"words": ["a", "b"], "heads": [1, 0]}')
    assert run("view", "a.jsonl").count("▼") == 1
    for name in ("a.svg", "a.dot", "a.tex", "a.json"):
        run("view", "a.jsonl", "-o", name)


def test_wide_words_need_a_wide_terminal(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "50")
    Path("a.jsonl").write_text(json.dumps({"words": ["日本語日本語"] * 4, "heads": [0, 1, 2, 3]}))
    assert "┌" not in run("view", "a.jsonl")
    Path("a.jsonl").write_text(json.dumps({"words": ["nihon."] * 4, "heads": [0, 1, 2, 3]}))
    assert "┌" in run("view", "a.jsonl")


def test_scores_are_converted_a_batch_at_a_time(folder, monkeypatch, run):
    """A batch is written before the next one but one is read, so that memory does not grow with the file."""
    monkeypatch.setattr(scores_module, "_SENTENCES", 3)
    events = []
    rows, write = convert_module._rows, pq.ParquetWriter.write_batch

    def watched(file):
        for batch in rows(file):
            events.append("read")
            yield batch

    def written(self, *arguments, **options):
        events.append("written")
        return write(self, *arguments, **options)

    monkeypatch.setattr(convert_module, "_rows", watched)
    monkeypatch.setattr(pq.ParquetWriter, "write_batch", written)
    run("convert", "scores.npz", "c.parquet")
    assert events == ["read", "written"] * 7


# validate, repair, complete

BROKEN = """# sent_id = cycle
1	a	_	_	_	_	2	det	_	_
2	b	_	_	_	_	1	obj	_	_
3	c	_	_	_	_	0	root	_	_

# sent_id = roots
1	a	_	_	_	_	0	root	_	_
2	b	_	_	_	_	0	root	_	_

# sent_id = range
1	a	_	_	_	_	7	root	_	A=1
2	b	_	_	_	_	0	dep	_	_

# sent_id = fine
1	a	_	_	_	_	2	det	_	_
2	b	_	_	_	_	0	root	_	_

# sent_id = none
1	a	_	_	_	_	1	det	_	_
2	b	_	_	_	_	_	obj	_	_

"""


def test_validate(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    Path("broken.conllu").write_text(BROKEN)
    shown = run("validate", "broken.conllu", code=1)
    for line in (
        "broken.conllu: line 2: cycle: word 1 (a) is in a cycle: 1 <- 2 <- 1",
        "broken.conllu: line 8: roots: word 2 (b) is a second root, beside word 1",
        "broken.conllu: line 11: range: word 1 (a) HEAD is '7', not a number from 0 to 2",
        "broken.conllu: line 12: range: word 2 (b) hangs on ROOT but DEPREL is 'dep', not root",
        "broken.conllu: line 19: none: word 1 (a) is its own head",
        "broken.conllu: line 20: none: word 2 (b) HEAD is _",
        "4 of 5 sentences have problems",
    ):
        assert line + "\n" in shown
    assert "fine" not in shown
    assert "second root" not in run("validate", "broken.conllu", "--root", "multi", code=1)


def test_repair(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    Path("broken.conllu").write_text(BROKEN)
    run("repair", "broken.conllu", "-o", "mended.conllu")
    assert run("validate", "mended.conllu") == "0 of 5 sentences have problems\n"
    before, after = list(sentences_of("broken.conllu")), list(sentences_of("mended.conllu"))
    assert after[3].raw == before[3].raw
    assert after[0].heads().tolist() == [-1, 2, 3, 0]  # one change, and the shortest
    assert after[2].misc("A") == ["1", None]
    assert after[2].labels == ["dep", "root"]
    lengths = [len(one) for one in before]
    np.savez("s.npz", lengths=lengths, scores=np.random.default_rng(0).normal(size=sum((n + 1) ** 2 for n in lengths)))
    run("repair", "broken.conllu", "--scores", "s.npz", "-o", "best.conllu")
    run("annotate", "s.npz", "--trees", "broken.conllu", "-o", "all.conllu")
    for i, (mended, best) in enumerate(zip(sentences_of("best.conllu"), sentences_of("all.conllu"), strict=True)):
        if i not in (2, 3):
            assert mended.heads().tolist() == best.heads().tolist()


def test_repair_by_labelled_scores_and_pieces_without_words(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    line = "{}\tw\t_\t_\t_\t_\t{}\tx\t_\t_\n"
    Path("broken.conllu").write_text("\n\n" + line.format(1, 2) + line.format(2, 1) + "\n\n# end\n")
    scores = np.zeros((3, 3, 2))
    scores[2, 1, 0] = scores[0, 2, 1] = 5
    np.savez("s.npz", lengths=[2], scores=scores.ravel(), labels=["nsubj", "root"])
    assert main(["repair", "broken.conllu", "--scores", "s.npz", "-o", "mended.conllu"]) == 0
    assert capfd.readouterr().err == "1 sentences repaired\n"
    expected = Path("broken.conllu").read_text().replace("2\tx", "2\tnsubj").replace("1\tx", "0\troot")
    assert Path("mended.conllu").read_text() == expected
    Path("nothing.conllu").write_text("\n\n# end\n")
    assert main(["repair", "nothing.conllu", "-o", "same.conllu"]) == 0
    assert capfd.readouterr().err == "0 sentences repaired\n"


def test_repair_changes_as_few_heads_as_possible():
    from spantree.cli.mend import nearness

    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(1, 6))
        heads = np.array([-1, *rng.integers(-2, n + 1, n)])
        heads[heads == -1] = -2
        heads[heads == np.arange(n + 1)] = -2
        every = [tree.heads for tree in spantree.TreeDistribution(np.zeros((n + 1, n + 1))).iter_best()]
        mended = spantree.decode(nearness(heads))
        assert (mended == heads).sum() == max((tree == heads).sum() for tree in every)


def test_complete(folder, run):
    scores, gold = folder
    text = Path("gold.conllu").read_bytes().decode()
    rng = np.random.default_rng(2)
    known = [rng.random(len(heads)) < 0.5 for heads in gold]
    pieces = []
    sentences = iter(zip(gold, known, strict=True))
    for piece in sentences_of("gold.conllu"):
        if len(piece):
            heads, keep = next(sentences)
            pieces.append(piece.patched(np.where(keep, heads, -2)))
        else:
            pieces.append(piece.raw)
    Path("partial.conllu").write_bytes(b"".join(pieces))
    run("complete", "partial.conllu", "scores.npz", "-o", "whole.conllu")
    for sentence, one, heads, keep in zip(
        (s for s in sentences_of("whole.conllu") if len(s)), scores, gold, known, strict=True
    ):
        agreeing = [t for t in spantree.TreeDistribution(one).iter_best() if (t.heads == heads)[1:][keep[1:]].all()]
        assert sentence.heads().tolist() == agreeing[0].heads.tolist()
    Path("all.conllu").write_bytes(text.encode())
    run("complete", "all.conllu", "scores.npz", "-o", "same.conllu")
    assert Path("same.conllu").read_bytes().decode() == text


# convert, view


def test_convert(folder, run):
    _, gold = folder
    run("convert", "gold.conllu", "a.jsonl")
    run("convert", "a.jsonl", "a.parquet")
    run("convert", "a.parquet", "a.conllu")
    for tree, heads in zip(read_trees("a.conllu"), gold, strict=True):
        assert tree.heads.tolist() == heads.tolist()
    for name in ("s.parquet", "s.arrow"):
        run("convert", "scores.npz", name)
        assert run("annotate", name, "--confidence") == run("annotate", "scores.npz", "--confidence")


def test_labelled_scores(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    scores = np.random.default_rng(0).normal(size=(3, 3, 2)).astype(np.float32)
    np.savez("l.npz", lengths=[2], scores=scores.ravel(), labels=["nsubj", "röot"])
    Path("l.conllu").write_text("1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n2\tb\t_\t_\t_\t_\t_\t_\t_\t_\n\n")
    best = spantree.decode(scores, labelled=True)
    names = [["nsubj", "röot"][label] for label in best.labels[1:]]
    run("annotate", "l.npz", "--trees", "l.conllu", "-o", "o.conllu")
    (tree,) = read_trees("o.conllu")
    assert (tree.heads.tolist(), tree.labels) == (best.heads.tolist(), names)
    run("complete", "l.conllu", "l.npz", "-o", "c.conllu")
    assert Path("c.conllu").read_bytes() == Path("o.conllu").read_bytes()
    run("convert", "l.npz", "l.parquet")
    assert run("annotate", "l.parquet") == run("annotate", "l.npz")
    assert json.loads(run("annotate", "l.npz", "-k", "2"))["labels"] == names
    run("annotate", "l.npz", "-k", "2", "-o", "o.parquet")
    (row,) = pq.read_table("o.parquet").to_pylist()
    assert row["labels"] == row["best_labels"][0] == names


def test_view(folder, run):
    _, gold = folder
    assert run("view", "gold.conllu").count("▼") == sum(len(heads) - 1 for heads in gold)
    shown = run("view", "scores.npz", "gold.conllu", "--sentence", "2")
    assert shown.startswith("# s1\n")
    for name, start in (
        ("a.svg", "<svg"),
        ("a.dot", "digraph"),
        ("a.tex", "\\begin{dependency}"),
        ("a.json", '{"words"'),
    ):
        run("view", "scores.npz", "gold.conllu", "--sentence", "2", "-o", name)
        assert Path(name).read_text(encoding="utf-8").startswith(start)
    run("view", "gold.conllu", "-o", "gold.svg")
    assert "nsubj:pass" in Path("gold.svg").read_text(encoding="utf-8") or len(gold[0]) == 2


def test_report(folder, run):
    _, gold = folder
    run("view", "scores.npz", "gold.conllu", "-o", "report.html")
    page = Path("report.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert [one["id"] for one in data["sentences"]] == [f"s{i}" for i in range(20)]
    assert [one["gold"] for one in data["sentences"]] == [heads[1:].tolist() for heads in gold]
    run("view", "scores.npz", "-o", "bare.html")
    assert "sentence 20" in Path("bare.html").read_text(encoding="utf-8")
    run("view", "scores.npz", "-o", "x.html", "--projective")
    assert '"projective":true' in Path("x.html").read_text(encoding="utf-8")
