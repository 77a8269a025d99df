"""Hypothesis strategies: graphs, sheaves, partitions and cochains, small and nasty.

Structure (ends, dimensions, kind, scale) is drawn and therefore shrinks; entries come from a drawn
seed. The failing sheaf is printed as the code that rebuilds it.
"""

from typing import NamedTuple

import networkx as nx
import numpy as np
import scipy.sparse
from hypothesis import note, settings
from hypothesis import strategies as st

from sheafcoarsen import CellularSheaf, Partition
from tests.support.helpers import normal

MAX_DIM = 6

KINDS = (
    "integer",  # entries -2 .. 2: exact ties, exactly repeated eigenvalues
    "repeated",  # one small integer map for each shape, the same on all edges
    "zero",  # most maps, or all, are zero
    "rank-deficient",  # products of integer factors that are too thin
    "diagonal",
    "orthogonal",  # orthonormal rows or columns, whichever are fewer
    "bundle",  # gauge-equivalent to constant: one global section per dimension and component
    "general",  # normal entries
)

DTYPES = (np.float64, np.float32, np.complex128, np.complex64)

SCALES = {  # by the size of a real scalar
    8: (1.0, 1e-100, 1e100),
    4: (1.0, 1e-12, 1e12),
}

SPREAD = 1e-12
"""In double precision the maps of some edges may be this much smaller than those of the others."""


def examples(count):
    """Return settings with ``count`` examples in the default run; other runs keep their number."""
    usual = settings().max_examples
    is_default = usual == settings.get_profile("default").max_examples
    return settings(max_examples=count if is_default else usual)


class DrawnGraph(NamedTuple):
    """A multigraph: (m, 2) ends, and the number of vertices, of which some may be isolated."""

    n_vertices: int
    edges: np.ndarray


def _often(low, usual, high):
    """Integers low .. high, half of them from ``usual`` on: small cases crowd out no others."""
    return st.integers(low, high) | st.integers(max(low, min(usual, high)), high)


@st.composite
def graphs(draw, *, min_vertices=0, max_vertices=7, min_edges=0, max_edges=12):
    """Multigraphs: loops, edges parallel and reversed, isolated vertices, several components."""
    fewest = min(max(min_vertices, int(min_edges > 0)), max_vertices)
    n = draw(_often(fewest, 3, max_vertices))
    if n == 0:
        return DrawnGraph(0, np.zeros((0, 2), dtype=np.int64))
    end = st.integers(0, n - 1)
    some = max(min_edges, min(4, max_edges))
    pairs = st.tuples(end, end)
    lists = [st.lists(pairs, min_size=k, max_size=max_edges) for k in (min_edges, some)]
    edges = draw(lists[0] | lists[1])
    edges = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return DrawnGraph(n, edges)


@st.composite
def multigraphs(draw, **graph_options):
    """Draw networkx MultiGraphs, some edges without a weight; names say nothing of the order."""
    n, edges = draw(graphs(**graph_options))
    names = ["z", 7, ("x", 1), "a", 0, 2.5, frozenset({3}), "m", -1, "q"][:n]
    G = nx.MultiGraph()
    G.add_nodes_from(names)
    for u, v in edges.tolist():
        G.add_edge(names[u], names[v])
        if draw(st.booleans()):
            key = max(G[names[u]][names[v]])
            G.edges[names[u], names[v], key]["weight"] = draw(st.sampled_from([0, 1, 0.25, 3.5]))
    return G


