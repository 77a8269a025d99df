"""Batches of clusters give the same results for any batch size."""

import dataclasses

import networkx as nx
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen.verification import cluster_batches

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


@pytest.mark.parametrize("size", [1, 40])
def test_ratios_do_not_depend_on_the_batch_size(C, size, monkeypatch):
    whole = sc.verify(C)
    monkeypatch.setattr(cluster_batches, "PIECE", size)
    for ours, theirs in zip(sc.verify(C).checks, whole.checks, strict=True):
        assert (ours.verdict, ours.how) == (theirs.verdict, theirs.how)
        if ours.ratio is not None:
            assert ours.ratio == pytest.approx(theirs.ratio, rel=0.5, abs=1e-2)


@pytest.mark.parametrize("size", [1, 10**9])
@pytest.mark.parametrize(("cluster", "column"), [(1, 0), (0, -1)])
def test_entries_outside_the_diagonal_blocks_of_r_raise(C, size, cluster, column, monkeypatch):
    monkeypatch.setattr(cluster_batches, "PIECE", size)
    R = C.prolongation.toarray()
    R[C.fine.vertex_offsets[C.partition.cluster(cluster)[0]], column] = 1e-3
    damaged = scipy.sparse.csr_array(R)
    with pytest.raises(ValueError, match="R must hold a full block for every cluster"):
        dataclasses.replace(C, prolongation=damaged)
    wrong = sc.coarsen(C.fine, C.partition, C.ranks)
    for name in ("data", "indices", "indptr"):  # only verify notices arrays that are replaced
        setattr(wrong.prolongation, name, getattr(damaged, name))
    with pytest.raises(ValueError, match="R must be zero outside its diagonal blocks, but"):
        sc.verify(wrong)


def test_an_error_in_one_of_many_batches_is_caught(monkeypatch):
    monkeypatch.setattr(cluster_batches, "PIECE", 50)
    F = sc.CellularSheaf.random(nx.grid_2d_graph(12, 12), 2, 2, seed=5)
    C = sc.coarsen(F, sc.select(F, 24), 3)
    assert sc.verify(C).passed
    e = C.n_crossing_edges // 2
    tail = C.sheaf.tail_data.copy()
    tail[C.sheaf.tail_offsets[e]] += 1e-6
    wrong = dataclasses.replace(C, sheaf=C.sheaf.with_maps(tail, C.sheaf.head_data))
    failed = {check.label for check in sc.verify(wrong).checks if not check.passed}
    assert failed == {"thm:Galerkin_realization", "thm:galerkin_energy_decomposition"}


@pytest.mark.skipif(JIT_IS_OFF, reason="a size for compiled kernels")
def test_peak_memory_is_bounded_by_the_batch_size(monkeypatch):
    """Only one number per cluster, edge and block is stored, besides a few batches."""
    import tracemalloc

    monkeypatch.setattr(cluster_batches, "PIECE", 5000)
    F = sc.CellularSheaf.random(nx.grid_2d_graph(60, 60), 3, 3, seed=1)
    C = sc.coarsen(F, sc.select(F, 180), 4)
    given = sum(
        array.nbytes
        for array in (F.tail_data, F.head_data, C.prolongation.data, C.prolongation.indices)
    )
    sc.verify(C)
    tracemalloc.start()
    sc.verify(C)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * given, (peak, given)
