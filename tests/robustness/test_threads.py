"""The same bits for concurrent callers and any number of threads; restored BLAS threads."""

import contextlib
import dataclasses
import functools
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import networkx as nx
import numba
import numpy as np
import pytest
import scipy.linalg  # loads scipy's own BLAS
import scipy.sparse
from threadpoolctl import threadpool_limits

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen._support import threads
from sheafcoarsen.operators import apply_coboundary
from sheafcoarsen.solve.block_matrix import BlockMatrix
from sheafcoarsen.verification.cluster_batches import in_batches
from tests.support.helpers import blas_threads
from tests.support.strategies import DTYPES


@pytest.fixture
def blas_limit_visible():
    """Start from three threads, so that a limit of one is visible, and end with them again."""
    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        if not before or min(before) < 2:
            pytest.skip("no BLAS here whose threads can be counted")
        yield
        assert blas_threads() == before


@pytest.mark.usefixtures("blas_limit_visible")
def test_many_threads_can_limit_blas_at_the_same_time():
    def job(i):
        for _ in range(50):
            with threads.single_threaded_blas():
                if set(blas_threads()) != {1}:
                    return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(job, range(8)))


@pytest.mark.usefixtures("blas_limit_visible")
@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ThreadPool], ids=["futures", "joblib"])
def test_concurrent_callers_get_the_same_bits(pool):
    """With several BLAS threads the bases of local kernels would differ."""
    F = sc.gallery.bundle(nx.grid_2d_graph(12, 12), 3, seed=5)
    P = sc.Partition(np.arange(144) // 48)

    def job(_=None):
        C = sc.coarsen(F, P, sc.ranks.kernel())
        return C.prolongation.data.tobytes(), C.sheaf.tail_data.tobytes()

    alone = job()
    with pool(4) as workers:
        assert list(workers.map(job, range(8))) == [alone] * 8
    assert job() == alone


def small_stalks():
    F, one = (sc.gallery.bundle(nx.grid_2d_graph(16, 16), 3, x, seed=5) for x in (0.1, 0.0))
    C = sc.coarsen(F, sc.Partition(np.arange(256) // 16), 3)

    def compute():
        S = sc.global_sections(one)
        return *vars(sc.spectral_quality(C, 4)).values(), S.residual, S.basis

    return compute


def large_stalks():
    """BLAS divides products and decompositions of this size among its threads."""
    square = [[0, 1], [1, 2], [2, 3], [0, 3]]
    F = sc.gallery.bundle(square, 250, 0.3, seed=0)
    C, L = sc.coarsen(F, sc.Partition([0, 1, 2, 2]), 250), sc.laplacian(F)
    return lambda: (
        sc.gallery.bundle(square, 250, 0.3, seed=0).head_data,
        CellularSheaf.from_laplacian(L, 250).tail_data,
        sc.normalize(F).tail_data,
        sc.transported_frames(F),
        sc.certificate(C).beta,
    )


def local_modes(F, P, rank, operator):
    M = sc.local_modes(F, P, rank, operator)
    return M.ranks, M.scores, M.next_eigenvalues, M.tied, M.operator_norms, M.prolongation.data


def modes_of(operator, dtype):
    """Compute modes of clusters with more than 60 internal rows."""
    F = CellularSheaf.random(nx.gnm_random_graph(60, 1000, seed=3), 3, 2, seed=5, dtype=dtype)
    return lambda: local_modes(F, sc.Partition(np.arange(60) // 15), 5, operator)


def oversampled_modes(dtype):
    F = CellularSheaf.random(nx.grid_2d_graph(12, 12), 2, 2, seed=2, dtype=dtype)
    P = sc.select(F, 12)
    return lambda: local_modes(F, P, sc.ranks.budget(90), "oversampled")


def operators_of(vertex_dims, edge_dims, dtype):
    edges = nx.gnm_random_graph(9, 20, seed=6).edges
    edges = np.concatenate([list(edges), list(edges)[2:5]])
    F = CellularSheaf.random(edges, vertex_dims, edge_dims, seed=5, dtype=dtype)
    x = np.random.default_rng(7).standard_normal((F.dim_c0, 2))

    def compute():
        L = sc.laplacian(F)
        return L.data, L.indices, L.indptr, sc.edge_energy(F, x), sc.laplacian_operator(F) @ x

    return compute


def products():
    F = CellularSheaf.random([(i, i + k) for i in range(20_000) for k in (1, 2)], 3, 3, seed=0)
    X = np.random.default_rng(0).standard_normal((F.dim_c0, 11))
    return lambda: (sc.laplacian_operator(F) @ X, apply_coboundary(F, X))


def products_of_blocks():
    data = np.random.default_rng(0).standard_normal((50, 50, 2, 2))
    data[abs(data[..., 0, 0]) < 1] = 0
    A = scipy.sparse.bsr_array(data.swapaxes(1, 2).reshape(100, 100), blocksize=(2, 2))
    A, X = BlockMatrix(A), np.random.default_rng(5).standard_normal((100, 14))
    return lambda: (A @ X,)


def coarsening_of(kind, dtype):
    F = CellularSheaf.random(nx.gnm_random_graph(120, 4000, seed=3), 3, 2, seed=5, dtype=dtype)
    options = {"rank": 5, "local_operator": kind}
    if kind == "basis":
        rng = np.random.default_rng(7)
        basis = [rng.standard_normal((24, 1 + a % 5)).astype(dtype) for a in range(15)]
        options = {"basis": basis, "compress": True}

    def compute():
        C = sc.coarsen(F, sc.Partition(np.arange(120) // 8), **options)
        maps = C.sheaf.tail_data, C.sheaf.head_data
        return C.prolongation.data, C.sheaf.edges, C.sheaf.vertex_dims, C.sheaf.edge_dims, *maps

    return compute


def sections_of(kind):
    """Ranges of clusters then have other maximum dimensions, and BLAS other blocks."""
    rng = np.random.default_rng(1)
    if kind == "hubs":
        graph = nx.barabasi_albert_graph(400, 2, seed=1)
        dims, heights = rng.integers(1, 6, 400), rng.integers(1, 4, graph.number_of_edges())
        F = CellularSheaf.random(graph, dims, heights, seed=1)
    elif kind == "components":
        F = CellularSheaf.constant(nx.gnm_random_graph(1500, 1700, seed=1), dim=2)
    elif kind == "grid":
        F = CellularSheaf.random(nx.grid_2d_graph(20, 20), 3, 1, seed=0)
    else:
        trees = [nx.random_labeled_tree(500, seed=seed) for seed in range(10)]
        F = CellularSheaf.random(nx.disjoint_union_all(trees), 3, 3, seed=1)
    x = rng.standard_normal((F.dim_c0, 3))

    def compute():
        S = sc.global_sections(F)
        assert kind != "grid" or len(S.levels) > 1
        values = S.largest_zero, S.smallest_nonzero, S.residual
        return S.toarray(), *values, sc.nearest_section(F, x)

    return compute


def ratios():
    F = CellularSheaf.random(nx.random_geometric_graph(60, 0.3, seed=7), 3, 2, seed=11)
    C = sc.coarsen(F, sc.select(F, 5), 4)

    def compute():
        assert len(in_batches(C, lambda piece: None)) > 2
        return [repr(dataclasses.astuple(check)) for check in sc.verify(C).checks]

    return compute


LARGE = {
    "products": products,
    "products of blocks": products_of_blocks,
    "large stalks": large_stalks,
    **{
        f"coarsen, {kind}, {dtype.__name__}": functools.partial(coarsening_of, kind, dtype)
        for kind, dtype in zip(["internal", "principal", "basis", "internal"], DTYPES, strict=True)
    },
    **{
        f"sections, {kind}": functools.partial(sections_of, kind)
        for kind in ("hubs", "components", "trees", "grid")
    },
}
SMALL = {
    **{
        f"modes, {operator}, {dtype.__name__}": functools.partial(modes_of, operator, dtype)
        for operator, dtype in zip(["internal", "principal"] * 2, DTYPES, strict=True)
    },
    "oversampled modes": functools.partial(oversampled_modes, np.float64),
    "oversampled modes, complex": functools.partial(oversampled_modes, np.complex128),
    **{
        f"operators, {dtype.__name__}, {kind}": functools.partial(operators_of, *dims, dtype)
        for dtype in DTYPES
        for kind, dims in {
            "uniform": (3, 4),
            "mixed": (np.arange(9) % 8, 1 + np.arange(23) % 6),
        }.items()
    },
    "ratios": ratios,
    "small stalks": small_stalks,
}
CONSTANTS = {  # of modules, so that small problems take the paths of large ones
    "sections, grid": {"sections.lifting.DENSE_ENTRIES": 0, "sections.lifting.DENSE_COLUMNS": 0},
    "products of blocks": {"solve.block_matrix.COMPILED_ABOVE": 0},
    "ratios": {"verification.cluster_batches.PIECE": 40},
}


@pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")
@pytest.mark.parametrize(
    "name", [*SMALL, *(pytest.param(name, marks=pytest.mark.large) for name in LARGE)]
)
def test_results_do_not_depend_on_the_number_of_threads(name, monkeypatch):
    """The threads of BLAS make no difference, either."""
    for module, value in CONSTANTS.get(name, {}).items():
        monkeypatch.setattr(f"sheafcoarsen.{module}", value)
    for module in [value for key, value in sys.modules.items() if key.startswith("sheafcoarsen.")]:
        if hasattr(module, "SERIAL_BELOW"):
            monkeypatch.setattr(module, "SERIAL_BELOW", 0.0)
    started, pool = [], threads.ThreadPoolExecutor
    monkeypatch.setattr(
        threads, "ThreadPoolExecutor", lambda count: started.append(count) or pool(count)
    )
    compute, found = (SMALL | LARGE)[name](), []
    with threadpool_limits(3, user_api="blas"):
        for count in (1, 2, 3):
            monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", count)
            started.clear()
            with threads.single_threaded_blas() if count == 1 else contextlib.nullcontext():
                found.append([np.asarray(item).tobytes() for item in compute()])
            assert set(started) == ({count} - {1} if name != "sections, trees" else set())
    assert found[0] == found[1] == found[2]


@pytest.mark.large
def test_calls_in_threads_leave_the_filters_of_warnings_alone():
    F = sc.CellularSheaf.constant(nx.grid_2d_graph(12, 12))

    def solve(i):
        sc.harmonic_extension(F, [0], [1.0])
        sc.Solver(F, method="multigrid")

    before = warnings.filters.copy()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(solve, range(100)))
    assert warnings.filters == before
    with pytest.warns(UserWarning, match="heard"):
        warnings.warn("heard", stacklevel=1)


def test_warnings_name_the_line_of_the_caller():
    """Also if that is a line of the standard library."""
    isolated = sc.CellularSheaf.constant([[0, 1]], n_vertices=3)
    stack = contextlib.ExitStack()
    stack.callback(sc.normalize, isolated)
    with pytest.warns(sc.SingularDegreeWarning) as said:
        stack.close()
    line = test_warnings_name_the_line_of_the_caller.__code__.co_firstlineno + 6
    assert [(w.filename, w.lineno) for w in said] == [(__file__, line)]