@st.composite
def sheaves(
    draw,
    graph=None,
    *,
    kinds=KINDS,
    dtypes=DTYPES,
    dims=(0, MAX_DIM),
    uniform=None,
    scales=None,
    spread=True,
):
    """Sheaves of every kind the library accepts, on a graph that is drawn from a strategy.

    ``dims`` bound the dimensions of stalks; with ``uniform``, those of all vertices are equal, and
    those of all edges; None draws it. All maps are multiplied by one of ``scales``, by default
    `SCALES` of the scalar type; with ``spread``, those of some edges may be smaller by `SPREAD`.
    """
    n, edges = draw(graphs() if graph is None else graph)
    m = len(edges)
    kind = draw(st.sampled_from(kinds))
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    dim = _often(dims[0], 1, dims[1])
    if kind == "bundle":
        d = draw(dim)
        vertex_dims, edge_dims = [d] * n, [d] * m
    elif draw(st.booleans()) if uniform is None else uniform:
        d_v = draw(dim)
        vertex_dims, edge_dims = [d_v] * n, [draw(st.just(d_v) | dim)] * m
    else:
        vertex_dims = draw(st.lists(dim, min_size=n, max_size=n))
        edge_dims = draw(st.lists(dim, min_size=m, max_size=m))
    real = np.zeros(0, dtype).real.dtype
    scale = draw(st.sampled_from(SCALES[real.itemsize] if scales is None else scales))
    spread = spread and real.itemsize == 8 and draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))

    tails, heads = _maps(rng, kind, edges, vertex_dims, edge_dims, dtype.kind == "c")
    factors = np.full(m, scale)
    if spread:
        factors *= rng.choice([1.0, SPREAD], size=m)
    largest = max((np.abs(M).max(initial=0) for M in tails + heads), default=0)
    if 0 < largest < 0.5:  # small entries must not leave the allowed range by chance
        factors /= largest
    if m == 0:
        tails = heads = np.zeros((0, 1, 1), dtype)
    else:
        tails, heads = (
            [(f * M).astype(dtype) for f, M in zip(factors, maps, strict=True)]
            for maps in (tails, heads)
        )
    F = CellularSheaf(edges, tails, heads, vertex_dims=vertex_dims)
    note(_Recipe(F, kind))
    return F


def _maps(rng, kind, edges, vertex_dims, edge_dims, is_complex):
    """Draw tail and head maps in double precision, entries of the size of 1."""

    def integers(*shape):
        M = rng.integers(-2, 3, shape).astype(float)
        return M + 1j * rng.integers(-2, 3, shape) if is_complex else M

    def general(*shape):
        return normal(rng, shape, complex if is_complex else float)

    def orthonormal(rows, columns):
        Q = np.linalg.qr(general(max(rows, columns), min(rows, columns)))[0]
        return Q if rows >= columns else Q.T

    def diagonal(rows, columns):
        return general(rows, columns) * np.eye(rows, columns)

    def rank_deficient(rows, columns):
        k = int(rng.integers(0, max(min(rows, columns), 1)))
        return integers(rows, k) @ integers(k, columns)

    def mostly_zero(rows, columns):
        return integers(rows, columns) * (rng.random() < 0.2)

    shared = {}

    def repeated(rows, columns):
        if (rows, columns) not in shared:
            shared[rows, columns] = integers(rows, columns)
        return shared[rows, columns]

    if kind == "bundle":
        gauge = [orthonormal(d, d) for d in vertex_dims]
        frames = [orthonormal(d, d) for d in edge_dims]
        return tuple(
            [Q @ gauge[v].conj().T for Q, v in zip(frames, edges[:, end], strict=True)]
            for end in (0, 1)
        )
    make = {
        "integer": integers,
        "repeated": repeated,
        "zero": mostly_zero,
        "rank-deficient": rank_deficient,
        "diagonal": diagonal,
        "orthogonal": orthonormal,
        "general": general,
    }[kind]
    return tuple(
        [make(d_e, vertex_dims[v]) for d_e, v in zip(edge_dims, edges[:, end], strict=True)]
        for end in (0, 1)
    )


class _Recipe:
    """Prints a sheaf as the code that rebuilds it; formatted for a failing example only."""

    def __init__(self, sheaf, kind):
        self.sheaf, self.kind = sheaf, kind

    def __repr__(self):
        F = self.sheaf
        tails, heads = (
            ", ".join(_array(get(e)) for e in range(F.n_edges)) for get in (F.tail_map, F.head_map)
        )
        dims = f"vertex_dims={F.vertex_dims.tolist()}"
        if not F.n_edges:
            empty = f"np.zeros((0, 1, 1), {F.dtype.name!r})"
            return f"# {self.kind}\nF = CellularSheaf([], {empty}, {empty}, {dims})"
        return (
            f"# {self.kind}\nF = CellularSheaf(\n    {F.edges.tolist()},\n    [{tails}],\n  "
            f"  [{heads}],\n    "
            f"{dims},\n)"
        )


