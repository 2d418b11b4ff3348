"""The example parser: learns toy sentences with every loss, resumes after being killed with the same bits, measures."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import spantree
import torch
from spantree.experiments.score_files import read_folder
from spantree.files import read_trees
from spantree.zoo import enumerate_trees

FOLDER = Path(__file__).parents[2] / "examples" / "parser"
TOY = FOLDER / "toy.conllu"
sys.path.insert(0, str(FOLDER))

import data  # noqa: E402
import evaluate  # noqa: E402
import losses  # noqa: E402
import parse  # noqa: E402
import train  # noqa: E402

sys.path.remove(str(FOLDER))


@pytest.fixture(scope="module", autouse=True)
def _threads_of_others():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    train.main([str(TOY), "--output", str(folder), "--test", str(TOY), "--epochs", "40", "--batch", "60"])
    return folder


def test_learns_by_heart(trained):
    rows = json.loads((trained / "measures.json").read_text())
    assert set(rows) == set(evaluate.DECODERS)
    assert rows["single-root"]["UAS"] > 90
    assert rows["single-root"]["LAS"] > 80
    assert rows["single-root"]["malformed"] == rows["mbr"]["malformed"] == 0
    assert rows["single-root"]["ECE"] < 20


def batch_of(count, seed):
    """Toy sentences of different lengths, scores for their edges, log-probabilities for their labels."""
    examples = data.read(str(TOY))[:count]
    batch = data.collate(examples, data.Vocabulary.of(examples))
    generator = torch.Generator().manual_seed(seed)
    nodes = batch.words.shape[1]
    edges = torch.randn(count, nodes, nodes, generator=generator, dtype=torch.float64)
    labels = torch.randn(count, nodes, 30, generator=generator, dtype=torch.float64).log_softmax(-1)
    return batch, edges.requires_grad_(), labels


def test_losses_by_enumeration():
    """Every tree of the two shortest sentences, with its labels summed out."""
    examples = sorted(data.read(str(TOY)), key=lambda example: len(example.words))[:2]
    batch = data.collate(examples, data.Vocabulary.of(examples))
    generator = torch.Generator().manual_seed(0)
    nodes = batch.words.shape[1]
    edges = torch.randn(2, nodes, nodes, generator=generator, dtype=torch.float64)
    labels = torch.randn(2, nodes, batch.labels.max() + 1, generator=generator, dtype=torch.float64).log_softmax(-1)
    likelihood, risk, local = [], [], []
    for i, example in enumerate(examples):
        n = len(example.words)
        deps = torch.arange(1, n + 1)
        trees = torch.from_numpy(enumerate_trees(n, "single"))[:, 1:]
        scores = edges[i][trees, deps].sum(-1)
        gold, gold_labels = batch.heads[i, 1 : n + 1], labels[i, deps, batch.labels[i, 1 : n + 1]]
        likelihood.append(scores.logsumexp(0) - edges[i][gold, deps].sum() - gold_labels.sum())
        marginals = scores.softmax(0) @ (trees == gold).double()
        risk.append((1 - marginals * gold_labels.exp()).sum())
        for d in deps.tolist():
            heads = [h for h in range(n + 1) if h != d]
            local.append(edges[i, heads, d].logsumexp(0) - edges[i, gold[d - 1], d] - gold_labels[d - 1])
    words = batch.lengths.sum()
    crf = sum(likelihood) / words
    torch.testing.assert_close(losses.tree_crf(edges, labels, batch), crf)
    torch.testing.assert_close(losses.log_determinant(edges, labels, batch), crf)
    torch.testing.assert_close(losses.crf_and_risk(edges, labels, batch), crf + sum(risk) / words)
    torch.testing.assert_close(losses.head_selection(edges, labels, batch), torch.stack(local).mean())


@pytest.mark.parametrize("name", losses.LOSSES)
def test_losses_do_not_see_the_padding(name):
    batch, edges, labels = batch_of(5, 0)
    loss = losses.LOSSES[name](edges, labels, batch)
    (gradient,) = torch.autograd.grad(loss, edges)
    for i, length in enumerate(batch.lengths.tolist()):
        assert (gradient[i, length + 1 :] == 0).all()
        assert (gradient[i, :, length + 1 :] == 0).all()
    alone = [
        losses.LOSSES[name](
            edges[i : i + 1, : n + 1, : n + 1], labels[i : i + 1, : n + 1], data.collate([example], vocabulary)
        )
        * n
        for vocabulary in [data.Vocabulary.of(batch.examples)]
        for i, (example, n) in enumerate(zip(batch.examples, batch.lengths.tolist(), strict=True))
    ]
    torch.testing.assert_close(loss, sum(alone) / batch.lengths.sum())


@pytest.mark.parametrize("name", losses.LOSSES)
def test_each_loss_learns(name, tmp_path):
    chosen = train.options([str(TOY), "--output", str(tmp_path), "--loss", name])
    torch.manual_seed(0)
    run = train.Run(chosen, data.read(str(TOY)))
    batch = data.collate(run.examples, run.vocabulary)
    values = [run.learn(batch, 1.0) for _ in range(8)]
    assert values[-1] < 0.8 * values[0]


def test_resumes_after_being_killed_with_the_same_bits(tmp_path):
    arguments = [str(TOY), "--epochs", "8", "--batch", "60", "--every", "1"]
    train.main([*arguments, "--output", str(tmp_path / "whole")])
    command = [sys.executable, str(FOLDER / "train.py"), *arguments, "--output", str(tmp_path / "killed")]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        process.stderr.read(1)  # the progress bar is there: the first step begins
        while not (tmp_path / "killed" / "checkpoint.pt").exists():
            assert process.poll() is None, process.stderr.read()
        process.send_signal(signal.SIGKILL)
    whole = torch.load(tmp_path / "whole" / "checkpoint.pt", weights_only=True)
    assert 0 < torch.load(tmp_path / "killed" / "checkpoint.pt", weights_only=True)["step"] < whole["step"]
    train.main([*arguments, "--output", str(tmp_path / "killed")])
    killed = torch.load(tmp_path / "killed" / "checkpoint.pt", weights_only=True)
    assert killed["step"] == whole["step"]
    for name, weights in whole["parser"].items():
        assert torch.equal(killed["parser"][name], weights), name


def test_does_not_resume_another_run(trained):
    with pytest.raises(SystemExit, match="was made with epochs = 40, not 41"):
        train.main([str(TOY), "--output", str(trained), "--epochs", "41", "--batch", "60"])


def test_parses_conllu_and_text(trained, tmp_path):
    zipped = tmp_path / "toy.conllu.gz"
    zipped.write_bytes(gzip.compress(TOY.read_bytes()))
    for decoder in evaluate.DECODERS:
        out = tmp_path / f"{decoder}.conllu"
        parse.main([str(trained), str(zipped), "--output", str(out), "--decoder", decoder])
        found, gold = list(read_trees(out)), list(read_trees(TOY))
        assert [tree.words for tree in found] == [tree.words for tree in gold]
        assert [tree.id for tree in found] == [tree.id for tree in gold]
        if decoder in ("single-root", "mbr"):
            assert all(spantree.is_tree(tree.heads) for tree in found)
    text = tmp_path / "new.txt"
    text.write_text("The cat reads a book .\n\nUnseen words too\n")
    parse.main([str(trained), str(text), "--output", str(tmp_path / "new.conllu")])
    first, second = read_trees(tmp_path / "new.conllu")
    assert first.words == ["The", "cat", "reads", "a", "book", "."]
    assert spantree.is_tree(second.heads)
    assert "HeadProb=" in (tmp_path / "new.conllu").read_text()


def test_score_files_are_those_of_the_experiments(trained, tmp_path):
    parse.main([str(trained), str(TOY), "--scores", str(tmp_path / "scores" / "toy.npz")])
    (treebank,) = read_folder(tmp_path / "scores")
    gold = list(read_trees(TOY))
    assert [heads.tolist() for heads in treebank.gold] == [tree.heads.tolist() for tree in gold]
    parser, vocabulary = parse.load(str(trained))
    parsed = evaluate.parse(parser, data.read(str(TOY)), vocabulary, ["single-root"])["single-root"]
    for scores, heads, probabilities in zip(treebank.scores, parsed.heads, parsed.probabilities, strict=True):
        np.testing.assert_allclose(np.exp(scores[:, 1:]).sum(axis=0), 1, rtol=1e-5)
        assert np.isneginf(scores[:, 0]).all()
        assert np.isneginf(np.diagonal(scores)).all()
        np.testing.assert_array_equal(spantree.decode(scores)[1:], heads)
        words = np.arange(1, len(scores))
        np.testing.assert_allclose(spantree.marginals(scores)[heads, words], probabilities, atol=1e-4)


def test_calibration_error():
    """Of ten words at 0.75 seven are right, of ten at 0.15 two: (0.5 + 0.5) / 20."""
    probabilities = np.repeat([0.75, 0.15], 10)
    right = np.array([True] * 7 + [False] * 3 + [True] * 2 + [False] * 8)
    assert evaluate.calibration_error(probabilities, right) == pytest.approx(0.05)


def test_sentences_without_one_root_are_left_out(tmp_path):
    bad = tmp_path / "bad.conllu"
    bad.write_text("1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n2\tb\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
    with pytest.raises(SystemExit, match="no sentence has a gold tree with one root"):
        train.main([str(bad), "--output", str(tmp_path / "run")])


def test_what_cannot_be_read_is_said_in_a_line(trained, tmp_path):
    bad, empty = tmp_path / "bad.conllu", tmp_path / "empty.conllu"
    bad.write_text("1\ta\t_\t_\t_\t_\t9\tdep\t_\t_\n\n")
    empty.touch()
    for command in (
        lambda file: train.main([str(file), "--output", str(tmp_path / "run")]),
        lambda file: parse.main([str(trained), str(file), "--output", "-"]),
    ):
        with pytest.raises(SystemExit, match=r"bad.conllu: line 1: word 1: HEAD is '9'"):
            command(bad)
        with pytest.raises(SystemExit, match=r"No such file"):
            command(tmp_path / "nowhere.conllu")
        with pytest.raises(SystemExit, match=r"empty.conllu: "):
            command(empty)


def test_what_parse_cannot_do_is_said_in_a_line(trained, tmp_path, capsys):
    text = tmp_path / "new.txt"
    text.write_text("the dog barks\n")
    with pytest.raises(SystemExit, match=r"has no parser that train\.py wrote"):
        parse.main([str(tmp_path / "nowhere"), str(text), "--output", "-"])
    for arguments, said in (([], "nothing is asked for"), (["--measure"], "text has none")):
        with pytest.raises(SystemExit):
            parse.main([str(trained), str(text), *arguments])
        assert said in capsys.readouterr().err
