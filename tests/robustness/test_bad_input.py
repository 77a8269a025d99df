"""Errors for invalid input that no other file tests, and junk for every public function."""

import contextlib
import dataclasses
import inspect
import re
import tempfile
from functools import partial
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, note
from hypothesis import strategies as st
from scipy.sparse.linalg import LinearOperator

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition, gallery  # noqa: F401 (for the table)
from sheafcoarsen.ranks import Rule, below, budget, fixed, gap
from tests.support import errors
from tests.support.errors import raises
from tests.support.signatures import item_of, public_names
from tests.support.strategies import JUNK, examples

pytestmark = pytest.mark.filterwarnings(
    "ignore::sheafcoarsen.TiedModesWarning",
    "ignore::sheafcoarsen.SingularDegreeWarning",
    "ignore::sheafcoarsen.SingularProblemWarning",
)

# ---------------------------------------------------------------- one of each kind, valid

PATH = nx.path_graph(4)
EDGES = np.array(PATH.edges)
ADJACENCY = nx.to_scipy_sparse_array(PATH, dtype=float)
F = CellularSheaf.random(PATH, 2, 2, seed=1)
F_COMPLEX = CellularSheaf.random(PATH, 2, 2, seed=1, dtype=np.complex64)
EMPTY = CellularSheaf.from_flat([], [], [], [], [])
P = Partition([0, 0, 1, 1])
M = sc.local_modes(F, P, 2)
C = sc.coarsen(F, P, M)
H = sc.Hierarchy(F, (C, sc.coarsen(C.sheaf, Partition([0, 0]), 3)))
POOL = sc.HiSP(2, 2)
POOLED = POOL(F, np.ones((4, 6)))
PATTERN = sc.LaplacianPattern(F)
L = PATTERN.fill(F)
X = np.ones(8)
TETRAHEDRON = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = np.array([[0, 1, 2], [0, 1, 3]])
MESH = {"points": TETRAHEDRON, "faces": FACES}
FRAMES = np.tile(np.eye(3)[:, :2], (4, 1, 1))
QUARTER = np.array([[0.0, -1], [1, 0]])
POSES = sc.PoseGraph(EDGES, [QUARTER] * 3, np.eye(3, 2))
NO_POSES = partial(sc.PoseGraph, EDGES[:0], np.zeros((0, 2, 2)), np.zeros((0, 2)))
RAGGED = [[1], [2, 3]]
HUGE = 10**30
RAGGED_SHEAF = CellularSheaf.random(PATH, [2, 2, 1, 2], 2, seed=1)
DENSE = ADJACENCY.toarray()
SOLVE = sc.Solver(F, shift=1.0)
MODES = sc.eigenmodes(F, 2)
CERTIFICATE = sc.certificate(C)
ELIMINATION = sc.eliminate(F)
COLUMNS = sc.from_edge_index([[0, 1], [1, 0]], np.ones((2, 1, 1)))
ANOTHER_PARTITION = sc.coarsen(F, Partition([0, 0, 0, 1]), 2).modes
FIELDS = {field.name: getattr(M, field.name) for field in dataclasses.fields(M)}
FLAT = {"edges": EDGES, "tail_data": F.tail_data, "head_data": F.head_data}
BASIS = [np.eye(4, 2), np.eye(4, 1)]
ON_EDGES = {"graph": EDGES, "n_vertices": 5}
SIGNALS = np.random.default_rng(0).standard_normal((5, 2, 9))


def union_of(first, second):
    return sc.disjoint_union([first, second])


def coarsen_with(**fields):
    """Coarsen by modes of which some fields were replaced."""
    return sc.coarsen(F, P, rank=dataclasses.replace(M, **fields))


def coarsen_by_block(sheaf, P, block):
    return sc.coarsen(sheaf, P, basis=[block, BASIS[1]])


def networkx_edge(**attributes):
    return sc.from_networkx(nx.DiGraph([(0, 1, attributes)]))


def networkx_vertex(dim, **attributes):
    graph = nx.DiGraph(**attributes)
    graph.add_node(0, dim=dim)
    return sc.from_networkx(graph)


def not_a_connection(tail, head):
    """Synchronize a sheaf whose edge (2, 1) has these maps."""
    maps = np.tile(np.eye(2), (2, 3, 1, 1))
    maps[:, 1] = tail, head
    return sc.synchronize(CellularSheaf([[0, 1], [2, 1], [0, 2]], *maps))


def asymmetric(i, j, value):
    other = DENSE.copy()
    other[i, j] = value
    return other


def out_of_another_pattern():
    """Fill a pattern with the result of another one, which differs only in its indices."""
    first, second = (CellularSheaf.random([[0, v]], [1, 1, 1], 1, seed=3) for v in (1, 2))
    out = sc.laplacian(second)
    assert out.shape == sc.laplacian(first).shape
    assert out.nnz == sc.laplacian(first).nnz
    return sc.LaplacianPattern(first).fill(first, out=out)


def scaled(factor):
    """Return F in another unit, in the scalar type of the factor."""
    maps = (np.multiply(factor, data, dtype=type(factor)) for data in (F.tail_data, F.head_data))
    return F.with_maps(*maps)


def same_bits(dtype, i, j):
    """An adjacency that is symmetric in the arithmetic of its dtype only up to wrap-around."""
    return scipy.sparse.csr_array(np.array([[0, i], [j, 0]], dtype))


def in_folder(build):
    """Call with a folder that exists and is empty afterwards, so that nothing half-made is left."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            build(Path(folder))
        finally:
            assert not list(Path(folder).iterdir())


# ---------------------------------------------------------------- the table

TABLE = r"""
CellularSheaf(edges=EDGES, tail_maps=np.ones((3, 2, 1)), head_maps=[np.ones((2, 1))] * 3,
        vertex_dims=[1] * 4, vertex_labels=["a", "b", ("c", 1), 4])
    vertex_dims=RAGGED -> `vertex_dims` must be a rectangular array of integers
    vertex_labels=["a"] -> `vertex_labels` must hold one name per vertex, 4 in all, got 1
CellularSheaf.from_laplacian(L=sc.laplacian(CellularSheaf.constant(PATH, 2)), dims=2)
    L=[[1, 2]] -> `L` must be a square matrix, got shape (1, 2)
    L=[["a"]] -> TypeError: `L` must hold float32
    L=[[np.nan]] -> `L` must be finite, got nan at (0, 0)
    dims=3 -> `dims` = 3 does not divide the size of `L`, 8
    dims=0 -> `dims` must be at least 1, got 0
    dims=[1, 1] -> `dims` must sum to the size of `L`, 8, got 2
    L=np.eye(4) + np.diag([0.5], 3)
        -> `L` must be Hermitian, but its entries 0.5 at (0, 3) and 0 at (3, 0) are not conjugate
    L=np.diag([1.0, 1, 1j, 1]) -> its diagonal entry (2, 2) is not real: 0+1j. If L is symmetric
    L=np.diag([1.0, 1, 1, -2]) -> the diagonal block of vertex 1 is too small for the balanced maps
        of its edges and leaves the eigenvalue -2
    L=[[1.0, -1.0], [-1.0, 0.0]], dims=1 -> the diagonal block of vertex 1 is too small
    L=[[5.0, 0, 0], [0, 1.0, -2.0], [0, -2.0, 1.0]], dims=1 -> the diagonal block of vertex 1 is too
        small for the balanced maps of its edges and leaves the eigenvalue -1
    L=[[1e-306, -1e-306], [-1e-306, 1e-306]], dims=1 | L=[[1e307, -1e307], [-1e307, 1e307]], dims=1
        -> where squares in float64 are safe: rescale the maps
F.subsheaf(vertices=[0, 2])
F.vertices_of(names=[0, 2])
F.equals(other=F)
F.allclose(other=F, rtol=1e-3)
    other="F" -> TypeError: `other` must be a CellularSheaf, got str
    rtol=-1 | rtol=np.inf -> `rtol` must be at least 0 and finite, got {rtol}
    rtol="a" -> TypeError: `rtol` must be a real number
sc.components(sheaf=F)
sc.leverages(sheaf=F, method="sketch", eps=0.5, seed=0)
    eps=0 | eps=1 | eps=-0.1 | eps=np.nan -> `eps` must be above 0 and below 1
    method="dense" -> `method` must be one of 'auto', 'exact', 'sketch'
sc.sparsify(sheaf=F, eps=0.5, seed=0)
    eps=0 | eps=1 | eps=-1 | eps=np.inf | eps=np.nan -> `eps` must be above 0 and below 1
sc.fit_connection(X=SIGNALS, edges=EDGES) | sc.fit_maps(X=SIGNALS, edges=EDGES, edge_dim=2,
        n_edges=2)
    X=SIGNALS[0] -> `X` must have shape (n, d, s)
    X=SIGNALS * np.reshape([1, np.nan, 1, 1, 1], (5, 1, 1)) -> `X[1]` must be finite, got nan
    X=SIGNALS[:3] -> `edges[2]` = (2, 3) is out of range for 3 vertices
    edges=[[0, 1], [2, 2]] -> `edges[1]` = (2, 2) is a loop
    X=SIGNALS[:, :, :0] -> `X[0]` must have shape (d_v, s), with the same number
    X=SIGNALS[:0], edges=np.zeros((0, 2), int) -> `X` must hold the signals of at least one
CellularSheaf.from_flat(**FLAT, vertex_dims=2, edge_dims=2)
    vertex_dims=RAGGED -> `vertex_dims` must be a rectangular array
CellularSheaf.constant(**ON_EDGES, dim=2, weight=[1.0, 2.0, 0.0])
    weight=RAGGED -> `weight` must be a rectangular array of numbers
    n_vertices=2**31 - 1 -> `n_vertices` requires 2147483647 vertices, at least 34.4 GB
    n_vertices=10**15 -> `n_vertices` requires 1000000000000000 vertices
