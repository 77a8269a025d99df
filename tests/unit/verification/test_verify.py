"""`verify` passes correct coarsenings at any scale; its result is a table and a verdict."""

import dataclasses

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

import sheafcoarsen as sc
from tests.support.helpers import assert_verified, same_subspace
from tests.theory.test_theorems import coarsenings
from tests.unit.verification.test_statements import (
    ALWAYS,
    LOOPLESS,
    SIX,
    SPECTRAL,
    THREES,
    applied,
    with_sheaf,
)

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


@given(coarsenings())
def test_every_coarsening_passes(case):
    V = assert_verified(case[0])
    assert applied(V) >= ALWAYS


def test_the_seed_determines_the_probes(C):
    checks = (sc.verify(C, seed=seed).checks for seed in (3, 3, 4))
    first, again, other = ([c.ratio for c in each if c.how == "probe"] for each in checks)
    assert first == again != other
    with pytest.raises(ValueError, match="`seed` must be at least 0"):
        sc.verify(C, seed=-1)


@pytest.mark.parametrize(("operator", "compress"), [("internal", False), ("principal", True)])
@pytest.mark.parametrize("scale", [1e-138, 1e-140, 1e-142, 1e-145, 1e-149, 1e150])
def test_coarsenings_at_the_ends_of_the_floating_point_range_pass(scale, operator, compress):
    """Fourth powers overflow at these scales, so numbers must be scaled before squaring."""
    graph = nx.gnm_random_graph(12, 20, seed=3)
    G = sc.CellularSheaf.random(graph, 2, 2, kind="orthogonal", seed=3)
    scale *= 0.5 if scale > 1 else 20
    F = G.with_maps(G.tail_data * scale, G.head_data * scale)
    P = sc.Partition([0] * 6 + [1] * 6)
    C = sc.coarsen(F, P, 3, local_operator=operator, compress=compress)
    assert np.isfinite(C.sheaf.tail_data).all()
    assert C.sheaf.n_edges > C.n_crossing_edges
    deeper = sc.coarsen(C.sheaf, sc.Partition([0, 0]), 4, local_operator=operator)
    assert_verified(C)
    assert_verified(deeper)


@pytest.mark.parametrize("kind", ["internal", "basis"])
def test_a_cluster_with_far_smaller_maps_than_the_others_passes(kind):
    """Limits apply only to the largest entry; a cluster 1e-155 times weaker has modes."""
    F, P, weak = SIX, THREES, np.where(np.arange(5) < 2, 1e-155, 1.0)
    strong = sc.coarsen(F, P, 2)
    F = F.with_maps(F.tail_data * weak, F.head_data * weak)
    options = {"rank": 2} if kind == "internal" else {"basis": [strong.block(a) for a in (0, 1)]}
    C = sc.coarsen(F, P, **options)
    assert np.isfinite(C.sheaf.tail_data).all()
    assert same_subspace(C.block(0), strong.block(0), condition=3)
    loops = np.arange(C.n_crossing_edges, C.sheaf.n_edges)
    assert C.sheaf.edges[loops, 0].tolist() == [0, 1]
    first = np.linalg.norm(C.sheaf.tail_map(loops[0]) / 1e-155)
    second = np.linalg.norm(C.sheaf.tail_map(loops[1]))
    # relative accuracy of an eigenvalue of 1e-310
    subnormal = np.finfo(float).smallest_subnormal / 1e-310
    assert abs(first / second - 1) < 30 * 3 * (np.finfo(float).eps + subnormal)


def test_coarsenings_at_any_scale_pass_after_saving_and_loading(tmp_path):
    """Loop maps sqrt(lambda) / 2 exceed fine maps; kernels give crossing maps near zero."""
    limit = np.sqrt(np.finfo(float).max) / 1e4 * 0.9
    F = sc.CellularSheaf.constant(nx.star_graph(30))
    F = F.with_maps(F.tail_data * limit, F.head_data * limit)
    C = sc.coarsen(F, sc.Partition([0] * 31), 31)
    for item in (C, C.sheaf):
        sc.save(tmp_path / f"{type(item).__name__}.npz", item)
    assert_verified(sc.load(tmp_path / "Coarsening.npz"))
    loaded = sc.load(tmp_path / "CellularSheaf.npz")
    np.testing.assert_array_equal(loaded.tail_data, C.sheaf.tail_data)


