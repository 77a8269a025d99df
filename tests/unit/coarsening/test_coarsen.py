"""Coarsenings: lift and pool, options, inconsistent parts; the energy ledger and how it prints."""

import dataclasses
import itertools
import re

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition, gallery
from sheafcoarsen.coarsening import growth_of
from sheafcoarsen.modes import Internal, Oversampled, Principal
from tests.support import reference
from tests.support.errors import raises
from tests.support.helpers import assert_residual, assert_verified, eps_of, size, ties_allowed
from tests.support.strategies import (
    DTYPES,
    bases,
    cochains,
    mode_counts,
    partitions,
    sheaves,
    sheaves_with_partitions,
)
from tests.theory.test_theorems import coarsenings


def coarsen(*args, **kwargs):
    with ties_allowed():
        return sc.coarsen(*args, **kwargs)


def blocks_of(C):
    return [C.block(a) for a in range(C.partition.n_clusters)]


def assert_is_galerkin(operator, F, P, bases_, levels=1):
    """Compare every block of an operator on the coarse C^0 with R* L R of the reference."""
    expected, L = reference.galerkin(F, P, bases_), reference.laplacian(F)
    assert operator.shape == expected.shape
    fine = [reference.cluster_coordinates(F, P, a) for a in range(len(bases_))]
    local = [np.sqrt(size(L[np.ix_(c, c)])) for c in fine]
    at = [reference.coarse_coordinates(bases_, a) for a in range(len(bases_))]
    for (a, R_a), (b, R_b) in itertools.product(enumerate(bases_), repeat=2):
        error = (operator - expected)[np.ix_(at[a], at[b])]
        n = levels * max(*R_a.shape, *R_b.shape)
        assert_residual(error, R_a, R_b, local[a], local[b], n=n, eps=eps_of(F.dtype))


F = CellularSheaf.random(nx.path_graph(6), 2, 3, seed=3)
P = Partition([0, 0, 0, 1, 1, 1])
OTHER = sc.local_modes(F, Partition([0, 1, 1, 1, 1, 1]), 2)


@pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")
@given(coarsenings(), st.data())
def test_lift_and_pool_apply_r_and_its_adjoint(case, data):
    C, blocks = case
    R = reference.prolongation(C.fine, C.partition, blocks)
    x, z = data.draw(cochains(C.fine)), data.draw(cochains(C.sheaf))
    if data.draw(st.booleans(), label="complex"):
        x, z = (1 - 1j) * x, (2 + 1j) * z
    what = {"n": max((max(R_a.shape) for R_a in blocks), default=1), "eps": eps_of(C.fine.dtype)}
    assert C.lift(z).shape == (C.fine.dim_c0, *z.shape[1:])
    assert C.pool(x).shape == (C.sheaf.dim_c0, *x.shape[1:])
    assert_residual(C.lift(z) - R @ z, R, z, **what)
    assert_residual(C.pool(x) - R.conj().T @ x, R, x, **what)  # so <R z, x> = <z, R* x>


@given(sheaves_with_partitions(), st.data())
def test_precomputed_modes_give_the_same_coarsening(case, data):
    F, P = case
    rank, kind = data.draw(mode_counts(P)), data.draw(st.sampled_from(["internal", "principal"]))
    C = coarsen(F, P, rank, local_operator=kind)
    with ties_allowed():
        M = sc.local_modes(F, P, rank, kind)
    # an equal partition is accepted, and local_modes has warned about ties
    D = sc.coarsen(F, Partition(P.labels), M)
    assert D.modes is M
    assert C.modes.local_operator == kind
    np.testing.assert_array_equal(C.prolongation.data, M.prolongation.data)
    np.testing.assert_array_equal(D.prolongation.data, M.prolongation.data)
    assert C.sheaf.equals(D.sheaf)
    if not np.ndim(rank):
        E = coarsen(F, P, sc.ranks.fixed(rank), local_operator=kind)
        np.testing.assert_array_equal(E.prolongation.data, M.prolongation.data)


