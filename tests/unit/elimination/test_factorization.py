"""The steps: hubs, parallel edges and loops in numbers, workspaces that grow, real networks."""

import dataclasses
import functools

import networkx as nx
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen._kernels.elimination import row_qr
from sheafcoarsen.elimination import as_steps
from tests.support import reference
from tests.support.helpers import assert_residual, eps_of, peak_memory
from tests.support.kernels import JIT_IS_OFF, from_python
from tests.support.strategies import DTYPES
from tests.theory.test_real_data import feeder

SIZE = 30 if JIT_IS_OFF else 3000


def assert_is_schur(F, K):
    delta = reference.coboundary(F)
    wanted = reference.schur_complement(F, K.kept.tolist()).laplacian
    error = reference.laplacian(K.sheaf) - wanted
    assert_residual(error, delta, delta, n=F.dim_c0, eps=eps_of(F.dtype))


def rotated_loops(off):
    """Return a hub whose loops rotate by the same angle around three axes, or by different ones."""
    angles = 0.7 * np.array([1, 1, 1 + off])
    loops = Rotation.from_rotvec(angles[:, None] * np.eye(3)).as_matrix()
    edges = [[0, 0]] * 3 + [[0, 1], [0, 2], [0, 3]]
    return CellularSheaf(edges, [np.eye(3)] * 6, [*loops, *[np.eye(3)] * 3])


def dependent_rows():
    """Two of three rows are zero at vertex 1 and multiples of each other."""
    rows = np.random.default_rng(3).standard_normal((3, 3))
    rows[2] = 2 * rows[1]
    return CellularSheaf([[0, 1], [1, 2]], [rows, [[1.0]]], [[[1.0], [0.0], [0.0]], [[1.0]]])


PARALLEL = [[0, 1]] * 30 + [[1, 0]] * 30 + [[1, 1]] * 30 + [[1, 2]] * 30
random = functools.partial(CellularSheaf.random, seed=3)


@pytest.mark.parametrize(
    ("F", "keep", "edges", "edge_dims"),
    [
        # edge stalks are larger than those of the leaves, so every leaf leaves a loop
        (random(nx.star_graph(40), [2] + [1] * 40, 2), [0], [[0, 0]], [2]),
        (random(nx.complete_bipartite_graph(2, 40), 2, 2), [0, 1], [[0, 1]], [4]),
        (random(nx.cycle_graph(4), 1, 50), [0, 2], [[0, 1]], [2]),
        (random(PARALLEL, 2, 1), [0, 2], [[0, 1]], [4]),
        (random(PARALLEL, 2, 1), [1], [[0, 0]], [2]),
        (dependent_rows(), [0, 2], [[0, 1]], [2]),
        # two rows determine two values, so no row remains unless the maps are singular
        (random([[0, 1], [1, 2]], [1, 2, 1], 1), [0, 2], [[0, 1]], [0]),
    ],
    ids=["leaves", "hubs", "large stalks", "parallel", "loops", "dependent rows", "no rows"],
)
def test_parallel_edges_and_loops_are_merged_and_compressed(F, keep, edges, edge_dims):
    K = sc.eliminate(F, keep=keep)
    assert (K.sheaf.edges.tolist(), K.sheaf.edge_dims.tolist()) == (edges, edge_dims)
    assert_is_schur(F, K)


HUB = [(0, 0), (0, 1), (0, 1), (0, 2), (0, 3)]