CellularSheaf.constant(graph=PATH, dim=2, weight="weight")
CellularSheaf.connection(**ON_EDGES, transports=np.array([np.eye(2)] * 3), weight=[1.0, 2.0, 0.0])
CellularSheaf.diagonal(**ON_EDGES, tail=np.ones((3, 2)), head=np.ones((3, 2)))
CellularSheaf.signed(**ON_EDGES, sign=[1, -1, 1], weight=[1.0, 2.0, 0.0])
CellularSheaf.random(graph=PATH, vertex_dims=[1, 2, 0, 3], edge_dims=2, kind="orthogonal", seed=3,
        dtype=float)
    dtype=np.float16 | dtype=int | dtype=bool | dtype=object | dtype=np.longdouble |
        dtype=type(None) | dtype=7 | dtype="U3" | dtype="3f8" | dtype="f3" | dtype="nonsense," |
        dtype="number"
        -> TypeError: `dtype` must be float32, float64, complex64 or complex128, got {dtype!r}
F.with_maps(tail_maps=F.tail_data, head_maps=np.ones((3, 2, 2)))
    head_maps=[np.eye(2), np.ones(4), np.eye(2)] -> `head_maps[1]` must be 2-D, got shape (4,)
    head_maps=np.ones((3, 4)) -> `head_maps` must have shape (m, d_e, d_v), got (3, 4)
COLUMNS.with_columns(maps=np.ones((2, 1, 1)))
F.with_labels(vertex_labels=["a", "b", ("c", 1), 4])
    vertex_labels=["a"] -> `vertex_labels` must hold one name per vertex, 4 in all, got 1
    vertex_labels=["a", "b", "a", 4] -> must all differ, got 'a' for the vertices 0 and 2
    vertex_labels=[1, True, 2, 3] -> must all differ, got True for the vertices 0 and 1
    vertex_labels=["a", [], "b", 4] -> TypeError: hashable names, got [] for vertex 1
    vertex_labels=["a", "b", None, 4] -> must hold names, got None for vertex 2
    vertex_labels="abcd" | vertex_labels=7 -> TypeError: `vertex_labels` must be a sequence of names
F.tail_map(e=0) | F.head_map(e=0)
    e=None | e=0.0 -> TypeError: `e` must be an integer, the index of an edge, got {e!r}
    e=3 | e=-4 -> IndexError: edge {e} is out of range for 3 edges
Partition(labels=[0, 1, 0])
Partition.from_clusters(clusters=[[0, 2], [1]])
    clusters=[[0, [1]], [2]] -> `clusters[0]` must be a rectangular array of integers
Partition.from_assignment(S=np.eye(3))
    S=scipy.sparse.coo_array((10**15, 2)) -> `S` requires 1000000000000000 vertices
P.cluster(a=0)
    a=[1] | a=True -> TypeError: `a` must be an integer, the index of a cluster, got {a!r}
    a=2 | a=-3 | a=HUGE -> IndexError: cluster {a} is out of range for 2 clusters
union_of(first=F, second=F_COMPLEX)
sc.disjoint_union(sheaves=[F, F])
sc.split(sheaf=F, vertex_starts=[0, 0, 4, 4])
    vertex_starts=[0, 3] | vertex_starts=[1, 4] | vertex_starts=[0, 3, 2, 4] | vertex_starts=[]
        -> `vertex_starts` must ascend from 0 to 4
    vertex_starts=[0, 1, 4] -> edge 0 (0, 1) joins parts 0 and 1 of `vertex_starts`
    vertex_starts=[0, 0.5, 4] -> `vertex_starts` must hold whole numbers
sc.coboundary(sheaf=F)
sc.laplacian(sheaf=F, format="bsr") | sc.LaplacianPattern(sheaf=F, format="bsr")
    sheaf=RAGGED_SHEAF -> equal dimensions of vertex stalks, at least 1; vertex 2 has dimension 1,
        vertex 0 has 2: use "csr"
    sheaf=EMPTY -> there are no vertices
    sheaf=CellularSheaf.from_flat([], [], [], [0, 0], []) -> vertex 0 has dimension 0
    format="coo" -> `format` must be one of 'csr', 'bsr', got 'coo'
PATTERN.fill(sheaf=F, out=L)
sc.laplacian_operator(sheaf=F)
sc.normalize(sheaf=F, singular="regularize", eps=1e-6)
    singular="shift" -> `singular` must be one of 'pinv', 'regularize', 'augment', got 'shift'
    eps=0 | eps=-1e-8 | eps=np.nan | eps=np.inf -> `eps` must be positive and finite
    eps=1j | eps=None | eps=[1e-8] -> TypeError: `eps` must be a real number
sc.energy(sheaf=F, x=X)
sc.edge_energy(sheaf=F, x=np.ones((8, 2)))
sc.select(F_or_graph=F, n_clusters=2, method="balls", weights="sheaf", seed=0, progress=False)
sc.select(F_or_graph=F, n_clusters=2, method="matching", weights="sheaf", seed=0, progress=False)
sc.select(F_or_graph=F, n_clusters=2, method="spectral", weights="sheaf", seed=0, progress=False)
sc.select(F_or_graph=F, n_clusters=2, method="metis", weights="sheaf", seed=0, progress=False)
sc.select(F_or_graph=EDGES, n_clusters=2)
    n_clusters=-1 | n_clusters=0 | n_clusters=5
        -> `n_clusters` must be between 1 and the number of vertices, 4, got {n_clusters}
    n_clusters=2.0 | n_clusters=True | n_clusters="2" | n_clusters=None
        -> TypeError: `n_clusters` must be an integer
    n_clusters=501, method="spectral", F_or_graph=nx.path_graph(600) -> `n_clusters` must be at most
        500 for method "spectral", which needs as many eigenvectors, got 501; use "balls"
    F_or_graph=nx.Graph() -> `n_clusters` must be between 1 and the number of vertices, 0, got 2
    F_or_graph=nx.Graph([(0, 1), (1, 2, {"weight": -1.0})])
        -> must not be negative, got -1.0 for edge 1 (1, 2)
    method="kmeans"
        -> `method` must be one of 'auto', 'balls', 'matching', 'spectral', 'metis', got 'kmeans'
    weights="unit" -> `weights` must be one of 'graph', 'sheaf', got 'unit'
    weights="sheaf" -> is a ndarray: pass a CellularSheaf
    seed=-1 -> `seed` must be at least 0, got -1
    seed=0.5 | seed=None | seed=True -> TypeError: `seed` must be an integer, got {seed}
sc.local_modes(sheaf=F, P=P, rank=2, local_operator="internal", progress=False)
    local_operator="dirichlet"
        -> `local_operator` must be one of 'internal', 'principal', 'oversampled', got 'dirichlet'
    local_operator=3 | local_operator=sc.modes.LocalOperator() | local_operator=sc.modes.Oversampled
        -> `local_operator` must be one of 'internal', 'principal', 'oversampled', got
    local_operator=sc.modes.Oversampled(), rings=1 | rings=1, local_operator=sc.modes.Internal()
        -> `rings` = 1 is not allowed with `local_operator`
    rings=1 -> `rings` applies only to `local_operator` = "oversampled", got 1 with 'internal'
    local_operator="principal", target=1.0
        -> `target` applies only to `local_operator` = "oversampled"
    rank=-1 -> `rank` must be at least 0, got -1
    rank=[1, -2] -> `rank` must not be negative, got -2 for cluster 1
    rank=[1] * 3 -> `rank` must hold one integer per cluster, 2 in all, got 3
    rank=[1] -> `rank` must hold one integer per cluster, 2 in all, got 1
    rank=[] -> `rank` must hold one integer per cluster, 2 in all, got 0
    rank=[[1, 2]] -> `rank` must be 1-dimensional
    rank=[1.0, 2.0] -> TypeError: `rank` must hold integers, got dtype float64
    rank=[True, False] -> TypeError: `rank` must hold integers, got dtype bool
    rank=["1", "2"] -> TypeError: `rank` must hold integers
    rank=np.array(2.0) -> TypeError: `rank` must be an integer
    rank=sc.ranks.kernel -> TypeError: got <function kernel at
    rank=sc.ranks.kernel -> TypeError: >: call it, sc.ranks.kernel(...)
    rank=1.5 | rank=2.0 | rank=True | rank="2" | rank=None | rank="kernel"
        -> TypeError: `rank` must be an integer, one integer per cluster, or a rule from sc.ranks
        such as sc.ranks.kernel(), got {rank!r}
    P=[0, 0, 1] -> TypeError: `P` must be a Partition, got list
    P=Partition([0, 1]) -> `P` must label the sheaf's 4 vertices, got a partition of 2
sc.local_modes(sheaf=F, P=P, rank=2, local_operator="oversampled", progress=False, rings=1,
        target=0.5)
    rings=-1 -> `rings` must be at least 0, got -1
    rings=1.5 | rings=True -> TypeError: `rings` must be an integer, got {rings}
    target=0 | target=-2.0 | target=np.nan | target=np.inf
        -> `target` must be positive and finite, got {target}
    target="low" | target=1j -> TypeError: `target` must be a real number, got {target!r}
sc.ranks.fixed(r=1)
    r=-1 -> `r` must be at least 0, got -1
    r=1.0 | r=True | r=np.True_ | r="7" | r=None | r=[7] | r=np.array([7])
        -> TypeError: `r` must be an integer, got
sc.ranks.below(tau=1.0)
    tau=-1.0 | tau=np.nan -> `tau` must be at least 0, got {tau}
    tau="1" | tau=1j | tau=True | tau=[2.0] -> TypeError: `tau` must be a real number, got {tau!r}
sc.ranks.budget(total=1)
    total=-1 -> `total` must be at least 0, got -1
    total=2.5 -> TypeError: `total` must be an integer, got 2.5
sc.ranks.gap(max_rank=1)
    max_rank=0 -> `max_rank` must be at least 1, got 0
    max_rank=None -> TypeError: `max_rank` must be an integer, got None
sc.ranks.kernel()
sc.coarsen(sheaf=F, P=P, rank=2, local_operator="internal", progress=False, loops=True,
        compress=True)
sc.coarsen(sheaf=F, P=P, rank=M, local_operator="internal", progress=False, loops=True)
    sheaf=F.with_labels(None) -> `rank` holds LocalModes of another sheaf
    rank=ANOTHER_PARTITION -> `rank` holds LocalModes of another partition
    rings=1 -> `rings` applies only to modes computed by this call: omit it or LocalModes in `rank`
    target=1.0 -> `target` applies only to modes computed by this call: omit it or LocalModes