@pytest.mark.parametrize("damage", ["data", "indices", "indptr"])
def test_modes_raise_after_the_arrays_of_their_prolongation_were_replaced(damage):
    M = sc.local_modes(F, P, 2)
    other = getattr(M.prolongation, damage).copy()
    setattr(M.prolongation, damage, other)
    sc.coarsen(F, P, M)  # equal arrays are accepted
    other[-1] = np.nan if damage == "data" else 1
    with pytest.raises(ValueError, match="LocalModes: "):
        sc.coarsen(F, P, M)
    data = M.prolongation.data
    for values, error in (
        (data[:-1], "ValueError: LocalModes: R must hold a full block"),
        (data.astype(np.longdouble), "TypeError: R must be a csr_array of one of the four scalar"),
    ):
        M.prolongation.data = values
        with raises(error):
            sc.coarsen(F, P, M)


def test_a_coarsening_is_immutable_but_fields_can_be_replaced():
    C = sc.coarsen(F, P, 2)
    assert C.fine is F
    assert C.partition is P
    assert C.loops is True
    R, G = C.prolongation, C.sheaf
    for array in (R.data, R.indices, R.indptr, C.crossing_rows, C.ranks, G.edges, G.tail_data):
        assert not array.flags.writeable
    with pytest.raises(dataclasses.FrozenInstanceError):
        C.sheaf = F
    Q = Partition([1, 1, 1, 0, 0, 0])
    other = sc.coarsen(F, Q, C.ranks)
    for modes in (None, other.modes):
        D = dataclasses.replace(C, partition=Q, modes=modes, prolongation=other.prolongation)
        assert C.clusters.labels.tolist() == P.labels.tolist()
        assert D.clusters.labels.tolist() == Q.labels.tolist()  # cached values are not copied
        np.testing.assert_array_equal(D.block(0), other.block(0))
        assert D.sheaf is C.sheaf
    twice = CellularSheaf.random([(0, 1), (1, 0), (0, 0)], C.ranks, 1, seed=3)
    assert C.n_crossing_edges == 1
    assert dataclasses.replace(C, sheaf=twice).n_crossing_edges == 2


def test_the_repr_of_a_coarsening_lists_its_sizes():
    F = CellularSheaf.constant(nx.path_graph(6))
    text = " modes: 6 -> 2 vertices, dim C^0 6 -> 4, 5 -> 1 edges + 2 loops)"
    for operator in ("internal", "principal"):
        assert repr(sc.coarsen(F, P, 2, local_operator=operator)) == f"Coarsening({operator}{text}"
    assert "own basis" in repr(sc.coarsen(F, P, basis=[np.eye(3)] * 2))
    assert "5 -> 1 edges (compressed) + 2 loops" in repr(sc.coarsen(F, P, 2, compress=True))
    loopless = repr(sc.coarsen(F, P, 2, loops=False))
    assert loopless.endswith("+ 0 loops (omitted, so L is not R* L R))")


@pytest.mark.parametrize("dtype", DTYPES)
def test_basis_columns_are_accepted_up_to_an_overflow_limit_of_their_norm(dtype):
    n, limit = 400, 100 * np.sqrt(float(np.finfo(dtype).max)) / 1e4
    F, P = CellularSheaf.constant(nx.star_graph(n)), Partition([1] * n + [0])
    F = F.with_maps((2 * F.tail_data).astype(dtype), 0 * F.head_data.astype(dtype))
    column = np.full((n, 1), limit / 2 / np.sqrt(n))
    C = sc.coarsen(F, P, basis=[[[1.0]], 0.99 * column])
    assert np.isfinite(sc.laplacian(C.sheaf).toarray()).all()
    with pytest.raises(ValueError, match=r"`basis\[1\]` has entries up to .*rescale the basis"):
        sc.coarsen(F, P, basis=[[[1.0]], 1.01 * column])