@pytest.mark.parametrize(
    ("F", "kept"),
    [
        # in 3-D, I - H is not a multiple of a rotation unless H is the identity
        (random(HUB, 3, 3, kind="orthogonal"), [0, 1, 2, 3]),
        (random(HUB[1:], 3, 3, kind="orthogonal"), [1, 2, 3]),
        (sc.gallery.bundle(nx.MultiGraph(HUB), 3, seed=3), [1, 2, 3]),
        (rotated_loops(0.0), [1, 2, 3]),  # isometric in total
        (rotated_loops(1e-10), [0, 1, 2, 3]),
        (CellularSheaf(HUB[2:], np.zeros((3, 2, 2)), [np.eye(2)] * 3), [1, 2, 3]),
    ],
    ids=["holonomy", "no loop", "flat", "loops of one angle", "of two angles", "zero maps"],
)
def test_star_mesh_keeps_vertices_whose_loops_have_holonomy(F, kept):
    K = sc.eliminate(F, keep=[1, 2, 3], max_neighbors=3)
    assert K.kept.tolist() == kept
    assert K.is_determined == F.tail_data.any()
    assert_is_schur(F, K)


@pytest.mark.parametrize("rows", [1, 2])
def test_extensions_by_saved_steps_have_minimum_norm(rows):
    """The kernel dimension is not saved, so it is computed from the steps."""
    F = CellularSheaf.random(nx.path_graph(6), 2, rows, seed=3)
    K = sc.eliminate(F, keep=[2])
    saved = {name: array.copy() for name, array in K.steps._asdict().items()}
    again = dataclasses.replace(K, steps=as_steps(F, saved))
    assert K.is_determined == again.is_determined == (rows == 2)
    assert not any(array.flags.writeable for array in again.steps[:5])
    assert saved["blocks"].flags.writeable
    z, b = np.ones(2), np.arange(12.0)
    assert np.array_equal(again.extend(z, b), K.extend(z, b))
    assert np.array_equal(again.reduce(b), K.reduce(b))


@pytest.mark.parametrize("small", [1e-5, 1e-12])
def test_a_tiny_holonomy_is_detected(small):
    turn, back = (Rotation.from_euler("z", a).as_matrix()[:2, :2] for a in (0.3, small - 0.6))
    F = CellularSheaf.connection([[0, 1], [1, 2], [2, 0]], [turn, turn, back])
    L = sc.laplacian(sc.eliminate(F, keep=[0]).sheaf).toarray()
    left = 2 * np.sin(small / 2) / np.sqrt(3)  # maps of norm 1 cancel up to this
    assert_residual(L - left**2 * np.eye(2), left, 1.0, n=1)


@pytest.mark.parametrize("most", [2, 4])
def test_arrays_of_steps_grow_as_needed(most):
    """Every eliminated vertex adds an edge larger than all previous edges together."""
    graph = nx.cycle_graph(200) if most == 2 else nx.circulant_graph(60, [1, 2])
    F = CellularSheaf.random(graph, 6, 6, kind="orthogonal", seed=3)
    K = sc.eliminate(F, keep=range(0, len(graph), 2), max_neighbors=most)
    assert len(K.steps.vertices) > 10
    assert_is_schur(F, K)


def test_an_edge_without_rows_gets_rows_of_singular_maps():
    F = random([[0, 1], [1, 2]], [1, 2, 1], 1)
    singular = F.with_maps(np.array([1.0, 1.0, 2.0]), np.array([2.0, 4.0, 1.0]))
    K = sc.eliminate(F, keep=[0, 2]).refresh(singular)
    assert (K.sheaf.edges.tolist(), K.sheaf.edge_dims.tolist()) == ([[0, 1]], [1])
    assert_is_schur(singular, K)


@pytest.mark.parametrize("size", [0.0, 1e-17, -1e-17])
def test_maps_at_rounding_level_relative_to_the_other_end_count_as_zero(size):
    """The energy of the edge then depends only on the other end."""
    for edges, keep in (([[0, 1]], [0]), ([[0, 1], [2, 1]], [0, 2])):
        one = np.ones((len(edges), 1, 1))
        K = sc.eliminate(CellularSheaf(edges, one, size * one), keep=keep)
        assert not K.is_determined
        assert np.array_equal(sc.laplacian(K.sheaf).toarray(), np.eye(len(keep)))
        assert not K.extend(np.ones(len(keep)))[1]


