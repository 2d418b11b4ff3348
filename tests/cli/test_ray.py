"""On a local Ray with several workers: the same bytes as on one machine; lost workers and drivers lose nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import safetensors.numpy

from spantree.__main__ import main
from spantree._annotations import Options
from spantree.cli.on_ray import ShardTask, annotated, run_tasks
from spantree.cli.shards import plan
from spantree.files import open_scores

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'spantree[ray]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own

SENTENCES = 40_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ray")
    rng = np.random.default_rng(0)
    words = rng.integers(1, 6, SENTENCES).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum((words + 1) ** 2)]).astype(np.int32)
    scores = pa.ListArray.from_arrays(pa.array(offsets), pa.array(rng.standard_normal(offsets[-1], np.float32)))
    pq.write_table(pa.table({"n": pa.array(words), "scores": scores}), folder / "scores.parquet", row_group_size=5000)
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if not Path("alone.parquet").exists():
        assert main(["annotate", "scores.parquet", "--confidence", "-o", "alone.parquet"]) == 0
    return folder


def shards_of(path):
    with open_scores(path) as file:
        return plan(file.ends())


def test_the_plan_is_what_one_machine_does(here):
    assert main(["annotate", "scores.parquet", "-o", "shards/"]) == 0
    names = sorted(path.name for path in Path("shards").glob("part-*"))
    assert names == [f"part-{start:09d}-{end:09d}.parquet" for start, end in shards_of("scores.parquet")]
    assert len(names) > 3


def test_the_same_bytes_and_taken_up_again(here, capfd):
    assert main(["annotate", "scores.parquet", "--confidence", "-o", "together.parquet", "--ray", "local"]) == 0
    assert capfd.readouterr().err == ""  # no word of Ray's either
    assert Path("together.parquet").read_bytes() == Path("alone.parquet").read_bytes()
    # a driver that was killed after some shards: its folder, and only the rest is done
    assert main(["annotate", "scores.parquet", "--confidence", "-o", "kept/"]) == 0
    before = {path.name: path.stat().st_mtime_ns for path in sorted(Path("kept").glob("part-*"))}
    lost = sorted(before)[1:3]
    for name in lost:
        (Path("kept") / name).unlink()
    assert main(["annotate", "scores.parquet", "--confidence", "-o", "kept/", "--ray", "local", "--resume"]) == 0
    after = {path.name: path.stat().st_mtime_ns for path in sorted(Path("kept").glob("part-*"))}
    assert after.keys() == before.keys()
    assert {name for name in after if after[name] != before[name]} == set(lost)


class DiesOnce(ShardTask):
    """A worker that is killed in the middle of its second shard, the first time."""

    def __call__(self, row):
        mark = Path(self.folder) / "died"
        if row["start"] > 0 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), 9)
        return super().__call__(row)


def test_a_lost_worker_loses_nothing(here, tmp_path):
    shards = shards_of("scores.parquet")
    task = DiesOnce(str(here / "scores.parquet"), str(tmp_path), ".parquet", Options())
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    rows = list(run_tasks("local", shards, task))
    assert (tmp_path / "died").exists()
    assert sorted((row["start"], row["end"]) for row in rows) == shards
    tables = [pq.read_table(path) for path in sorted(tmp_path.glob("part-*"))]
    assert pa.concat_tables(tables).equals(pq.read_table(here / "alone.parquet"))


def test_local_is_here_whatever_cluster_runs(monkeypatch):
    """Without an address, Ray would look for the one that was started last."""
    asked = []
    monkeypatch.setattr(ray, "init", lambda address, **_: asked.append(address))
    monkeypatch.setattr(ray, "cluster_resources", dict)
    assert list(annotated("local", iter([]), Options())) == []
    assert asked == ["local"]


@pytest.fixture(scope="module")
def address():
    cluster = pytest.importorskip("ray.cluster_utils").Cluster(True, head_node_args={"num_cpus": 2})
    yield cluster.address
    cluster.shutdown()


@pytest.fixture
def small(tmp_path, here, monkeypatch):
    """The same 3,000 labelled sentences in every format, more than one batch of them, and their words."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    words = rng.integers(1, 6, 3000)
    scores = rng.standard_normal(int(2 * ((words + 1) ** 2).sum())).astype(np.float32)
    np.savez("scores.npz", lengths=words, scores=scores, labels=["dep", "root"])
    tensors = {"lengths": words, "scores": scores}
    safetensors.numpy.save_file(tensors, "scores.safetensors", metadata={"labels": '["dep", "root"]'})
    np.save("scores.npy", rng.standard_normal((2000, 6, 6)))
    for target in ("scores.parquet", "scores.arrow"):
        assert main(["convert", "scores.npz", target]) == 0
    line = "{}\tw\t_\t_\t_\t_\t_\t_\t_\t_\n"
    trees = [f"# sent_id = {i}\n" + "".join(map(line.format, range(1, n + 1))) + "\n" for i, n in enumerate(words)]
    Path("words.conllu").write_text("".join(trees) + "# behind the last sentence\n")


@pytest.mark.parametrize(
    ("scores", "trees", "output"),
    [
        ("scores.npz", True, "trees.conllu"),
        ("scores.safetensors", False, "trees.parquet"),
        ("scores.npy", False, "trees.jsonl"),
        ("scores.arrow", True, "trees.jsonl"),
        ("scores.parquet", True, "trees.conllu"),
    ],
)
def test_every_format_has_the_same_bytes(small, address, scores, trees, output, monkeypatch):
    monkeypatch.setattr("spantree.cli.shards.SENTENCES", 1024)
    arguments = ["annotate", scores, "--confidence", *(["--trees", "words.conllu"] if trees else ())]
    assert main([*arguments, "-o", f"alone-{output}"]) == 0
    assert main([*arguments, "-o", output, "--ray", address]) == 0
    assert Path(output).read_bytes() == Path(f"alone-{output}").read_bytes()


def test_streams_and_what_is_wrong(small, address, capfdbinary):
    """To standard output, with a sentence that has no tree."""
    scores = np.zeros((1500, 3, 3))
    scores[1200] = np.nan
    np.save("bad.npy", scores)
    out = {}
    for place in ([], ["--ray", address]):
        assert main(["annotate", "bad.npy", "--on-error", "skip", *place]) == 1
        out[len(place)] = capfdbinary.readouterr()
        assert main(["annotate", "bad.npy", *place]) == 2
        assert b"bad.npy: sentence 1201: the score of the edge 0 -> 1 is nan" in capfdbinary.readouterr().err
    assert out[0] == out[2]
    assert out[0].out.count(b"\n") == 1499


def test_a_worker_that_cannot_read_its_part(small, address, capfd):
    np.savez("late.npz", lengths=np.array([2, 1, -1]), scores=np.zeros(13))
    assert main(["annotate", "late.npz", "-o", "late.parquet", "--ray", address]) == 2
    assert "late.npz: sentence 3: lengths: -1 words" in capfd.readouterr().err
    assert not Path("late.parquet.parts").exists()