@pytest.mark.large
def test_a_coarsening_with_a_hub_passes():
    """The diagonal block of a hub of degree d sums d terms, all rounded in one direction."""
    star = sc.CellularSheaf.constant(nx.star_graph(3000))
    large = sc.CellularSheaf.random(nx.star_graph(30_000), 1, 1, seed=1, dtype=np.float32)
    for F, labels, rank in (
        (star, np.arange(3001) % 150, sc.ranks.kernel()),
        (star, np.arange(3001) * 150 // 3001, 2),
        (large, np.arange(30_001) % 150, 1),
    ):
        assert_verified(sc.coarsen(F, sc.Partition(labels), rank))


def test_all_levels_of_a_hierarchy_are_verified():
    F = sc.gallery.bundle(nx.grid_2d_graph(8, 8), 2, noise=0.2, seed=0)
    H = sc.coarsen_levels(F, factor=4, n_levels=2, rank=3, eliminate=True)
    V = assert_verified(H, seed=3)
    for i, C in enumerate(H):
        own = [(f"level {i}: {check.name}", check.error) for check in sc.verify(C, seed=3)]
        assert [(c.name, c.error) for c in V if c.name.startswith(f"level {i}: ")] == own
    last = with_sheaf(H[2], tail=2 * H[2].sheaf.tail_data, head=2 * H[2].sheaf.head_data)
    broken = dataclasses.replace(H, levels=(*H[:2], last))
    V = sc.verify(broken)
    assert {c.name.partition(":")[0] for c in V if not c.passed} == {"level 2"}
    # of the checks of all levels with one label, the first that fails is found, or else the first
    assert not any(V[c.label].passed for c in V if not c.passed)
    assert V["section-2"].name == "level 1: local modes"


@pytest.mark.parametrize("tiny", [1e-20, 1e-30, 1e-37, 1e-44])
def test_tiny_maps_in_single_precision_pass(tiny):
    """Their squares underflow, but not in double precision."""
    one, none, small = (np.array([[x]], np.float32) for x in (1.0, 0.0, tiny))
    F = sc.CellularSheaf([[0, 1], [1, 2]], [one, small], [none, one])
    assert_verified(sc.coarsen(F, sc.Partition([0, 1, 2]), 1))


def test_the_table_shows_all_checks_and_reasons(C):
    V = sc.verify(C)
    labels, page = [check.label for check in V.checks], V._repr_html_()
    assert len(set(labels)) == len(labels)
    assert set(labels) >= SPECTRAL | LOOPLESS | ALWAYS
    assert page.count("<tr>") == len(labels) + 1
    for check in V.checks:
        assert check.label in str(V)
        assert check.label in page
        if check.skipped_because:
            assert check.skipped_because in str(V)
            assert (check.ratio, check.how) == (None, None)
        else:
            assert check.how in ("exact", "probe", "dense")
            assert 0 <= check.ratio < check.threshold
    assert "largest ratio" not in str(V)
    assert "that apply hold, 2 do not apply" in str(V)
    assert bool(V)
    failed = sc.verify(with_sheaf(C, tail=0 * C.sheaf.tail_data, head=0 * C.sheaf.head_data))
    assert not failed
    assert "FAILED, largest ratio: cluster" in str(failed)


def test_checks_are_indexed_by_label_and_iterated_in_order(C):
    V = sc.verify(C)
    assert len(V) == len(V.checks) == len(list(V))
    assert [V[check.label] for check in V] == list(V.checks)
    assert [V[i] for i in range(len(V))] == list(V.checks)
    assert V[-1] is V.checks[-1]
    assert V[np.int64(0)] is V["section-2"]
    assert V[1:3] == V.checks[1:3]
    assert V["interlacing"] is V["fact-1"]
    with pytest.raises(IndexError):
        V[len(V)]
    with pytest.raises(TypeError):
        V[1.0]
    with pytest.raises(KeyError, match=r"no check has the label 'other'; the labels are section-2"):
        V["other"]


def test_a_check_has_its_error_bound_and_slack(C):
    damaged = with_sheaf(C, tail=C.sheaf.tail_data * (1 + 1e-6))
    good, bad = (sc.verify(X)["thm:Galerkin_realization"] for X in (C, damaged))
    for check in (good, bad):
        assert check.error / check.allowed == pytest.approx(check.ratio / check.threshold)
        assert check.slack == check.allowed - check.error
    assert good.slack > 0 > bad.slack
    assert bad.error > 1e-7 > good.error
    skipped = sc.verify(C)["eq:loopless_exact_realization"]
    assert skipped.error is skipped.allowed is skipped.slack is None


def test_errors_and_bounds_scale_with_the_maps(C):
    F, s = C.fine, 2.0**100
    D = sc.coarsen(F.with_maps(F.tail_data * s, F.head_data * s), C.partition, 4)
    first, second = (sc.verify(X)["eq:galerkin_energy_identity"].allowed for X in (C, D))
    assert second == pytest.approx(first * 2.0**200)