@pytest.mark.parametrize("kind", ["path", "tree", "star", "caterpillar"])
def test_trees_are_eliminated_entirely(kind):
    rng, ends = np.random.default_rng(3), np.arange(SIZE - 1)
    parents = {
        "path": ends,
        "tree": (rng.random(SIZE - 1) * (ends + 1)).astype(int),
        "star": 0 * ends,
        "caterpillar": ends // 2 * 2,
    }[kind]
    # general maps expand along every edge, and so do rounding errors: see `Elimination.growth`
    maps = "general" if kind == "star" else "orthogonal"
    edges = rng.permutation(SIZE)[np.stack([parents, ends + 1], axis=1)]
    F = CellularSheaf.random(edges, 2, 2, kind=maps, seed=3)
    K = sc.eliminate(F)
    assert K.kept.size == 0
    assert K.sizes.by_neighbors == (1, SIZE - 1)
    b = sc.laplacian(F) @ rng.standard_normal(2 * SIZE)
    x = K.extend(np.zeros(0), b)
    assert np.linalg.norm(sc.laplacian(F) @ x - b) < 1e-8 * np.linalg.norm(b)


def assert_extensions_are_harmonic(F, K):
    """Assert that residuals are zero at eliminated vertices for any values at kept ones."""
    rng = np.random.default_rng(3)
    L = sc.laplacian(F)
    b = L @ rng.standard_normal(F.dim_c0)
    x = K.extend(rng.standard_normal(K.sheaf.dim_c0), b)
    gone = np.isin(np.repeat(np.arange(F.n_vertices), F.vertex_dims), K.eliminated)
    assert np.linalg.norm((L @ x - b)[gone]) < 1e-9 * abs(L).max() * np.linalg.norm(x)


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "kept", "is_direct"),
    [
        ("graph_minnesota.mtx.gz", 1026, True),
        ("g2o_csail.g2o.gz", 127, True),
        ("g2o_intel.g2o.gz", 139, True),
        ("graph_power.graph.gz", 1341, False),
        ("graph_pgp.graph.gz", 3169, False),
    ],
)
def test_real_networks_are_reduced_and_solved(data_folder, name, kept, is_direct):
    file = data_folder / name
    F = sc.read_g2o(file) if ".g2o" in name else sc.read_graph(file)
    K = sc.eliminate(F)
    assert K.sheaf.n_vertices <= kept
    assert_extensions_are_harmonic(F, K)
    if is_direct:
        solve = sc.Solver(F, fixed=np.unique(sc.components(F), return_index=True)[1])
        assert solve.levels[1] < 0.4 * solve.levels[0]
        solve(np.random.default_rng(3).standard_normal(F.dim_c0))
        assert solve.iterations == 0


@pytest.mark.real_data
def test_a_power_feeder_is_eliminated_entirely(data_folder):
    """Its 4876 vertices form trees, with conductances over seven decades."""
    F, _ = feeder(data_folder / "feeder_ieee8500.json.gz")
    K, L = sc.eliminate(F), sc.laplacian(F)
    assert K.sizes.vertices == (4876, 0)
    assert_extensions_are_harmonic(F, K)
    fixed = np.unique(sc.components(F), return_index=True)[1]
    solve = sc.Solver(F, fixed=fixed)
    free = ~np.isin(np.repeat(np.arange(F.n_vertices), F.vertex_dims), fixed)
    b = L[:, free] @ np.random.default_rng(3).standard_normal(free.sum())
    x = solve(b)
    assert solve.iterations == 0
    assert np.linalg.norm((L @ x - b)[free]) <= 1e-8 * np.linalg.norm(b[free])


def test_nearly_parallel_rows_count_as_independent():
    """Two rows on a stalk of dimension 3 differ by 1e-7."""
    rng = np.random.default_rng(3)
    M = np.outer([1.0, 2.0], rng.standard_normal(3)) + 1e-7 * rng.standard_normal((2, 3))
    A = rng.standard_normal((2, 2))
    K = sc.eliminate(CellularSheaf([[0, 1]], [A], [M]), keep=[0])
    x = K.extend(np.ones(2))
    assert_residual(M @ x[2:] - A.sum(axis=1), M, x, n=3)
    assert_residual(x[2:] - np.linalg.pinv(M) @ (M @ x[2:]), 1e7, x, n=3)


