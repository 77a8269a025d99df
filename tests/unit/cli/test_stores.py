"""Stores on the command line."""

import re

import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen.cli import main
from sheafcoarsen.distributed.schema import write_array


@pytest.fixture
def files(tmp_path):
    F = sc.CellularSheaf.random([[k, k + 1] for k in range(20)], 2, 3, seed=0)
    path = tmp_path / "sheaf.npz"
    sc.save(path, F)
    return F, str(path), str(tmp_path / "src"), str(tmp_path / "out")


@pytest.mark.parametrize(
    ("method", "seed", "operator"), [("balls", 0, "internal"), ("matching", 3, "principal")]
)
def test_a_graph_file_is_stored_and_coarsened_into_a_store(
    method, seed, operator, files, capsys, monkeypatch
):
    F, path, src, out = files
    monkeypatch.setattr(dist, "connect", None)  # without --scheduler there are no other processes
    assert main(["store", path, src]) == 0
    assert "SheafStore" in capsys.readouterr().out
    assert np.array_equal(dist.open_store(src).load().tail_data, F.tail_data)
    arguments = ["coarsen", src, "--store", out, "--clusters", "4", "--rank", "2", "--shards", "2"]
    if method != "balls":  # which are the defaults
        arguments += ["--method", method, "--seed", str(seed), "--local-operator", operator]
    for _ in range(2):  # the second time it is finished
        assert main(arguments) == 0
        said = capsys.readouterr().out
        assert "21 -> 4 vertices" in said
        assert "all 5 that apply hold" in said
        assert re.search(r"^shards +2,", said, re.MULTILINE)
    C = dist.open_coarsening(out)
    assert C.report["shards"] == 2
    assert np.array_equal(C.partition.labels, sc.select(F, 4, method, seed=seed).labels)
    same = sc.coarsen(F, C.partition, 2, local_operator=operator, compress=True)
    assert np.array_equal(C.sheaf.load().tail_data, same.sheaf.tail_data)


def test_info_and_verify_describe_and_check_stores(files, tmp_path, capsys):
    F, _, src, out = files
    source = dist.to_store(src, F)
    P = sc.select(F, 4)
    dist.coarsen(source, out, P, 2)
    dist.coarsen_levels(source, tmp_path / "levels", partitions=[P], rank=2)
    dist.to_store(tmp_path / "P", P)
    told = {
        src: "SheafStore(",
        out: "fine    SheafStore(",
        str(tmp_path / "levels"): "1 level: 21 -> 4 vertices",
        str(tmp_path / "P"): "21 vertices in 4 clusters",
    }
    for path, words in told.items():
        assert main(["info", path]) == 0
        assert words in capsys.readouterr().out
    for path in (out, str(tmp_path / "levels")):
        assert main(["verify", path]) == 0
        assert "all 5 that apply hold" in capsys.readouterr().out
    for arguments, message in (
        (["verify", src], "holds a sheaf, not a coarsening"),
        (["verify", src, "--clusters", "4", "--rank", "2"], "is not a file: for a store, use"),
        (["info", src, "--dim", "2"], "--dim applies to graphs, not to stores"),
        (["info", str(tmp_path)], "there is no store"),
        (["coarsen", src, "--clusters", "4", "--rank", "2"], "for a store, use coarsen --store"),
    ):
        assert main(arguments) == 2
        assert message in capsys.readouterr().err
    part = dist.open_coarsening(out).sheaf
    chunk = tmp_path / "out/parts" / part.parts[0] / "tail/c/0"
    held = bytearray(chunk.read_bytes())
    held[0] ^= 1
    chunk.write_bytes(held)
    assert main(["verify", out]) == 2
    assert "is damaged: its checksum is wrong" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--store", "OUT", "--weights", "sheaf"], "cannot be combined with --store: omit it"),
        (["--store", "OUT", "--signed"], "--signed cannot be combined with --store"),
        (["--store", "OUT", "--out", "x.npz"], "--out cannot be combined with --store"),
        (["--store", "OUT", "--dim", "2"], "--dim cannot be combined with --store"),
        (["--shards", "2"], "--shards requires --store"),
        (["--scheduler", "tcp://127.0.0.1:1"], "--scheduler requires --store"),
        (["--store", "OUT"], "there is no store"),
    ],
)
def test_options_that_conflict_with_store_are_rejected(arguments, message, files, capsys):
    _, _, src, out = files
    given = [out if item == "OUT" else item for item in arguments]
    assert main(["coarsen", src, "--clusters", "4", "--rank", "2", *given]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [0, 1])
def test_verify_checks_every_stored_level(wrong, files, tmp_path, capsys):
    F, _, src, _ = files
    P = [sc.Partition(np.arange(21) // 3), sc.Partition(np.arange(7) // 4)]
    H = dist.coarsen_levels(dist.to_store(src, F), tmp_path / "levels", partitions=P, rank=2)
    assert main(["verify", str(tmp_path / "levels")]) == 0
    capsys.readouterr()
    C = dist.open_levels(tmp_path / "levels")[wrong]
    name = f"basis/{C.sheaf.header.basis[0]}/data"
    write_array(C.sheaf.root, name, C.sheaf.array(name, float) * 1.01, packed=False)
    assert main(["verify", str(tmp_path / "levels")]) == 1
    said = capsys.readouterr().out
    assert said.count("5 that apply hold") == 1
    assert len(H) == 2


def test_an_existing_store_is_not_overwritten(files, capsys):
    _, path, src, _ = files
    assert main(["store", path, src]) == 0
    assert main(["store", path, src]) == 2
    assert "exists: remove it" in capsys.readouterr().err
