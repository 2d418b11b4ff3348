"""`Annotate` in the engines that people map functions with: each once, if it is installed."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
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
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset(pa.Table.from_batches(table.to_batches(max_chunksize=7)))
    mapped = dataset.with_format("arrow").map(Annotate(), batched=True, batch_size=7, remove_columns=["n", "scores"])
    assert mapped.with_format(None)["heads"][:] == expected(scores)


def test_polars(scores, table):
    polars = pytest.importorskip("polars")
    frame = polars.from_arrow(table)
    assert polars.from_arrow(Annotate()(frame.to_arrow()))["heads"].to_list() == expected(scores)


def test_spark(scores, table):
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[2]").getOrCreate()
    annotate = Annotate(confidence=False)
    frame = session.createDataFrame(table.to_pandas())
    found = frame.mapInArrow(lambda batches: map(annotate, batches), "n int, heads array<int>, error string").collect()
    assert sorted(row["heads"] for row in found) == sorted(expected(scores))
    session.stop()


def test_dask(scores, table):
    pytest.importorskip("dask.dataframe")
    import dask.dataframe

    frame = dask.dataframe.from_pandas(table.to_pandas(), npartitions=3)
    annotate = Annotate(confidence=False)
    schema = table.schema

    def trees(part):
        return annotate(pa.Table.from_pandas(part, schema=schema, preserve_index=False)).to_pandas()

    found = frame.map_partitions(trees, meta={"n": "i4", "heads": object, "error": object}).compute()
    assert [heads.tolist() for heads in found["heads"]] == expected(scores)


def test_ray(scores, table, monkeypatch):
    ray = pytest.importorskip("ray")
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