def test_edges_are_sorted_and_followed_by_sorted_loops():
    G = nx.MultiGraph(nx.complete_graph(6))
    G.add_edges_from([(3, 3), (1, 1), (4, 2), (5, 0)])
    F = CellularSheaf.random(np.random.default_rng(3).permutation(list(G.edges())), 2, 1, seed=3)
    K = sc.eliminate(F)
    pairs = [[u, v] for u in range(6) for v in range(u + 1, 6)]  # one edge each
    assert K.sheaf.edges.tolist() == [*pairs, [1, 1], [3, 3]]
    assert abs(sc.laplacian(K.sheaf) - sc.laplacian(F)).max() < 1e-13


def test_loops_that_cancel_are_omitted():
    maps = np.array([[[0.1 + 0.2]], [[1.0]]]), np.array([[[0.3]], [[0.5]]])
    F = CellularSheaf([[0, 0], [1, 1]], *maps)
    K = sc.eliminate(F, keep=[0, 1])
    assert K.sheaf.edges.tolist() == [[1, 1]]
    assert K.sheaf.tail_map(0) == -K.sheaf.head_map(0) == 0.25


def test_a_constant_sheaf_stays_constant():
    G = sc.eliminate(CellularSheaf.constant(nx.karate_club_graph(), dim=2)).sheaf
    assert G.map_shape == (2, 2)
    assert np.abs(G.tail_data - G.head_data).max() < 1e-15 * 100


def test_the_first_large_entry_of_a_row_is_real_and_positive():
    """In every new row, it is the first entry of at least half the maximum size."""
    F = CellularSheaf.random(nx.cycle_graph(6), 2, 2, seed=3, dtype=complex)
    K = sc.eliminate(F, keep=[0, 2, 4])
    for e in range(K.sheaf.n_edges):
        for row in np.hstack([K.sheaf.tail_map(e), -K.sheaf.head_map(e)]):
            parts = np.maximum(abs(row.real), abs(row.imag))
            first = row[np.argmax(parts >= 0.5 * parts.max())]
            assert first.real > 0
            assert abs(first.imag) < 1e-15 * abs(first)


@pytest.mark.large
def test_blocks_of_edges_at_a_large_stalk_are_reused():
    """Every step of this chain replaces the edge at its first vertex, whose block is large."""
    n, d = 20_000, 20
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    vertex_dims, edge_dims = np.ones((2, n), int)
    vertex_dims[0] = edge_dims[0] = d
    rng = np.random.default_rng(0)
    maps = rng.standard_normal(d * d + n - 2), rng.standard_normal(d + n - 2)
    F = CellularSheaf.from_flat(edges, *maps, vertex_dims, edge_dims[: n - 1])
    K, peak = peak_memory(lambda: sc.eliminate(F, keep=[0, n - 1]))
    assert peak < 30 * sum(array.nbytes for array in K.steps)


def test_memory_follows_the_degrees_that_occur():
    """Vertices of a 12 x 12 grid get at most 20 or so neighbours, far fewer than allowed."""
    F = CellularSheaf.constant(nx.convert_node_labels_to_integers(nx.grid_2d_graph(12, 12)), 2)
    K, peak = peak_memory(lambda: sc.eliminate(F, keep=[0], max_neighbors=F.n_vertices))
    assert K.sheaf.n_vertices == 1
    assert peak < 100 * sum(array.nbytes for array in K.steps)