sc.coarsen(sheaf=F, P=P, basis=BASIS, loops=True)
    rings=1 -> `rings` applies only to modes computed by this call: omit it or `basis`
    target=1.0 -> `target` applies only to modes computed by this call: omit it or `basis`
    basis=[np.eye(4), RAGGED] -> `basis[1]` must be a rectangular array of numbers
    basis=[np.ones((4, 1))] -> `basis` must hold one array per cluster, 2 in all, got 1
    basis=3 -> TypeError: `basis` must be a sequence of arrays, one per cluster, got int
    basis=[np.ones((4, 1)), np.ones((2, 1))] -> `basis[1]` must have shape (4, r)
    basis=[np.ones((2, 1)), np.ones((4, 1))]
        -> `basis[0]` must have shape (4, r), where 4 is the dim
    basis=[np.ones(4), np.ones((4, 1))] -> got (4,)
    basis=[np.ones((4, 1)), np.full((4, 1), np.nan)]
        -> `basis[1]` must be finite in float64, got nan in row 0
    basis=[[[0], [np.inf], [0], [0]], np.ones((4, 1))]
        -> `basis[0]` must be finite in float64, got inf in row 1
    basis=[np.ones((4, 1), np.float16), np.ones((4, 1))]
        -> TypeError: `basis[0]` must hold float32, float64
coarsen_by_block(sheaf=F, P=P, block=BASIS[0])
coarsen_with(**FIELDS)
    prolongation=ANOTHER_PARTITION.prolongation
        -> LocalModes: R must hold a full block for every cluster, as returned by local_modes
    ranks=np.array([1, 3]) -> R must hold a full block
    prolongation=M.prolongation * np.nan -> LocalModes: `prolongation` must be finite, got nan
    scores=M.scores[:-1] -> LocalModes: `scores` must hold 4 values of type float64
    scores=M.scores * [1, 1, np.nan, 1] -> LocalModes: `scores` must be finite, got nan at index 2
    ranks=None -> `ranks` must hold 2 values of type int64
    ranks=[1, 1] -> `ranks` must hold 2 values of type int64, in an array
    ranks=np.full(2, 99) -> LocalModes: `ranks[0]` = 99 exceeds the cluster's dimension
    operator_norms=np.full(2, np.inf) -> LocalModes: `operator_norms` must be finite, got inf
    next_eigenvalues=np.full(2, np.nan) -> LocalModes: `next_eigenvalues` must be finite, got nan
    over_budget=-1 -> LocalModes: `over_budget` must be at least 0
    rings=1 -> LocalModes: `rings` applies only to `local_operator` = "oversampled"
    local_operator="oversampled", rings=1 | local_operator="oversampled", target=1.0
        -> LocalModes: oversampled modes must have `rings` and a `target`
    local_operator="oversampled", rings=-1, target=1.0 -> LocalModes: `rings` must be at least 0
    local_operator="oversampled", rings=1, target=0.0 |
        local_operator="oversampled", rings=1, target=np.nan
        -> LocalModes: `target` must be positive and finite
    local_operator="outer"
        -> `local_operator` must be one of 'internal', 'principal', 'oversampled', got 'outer'
    prolongation=M.prolongation.toarray()
        -> TypeError: LocalModes: R must be a csr_array of one of the four scalar types, got ndarray
    partition=None -> TypeError: `P` must be a Partition, got NoneType
C.block(a=0) | C.internal_operator(a=0) | M.eigenvalues(a=0) | M.basis(a=0)
    a=99 | a=-3 -> IndexError: cluster {a} is out of range for 2 clusters
    a=None -> TypeError: `a` must be an integer, the index of a cluster, got None
C.lift(z=np.ones(4))
    z=X -> `z` must have shape (dim_c0,) or (dim_c0, h) with dim_c0 = 4 of the coarse sheaf, got
C.pool(x=X)
    x=X[:4] -> `x` must have shape (dim_c0,) or (dim_c0, h) with dim_c0 = 8 of the fine sheaf, got
C.galerkin()
C.quotient(weight=[1.0, 2.0, 0.5])
    weight="weight" -> a sheaf stores no edge attributes
    weight=np.ones(4) -> one number for each of the 3 fine edges, got shape (4,)
    weight=np.full(3, np.nan) -> `weight` must be finite, got nan at index 0
    weight=np.full(3, 1j) -> TypeError: `weight` must be real, got dtype complex128
    weight=["a"] * 3 -> TypeError: `weight` must hold float32
C.recoarsen(sheaf=F)
sc.coarsen_levels(sheaf=F, factor=1.5, n_levels=None, min_vertices=1, rank=[2, sc.ranks.kernel()],
        method="balls", local_operator="internal", loops=True, compress=True, seed=0,
        progress=False)
    rank=-1 -> `rank` must be at least 0, got -1
    rank=1.5 -> TypeError: `rank` must be an integer
    rank=[2, "kernel"] -> TypeError: `rank[1]` must be an integer
    rank=np.array([2, 3]) -> TypeError: got an array of shape (2,): pass list(rank) for one rank per
        level, or [rank] for the
    rank=M -> TypeError: `rank` must be an integer
    rank=[2, 3], n_levels=3, min_vertices=100
        -> `rank` must have one entry per level, 3 in all, got 2
    factor=1 -> `factor` must be above 1 and finite, got 1: it is the number of vertices per cluster
    factor=0.1 | factor=np.nan | factor=np.inf -> `factor` must be above 1 and finite, got {factor}
    factor="10" -> TypeError: `factor` must be a real number
    n_levels=-1 -> `n_levels` must be at least 0, got -1
    n_levels=2.0 -> TypeError: `n_levels` must be an integer
    min_vertices=0 -> `min_vertices` must be at least 1, got 0
    n_levels=2, min_vertices=5 -> `n_levels` = 2 and `min_vertices` = 5 exclude each other: omit one
    method="best" -> `method` must be one of
    local_operator="best" -> `local_operator` must be one of
    loops="no" -> TypeError: `loops` must be True or False
    compress=1 -> TypeError: `compress` must be True or False
    eliminate="yes" -> TypeError: `eliminate` must be True or False
    seed=-1 -> `seed` must be at least 0
    sparsify=1 | sparsify=0.0 -> `sparsify` must be
    sparsify="half" | sparsify=True -> TypeError: `sparsify` must be
sc.coarsen_levels(sheaf=F, partitions=[P, Partition([0, 0])], rank=2, loops=False, compress=False)
    partitions=[Partition([0, 0])]
        -> `partitions[0]` must label the sheaf's 4 vertices, got a partition of 2
    partitions=[P, P]
        -> `partitions[1]` must label the 2 clusters of `partitions[0]`, got a partition of 4
    partitions=P | partitions=3 -> TypeError: `partitions` must be a sequence of Partitions, one per
        level, got {partitions.__class__.__name__}
    partitions=[[0, 0, 1, 1]]
        -> TypeError: `partitions[0]` must be a Partition, got list: use Partition(labels)
    factor=3 | factor=np.ones(2) -> `partitions` determines the levels: omit `factor`
    n_levels=1 -> `partitions` determines the levels: omit `n_levels`
    min_vertices=5 -> `partitions` determines the levels: omit `min_vertices`
    method="metis" -> `partitions` determines the levels: omit `method`
    seed=3 -> `partitions` determines the levels: omit `seed`
    rank=[1] -> `rank` must have one entry per level, 2 in all, got 1
    rank=[1, [1, 2, 3]] -> level 1: `rank` must hold one integer per cluster, 1 in all
    rank=[-1, 1] -> `rank[0]` must be at least 0, got -1
H.prolongation(level=1) | H.pool(x=X, level=1) | H.lift(z=np.ones(4), level=1)
    level=3 -> `level` must be an index of `sheaves`, from 0 for the fine sheaf to 2 for the
        coarsest one, got 3
    level=-1 -> `level` must be at least 0, got -1
    level="coarsest" -> TypeError: `level` must be an integer
H.ledger(x=X)
H.recoarsen(sheaf=F)
sc.HiSP(n_modes=2, n_clusters=2, method="balls", local_operator="internal", self_loops="keep",
        seed=0)
    n_modes=0 -> `n_modes` must be at least 1, got 0
    n_modes=2.0 -> TypeError: `n_modes` must be an integer, got 2.0
    n_clusters=0 -> `n_clusters` must be at least 1, got 0
    n_clusters=None -> TypeError: `n_clusters` must be an integer, got None
    method="kmeans" -> `method` must be one of 'auto', 'balls'
    local_operator="outer" -> `local_operator` must be one of 'internal', 'principal'
    self_loops=True -> `self_loops` must be one of 'remove', 'keep', got True
    seed=-1 -> `seed` must be at least 0, got -1
POOL(sheaf=F, X=np.ones((4, 6)), adjacency=ADJACENCY, partition=P)
    X=np.ones((4, 5)) | X=np.ones((5, 6))
        -> `X` must have shape (N, d h) = (4, 2 h) or, lifted, (dim_c0, h) = (8, h), got {X.shape}
    X=X -> `X` must be 2-dimensional, got shape (8,): pass X[:, None] for a single channel
    X=np.ones((4, 2, 3))
        -> got shape (4, 2, 3): pass X.reshape(-1, 3) for signals of shape (n, d, f)
    X=1.0 -> `X` must be 2-dimensional, got shape ()
    sheaf=RAGGED_SHEAF
        -> `X` must have the lifted shape (dim_c0, h) with dim_c0 = 7, because vertex 2 has
    sheaf=RAGGED_SHEAF -> got shape (4, 6): stack the (d_v, h) blocks of all vertices by
    X=np.where(np.eye(4, 6) * [[0], [1], [0], [0]], np.inf, 1)
        -> `X` must be finite, got inf at index (1, 1)
    X=np.ones((4, 6), object) -> TypeError: `X` must hold float32
    X=np.full((4, 6), 1e300) -> `X` has entries up to 1e+300
    partition=Partition([0, 1, 1])
        -> `partition` must label the sheaf's 4 vertices, got a partition of 3
    partition=[0, 0, 1, 1]
        -> TypeError: `partition` must be a Partition, got list: Partition(labels) makes one
    adjacency=np.full((4, 4), 1e308) -> sums of `adjacency` exceed the range of float64
