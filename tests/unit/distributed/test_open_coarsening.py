"""Stored coarsenings: opening, loading, lifting, energy ledger and verification."""

import dataclasses

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen.distributed._open_coarsening import _applied
from tests.support.helpers import assert_residual
from tests.unit.distributed.cases import differences, grid_sheaf, made_twice, ragged_sheaf, rewrite


@pytest.fixture
def made(memory):
    F = grid_sheaf(8).with_labels([f"v{k}" for k in range(64)])
    P = sc.select(F, 6)
    return F, *made_twice(memory, F, P, 3, 2000, n_shards=2, compress=False)


def test_loading_gives_the_coarsening_made_in_memory(made, memory):
    _, C, D = made
    again = dist.open_coarsening(memory("out"))
    for stored in (D, again):
        loaded = stored.load()
        assert differences(C, loaded) == []
        assert sc.verify(loaded).passed
        assert np.array_equal(stored.partition.labels, C.partition.labels)
    assert C.sheaf.vertex_labels[1] == tuple(f"v{k}" for k in C.partition.cluster(1))
    assert (again.fine.url, repr(again)) == (D.fine.url, repr(D))
    assert "internal modes, 64 -> 6 vertices, dim C^0 128 -> 18" in repr(D)


def test_a_stored_sheaf_or_a_source_written_again_raises(made, memory):
    F, _, D = made
    src = D.fine
    for opened in (lambda: dist.open_coarsening(src.url), lambda: dist.StoredCoarsening(src, src)):
        with pytest.raises(dist.StoreError, match="holds a sheaf, not a coarsening"):
            opened()
    src.place.remove()
    with pytest.raises(dist.StoreError, match="there is no store"):
        dist.open_coarsening(memory("out"))
    dist.to_store(memory("src"), F)
    with pytest.raises(dist.StoreError, match="is not the store that"):
        dist.open_coarsening(memory("out"))


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_lift_and_pool_match_those_in_memory(dtype, memory):
    F = ragged_sheaf(dtype)
    C, D = made_twice(memory, F, sc.select(F, 6), 2)
    rng = np.random.default_rng(0)
    for shape in ((), (3,)):
        z = rng.standard_normal((D.sheaf.dim_c0, *shape)).astype(dtype)
        x = rng.standard_normal((F.dim_c0, *shape)).astype(dtype)
        assert np.array_equal(D.lift(z), C.lift(z))
        assert np.array_equal(D.pool(x), C.pool(x))
        assert D.lift(z).dtype == C.lift(z).dtype
    with pytest.raises(ValueError, match="`z` must have shape .* of the coarse sheaf"):
        D.lift(np.zeros(3))
    with pytest.raises(ValueError, match="`x` must have shape .* of the fine sheaf"):
        D.pool(np.zeros(3))


@pytest.mark.parametrize(("local_operator", "columns"), [("internal", (2,)), ("principal", ())])
def test_the_ledger_matches_that_in_memory(local_operator, columns, memory):
    F = ragged_sheaf(np.complex128)
    C, D = made_twice(memory, F, sc.select(F, 6), 3, 3000, local_operator=local_operator)
    x = np.random.default_rng(0).standard_normal((F.dim_c0, *columns))
    one, other = sc.energy_ledger(C, x), D.ledger(x)
    delta = sc.coboundary(F)
    for name in {field.name for field in dataclasses.fields(one)} - {"truncation_bound"}:
        a, b = getattr(one, name), getattr(other, name)
        assert np.shape(a) == np.shape(b)
        assert_residual(a - b, delta, delta, x, x, n=F.dim_c0)
    if local_operator == "internal":
        finite = np.isfinite(one.truncation_bound)
        assert np.array_equal(finite, np.isfinite(other.truncation_bound))
        assert np.allclose(one.truncation_bound[finite], other.truncation_bound[finite])
    else:
        assert one.truncation_bound is other.truncation_bound is None


def test_the_ledger_requires_orthonormal_columns_as_in_memory(memory):
    F, P = sc.CellularSheaf.constant(nx.path_graph(6)), sc.Partition([0, 0, 0, 1, 1, 1])
    ones, x = np.ones((3, 1)), np.arange(6.0)
    C = sc.coarsen(F, P, basis=[ones / 3**0.5, ones])
    D = dist.to_store(memory("long"), C)
    for ledger in (lambda: sc.energy_ledger(C, x), lambda: D.ledger(x)):
        with pytest.raises(ValueError, match="not the identity in cluster 1 .and 0 others"):
            ledger()
    C = sc.coarsen(F, P, basis=[ones / 3**0.5] * 2)
    E = dist.to_store(memory("own"), C).ledger(x)
    assert_residual(E.fine_norm2 - x @ x, x, x, n=6)
    assert_residual(E.discarded_norm2.sum() - 4, x, x, n=6)