@pytest.mark.parametrize("operator", ["internal", "oversampled"])
def test_a_coarse_sheaf_of_dimension_zero_warns(operator):
    grid = nx.grid_2d_graph(6, 6)
    noisy, exact = (gallery.bundle(grid, 2, noise=noise, seed=3) for noise in (0.1, 0))
    P, kernel = sc.select(noisy, 4), sc.ranks.kernel()
    modes = sc.local_modes(noisy, P, kernel, operator)
    with pytest.warns(sc.SingularProblemWarning, match="none of 72 dimensions") as caught:
        assert sc.coarsen(noisy, P, kernel, local_operator=operator).sheaf.dim_c0 == 0
    with pytest.warns(sc.SingularProblemWarning) as again:
        assert sc.coarsen(noisy, P, modes).sheaf.dim_c0 == 0
    assert caught[0].filename == again[0].filename == __file__
    assert [str(w.message) for w in again] == [str(w.message) for w in caught]
    (tau,) = re.findall(r"ranks\.below\((.*?)\)", str(caught[0].message))
    more = 1.01 * float(tau)  # the message shows three digits
    assert (sc.local_modes(noisy, P, sc.ranks.below(more), operator).ranks > 0).all()
    assert sc.coarsen(exact, P, kernel, local_operator=operator).sheaf.dim_c0 > 0  # no warning
    assert sc.coarsen(exact, P, sc.local_modes(exact, P, kernel, operator)).sheaf.dim_c0 > 0
    assert sc.coarsen(noisy, P, 0, local_operator=operator).sheaf.dim_c0 == 0
    if operator == "internal":
        assert sc.coarsen(noisy, P, sc.local_modes(noisy, P, 0)).sheaf.dim_c0 == 0


def test_a_local_operator_that_contradicts_precomputed_modes_or_a_basis_raises():
    M = sc.local_modes(F, P, 2, Oversampled(rings=2, target=0.5))
    for operator in ("internal", "oversampled", Internal(), M.operator):
        assert sc.coarsen(F, P, M, local_operator=operator).modes is M
    for operator in ("principal", Principal(), Oversampled(rings=3)):
        with pytest.raises(ValueError, match="contradicts the LocalModes in `rank`, which are 'o"):
            sc.coarsen(F, P, M, local_operator=operator)
    given = {"principal": "principal", Principal(): "principal", Oversampled(): "oversampled"}
    for operator, name in given.items():
        with raises(f"ValueError: `local_operator` = '{name}' selects modes, but `basis` replaces"):
            sc.coarsen(F, P, basis=[np.eye(6, 2)] * 2, local_operator=operator)


def test_a_coarsening_can_be_constructed_from_its_parts():
    """A writeable prolongation is copied."""
    C = sc.coarsen(F, P, 2)
    R = C.prolongation.copy()
    parts = [sc.Coarsening(F, P, None, A, C.sheaf, C.crossing_rows) for A in (C.prolongation, R)]
    assert parts[0].prolongation is C.prolongation
    R.data[:] = np.nan
    for D in parts:
        assert_verified(D)
        np.testing.assert_array_equal(D.block(1), C.block(1))
        assert not D.prolongation.data.flags.writeable


def test_inconsistent_parts_raise():
    C, other = sc.coarsen(F, P, 2), sc.local_modes(F, P, 3)
    swapped = C.prolongation.copy()
    swapped.data = swapped.data.astype(">f8")
    for fields, error in (
        ({"fine": P}, "TypeError: must be a CellularSheaf, got Partition"),
        ({"sheaf": None}, "TypeError: must be a CellularSheaf, got NoneType"),
        ({"partition": None}, "TypeError: `P` must be a Partition, got NoneType"),
        ({"partition": Partition([0, 1])}, "ValueError: `P` must label the sheaf's 6 vertices"),
        ({"sheaf": F}, "ValueError: has 2 clusters, but the coarse sheaf has 6 vertices"),
        ({"modes": 3}, "TypeError: `modes` must be LocalModes or None, got int"),
        ({"modes": other}, "ValueError: ranks of its modes do not match"),
        ({"modes": OTHER}, "ValueError: its modes belong to another partition"),
        ({"prolongation": np.eye(12, 4)}, "TypeError: R must be a csr_array"),
        ({"prolongation": swapped}, "TypeError: R must be a csr_array of one"),
        ({"prolongation": other.prolongation}, "ValueError: R must hold a full bloc"),
        ({"loops": "no"}, "TypeError: `loops` must be True or False, got 'no'"),
    ):
        with raises(error):
            dataclasses.replace(C, **fields)


KARATE = nx.karate_club_graph()