POOL(sheaf=F, X=np.ones((8, 2)), adjacency=ADJACENCY)
    adjacency=DENSE[:3, :3] -> `adjacency` must have shape (N, N) = (4, 4), got (3, 3)
    adjacency=asymmetric(0, 1, 2.0)
        -> `adjacency` must be a symmetric adjacency, got 2.0 at (0, 1) and 1.0 at
    adjacency=asymmetric(0, 1, np.nan) -> `adjacency` must be finite, got nan at (0, 1)
    adjacency=asymmetric(2, 2, -1.0)
        -> `adjacency` must be nonnegative for Select, got -1.0 at (2, 2): pass
    adjacency=DENSE * 1j | adjacency=DENSE.astype(np.float16) -> TypeError: `adjacency` must hold
        real numbers of single or double precision, got {adjacency.dtype}
    adjacency=PATH -> TypeError: `adjacency` must be a matrix, got a networkx graph: pass
        nx.to_scipy_sparse_array
    adjacency="A" -> TypeError: `adjacency` must hold float32
POOLED.lift(x=POOLED.x)
    x=np.ones((2, 5)) | x=np.ones((3, 4))
        -> `x` must have shape (K, M g) = (2, 2 g) or, lifted, (sum r_a, g) = (4, g), got {x.shape}
    x=np.ones(4) -> `x` must be 2-dimensional
    x=[[0.0, 1.0], [np.nan, 0.0]] -> `x` must be finite, got nan at index (1, 0)
POOLED.refresh(sheaf=F, X=np.ones((4, 6)))
    sheaf=CellularSheaf.random(EDGES[:2], 2, 2), X=np.ones((3, 6)) -> use HiSP for another graph
    X=np.ones((5, 2)) -> `X` must have shape (N, d h)
sc.readout(x=np.ones((3, 2)), how="max")
    how="median" -> `how` must be one of 'mean', 'sum', 'max', got 'median'
    x=np.ones(3) -> `x` must be 2-dimensional, got shape (3,): pass x[:, None]
    x=np.ones((0, 3)), how="mean" -> no row of `x` belongs to graph 0, so its mean is undefined
    x=[[1.0], [np.nan]] -> `x` must be finite, got nan at index (1, 0)
    x=1j * np.ones((2, 2)) -> TypeError: is undefined for complex `x` of type complex128
    x=np.full((4, 1), 1e308), how="sum" -> the sum of `x` exceeds the range of float64: rescale `x`
    x=np.full((4, 1), 3e38, np.float32), how="sum" -> the sum of `x` exceeds the range of float32
    x=[["a"]] -> TypeError: `x` must hold float32
    batch=[0] -> each of the 3 rows of `x`, got 1
    batch=[0, -1, 0] -> 0 .. g-1, got -1 at index 1
    batch=[0, 2, 2] -> no row of `x` belongs to graph 1, so its max is undefined: use `how` =
        "sum" for zeros, or did a cluster join several graphs? Pass `partition` to HiSP
sc.diffuse(sheaf=F, X=X, t=2.0, fixed=[1], mass=[1.0, 2.0, 3.0, 4.0])
    t=-1.0 | t=np.nan | t=np.inf -> `t` must be finite and at least 0, got {t}
    t=True | t=1j | t="long" -> TypeError: `t` must be a real number, got {t!r}
    t=[1.0, None] -> TypeError: `t[1]` must be a real number, got None
    t=[1.0, -1.0] -> `t[1]` must be finite and at least 0, got -1.0
    t=[[1.0]] -> `t` must be a number or a sequence of numbers, got shape (1, 1)
    X=X * np.nan -> `X` must be finite, got nan in row 0
    fixed=[4] -> `fixed[0]` = 4 is out of range for 4 vertices
    mass=[1, 0, 1, 1] -> `mass` must be positive and finite, got 0 at vertex 1
sc.diffusion_step(sheaf=F, X=np.ones((8, 3)), W1=np.eye(2), W2=np.eye(3), activation=np.tanh)
    sheaf=RAGGED_SHEAF, X=np.ones((7, 3))
        -> `W1` acts on all of them, but vertex 2 has dimension 1 and vertex 0 has 2
    X=np.ones((4, 4)) -> `X` must have shape (dim_c0,) or (dim_c0, h) with dim_c0 = 8
    X=X -> `X` must have shape (N d, f), got (8,): pass X[:, None]
    W1=np.eye(3) -> `W1` must have shape (2, 2), where 2 is the dimension of the stalks, got (3, 3)
    X=X[:, None] -> `W2` must have shape (1, 1), where 1 is the number of channels, got (3, 3)
    W1=1.0 -> `W1` must have shape (2, 2)
    W2=[[1.0, np.nan, 0.0]] * 3 -> `W2` must be finite, got nan at index (0, 1)
    W2=[["a"]] -> TypeError: `W2` must hold float32, float64
    W2=[[1.0], [1.0, 2.0]] -> `W2` must be a rectangular array
    W1=1e300 * np.eye(2), W2=1e300 * np.eye(3) -> Delta (I (x) W1) X W2 must be finite
    activation="tanh"
        -> TypeError: `activation` must be a function of arrays, such as numpy.tanh, got 'tanh'
    activation=np.sum -> `activation` must keep the shape of its argument, (8, 3), got ()
    activation=lambda y: np.full(y.shape, np.inf) -> activation(...) must be finite, got
    activation=lambda y: y > 0 -> TypeError: `activation(...)` must hold float32
sc.harmonic_extension(sheaf=F, weight=[1.0, 2.0], vertices=[0, 2], values=[[1.0, 2.0], [3.0, 4.0]],
        progress=False)
    weight=0.0 -> `weight` must be above 0, got 0.0 for vertex 0
    weight=[1.0, -2.0] -> `weight` must be above 0, got -2.0 for vertex 2
    weight=np.nan -> `weight` must be above 0, got nan
    weight=[1.0] -> one number or one for each of the 2 vertices, got shape (1,)
    weight=1j -> TypeError: `weight` must be real
    weight="much" -> TypeError: `weight` must hold
    weight={1: 2.0} -> TypeError: or integers, got dict
    weight=1e308 -> the largest entry of `weight` is 1e+154
    vertices=[0, 0] -> `vertices` must not repeat a vertex, got vertex 0 at indices 0 and 1
    vertices=[0, 4] -> `vertices[1]` = 4 is out of range for 4 vertices
    vertices=["a", "b"] -> TypeError: got dtype <U1: vertices are named 0 .. 3
    vertices=[0, 1, 2] -> `values` must hold one array for each of the 3 vertices, got 2
    vertices=[0, 1], values=[[1.0, 1.0], [1.0]]
        -> `values[1]` must have shape (2,) or (2, h), because the stalk of vertex 1
    vertices=[0, 1], values=np.ones((2, 3))
        -> `values[0]` must have shape (2,) or (2, h), because the stalk of vertex 0
    values=[1.0, 2.0] | values=np.ones((2, 2, 1, 1)) -> `values[0]` must have shape (2,) or (2, h)
    values=[np.ones(2), np.ones((2, 1))] | values=[np.ones((2, 1)), np.ones((2, 3))]
        -> columns, got shape {values[0].shape} at index 0 and {values[1].shape} at index 1
    vertices=[0, 1], values=[[1.0, 1.0], [np.nan, 1.0]]
        -> `values[1]` must be finite, got nan for vertex 1
    vertices=[2, 1], values=np.array([[1.0, np.inf], [1, 1]])
        -> `values[0]` must be finite, got inf for vertex 2
    vertices=[0], values=[["a", "b"]] -> TypeError: `values[0]` must hold float32, float64
    vertices=[0], values=[[[1.0], [1.0, 2.0]]] -> `values[0]` must be a rectangular array of numbers
    vertices=[0], values=np.ones((1, 2), np.float16)
        -> TypeError: `values` must hold float32, float64
    values=1.0 | values="ab" -> TypeError: `values` must be a sequence of arrays, one per vertex in
        their order, got {values.__class__.__name__}
    vertices=[0], values=[[1e200, 1.0]], weight=np.inf -> `values` has entries up to 1e+200
    vertices=[], values=[], weight=np.inf
        -> `vertices` is empty and L is singular, first at vertex 0
sc.global_sections(sheaf=F)
sc.cohomology_dims(sheaf=F)
sc.report(C=C, path="c.html", name="c", pos=TETRAHEDRON, faces=FACES, up="y")
sc.nearest_section(sheaf=F, x=X, progress=False)
    x=np.ones(7) -> `x` must have shape (dim_c0,) or (dim_c0, h) with dim_c0 = 8, got shape (7,)
    x=["a"] * 8 -> TypeError: `x` must hold float32, float64
sc.eigenmodes(sheaf=F, k=2, tol=1e-8, method="auto", mass=[1.0] * 4, start=X[:, None], seed=0,
        progress=False)
    k=0 -> `k` must be at least 1, got 0
    k=9 -> `k` must be at most dim_c0 = 8, got 9
    k=1.5 -> TypeError: `k` must be an integer
    tol=1e-18 -> `tol` must be at least 2e-15, the level of
    mass=np.zeros(4) -> got 0 at vertex 0; areas are 0 at vertices of no face
    k=3, mass=np.full(4, 1e-320) -> `mass` is so small that eigenvalues reach 1e3
    sheaf=scaled(1e100), k=3, mass=np.full(4, 1e-110) | k=3, mass=np.full(4, 1e-310)
        -> which overflows float64: use masses in a smaller unit
    sheaf=scaled(1e-100), k=3, mass=np.full(4, 1e200) -> which underflows float64: use masses in a
    sheaf=scaled(np.float32(1)), k=3, mass=np.full(4, 1e-80) |
        sheaf=scaled(np.float32(1)), k=3, mass=np.full(4, 1e-42)
        -> which overflows float32: use masses in a smaller unit
    sheaf=scaled(np.float32(1)), k=3, mass=np.full(4, 1e50) |
        sheaf=scaled(np.float32(1)), k=3, mass=np.full(4, 1e95)
        -> which underflows float32: use masses in a larger unit
    mass=[1, 1, 1, 1e-30] -> `mass` must not differ by more than a factor of 1e+20, got 1e-30 at
        vertex 3 and 1 at vertex 0
    mass=[1.0, -1.0, 1.0, 1.0] | mass=[1.0, np.nan, 1.0, 1.0] | mass=[1.0, np.inf, 1.0, 1.0]
        -> `mass` must be positive and finite, got {mass[1]:g} at vertex 1
    mass=np.ones(3) -> one real number for each of 4 vertices
    method="power" -> `method` must be one of 'auto', 'dense'
    start=X -> `start` must have vectors as columns
    start=[[1.0, np.nan]] * 8 -> `start[0, 1]` must be finite, got nan