def test_memory_of_dense_eliminations_follows_the_edges_not_the_steps():
    """Every step adds rows to the edges of up to 60 neighbours, and L becomes dense."""
    n = 80 if JIT_IS_OFF else 200
    F = CellularSheaf.constant(nx.random_regular_graph(4, n, seed=3))
    K, peak = peak_memory(lambda: sc.eliminate(F, keep=range(10), max_neighbors=n))
    assert peak < 100 * sc.laplacian(F).toarray().nbytes
    assert_is_schur(F, K)


@pytest.mark.parametrize("seed", range(4))
def test_parallel_edges_and_loops_next_to_hubs_keep_the_schur_complement(seed):
    """Steps append rows to edges of either direction, one or several of the same two ends."""
    rng = np.random.default_rng(seed)
    graph = nx.MultiGraph(rng.integers(0, 12, (60, 2)).tolist())
    F = sc.gallery.bundle(graph, 2, seed=seed)
    K = sc.eliminate(F, keep=range(3), max_neighbors=12)
    assert K.kept.tolist() == [0, 1, 2]
    assert_is_schur(F, K)


def test_rows_of_edges_between_hubs_do_not_exceed_the_workspace():
    """Blocks of edges with large stalks are reused for many rows of edges with small ones."""
    many, few = nx.complete_bipartite_graph(10, 3), nx.complete_bipartite_graph(5, 4)
    wide = CellularSheaf.constant(many, 9)
    assert_is_schur(wide, sc.eliminate(wide, keep=[10, 11, 12], max_neighbors=3))
    narrow = CellularSheaf.constant(nx.complete_bipartite_graph(120, 4), 1)
    mixed, _, _ = sc.disjoint_union([CellularSheaf.constant(few, 3), narrow])
    keep = [5, 6, 7, 8, *range(129, 133)]
    assert_is_schur(mixed, sc.eliminate(mixed, keep=keep, max_neighbors=4))


reduce_rows = from_python(row_qr.reduce_rows)
reflect = from_python(row_qr.reflect)


@pytest.mark.parametrize(("dtype", "spread"), list(zip(DTYPES, [0, 6, 6, 0], strict=True)))
def test_noise_of_rows_does_not_count_as_rank(spread, dtype):
    """Row norms range over 2 spread decades, and each row has errors of 1e-3 of its norm."""
    double = np.result_type(dtype, np.float64)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        height, width = rng.integers(2, 12), rng.integers(2, 7)
        rank = int(rng.integers(1, min(height, width) + 1))
        factors = [rng.standard_normal((n, rank, 2)).view(complex)[..., 0] for n in (height, width)]
        X, Y = factors if double.kind == "c" else (M.real for M in factors)
        rows = X @ np.linalg.qr(Y)[0].conj().T
        sizes = 10.0 ** rng.uniform(-spread, spread, height)
        rows *= (sizes / np.abs(rows).max(axis=1))[:, None]
        noise = sizes * 10.0 ** rng.uniform(-15, -3, height)
        rows += noise[:, None] * np.sign(rng.standard_normal((height, width)))
        stack = row_qr.Rows(rows.astype(double).reshape(-1), noise)
        order = np.empty(width, np.int64)
        assert reduce_rows(stack, height, width, width, order) == rank


@pytest.mark.parametrize("seed", range(20))
def test_noise_covers_rounding_errors_of_reflections(seed):
    """It holds also for rows with small entries in the column and larger ones elsewhere."""
    rng, shape = np.random.default_rng(seed), (6, 3)
    given = rng.standard_normal(shape) * 2.0 ** rng.integers(-40, 1, shape)
    given = given[np.argsort(-np.abs(given[:, 0]))]
    rows = row_qr.Rows(given.reshape(-1).copy(), np.zeros(6))
    reflect(rows, 0, 6, 3, 0)
    exact = given.astype(np.longdouble)
    v = exact[:, 0].copy()
    v[0] += np.copysign(np.sqrt(v @ v), v[0])
    exact -= np.outer(2 * v / (v @ v), v @ exact)
    assert (np.abs(rows.data.reshape(shape) - exact).max(axis=1) <= rows.noise).all()