def _array(M):
    values = M.tolist() if M.size else f"np.zeros({M.shape})"
    return f"np.array({values}, {M.dtype.name!r})"


@st.composite
def partitions(draw, n):
    """Partitions of n vertices: one cluster, singletons, or any labels, connected or not."""
    kind = draw(st.sampled_from(["one", "any", "any", "singletons"]))
    if n == 0 or kind == "one":
        labels = [0] * n
    elif kind == "singletons":
        labels = draw(st.permutations(range(n)))
    else:
        most = draw(st.integers(min(2, n), n))
        labels = draw(st.lists(st.integers(0, most - 1), min_size=n, max_size=n))
        rank = {label: a for a, label in enumerate(sorted(set(labels)))}
        labels = [rank[label] for label in labels]
    note(f"P = Partition({list(labels)})")
    return Partition(labels)


@st.composite
def sheaves_with_partitions(draw, **sheaf_options):
    """Pairs (F, P); options as for `sheaves`."""
    F = draw(sheaves(**sheaf_options))
    return F, draw(partitions(F.n_vertices))


@st.composite
def mode_counts(draw, P):
    """Ranks for `local_modes`: one integer, or one per cluster, some beyond its dimension."""
    if draw(st.booleans()):
        rank = draw(st.integers(0, 8))
    else:
        rank = draw(st.lists(st.integers(0, 8), min_size=P.n_clusters, max_size=P.n_clusters))
    note(f"rank = {rank}")
    return rank


BASIS_KINDS = ("orthonormal", "general", "scaled", "rank-deficient", "zero column", "complex")


@st.composite
def bases(draw, F, P, *, kinds=BASIS_KINDS):
    """Draw blocks [R_0, ..., R_{K-1}] of one kind, R_a of shape (N_a, r_a); r_a may exceed N_a."""
    kind = draw(st.sampled_from(kinds))
    columns = draw(st.lists(st.integers(0, 5), min_size=P.n_clusters, max_size=P.n_clusters))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    is_complex = F.dtype.kind == "c" or kind == "complex"
    dtype = np.result_type(F.dtype, np.complex64) if is_complex else F.dtype
    blocks = []
    for a, r in enumerate(columns):
        N = int(F.vertex_dims[P.cluster(a)].sum())
        r = min(r, N) if kind == "orthonormal" else r
        R = normal(rng, (N, r), complex if is_complex else float)
        if kind == "orthonormal" and r:
            R = np.linalg.qr(R)[0]
        elif kind == "scaled":
            R = R * 10.0 ** rng.integers(-3, 4)
        elif kind == "rank-deficient" and r > 1:
            R[:, -1] = R[:, 0]
        elif kind == "zero column" and r:
            R[:, rng.integers(r)] = 0
        blocks.append(R.astype(dtype))
    note(f"basis: {kind}, columns {columns}")
    return blocks


@st.composite
def cochains(draw, F, *, columns=(None, 1, 3)):
    """0-cochains of shape (dim_c0,) or (dim_c0, h): zero, a unit vector or random."""
    h = draw(st.sampled_from(columns))
    shape = (F.dim_c0,) if h is None else (F.dim_c0, h)
    kind = draw(st.sampled_from(["random", "unit", "zero"]))
    x = np.zeros(shape, F.dtype)
    if kind == "unit" and x.size:
        x[draw(st.integers(0, F.dim_c0 - 1))] = 1
    elif kind == "random":
        rng = np.random.default_rng(draw(st.integers(0, 2**16)))
        x = normal(rng, shape, F.dtype)
    note(f"x = {_array(x)}")
    return x