sc.Solver(sheaf=F, method="direct", shift=1.0, fixed=[0], progress=False)
    shift=-1.0 -> `shift` must be at least 0 and finite, got -1
    fixed=[4] -> `fixed[0]` = 4 is out of range for 4 vertices
    method="magic" -> `method` must be one of 'auto', 'direct', 'multigrid', 'jacobi'
sc.transported_frames(sheaf=F)
    sheaf=RAGGED_SHEAF -> must have vertex stalks of the same dimension, but vertex 2 has
    sheaf=CellularSheaf.random(PATH, 2, [1, 2, 1], seed=0)
        -> must have edge stalks of the same dimension, but edge 1 has dimension 2
sc.transport(sheaf=CellularSheaf.constant(PATH, 2), vertex=0, value=[1.0, 2.0], t=2.0,
        mass=[1.0] * 4)
    vertex=4 -> `vertex[0]` = 4 is out of range
    value=[1.0] -> `value` must have shape (2,), got (1,) (a vector a in space
    value=np.ones((2, 3)) -> `value` must have shape (2,), got (2, 3)
    t=0.0 -> `t` must be positive
    t=1e-120 -> is so small that heat does not reach vertex
    t=1e12 -> is so large that rounding errors would exceed about 1e-6
    mass=np.zeros(4) -> `mass` must be positive and finite, got 0
    mass=np.ones(3) -> `mass` must hold one real number for each of 4
    sheaf=RAGGED_SHEAF | sheaf=F |
        sheaf=CellularSheaf.diagonal(PATH, *np.tile([1.0, 2.0], (2, 3, 1)))
        -> must be a connection
SOLVE(b=X, tol=1e-8, x0=X)
    b=np.ones(3) -> `b` must have shape (dim_c0,)
    b=X * np.nan -> `b` must be finite, got nan in row 0
    tol=1e-17 -> `tol` must be at least 2e-15
    x0=np.ones((8, 2)) -> `x0` must have the shape of `b`
    x0=1j * X -> TypeError: `x0` is complex, but `b` and the sheaf are real
SOLVE.update(sheaf=F)
    sheaf=RAGGED_SHEAF -> must have the graph and the stalks
sc.least_squares(sheaf=F, b=np.ones(F.dim_c1), vertices=[0, 2], values=[[1.0, 2.0], [3.0, 4.0]],
        tol=1e-10, method="auto", progress=False)
    b=np.zeros(3) -> `b` must have shape (dim_c1,) or (dim_c1, h) with dim_c1 = 6
    b=np.full(6, np.inf) -> `b` must be finite, got inf in row 0
    values=None -> `values` is missing
    vertices=None -> `vertices` is missing
    values=[[0.0], [0.0, 1.0]] -> `values[0]` must have shape
    tol=0.0 -> `tol` must be at least
    values=np.zeros((2, 2, 3)) -> must have the same number of columns, got 3 and 1
    b=np.full(6, 1e200) -> `b` has entries up to 1e+200, whose squares overflow float64: rescale `b`
sc.energy_ledger(C=C, x=X)
sc.certificate(C=C)
    C=sc.coarsen(F, P, basis=BASIS) -> have internal modes, got a basis of your own: use coarsen
    C=sc.coarsen(F, P, 1, local_operator="principal") |
        C=sc.coarsen(F, P, 1, local_operator="oversampled") -> got {C.modes.local_operator} modes
CERTIFICATE.interval(nu=[0.0, 1.0])
    nu=[1.0, np.nan] -> `nu` must be finite, got nan
    nu=np.inf -> `nu` must be finite, got inf
    nu=[1.0, -1e-3] -> got -0.001: pass those of C.galerkin
    nu=1j -> TypeError: `nu` must be real, got dtype complex128
    nu="one" -> TypeError: `nu` must hold
sc.spectral_quality(C=C, k=2, progress=False)
    k=0 -> `k` must be at least 1, got 0
    k=5 -> `k` = 5 exceeds the dimension 4 of the coarse C^0: use a smaller
    k=1.0 -> TypeError: `k` must be an integer, got 1.0
    C=sc.coarsen(F, P, basis=[BASIS[0], 2 * BASIS[1]])
        -> R_a* R_a is not the identity in cluster 1 (and 0 others): orth
    C=H -> TypeError: `C` must be a Coarsening, got Hierarchy: pass one of its `levels` that is
sc.verify(C=C, seed=0)
sc.read_mesh(path="c.off")
sc.save(path="c.npz", obj=C) | sc.load(path="c.npz") | sc.read_g2o(path="c.g2o", weights="unit") |
        sc.read_graph(path="c.txt", dim=1, signed=True, n_vertices=5)
    path="" -> `path` must name a file, got an empty path
    path="a\0.mtx" -> `path` must not contain a null character
    path=True | path=3 | path=b"c.npz" | path=None
        -> TypeError: `path` must be a path, got {path.__class__.__name__}
sc.to_networkx(sheaf=F)
    sheaf=PATH -> TypeError: `sheaf` must be a CellularSheaf, got Graph
sc.from_networkx(graph=sc.to_networkx(F))
    graph=[[0, 1]] -> TypeError: `graph` must be a networkx graph, got list
networkx_edge(tail_map=np.ones((2, 1)), head_map=np.ones((2, 3)), index=0)
    tail_map=[["x"]] -> TypeError: edge 0 -> 1: `tail_map` must hold float32
networkx_vertex(dim=2, dtype=np.float32, unlabelled=True)
    dtype="int8" -> TypeError: `graph.graph['dtype']` must be float32
sc.from_edge_index(edge_index=[[0, 1, 1, 2], [1, 0, 2, 1]], maps=np.ones((4, 2, 1)), vertex_dims=[1,
        1, 1, 5], n_vertices=4)
gallery.bundle(graph=PATH, dim=2, noise=0.1, seed=0)
    dim=2.0 -> TypeError: `dim` must be an integer, got 2.0
    dim=-1 -> `dim` must be at least 0, got -1
    noise=-0.1 -> `noise` must be finite and at least 0, got -0.1
    noise=np.nan | noise=np.inf -> `noise` must be finite
    noise="much" | noise=True -> TypeError: `noise` must be a real number, got {noise!r}
gallery.cycle(n=4, holonomy=0.5)
    n=2**31 - 1 -> `n` requires 2147483647 vertices, at least 34.4 GB
    n=0 -> `n` must be at least 1, got 0
    n=3.0 -> TypeError: `n` must be an integer, got 3.0
    holonomy=np.nan -> `holonomy` must be finite, got nan
    holonomy=[[1, 0], [0, np.inf]] -> must be finite, got inf at index (1, 1)
    holonomy=np.ones(2) | holonomy=np.ones((2, 3))
        -> an angle or a square matrix, got shape {holonomy.shape}
    holonomy=np.eye(2) * 1.1 -> an entry of U* U - I is 0.21
    holonomy=1j -> TypeError: for a phase z pass [[z]]
    holonomy="pi" | holonomy=True -> TypeError: `holonomy` must hold
gallery.tangent_bundle(**MESH, frames=FRAMES, weights="cotan", power=2)
    frames=np.zeros((3, 3, 2)) -> shape (n, 3, 2) for n = 4 points, got shape (3, 3, 2)
    frames=FRAMES * 1j -> TypeError: `frames` must be real
    frames=FRAMES * np.reshape([1.0, 1.1, 0.0, 1.0], (4, 1, 1))
        -> `frames[1]` must have orthonormal columns, but an entry of U* U - I is 0.21
    frames=FRAMES * np.nan -> `frames` must be finite, got nan
    power=0 -> `power` must be at least 1, got 0
    power=2.0 -> TypeError: `power` must be an integer, got 2.0
    weights="cotangent" -> `weights` must be one of 'uniform', 'cotan'
gallery.tangent_frames(**MESH)
gallery.vertex_areas(**MESH)
gallery.field_indices(**MESH, vectors=np.ones((4, 3)))
    power=10**400 -> `power` must be representable in double precision, got a larger number
gallery.connection_from_points(points=TETRAHEDRON, k=3, dim=2)
sc.PoseGraph(edges=EDGES, rotations=[QUARTER] * 3, translations=np.eye(3, 2), kappa=[1.0, 2.0, 1.0],
        tau=1.0, n_vertices=5)
    rotations=np.eye(2) -> must have shape (3, 2, 2) or (3, 3, 3), got shape (2, 2)
    rotations=np.zeros((3, 2, 3)) -> `rotations` must have shape (3, 2, 2) or
    rotations=np.tile(np.diag([1.0, -1]), (3, 1, 1)) -> its determinant is -1
    rotations=np.tile(2 * np.eye(2), (3, 1, 1)) -> `rotations[0]` must be orth
    translations=[[0, 0], [0, np.nan], [0, 0]] -> `translations` must be finite,
    translations=[[0, 0]] -> `translations` must have shape (3, 2), got shape (1,
    kappa=[1.0] -> `kappa` must have shape (3,), got shape (1,)
    kappa=[1, 0, 1] -> `kappa[1]` must be positive, got 0
    tau=[1, 1, -2.0] -> `tau[2]` must be positive, got -2
    kappa=1e-310 -> the largest entry of `sqrt(kappa)` is 1e-155, outside 1.5e-150 .. 1.3e+150,
        where squares in float64 are safe: use other units
    translations=np.full((3, 2), 1e155) -> the largest entry of `translations or points` is 1e+155
    tau=1e200, translations=np.full((3, 2), 1e100)
        -> the largest entry of `sqrt(tau) times translations or points` is 1e+200
    edges=[[0, 1], [1, 2], [0, 2**33]], n_vertices=None -> `edges` requires 8589934593 vertices
    n_vertices=2 | n_vertices=-1 -> `n_vertices` must be at least 4, because of vertex 3 in `edges`
    n_vertices=10**400 -> `n_vertices` requires 1000
    n_vertices=3.5 | n_vertices=True | n_vertices=np.array([3])
        -> TypeError: `n_vertices` must be an integer, got
    vertex_labels="ab" -> `vertex_labels` must hold one name per vertex, 5 in all
    edges=[[0, 1], [1, -2], [0, 2]] -> `edges[1]` must not be negative
    poses=(np.zeros((5, 2, 2)), np.zeros((5, 2))) -> `poses[0][0]` must be orth
    poses=(np.zeros((2, 2, 2)), np.zeros((2, 2))) -> `poses[0]` must have shape
    poses=(np.zeros((3, 2, 2)),) | n_vertices=None, poses=3 -> `poses` must be a pair of arrays
    n_vertices=None, poses=(1.0, 2.0) -> `poses[0]` must have shape (4, 2, 2)
    information=np.zeros((3, 3, 3)) -> must have positive definite blocks
    information=np.tile(np.eye(3), (3, 1, 1))
        -> `kappa[1]` = 2, but `information[1]` implies 1: omit `kappa`
    sightings=sc.Sightings([[0, 0]], [[1.0, 2.0, 3.0]], 1.0)
        -> `sightings` must have the dimension of the poses, 2, got 3
    sightings=sc.Sightings([[2, 0], [5, 0]], np.zeros((2, 2)), 1.0)
        -> `sightings.edges[1]` refers to pose 5, but there are 5
    sightings=np.zeros((2, 2)) -> TypeError: `sightings` must be Sightings, got ndarray
    sightings=sc.Sightings([("z", 0)], [[1.0, 2.0]], 1.0)
        -> `sightings` name poses, but the graph has no `vertex_labels`
    vertex_labels=list("abcde"), sightings=sc.Sightings([("z", 0)], [[1.0, 2.0]], 1.0)
        -> `sightings[0]` = 'z' is not the name of a vertex
sc.Sightings(edges=[[0, 0], [1, 0]], points=np.eye(2), tau=[1.0, 2.0])
    edges=[[0, 2], [1, 0]], places=np.zeros((2, 2))
        -> `places` must have shape (3, 2), got shape (2, 2)
    edges=[[0, 2], [1, 0]], labels=("tree", "lamp")
        -> `labels` must hold a name for each of 3 landmarks, got 2
    labels=([1],) -> TypeError: `labels` must hold hashable names: unhashable type: 'list'
    edges=[[0, 2**33], [1, 0]] -> `edges` requires 8589934593 vertices
    edges=[("a", 0), ("b",)] -> `edges[1]` must be a pair (pose, landmark), got ('b',)
    edges=[("a", 0), ("b", "lamp")] -> TypeError: `edges[1][1]` must be an integer, got 'lamp'
    edges=[("a", 0), ("b", -1)] -> `edges[1][1]` must be at least 0, got -1
sc.synchronize(F=POSES, method="anchored", refine=True, seed=0)
NO_POSES(n_vertices=0)
    n_vertices=-1 -> `n_vertices` must be at least 0, got -1
sc.write_g2o(path="w.g2o", G=POSES, S=sc.synchronize(POSES))
    G=NO_POSES(), S=None -> `G` must have vertices
    G=dataclasses.replace(POSES, sightings=sc.Sightings([[0, 0]], [[1.0, 2.0]], 1.0))
        -> `S` must have the landmarks of `G`, 1 in all, got 0
    G=F -> TypeError: `G` must be a PoseGraph, got CellularSheaf
    S=3 -> TypeError: `S` must be a Synchronization, got int
    S=sc.synchronize(POSES.sheaf)
        -> `S` must hold 4 poses of dimension 2, got no translations: synchronize(G) returns them
    G=dataclasses.replace(POSES, n_vertices=5), S=None -> vertex 4 has no measurements
ELIMINATION.refresh(sheaf=F)
sc.eliminate(sheaf=F, keep=[0, 3], max_neighbors=2)
    keep=[4] -> `keep[0]` = 4 is out of range for 4 vertices
    keep=np.zeros(3, bool) -> `keep`, a mask, must have shape (4,), got (3,)
    max_neighbors=-1 -> `max_neighbors` must be
    max_neighbors=2.5 | max_neighbors=True -> TypeError: `max_neighbors` must be
ELIMINATION.extend(X) -> dim_c0 = 0 of the reduced sheaf
ELIMINATION.reduce(X[1:]) -> dim_c0 = 8 of the fine sheaf
ELIMINATION.extend(np.zeros((0, 2)), np.ones((8, 3))) -> `b` must have as many columns as `z`
gallery.bar_framework(graph=PATH, points=TETRAHEDRON)
    points=[[0.0], [1.0], [1.0], [2.0]] -> edge 1 (1, 2) has length zero
    graph=[[0, 1], [1, 1]], points=[[0.0], [1.0]] -> edge 1 (1, 1) has length zero
    graph=nx.path_graph(2) | graph=scipy.sparse.eye_array(2) -> one row per vertex, 2 in all, got 4
    graph=[[0, 1]], points=[[0.0]] -> one row per vertex, 2 in all, got 1
    points=np.zeros(2) | points=np.zeros((4, 0))
        -> `points` must have shape (n, d), got {points.shape}
    points=[[0.0], [np.inf], [1.0], [2.0]] -> `points` must be finite, got [inf] in row 1
gallery.nearest_neighbors(points=TETRAHEDRON, k=2)
    k=4 -> `k` must be below the number of points, 4, got 4
    k=0 -> `k` must be at least 1, got 0
    k=1.0 -> TypeError: `k` must be an integer, got 1.0
    points=np.zeros((0, 2)), k=1 -> `k` must be below the number of points, 0, got 1
    points=[1.0, 2.0] -> `points` must have shape (n, d), got (2,)
    points=[[1.0], [np.nan]], k=1 -> `points` must be finite, got [nan] in row 1
    points=TETRAHEDRON * 1j -> TypeError: `points` must be real
# graphs
CellularSheaf.constant(same_bits(np.int8, -128, 127))
        -> `graph` must be a symmetric adjacency, got -128 at (0, 1) and 127 at (1, 0)
CellularSheaf.constant(same_bits(np.uint64, 3, 4))
        -> `graph` must be a symmetric adjacency, got 3 at (0, 1) and 4 at (1, 0)
CellularSheaf.constant([[0, 1], [0, 10**15]])
        -> `graph[1]` = (0, 1000000000000000) has a vertex beyond 2147483646; vertices are
sc.select([[0, 10**15]], 2) -> `graph[0]` = (0, 1000000000000000) has a vertex beyond
CellularSheaf.from_flat([[0, 10**15]], [1.0], [1.0], 1, 1)
        -> `edges` requires 1000000000000001 vertices, but there may be at most 2147483647
CellularSheaf.constant([[0, 1], [0, HUGE]])
        -> `graph` must hold 64-bit integers, got 1000000000000000000000000000000 at index (1, 1)
CellularSheaf.constant(scipy.sparse.coo_array((10**15, 10**15)))
        -> `graph` requires 1000000000000000 vertices
# sizes that exceed the memory
CellularSheaf.constant(PATH, 10**6) -> `dim` requires 3e+12 map entries
CellularSheaf.constant([], HUGE) -> `dim` requires 1e+60 map entries
gallery.bundle(PATH, 2**31) -> `dim` requires 1.84e+19 map entries
gallery.cycle(HUGE, 0.0) -> `n` requires 1000000000000000000000000000000 vertices
CellularSheaf.random(PATH, 10**6, 10**6)
        -> `vertex_dims` with `edge_dims` requires 6e+12 map entries (4.8e+04 GB)
CellularSheaf.random(PATH, [1, 2**31, 1, 1], 4, dtype=np.float32)
        -> `vertex_dims` with `edge_dims` requires 1.72e+10 map entries (68.7 GB)
CellularSheaf.constant(PATH, 10**400) | gallery.bundle(PATH, 10**400)
        -> `dim` requires 1e+300 map entries (8e+291 GB), more than fits in memory
# Python formats no integers of more than 4300 digits
CellularSheaf.constant(EDGES, n_vertices=10**5000) -> `n_vertices` requires 1000
gallery.cycle(10**5000, 0.1) -> `n` requires 1000
gallery.cycle(10**8, np.eye(9))
        -> `n` requires 8.1e+09 map entries (64.8 GB), more than fits in memory
CellularSheaf.random(PATH, HUGE, 1) -> `vertex_dims` must sum to at most
CellularSheaf.random(PATH, 1, [0, 2**61, 2**61]) -> `edge_dims` must sum to at most
CellularSheaf.random(PATH, 1, 1, seed=-1) -> `seed` must be at least 0, got -1
gallery.bundle(PATH, 1, seed=-1) -> `seed` must be at least 0, got -1
# ragged nested lists
sc.coarsen(F, P, RAGGED) -> `rank` must be a rectangular array
CellularSheaf.signed(ADJACENCY, weight="foo") -> no edge of the graph has, and there is no 'foo'
CellularSheaf.random(PATH, RAGGED, 1) -> `vertex_dims` must be a rectangular array
CellularSheaf.random(PATH, 1, RAGGED) -> `edge_dims` must be a rectangular array
CellularSheaf(RAGGED, X, X) -> `edges` must be a rectangular array of integers
sc.split(F, RAGGED) -> `vertex_starts` must be a rectangular array
sc.energy(F, RAGGED) -> `x` must be a rectangular array of numbers
sc.energy(CellularSheaf.random(PATH, 2, 2, seed=1, dtype=np.float32), np.full(8, 1e30, np.float32))
        -> energies would overflow in float32: rescale `x`
sc.ranks.below(10**400) -> `tau` must be representable in double precision
sc.normalize(F, eps=10**400) -> `eps` must be representable in double precision
gallery.bundle(PATH, 2, 10**400) -> `noise` must be representable in double
# coarsening, and new maps
out_of_another_pattern()
        -> `out` must be an earlier result of this pattern, with its original arrays
sc.energy(F, 1e200 * X) | sc.edge_energy(F, 1e200 * X) | sc.energy_ledger(C, 1e200 * X) |
        C.pool(1e200 * X) -> `x` has entries up to 1e+200 and the maps up to
C.lift(1e200 * X[:4]) -> `z` has entries up to 1e+200 and the maps up to
H.pool(X[:4]) | H.ledger(X[:4])
        -> `x` must have shape (dim_c0,) or (dim_c0, h) with dim_c0 = 8 of the fine sheaf
H.lift(X, 1) -> `z` must have shape (dim_c0,) or (dim_c0, h) with dim_c0 = 4 of level 1's sheaf
H[2] -> IndexError: index out of range
H.recoarsen(COLUMNS) | sc.Hierarchy(F, ()).recoarsen(COLUMNS)
        -> its edges differ, there are 1 of them, not 3: use coarsen_levels for another
sc.Hierarchy(F, H[1:]) -> `levels[0]` must be a coarsening of `fine`
sc.Hierarchy(F, [C, C]) -> `levels[1]` must be a coarsening of `levels[0].sheaf`
sc.sparsify(F, 0.5, seed=np.random.RandomState(3))
        -> TypeError: `seed` must be None, a non-negative integer or a numpy Generator
sc.Hierarchy(F, scipy.sparse.bsr_array(np.eye(2)))
        -> TypeError: `levels` must be a sequence of coarsenings, got bsr_array
sc.disjoint_union(scipy.sparse.bsr_array(np.eye(2)))
        -> TypeError: `sheaves` must be a sequence of sheaves, got bsr_array
sc.Hierarchy(F, (C, F)) -> TypeError: `levels[1]` must be a Coarsening, got
sc.Hierarchy(F, H.levels, seconds=(1.0, 2.0)) -> TypeError: seconds
sc.select(C, 2)
        -> TypeError: a scipy adjacency or an (m, 2) array, got Coarsening: pass its attribute
sc.select(P, 2) -> TypeError: or an (m, 2) array, got Partition
CellularSheaf(PATH, X, X) -> TypeError: `edges` must be an (m, 2) array of vertex indices, got Graph
CellularSheaf(ADJACENCY, X, X) -> TypeError: `edges` must be an (m, 2) array of vertex
CellularSheaf.constant(ADJACENCY.toarray())
        -> TypeError: for a dense adjacency write scipy.sparse.csr_array(A)
CellularSheaf.random(PATH, 1, 1, seed=True) -> TypeError: or a numpy Generator, got True
gallery.bundle(PATH, 1, seed=[1, 2]) | gallery.bundle(PATH, 1, seed=0.5)
        -> TypeError: `seed` must be None, a non-negative integer or a numpy Generator, got
sc.verify(C, seed=None) -> TypeError: `seed` must be an integer, got None
sc.coarsen(F, P) -> exactly one of `rank` and `basis` must be passed, got neither
sc.coarsen(F, P, 1, basis=BASIS) -> exactly one of `rank` and `basis` must be passed, got both
sc.coarsen_levels(CellularSheaf.constant(nx.path_graph(2000)), 2, rank=1, method="spectral")
        -> level 0: `n_clusters` must be at most 500 for method "spectral"
sc.HiSP(10**9, 2)(F, np.ones((4, 6))) -> pads the pooled features to 6e+09 entries, which do not
sc.HiSP(HUGE, 2)(F, np.ones((4, 6))) -> pads the pooled features to 6e+30 entries, which do not fit
sc.coarsen(F_COMPLEX, P, basis=[1e300 * BASIS[0], BASIS[1]])
        -> `basis[0]` must be finite in complex64, got 1e+300 in row 0
sc.coarsen(F, P, 1, loops="no") -> TypeError: `loops` must be True or False, got 'no'
sc.coarsen(F, P, 1, compress="no") -> TypeError: `compress` must be True or False, got
sc.coarsen(F, P, 1, progress="no") -> TypeError: `progress` must be True or False, got
sc.select(F, 2, progress=1) -> TypeError: `progress` must be True or False, got 1
sc.local_modes(F, P, 1, progress=None) -> TypeError: `progress` must be True or False
F.with_maps(1.0, np.ones((3, 2, 2))) -> TypeError: `tail_maps` must be an (m, d_e, d_v) array or a
        sequence of 2-D arrays, got float
in_folder(lambda folder: sc.save(folder / "m.npz", M))
        -> TypeError: `obj` must be a CellularSheaf, a Partition, a Coarsening, a Hierarchy, an
in_folder(lambda folder: sc.save(folder / "g.npz", POSES)) -> TypeError: got PoseGraph: write_g2o
        writes pose graphs and poses, numpy.savez the arrays of
in_folder(lambda folder: sc.save(folder / "p", POOL(F, X[:, None])))
        -> TypeError: got Pooling: save its `coarsening`
in_folder(lambda folder: sc.save(folder / "no" / "c.npz", C))
        -> FileNotFoundError: there is no folder
in_folder(lambda folder: sc.save(folder, C)) -> IsADirectoryError: is a folder, not a file
in_folder(sc.load) -> IsADirectoryError: Is a directory
sc.read_graph("absent.txt", -1) -> `dim` must be at least 0, got -1
sc.read_graph("absent.txt", 2.0) -> TypeError: `dim` must be an integer, got 2.0
sc.laplacian_operator(F) @ np.ones(8, object) | sc.laplacian_operator(F) @ np.array(8 * ["a"]) |
        sc.laplacian_operator(F) @ np.ones((8, 1), np.longdouble)
        -> TypeError: `x` must hold numbers in single or double precision
sc.Sparsification(F, F, np.arange(3), np.ones(2)) -> `weights` must have shape (3,)
sc.Sparsification(F, F, np.arange(3)[::-1], np.ones(3)) |
        sc.Sparsification(F, F, np.array([0, 0, 2]), np.ones(3))
        -> the sparsification is inconsistent: `edges` must be ascending indices of the 3 edges
sc.Sparsification(C.sheaf, F, np.arange(3), np.ones(3)) -> the sparsification is inconsistent:
sc.spectral_quality(C, 1, C) -> TypeError: `fine` must be Eigenmodes or a SpectralQuality, got Coar
sc.spectral_quality(C, 1, sc.eigenmodes(C.sheaf, 1)) -> `fine` must belong to C.fine, whose C^0
sc.spectral_quality(C, 1, sc.eigenmodes(F, 3, mass=[1, 2, 3, 4])) |
        sc.spectral_quality(C, 1, sc.eigenmodes(CellularSheaf.constant(PATH, 2), 3))
        -> `fine` must hold eigenpairs of C.fine, computed without mass, but pair
sc.spectral_quality(C, 1, dataclasses.replace(MODES, values=MODES.values[[0, 0]],
        vectors=MODES.vectors[:, [0, 0]])) -> its vectors are not orthonormal
# signals
sc.fit_maps(edges=EDGES, edge_dim=2, X=[*SIGNALS[:3], SIGNALS[3, :, :2]]) -> `X[3]` must have shape
sc.fit_maps(X=SIGNALS, edges=EDGES, edge_dim=5) -> `edge_dim` must be at most d_u + d_v
sc.fit_maps(X=SIGNALS, edges=EDGES, edge_dim=2, n_edges=6)
        -> `n_edges` must be at most the number of `edges`, 3
# poses
sc.synchronize(np.eye(2)) -> TypeError: `F` must be a CellularSheaf, got ndarray
sc.synchronize("intel.g2o") -> TypeError: got str: read a file with read_g2o(path, poses=True)
sc.synchronize(Path("intel.g2o")) -> TypeError: : read a file with read_g2o(path, poses=True)
sc.synchronize(CellularSheaf.signed(EDGES, sign=[1, -1, 1]), refine=True) |
        sc.synchronize(sc.gallery.bundle(EDGES, 4), refine=True)
        -> `refine` requires rotations of the plane or of space, got
sc.synchronize(POSES, method="lowest") -> `method` must be
sc.synchronize(POSES, start=np.eye(2)) -> `start` must be rotations of
sc.synchronize(POSES, start=np.full((4, 2, 2), np.nan)) -> `start` must be finite
sc.synchronize(POSES, start=np.zeros((4, 2, 2), complex)) -> TypeError: must be real
sc.synchronize(POSES, start=(np.zeros((4, 2, 2)), np.zeros((4, 2))))
        -> `start` must be rotations, got a pair: pass the first of it, as in G.poses[0]
sc.synchronize(POSES, robust="huber") -> `robust` must be
sc.synchronize(POSES, robust="tls", start=0) -> `start` has no effect
sc.synchronize(POSES, robust="tls", method="joint") -> `method` has no
sc.synchronize(POSES, trusted=[0]) -> `trusted` has no effect
sc.synchronize(POSES, robust="tls", trusted=[5]) -> `trusted[0]` must be
sc.synchronize(POSES, robust="tls", trusted=[True]) -> `trusted` must be
sc.synchronize(sc.PoseGraph([], [], [])) -> must have at least one pose
sc.synchronize(EMPTY)
        -> must have vertices and stalks of dimension at least 1, got CellularSheaf(n_vertices=0
sc.synchronize(CellularSheaf.random(PATH, [2, 3, 2, 2], 2, seed=0))
        -> vertex 1 has dimension 3 and vertex 0 has 2
sc.synchronize(CellularSheaf.random(PATH, 2, [2, 1, 2], seed=0))
        -> edge 1 has dimension 1 and vertex 0 has 2
not_a_connection(np.eye(2), np.diag([1.0, 2.0])) | not_a_connection(np.eye(2), 2 * np.eye(2)) |
        not_a_connection(np.ones((2, 2)), np.eye(2))
        -> `F` must be a connection, as CellularSheaf.connection builds: the maps of edge 1,
sc.synchronize(POSES).certify(0) | sc.synchronize(POSES).certify(1) |
        sc.synchronize(POSES).certify(-1e-6) -> `tol`
sc.synchronize(POSES).certify("small") -> TypeError: `tol`
POSES.subset([3]) | POSES.subset([-1]) | POSES.subset([1, 1]) | POSES.subset(np.ones(2, bool)) |
        POSES.subset([0.5]) -> `edges
"""
"""Valid calls; indented below, changes of their arguments and the errors; then other bad calls.

Alternatives are separated by `` | ``; in an error ``{t}`` is the value of the argument t, and what
names no class is a ValueError. Lines that are indented more continue the previous one.
"""


def rows(table):
    """Yield a valid call or "", bad arguments or a bad call, and the error, both "" if valid."""
    valid = []
    for text in errors.lines(table):
        if text.startswith("#"):
            continue
        what, error = errors.row(text)
        if not text.startswith(" "):
            valid = [""] if error else what.split(" | ")
        for call in valid:
            for wrong in what.split(" | ") if error else [""]:
                yield call, wrong, error


def as_partial(call):
    """Return a function with valid arguments, of which each may be replaced by its name."""
    function, _, arguments = call.partition("(")
    return partial(eval(function), **eval(f"dict({arguments}"))


CALLS = {call: as_partial(call) for call, wrong, _ in rows(TABLE) if not wrong}
WRONG = [row for row in rows(TABLE) if row[1]]


@pytest.fixture(scope="module", autouse=True)
def a_small_machine():
    """Fix the memory size, on which errors depend; pages have blank pictures, to save time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sheafcoarsen.html_report._report.drawn", lambda *_, **__: "data:,")
        patch.setattr("sheafcoarsen._support.checks.physical_memory", lambda: 2e9)
        yield


@pytest.mark.parametrize(("call", "wrong", "error"), WRONG, ids=[row[1] for row in WRONG])
def test_invalid_arguments_raise(call, wrong, error):
    changes = eval(f"dict({wrong})") if call else {}
    with raises(error.format(**changes)) as caught:
        CALLS[call](**changes) if call else eval(wrong)
    assert "\n" not in str(caught.value)


INSTEAD = {
    "sheaf": {
        "CellularSheaf, got Graph: CellularSheaf.constant(graph) makes one": PATH,
        "CellularSheaf, got csr_array: CellularSheaf.constant(graph) makes one": ADJACENCY,
        "CellularSheaf, got ndarray: CellularSheaf.constant(graph) makes one": EDGES,
        "CellularSheaf, got Coarsening: pass its attribute `sheaf`": C,
        "CellularSheaf, got Partition": P,
        "CellularSheaf, got NoneType": None,
    },
    "C": {
        **{f"Coarsening, got {type(x).__name__}": x for x in (PATH, ADJACENCY, F, P, M, None)},
        "Coarsening, got Pooling: pass its `coarsening`": POOLED,
    },
}


@pytest.mark.parametrize(
    ("call", "name", "wanted"),
    [
        (call, name, wanted)
        for call, function in CALLS.items()
        for name in INSTEAD
        for wanted in INSTEAD[name]
        if name in function.keywords and function.func not in (coarsen_with, sc.report)
    ],
)
def test_objects_of_another_class_raise(call, name, wanted):
    value = INSTEAD[name][wanted]
    with raises(f"TypeError: `{name}` must be a {wanted}"):
        CALLS[call](**{name: value})
    if name == "sheaf":
        with raises(f"TypeError: `sheaves[1]` must be a {wanted}"):
            sc.disjoint_union([F, value])


@pytest.mark.parametrize(
    "rank",
    [HUGE, [HUGE, 2**63], (2**63, 9), *(rule(HUGE) for rule in (fixed, budget, below, gap))],
    ids=str,
)
def test_huge_ranks_are_clipped(rank):
    clipped = gap(3) if rank == gap(HUGE) else 4
    np.testing.assert_array_equal(sc.coarsen(F, P, rank).ranks, sc.coarsen(F, P, clipped).ranks)


# ---------------------------------------------------------------- junk for every public function

THINGS = st.sampled_from(
    [
        *(F, F_COMPLEX, EMPTY, P, Partition([]), Partition([0, 1, 2, 3]), M, C, H, PATTERN),
        *(L, X, X.astype(np.complex64), PATH, nx.Graph(), ADJACENCY, EDGES, TETRAHEDRON, FACES),
        *(sc.ranks.kernel(), sc.ranks.below(1.0).whole_multiplets(), sc),
    ]
)
"""Valid arguments, but in the wrong place."""

NOT_FINITE = {
    "next_eigenvalues",
    "smallest_nonzero",
    "truncation_bound",
    "coarse",  # of a quality: no more coarse eigenvalues
    "relative_errors",
}
"""Fields in which infinity means something."""


def assert_valid(result, name=""):
    """Assert that shapes of a result fit, with no NaN, and infinity only where it is documented."""
    if isinstance(result, tuple | list):
        for item in result:
            assert_valid(item, name)
    elif isinstance(result, dict):
        for key, item in result.items():
            assert_valid(item, key)
    elif isinstance(result, CellularSheaf):
        assert result.edges.min(initial=0) >= 0
        assert result.edges.max(initial=-1) < result.n_vertices
        assert len(result.tail_data) == result.tail_offsets[-1]
        assert len(result.head_data) == result.head_offsets[-1]
        assert_valid([result.tail_data, result.head_data])
    elif isinstance(result, Partition):
        assert (result.sizes > 0).all()
        assert result.sizes.sum() == result.n_vertices
    elif isinstance(result, sc.HiSP):
        if result.n_modes < 1000:  # a row of x is as long as that
            assert_valid(result(F, np.ones((4, 6)), partition=P))
    elif isinstance(result, sc.Sparsification):
        assert_valid([result.sheaf, result.edges, result.weights, result.bounds()])
    elif isinstance(result, sc.Verification):
        assert result.passed, str(result)
    elif isinstance(result, sc.Solver):
        assert_valid(result(np.zeros(result.sheaf.dim_c0)))
    elif dataclasses.is_dataclass(result):
        names = [field.name for field in dataclasses.fields(result)]
        assert_valid({name: getattr(result, name, None) for name in names})
        if isinstance(result, sc.LocalModes):
            assert result.prolongation.shape == (result.sheaf.dim_c0, result.ranks.sum())
        elif isinstance(result, sc.Coarsening):
            assert result.prolongation.shape == (result.fine.dim_c0, result.sheaf.dim_c0)
        elif isinstance(result, sc.EnergyLedger | sc.HierarchyLedger):
            assert_valid({**result.lines, "closure": result.closure})
        elif isinstance(result, sc.PoseGraph | sc.Elimination):
            assert_valid(result.sheaf)
        elif isinstance(result, sc.Pooling):
            K = result.partition.n_clusters
            assert result.x.shape == (K, result.n_modes * result.x_lifted.shape[1])
            assert result.adjacency.shape == (K, K)
            assert_valid([result.x, result.lift(result.x)])
        assert repr(result)
    elif isinstance(result, LinearOperator):
        assert_valid(result @ np.ones(result.shape[1]))
    elif isinstance(result, sc.LaplacianPattern):
        assert result.indptr[-1] == len(result.indices)
    elif isinstance(result, nx.Graph) and result.is_directed():
        assert_valid(sc.from_networkx(result))
    elif isinstance(result, nx.Graph):
        assert_valid([w for _, _, w in result.edges(data="weight")])
    elif scipy.sparse.issparse(result):
        result.check_format()
        assert_valid(result.data)
    elif isinstance(result, np.ndarray | float | complex | np.generic):
        values = np.asarray(result)
        if values.dtype.kind in "fc":
            assert not np.isnan(values).any(), name
            assert np.isfinite(values).all() or name in NOT_FINITE, name
    else:
        assert result is None or isinstance(result, int | str | Rule), type(result)


@pytest.fixture(scope="module")
def folder_of_files(tmp_path_factory):
    """Return a folder of files that valid paths name, in which `save` writes under junk names."""
    folder = tmp_path_factory.mktemp("junk")
    sc.save(folder / "c.npz", C)
    (folder / "c.g2o").write_text("EDGE_SE2 0 1 0 0 0.5 1 0 0 1 0 4\n")
    (folder / "c.off").write_text("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n")
    (folder / "c.txt").write_text("0 1\n1 2 2.5\n")
    return folder


def in_folder_of(function, folder):
    """Return a context in which the valid path of a function names a file."""
    return contextlib.chdir(folder) if "path" in function.keywords else contextlib.nullcontext()


@pytest.mark.parametrize("call", CALLS)
def test_valid_arguments_work(call, folder_of_files):
    with in_folder_of(CALLS[call], folder_of_files):
        assert_valid(CALLS[call]())


@pytest.mark.parametrize("call", CALLS)
@given(data=st.data())
@examples(15)
def test_random_arguments_work_or_raise(call, folder_of_files, data):
    function = CALLS[call]
    names, arguments = list(function.keywords), {}
    if names:
        one = st.sampled_from(names).map(lambda name: [name])
        for name in data.draw(
            one | one | st.lists(st.sampled_from(names), unique=True), label="junk in"
        ):
            arguments[name] = data.draw(JUNK | THINGS, label=name)
    allowed = [ValueError, TypeError]
    if {"a", "e"} & set(names):  # indices of clusters and edges
        allowed.append(IndexError)
    if "path" in names:
        allowed.append(OSError)
    try:
        with in_folder_of(function, folder_of_files):
            result = function(**arguments)
    except tuple(allowed) as error:
        note(repr(error))
        assert str(error)
    else:
        assert_valid(result)


EXEMPT = """
Certificate Check Coarsening Eigenmodes Elimination EnergyLedger GlobalSections Hierarchy
HierarchyLedger LeastSquares LocalModes NotConverged Pooling PoseCertificate Sparsification
SpectralQuality Synchronization Verification
Elimination.extend Elimination.reduce Elimination.solution_from EnergyLedger.to_frame
GlobalSections.toarray Partition.assignment_matrix PoseGraph.joint_sheaf PoseGraph.subset
Solver.as_preconditioner Sparsification.bounds SpectralQuality.to_frame Synchronization.certify
Synchronization.cochain Synchronization.outliers Synchronization.to_frame ranks.as_rule
"""
"""Plain dataclasses, which hold what they get, and methods of results."""


def test_every_public_function_is_tested_with_random_arguments():
    covered = [getattr(call.func, "__func__", call.func) for call in CALLS.values()]
    for name in set(public_names()) - set(EXEMPT.split()):
        item = getattr(item_of(name), "__func__", item_of(name))
        is_function = inspect.isfunction(item) or inspect.isclass(item)
        if is_function and not re.match(r"plot\.|ranks\.[A-Z]|\w+Warning", name):
            assert item in covered, name
