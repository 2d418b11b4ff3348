"""`Annotate` in the engines that people map functions with: each once, if it is installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spantree
from spantree.arrow import Annotate

pytestmark = pytest.mark.filterwarnings("ignore")  # the engines' own


@pytest.fixture
def scores():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n + 1, n + 1)).astype(np.float32) for n in rng.integers(1, 8, 50)]


@pytest.fixture
def table(scores):
    flat = pa.array([one.ravel() for one in scores], pa.list_(pa.float32()))
    return pa.table({"n": pa.array([len(one) - 1 for one in scores], pa.int32()), "scores": flat})


def expected(scores):
    return [spantree.decode(one)[1:].tolist() for one in scores]


def test_datasets(scores, table):
    datasets = pytest.importorskip("datasets", reason="needs datasets: pip install datasets")
    dataset = datasets.Dataset(pa.Table.from_batches(table.to_batches(max_chunksize=7)))
    mapped = dataset.with_format("arrow").map(Annotate(), batched=True, batch_size=7, remove_columns=["n", "scores"])
    assert mapped.with_format(None)["heads"][:] == expected(scores)


def test_polars(scores, table):
    polars = pytest.importorskip("polars", reason="needs polars: pip install polars")
    frame = polars.from_arrow(table)
    assert polars.from_arrow(Annotate()(frame.to_arrow()))["heads"].to_list() == expected(scores)


def test_spark(scores, table, tmp_path, monkeypatch):
    pytest.importorskip("pyspark", reason="needs Spark: pip install pyspark, and Java")
    from pyspark.sql import SparkSession

    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    pq.write_table(table, tmp_path / "scores.parquet")
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        annotate = Annotate(confidence=False)
        frame = session.read.parquet(str(tmp_path / "scores.parquet")).repartition(3)
        schema = "n int, heads array<int>, error string"
        found = frame.mapInArrow(lambda batches: map(annotate, batches), schema).collect()
    finally:
        session.stop()
    assert sorted(row["heads"] for row in found) == sorted(expected(scores))


def test_dask(scores, table, tmp_path):
    pytest.importorskip("dask.dataframe", reason="needs Dask: pip install 'dask[dataframe]'")
    import dask.dataframe
    import pandas

    annotate = Annotate(confidence=False)

    def trees(part):  # lists stay Arrow's on both sides
        found = annotate(pa.Table.from_pandas(part, preserve_index=False))
        return found.to_pandas(types_mapper=pandas.ArrowDtype)

    pq.write_table(table, tmp_path / "scores.parquet", row_group_size=20)
    path = str(tmp_path / "scores.parquet")
    frame = dask.dataframe.read_parquet(path, dtype_backend="pyarrow", split_row_groups=True)
    found = frame.map_partitions(trees, meta=trees(frame._meta)).compute()
    assert [list(heads) for heads in found["heads"]] == expected(scores)


def test_ray(scores, table, monkeypatch):
    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'spantree[ray]'")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    example = Path(__file__).parents[2] / "examples" / "ray" / "parse_and_annotate.py"
    spec = importlib.util.spec_from_file_location("parse_and_annotate", example)
    module = importlib.util.module_from_spec(spec)
    sys.modules["parse_and_annotate"] = module
    spec.loader.exec_module(module)
    ray.cloudpickle.register_pickle_by_value(module)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        found = ray.data.from_arrow(table).map_batches(Annotate(), batch_format="pyarrow", batch_size=7).take_all()
        assert sorted(list(row["heads"]) for row in found) == sorted(expected(scores))
        sentences = ray.data.from_items([{"id": str(i), "words": ["w"] * (1 + i % 5)} for i in range(20)])
        trees = module.annotated(sentences).take_all()
        assert sorted(row["id"] for row in trees) == sorted(map(str, range(20)))
        assert all(spantree.is_tree([-1, *row["heads"]]) for row in trees)
    finally:
        ray.shutdown()
