"""Stores on the command line."""

import json
import re

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist


@pytest.fixture
def files(tmp_path):
    dims = np.where(np.arange(21) < 7, 4, 1)  # by which clusters are balanced
    F = sc.CellularSheaf.random([[k, k + 1] for k in range(20)], dims, 8, seed=0)
    path = tmp_path / "sheaf.npz"
    sc.save(path, F)
    return F, path, tmp_path / "src", tmp_path / "out"


@pytest.mark.parametrize(
    ("method", "seed", "operator"), [("balls", 0, "internal"), ("matching", 3, "principal")]
)
def test_a_graph_file_is_stored_and_coarsened_into_a_store(
    method, seed, operator, files, run, monkeypatch
):
    F, path, src, out = files
    monkeypatch.setattr(dist, "connect", None)  # without --scheduler there are no other processes
    assert "SheafStore" in run("store", path, src).out
    assert np.array_equal(dist.open_store(src).load().tail_data, F.tail_data)
    arguments = ["coarsen", src, "--store", out, "--clusters", 4, "--rank", 2, "--shards", 2]
    if method != "balls":  # which are the defaults
        arguments += ["--method", method, "--seed", seed, "--local-operator", operator]
    for _ in range(2):  # the second time it is finished
        said = run(*arguments).out
        assert "21 -> 4 vertices" in said
        assert "all 5 that apply hold" in said
        assert re.search(r"^shards +2,", said, re.MULTILINE)
    C = dist.open_coarsening(out)
    assert C.report["shards"] == 2
    assert np.array_equal(C.partition.labels, sc.select(F, 4, method, seed=seed).labels)
    same = sc.coarsen(F, C.partition, 2, local_operator=operator, compress=True)
    assert np.array_equal(C.sheaf.load().tail_data, same.sheaf.tail_data)


def test_info_and_verify_describe_and_check_stores(files, tmp_path, run):
    F, _, src, out = files
    levels, stored_partition = tmp_path / "levels", tmp_path / "P"
    source, P = dist.to_store(src, F), sc.select(F, 4)
    dist.coarsen(source, out, P, 2)
    dist.coarsen_levels(source, levels, partitions=[P, sc.Partition([0, 0, 1, 1])], rank=2)
    dist.to_store(stored_partition, P)
    assert "SheafStore(" in run("info", src).out
    assert "fine    SheafStore(" in run("info", out).out
    assert "2 levels: 21 -> 4 -> 2 vertices" in run("info", levels).out
    assert "21 vertices in 4 clusters" in run("info", stored_partition).out
    told = json.loads(run("info", stored_partition, "--json").out)
    assert (told["kind"], told["vertices"], told["clusters"]) == ("PartitionStore", 21, 4)
    for path, count in ((out, 1), (levels, 2)):
        assert run("verify", path).out.count("all 5 that apply hold") == count
    src.rename(tmp_path / "elsewhere")
    for command in ("info", "verify"):
        assert re.search(r"src: there is no store", run(command, levels, status=2).err)
    assert "SheafStore(" in run("info", out).out


def test_spectral_clusters_of_stores_are_communities_of_the_graph(run, tmp_path):
    G = nx.planted_partition_graph(4, 30, 0.5, 0.01, seed=1)
    dist.to_store(tmp_path / "src", sc.CellularSheaf.random(G, 2, 1, seed=0))
    options = ("-k", 4, "-r", 1, "--method", "spectral")
    run("coarsen", tmp_path / "src", "--store", tmp_path / "out", *options)
    found = dist.open_coarsening(tmp_path / "out").partition
    assert len({*zip(np.arange(120) // 30, found.labels, strict=True)}) == found.n_clusters == 4
