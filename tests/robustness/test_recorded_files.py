"""Files that the last version wrote load, and hold what this version computes.

tests/data holds one of every kind, real and complex; `tests.support.recorded` says how they were
made. What eigensolvers find may differ by rounding, and by nothing else.
"""

from pathlib import Path

import numpy as np
import pytest

import sheafcoarsen as sc
from tests.support.helpers import assert_residual, assert_verified, eps_of
from tests.support.recorded import DTYPES, made

FOLDER = Path(__file__).parents[1] / "data"
FILES = sorted(path.stem for path in FOLDER.glob("*.npz"))
TOPOLOGY = ("edges", "vertex_dims", "edge_dims", "vertex_offsets", "edge_offsets")


@pytest.fixture(scope="module")
def anew():
    return {kind: made(dtype) for kind, dtype in DTYPES.items()}


@pytest.fixture(params=FILES)
def pair(request, anew):
    """What was recorded, and the same made anew."""
    name, kind = request.param.split("_")
    return sc.load(FOLDER / f"{request.param}.npz"), anew[kind][name]


def levels_of(item):
    if isinstance(item, sc.Hierarchy):
        return item.levels
    return (item,) if isinstance(item, sc.Coarsening) else ()


def assert_same_topology(F, G):
    assert (F.dtype, F.vertex_labels) == (G.dtype, G.vertex_labels)
    for name in TOPOLOGY:
        np.testing.assert_array_equal(getattr(F, name), getattr(G, name))


def assert_near(A, B, *norms):
    A, B = (X.toarray() if hasattr(X, "toarray") else np.asarray(X) for X in (A, B))
    assert A.shape == B.shape
    assert_residual(A - B, *norms, n=max(A.shape, default=1), eps=eps_of(A))


def test_every_kind_of_object_is_recorded():
    kinds = {name.split("_")[0] for name in FILES}
    assert kinds == set(made(np.float64))
    assert {name.split("_")[1] for name in FILES} == set(DTYPES)


def test_recorded_sheaves_and_partitions_load_exactly(pair):
    loaded, item = pair
    assert type(loaded) is type(item)
    if isinstance(item, sc.Partition):
        np.testing.assert_array_equal(loaded.labels, item.labels)
    else:
        F, G = (getattr(each, "fine", each) for each in pair)
        assert_same_topology(F, G)
        np.testing.assert_array_equal(F.tail_data, G.tail_data)
        np.testing.assert_array_equal(F.head_data, G.head_data)


def condition(C):
    """Return how far modes move with a unit of rounding: for oversampled ones norm(G) / gap.

    G has the eigenvalues score^-2; the others are far enough apart in what is recorded.
    """
    if C.modes is None or C.modes.local_operator != "oversampled":
        return 1.0
    worst = 1.0
    for a in range(C.partition.n_clusters):
        scores = np.append(C.modes.eigenvalues(a), C.modes.next_eigenvalues[a])
        energies = scores[(scores > 0) & np.isfinite(scores)] ** -2.0
        if len(energies) > 1:
            worst = max(worst, float(energies.max() / -np.diff(energies).max()))
    return worst


def test_recorded_coarsenings_are_reproduced_up_to_rounding(pair):
    loaded, item = pair
    if isinstance(item, sc.Hierarchy):
        assert loaded.stopped_because == item.stopped_because
    assert len(levels_of(loaded)) == len(levels_of(item))
    for C, D in zip(levels_of(loaded), levels_of(item), strict=True):
        # earlier versions did not name coarse vertices
        assert_same_topology(C.sheaf, D.sheaf.with_labels(C.sheaf.vertex_labels))
        np.testing.assert_array_equal(C.partition.labels, D.partition.labels)
        np.testing.assert_array_equal(C.restored_loops, D.restored_loops)
        assert (C.crossing_rows is None) == (D.crossing_rows is None)
        if C.crossing_rows is not None:
            np.testing.assert_array_equal(C.crossing_rows, D.crossing_rows)
        assert C.loops == D.loops
        L = sc.laplacian(D.fine)
        size = np.linalg.norm(L.toarray())
        moved = condition(D)
        assert_near(C.prolongation, D.prolongation, C.ranks.sum() ** 0.5 * moved)
        assert_near(sc.laplacian(C.sheaf), sc.laplacian(D.sheaf), size * moved)
        assert_near(C.galerkin(), D.galerkin(), size * moved)
        np.testing.assert_array_equal(C.ranks, D.ranks)
        if D.modes is None:
            assert C.modes is None
            continue
        for name in ("local_operator", "singular", "rings", "target", "pilot", "over_budget"):
            assert getattr(C.modes, name) == getattr(D.modes, name), name
        np.testing.assert_array_equal(C.modes.tied, D.modes.tied)
        assert_near(C.modes.scores, D.modes.scores, size * moved)
        assert_near(C.modes.operator_norms, D.modes.operator_norms, size)
        one, other = C.modes.next_eigenvalues, D.modes.next_eigenvalues
        finite = np.isfinite(other)
        np.testing.assert_array_equal(np.isfinite(one), finite)
        assert_near(one[finite], other[finite], size * moved)


def test_recorded_objects_are_valid_and_usable(pair, tmp_path):
    loaded, item = pair
    for C in levels_of(loaded):
        assert_verified(C)
    if levels_of(item):
        F = item.fine.with_maps(2 * item.fine.tail_data, item.fine.head_data)
        again, wanted = loaded.recoarsen(F), item.recoarsen(F)
        for C, D in zip(levels_of(again), levels_of(wanted), strict=True):
            assert_same_topology(C.sheaf, D.sheaf)
            size = np.linalg.norm(sc.laplacian(D.fine).toarray())
            assert_near(sc.laplacian(C.sheaf), sc.laplacian(D.sheaf), size)
    sc.save(tmp_path / "again.npz", loaded)
    assert type(sc.load(tmp_path / "again.npz")) is type(item)