@pytest.mark.large
def test_energies_in_single_precision_are_summed_in_double_precision(memory):
    """The terms of long sums in single precision would be rounded to the size of the sum."""
    n = 40_000
    maps = np.ones((n - 1, 1, 1), np.float32)
    F = sc.CellularSheaf(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), maps, maps)
    D = dist.coarsen(dist.to_store(memory("src"), F), memory("out"), np.arange(n) // 2, 1)
    ratios = [check.ratio for check in D.verify()]
    assert len(ratios) == 5
    assert max(ratios) < 0.5


@pytest.mark.parametrize(
    ("dtype", "local_operator"), [(np.float32, "internal"), (np.complex128, "principal")]
)
def test_verification_passes_and_detects_a_wrong_energy(dtype, local_operator, memory, monkeypatch):
    F = ragged_sheaf(dtype)
    _, D = made_twice(memory, F, sc.select(F, 6), 3, 3000, local_operator=local_operator)
    V = D.verify()
    assert V.passed, str(V)
    assert len(V) == 5
    assert V["section-4"].how == "probe"
    assert V["thm:Galerkin_realization"].how == "probe"
    ratios = [[check.ratio for check in D.verify(seed=seed)] for seed in (0, 0, 1)]
    assert ratios[0] == ratios[1] != ratios[2]
    monkeypatch.setattr("sheafcoarsen.operators.energy", lambda F, x: 2 * sc.energy(F, x))
    assert [c.label for c in D.verify() if not c.passed] == ["eq:galerkin_energy_identity"]
    monkeypatch.undo()
    pool = type(D).pool
    monkeypatch.setattr(type(D), "pool", lambda D, x: pool(D, x) * np.float32(1.01))
    assert not D.verify()["eq:local_pooling_adjoint"].passed


@pytest.mark.parametrize(
    ("dtype", "scale", "basis"),
    [
        (np.float64, 1e149, None),
        (np.float64, 1e-149, None),
        (np.complex64, 1e12, None),
        (np.complex64, 1e-12, None),
        (np.float64, 1.0, 1e-6),
        (np.float64, 1.0, 1.0),
        (np.float64, 1.0, 1e6),
    ],
)
def test_verification_finds_a_wrong_map_at_any_scale_and_in_any_basis(dtype, scale, basis, memory):
    """Fourth powers of map entries must neither overflow nor underflow."""
    F = grid_sheaf(dtype=dtype)
    F = F.with_maps(F.tail_data * F.tail_data.real.dtype.type(scale), F.head_data * dtype(scale))
    P = sc.select(F, 6)
    if basis is None:
        D = dist.coarsen(dist.to_store(memory("src"), F), memory("C"), P, 3)
    else:
        C = sc.coarsen(F, P, 3)
        own = sc.coarsen(F, P, basis=[basis * C.block(a) for a in range(6)])
        D = dist.to_store(memory("C"), own)
    assert D.verify().passed, str(D.verify())
    factor = 1.01 if basis is None else 1 + 1e-9
    rewrite(D.sheaf, f"parts/{D.sheaf.parts[0]}/tail", lambda maps: maps * maps.dtype.type(factor))
    failed = [check.label for check in D.verify() if not check.passed]
    assert failed == ["thm:Galerkin_realization"]


def test_without_loops_the_realization_check_is_skipped(memory):
    F = ragged_sheaf()
    _, D = made_twice(memory, F, sc.select(F, 6), 3, loops=False)
    V = D.verify(probes=1)
    assert V.passed
    assert V["thm:Galerkin_realization"].skipped_because.startswith("loops=False")
    with pytest.raises(ValueError, match="`probes` must be at least 1"):
        D.verify(probes=0)
    for probes in (2**32, 10**400):
        with pytest.raises(ValueError, match=r"`probes` = \d+ random .*: use at most \d+$"):
            D.verify(probes=probes)
    assert D.verify(probes=50).passed


@pytest.mark.parametrize("shard", [0, -1])
def test_verification_names_the_cluster_of_a_wrong_entry_of_the_basis(shard, url):
    """The entry is wrong but has a valid checksum, as after a bug."""
    F = grid_sheaf(6)
    _, D = made_twice(url, F, sc.select(F, 6), 3, n_shards=2)
    name = f"basis/{D.sheaf.header.basis[shard]}/data"
    rewrite(D.sheaf, name, lambda values: np.where(values == values.max(), 1 + 1e-9, 1) * values)
    V = dist.open_coarsening(url("out")).verify()
    wrong = {check.label for check in V if not check.passed}
    assert {"section-2", "thm:Galerkin_realization"} <= wrong
    clusters = [own.tolist() for own in D._shards.values()]
    assert V["section-2"].where in {f"cluster {a}" for a in clusters[shard]}
    assert clusters[-1][0] > 0


def test_the_bound_on_the_norm_of_the_laplacian_holds(memory):
    F = ragged_sheaf()
    bound = _applied(dist.to_store(memory("src"), F, 3000), np.zeros((F.dim_c0, 1)))[2]
    squares = np.zeros(F.n_vertices)
    for e, (u, v) in enumerate(F.edges):
        squares[u] += np.linalg.norm(F.tail_map(e)) ** 2
        squares[v] += np.linalg.norm(F.head_map(e)) ** 2
    assert np.isclose(bound, 2 * squares.max(), rtol=1e-14)