_NUMBERS = st.one_of(
    st.integers(-3, 6),
    st.sampled_from([2**31, 2**63, 10**30, 10**400]),
    st.sampled_from([-1.5, 0.5, 1e200, np.nan, np.inf, 1j, True, None]),
    st.sampled_from(["", "weight", "0", b"1"]),
)
_ARRAYS = st.builds(
    lambda shape, dtype, seed: np.random.default_rng(seed).integers(0, 4, size=shape).astype(dtype),
    st.lists(st.integers(0, 3), max_size=4).map(tuple),
    st.sampled_from(
        [bool, np.int8, np.uint64, np.float16, float, np.complex64, object, "U3", ">f8"]
    ),
    st.integers(0, 99),
)
# of those above
_SPARSE_DTYPES = [np.dtype(t) for t in (bool, np.int8, np.uint64, float, np.complex64)]
JUNK = st.one_of(
    _NUMBERS,
    _ARRAYS,
    st.lists(_ARRAYS, max_size=3),
    _ARRAYS.filter(lambda a: 0 < a.ndim <= 2 and a.dtype in _SPARSE_DTYPES).map(
        scipy.sparse.coo_array
    ),
    st.sampled_from(
        [scipy.sparse.eye_array(4, format=f) for f in ("csr", "csc", "bsr", "lil", "dia", "dok")]
    ),
    st.recursive(_NUMBERS, lambda inner: st.lists(inner, max_size=4), max_leaves=12),
    st.dictionaries(st.integers(0, 2), _NUMBERS, max_size=2),
    st.sets(st.integers(0, 3), max_size=3),
    st.sampled_from(
        [nx.path_graph(3), nx.DiGraph([(0, 1)]), nx.MultiGraph([(0, 0), (0, "a")]), int, len]
    ),
)
"""Arguments of every wrong shape and type, and some right ones among them."""


class KnownSections(NamedTuple):
    """A sheaf whose H^0 is known: an orthonormal basis of it, of shape (dim_c0, h0)."""

    sheaf: CellularSheaf
    sections: np.ndarray


@st.composite
def known_sections(draw, max_vertices=9):
    """Trees, cycles with holonomy, bundles on any graph: connections with known global sections.

    On a tree every value at the root extends; around a cycle what the holonomy fixes; in a bundle
    as on a constant sheaf. There are no loops: their maps would cancel to rounding.
    """
    kind = draw(st.sampled_from(["tree", "cycle", "bundle"]))
    n, d = draw(st.integers(1, max_vertices)), draw(st.integers(1, 3))
    dtype = complex if draw(st.booleans()) else float
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    if kind == "tree":
        edges = [(draw(st.integers(0, v - 1)), v) for v in range(1, n)]
    elif kind == "cycle":
        n = max(n, 2)
        edges = [(v, (v + 1) % n) for v in range(n)]
    else:
        edges = [
            e for e in draw(graphs(min_vertices=n, max_vertices=n)).edges.tolist() if e[0] != e[1]
        ]
    gauge = [np.linalg.qr(normal(rng, (d, d), dtype))[0] for _ in range(n)]
    transports = [gauge[u] @ gauge[v].conj().T for u, v in edges]
    fixed = np.eye(d)
    if kind == "cycle":
        moved = draw(st.integers(0, d))  # this many coordinates change sign around the cycle
        holonomy = np.diag([-1.0] * moved + [1.0] * (d - moved))
        u, v = edges[-1]
        transports[-1] = gauge[u] @ holonomy @ gauge[v].conj().T
        fixed = fixed[:, moved:]
    graph = nx.empty_graph(n)
    graph.add_edges_from(edges)
    blocks = []
    for component in nx.connected_components(graph):
        nothing = np.zeros((d, fixed.shape[1]))
        part = [gauge[v] @ fixed if v in component else nothing for v in range(n)]
        blocks.append(np.concatenate(part) / np.sqrt(len(component)))
    order = draw(st.permutations(range(len(edges)))) if edges else []
    flipped = [draw(st.booleans()) for _ in edges]
    ends = [edges[e][:: -1 if flipped[e] else 1] for e in order]
    turned = [transports[e].conj().T if flipped[e] else transports[e] for e in order]
    F = CellularSheaf.connection(ends, np.array(turned, dtype).reshape(-1, d, d), n_vertices=n)
    note(_Recipe(F, kind))
    return KnownSections(F, np.concatenate(blocks, axis=1))