@given(sheaves(), st.data())
def test_quotient_weights_match_networkx(F, data):
    P = data.draw(partitions(F.n_vertices))
    weights = np.random.default_rng(3).standard_normal(F.n_edges)
    C = coarsen(F, P, 1)
    Q = C.quotient(weights)
    assert list(Q.nodes) == list(range(P.n_clusters))
    names = range(F.n_vertices) if F.vertex_labels is None else F.vertex_labels
    ends = np.sort(P.labels[F.edges], axis=1)
    for a, node in Q.nodes(data=True):
        assert node["members"] == tuple(names[v] for v in P.cluster(a))
        assert (node["size"], node["dim"]) == (P.sizes[a], C.ranks[a])
        assert abs(node["inside"] - weights[(ends == a).all(axis=1)].sum()) < 1e-13
        for b in range(a + 1, P.n_clusters):
            across = (ends == [a, b]).all(axis=1)
            assert Q.has_edge(a, b) == across.any()
            if across.any():
                assert abs(Q.edges[a, b]["weight"] - weights[across].sum()) < 1e-13
                assert Q.edges[a, b]["count"] == across.sum()
    assert list(Q.edges) == sorted(Q.edges)


def test_quotient_weights_are_1_or_those_of_the_sheaf():
    club = CellularSheaf.constant(KARATE)
    C = sc.coarsen(club, sc.select(club, 5), rank=1)
    weight = [data["weight"] for *_, data in KARATE.edges(data=True)]
    plain, by_maps, given_ones = (C.quotient(*w) for w in ((), ("sheaf",), (weight,)))
    assert nx.utils.graphs_equal(plain, C.quotient(np.ones(club.n_edges)))
    for a, b, w in given_ones.edges(data="weight"):
        assert by_maps.edges[a, b]["weight"] == pytest.approx(w, rel=1e-14)
    assert any(w != plain.edges[a, b]["weight"] for a, b, w in given_ones.edges(data="weight"))
    maps = np.reshape([1e60, 1e-60], (2, 1, 1))
    Q = coarsen(CellularSheaf([[0, 1], [1, 2]], maps, maps), Partition([0, 1, 2]), 1)
    for b, w in ((0, 1e120), (2, 1e-120)):  # squares of these weights are out of range
        assert Q.quotient("sheaf").edges[1, b]["weight"] == pytest.approx(w, rel=1e-14, abs=0)


@pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")
def test_only_a_larger_coarse_laplacian_is_noted_with_counts_and_a_suggestion():
    ring = nx.circulant_graph(40, [1, 7, 11])
    F, P = CellularSheaf.random(ring, 1, 1, seed=3), Partition(np.arange(40) // 4)
    C = sc.coarsen(F, P, 4)
    fine, coarse = (sc.laplacian(G).nnz for G in (F, C.sheaf))
    assert coarse > fine
    note = growth_of(C)
    assert f"{coarse:,} entries, the fine one {fine:,}" in note
    for text in (repr(C), C._repr_html_()):
        assert note in text
    for remedy in ("fewer modes", "larger clusters"):
        assert remedy in note
    hub = CellularSheaf.constant(nx.star_graph(40), 2)  # its arms meet in the middle alone
    tens, same = Partition(np.arange(41) // 10), Partition(np.arange(41))
    twenties = Partition(np.arange(40) // 20)
    for G, Q, rank in ((F, P, 1), (F, twenties, 4), (hub, tens, 1), (hub, tens, 2), (hub, same, 2)):
        D = sc.coarsen(G, Q, rank)
        assert sc.laplacian(D.sheaf).nnz <= sc.laplacian(G).nnz
        assert growth_of(D) is None
        assert "Laplacian" not in repr(D) + D._repr_html_()


# ---------------------------------------------------------------- a user's basis
PATH, PAIR_AND_ONE = CellularSheaf.constant(nx.path_graph(3)), Partition([0, 1, 0])


def assert_prolongation(R, F, n_columns, dtype):
    """Assert that R is a canonical, read-only csr matrix."""
    assert isinstance(R, scipy.sparse.csr_array)
    assert (R.shape, R.dtype) == ((F.dim_c0, n_columns), dtype)
    for array in (R.data, R.indices, R.indptr):
        assert not array.flags.writeable
    assert R.has_canonical_format
    for lo, hi in itertools.pairwise(R.indptr):  # each row of a block is stored completely
        assert (np.diff(R.indices[lo:hi]) == 1).all()


@given(sheaves_with_partitions(), st.data())
def test_prolongation_of_a_user_basis_contains_its_blocks(case, data):
    F, P = case
    basis = data.draw(bases(F, P))
    C = sc.coarsen(F, P, basis=basis)
    dtype = np.result_type(F.dtype, *basis)
    assert C.modes is None
    assert (C.sheaf.dtype, C.ranks.tolist()) == (dtype, [R_a.shape[1] for R_a in basis])
    assert_prolongation(C.prolongation, F, sum(R_a.shape[1] for R_a in basis), dtype)
    np.testing.assert_array_equal(C.prolongation.toarray(), reference.prolongation(F, P, basis))
    for a, R_a in enumerate(basis):
        np.testing.assert_array_equal(C.block(a), R_a.astype(dtype), strict=True)


def test_blocks_may_be_lists_or_integers_or_object_arrays_and_are_copied():
    blocks = np.empty(2, object)
    blocks[:] = [np.array([[1.0], [2.0]]), np.array([[3]], np.float32)]
    accepted = (blocks, list(blocks), tuple(blocks), [[[1], [2]], [[3]]])
    found = [sc.coarsen(PATH, PAIR_AND_ONE, basis=basis).prolongation for basis in accepted]
    blocks[0][:] = 5
    for R in found:
        assert (R.dtype, R.toarray().tolist()) == (float, [[1, 0], [0, 3], [2, 0]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("given_dtype", [*DTYPES, int])
def test_user_blocks_are_cast_to_the_precision_of_the_sheaf(dtype, given_dtype):
    F = CellularSheaf.random(nx.path_graph(3), 1, 1, seed=3, dtype=dtype)
    basis = [np.ones((2, 1), given_dtype), np.ones((1, 1), np.float32)]
    C = sc.coarsen(F, PAIR_AND_ONE, basis=basis)
    is_complex = np.iscomplexobj(basis[0]) or F.dtype.kind == "c"
    expected = np.result_type(F.dtype, np.complex64) if is_complex else F.dtype
    assert C.prolongation.dtype == C.sheaf.dtype == expected


# ---------------------------------------------------------------- the energy ledger
def test_the_truncation_bound_can_be_zero_or_infinite_or_attained():
    F, P = CellularSheaf.constant(nx.path_graph(4)), Partition([0, 0, 1, 1])
    # the discarded vector of cluster 0, of eigenvalue 2, and half of that of cluster 1
    x = np.array([1.0, -1.0, 0.0, 1.0])
    E = sc.energy_ledger(sc.coarsen(F, P, 1), x)
    assert_residual(E.truncation_bound - [2.0, 0.5], 2.0, n=2)  # E_a = 4 and 1
    assert_residual(E.discarded_norm2 - [2.0, 0.5], 2.0, n=2)
    assert sc.energy_ledger(sc.coarsen(F, P, 2), x).truncation_bound.tolist() == [0, 0]
    zero_gap = coarsen(F, Partition([0, 1, 0, 1]), [1, 2])  # cluster 0 contains no edge
    assert sc.energy_ledger(zero_gap, x).truncation_bound.tolist() == [np.inf, 0]
    for dtype in (np.float64, np.float32):  # only one of two sections is retained
        rounding = []
        for seed in range(8):
            F = gallery.bundle(nx.cycle_graph(6), 2, seed=seed)
            F = F.with_maps(F.tail_data.astype(dtype), F.head_data.astype(dtype))
            sections = coarsen(F, Partition([0] * 6), 1)
            assert sc.energy_ledger(sections, np.ones(12)).truncation_bound.tolist() == [np.inf]
            rounding.append(sections.modes.next_eigenvalues[0])
        assert max(rounding) > 0  # the processor decides for which seeds


def test_norms_in_single_precision_are_summed_in_double_precision():
    x = np.full((100_000, 2), 0.1, np.float32)
    P = Partition(np.zeros(len(x), int))
    empty = CellularSheaf.from_flat([], *np.zeros((2, 0), np.float32), [1] * len(x), [])
    E = sc.energy_ledger(coarsen(empty, P, 0), x)
    exact = len(x) * float(x[0, 0]) ** 2
    assert_residual(E.fine_norm2 - exact, exact, n=2, eps=np.finfo(np.float32).eps)


def test_the_fine_energy_is_computed_independently_of_the_lines():
    C = sc.coarsen(CellularSheaf.constant(nx.path_graph(6)), Partition([0, 0, 0, 1, 1, 1]), 2)
    x = np.random.default_rng(5).integers(-9, 10, size=(6, 60))
    E = sc.energy_ledger(C, x)
    assert E.fine_energy.tolist() == (np.diff(x, axis=0) ** 2).sum(axis=0).tolist()  # integers
    assert (sum(E.lines.values()) != E.fine_energy).any()  # the lines have rounding errors


@given(sheaves_with_partitions(), st.data())
def test_a_basis_that_is_not_orthonormal_raises_with_a_suggestion(case, data):
    F, P = case
    basis = data.draw(bases(F, P, kinds=["orthonormal"]))
    wide = [a for a, R_a in enumerate(basis) if R_a.shape[1]]
    assume(wide)
    a = data.draw(st.sampled_from(wide))
    basis[a] = basis[a] * F.dtype.type(1 + data.draw(st.sampled_from([1e-2, 1.0, 1e3, -1.0])))
    x = np.zeros(F.dim_c0)
    remedy = re.escape("orthonormalize each block of the basis, e.g. by numpy.linalg.qr(R_a)[0]")
    with pytest.raises(ValueError, match=rf"not the identity in cluster {a} .*{remedy}"):
        sc.energy_ledger(sc.coarsen(F, P, basis=basis), x)
    repaired = [
        np.linalg.qr(R_a)[0] if R_a.any() else np.eye(*R_a.shape, dtype=F.dtype) for R_a in basis
    ]
    assert sc.energy_ledger(sc.coarsen(F, P, basis=repaired), x).fine_energy == 0


def test_the_limit_of_orthonormality_is_that_of_rounding():
    F, P = CellularSheaf.constant(nx.path_graph(9)), Partition([0] * 9)
    limit = 30 * 9 * 9 / 6 * np.finfo(float).eps  # norm((1 + t)^2 I - I) <= 30 n eps norm(I)^2
    just, beyond = (sc.coarsen(F, P, basis=[(1 + t * limit) * np.eye(9)]) for t in (0.9, 1.1))
    assert sc.energy_ledger(just, np.zeros(9))
    with pytest.raises(ValueError, match="requires orthonormal columns"):
        sc.energy_ledger(beyond, np.zeros(9))


def test_the_ledger_prints_its_lines_or_their_sums_over_columns():
    C = sc.coarsen(CellularSheaf.constant(nx.path_graph(4)), Partition([0, 0, 1, 1]), 1)
    E = sc.energy_ledger(C, [0.0, 1.0, 2.0, 4.0])
    names = [line[:26].strip() for line in repr(E).splitlines()]
    fine = ["fine energy", "kept (Galerkin) energy", "closure", "norm(x)^2", "of it discarded"]
    assert names == ["EnergyLedger", *E.lines, *fine]
    assert "6.25" in repr(E)
    X = np.random.default_rng(0).standard_normal((4, 9))
    E = sc.energy_ledger(C, X)
    E = dataclasses.replace(E, fine_energy=E.fine_energy * [*[1.0] * 8, 2.0])
    assert E.closure.min() < -0.4
    text = repr(E).splitlines()
    assert text[0] == "EnergyLedger: sums over 9 columns"
    shown = {line[:25].strip(): float(line[25:]) for line in text[1:]}
    assert shown["fine energy"] == pytest.approx(E.fine_energy.sum(), rel=1e-5)
    for name, value in E.lines.items():
        assert shown[name] == pytest.approx(value.sum(), rel=1e-5)
    assert shown["largest closure"] == pytest.approx(abs(E.closure).max(), rel=1e-5)
    assert shown["norm(x)^2"] == pytest.approx(np.linalg.norm(X) ** 2, rel=1e-5)
    lost = np.linalg.norm(X - C.lift(C.pool(X))) ** 2
    assert shown["of it discarded"] == pytest.approx(lost, rel=1e-5)
    assert "sums over 9 columns" in E._repr_html_()
    E = sc.energy_ledger(C, X[:, :2])
    for name, value in (*E.lines.items(), ("fine energy", E.fine_energy)):
        cells = "".join(f"<td>{v:.4g}</td>" for v in value)
        assert f"<th>{name}</th>{cells}" in E._repr_html_()
