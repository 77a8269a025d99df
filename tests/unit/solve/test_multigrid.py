import itertools

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.sheaf import unit_sheaf
from sheafcoarsen.solve import Pencil, multigrid
from sheafcoarsen.solve.conjugate_gradients import conjugate_gradients
from sheafcoarsen.solve.multigrid import Multigrid
from tests.support.helpers import assert_residual
from tests.unit.solve.conftest import SHEAVES

pytestmark = pytest.mark.usefixtures("several_levels")


@pytest.mark.parametrize("name", SHEAVES)
def test_level_operators_are_galerkin_products(name):
    F = SHEAVES[name]
    M = Multigrid(unit_sheaf(F)[0])
    assert len(M.dims) > 1
    L = sc.laplacian(unit_sheaf(F)[0]).toarray()
    roots = M.roots.toarray()
    first = M.operators[0].toarray()
    assert_residual(first - roots.conj().T @ L @ roots, roots, L, roots, n=10)
    for A, P, coarse in zip(M.operators, M.prolongations, M.operators[1:], strict=False):
        A, P, coarse = A.toarray(), P.toarray(), coarse.toarray()
        assert_residual(coarse - P.conj().T @ A @ P, P, A, P, n=100)
        assert np.linalg.eigvalsh(coarse)[-1] < 20


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_the_convergence_rate_does_not_depend_on_the_size(noise):
    rates = []
    for side in (8, 16):
        F = sc.gallery.bundle(nx.grid_2d_graph(side, side), 2, noise=noise, seed=0)
        L = sc.laplacian(F)
        cycle = Multigrid(F).cycle
        x = np.random.default_rng(1).standard_normal((F.dim_c0, 1))
        sizes = []
        for _ in range(6):
            x = x - cycle(L @ x)
            sizes.append(sc.energy(F, x)[0])
        rates.append((sizes[-1] / sizes[0]) ** (1 / 10))
    assert max(rates) < 0.6


def test_directions_that_no_map_sees_are_counted_and_mapped_to_zero():
    assert Multigrid(SHEAVES["graph"]).unseen == 0
    assert Multigrid(SHEAVES["isolated vertices"]).unseen == 2 * 19
    F = SHEAVES["isolated vertices"]
    y = Multigrid(F).cycle(np.ones((F.dim_c0, 1)))
    assert not y[-38:].any()


@pytest.mark.parametrize("name", SHEAVES)
def test_a_kernel_from_the_coarsest_level_is_that_of_the_laplacian(name):
    F = unit_sheaf(SHEAVES[name])[0]
    M = Multigrid(F)
    h0 = sc.global_sections(F).h0
    X = M.kernel()
    assert M.holds_kernel or X is None
    if X is not None:
        assert X.shape == (F.dim_c0, h0)
        delta = sc.coboundary(F)
        assert_residual(delta @ X, delta, X, n=F.dim_c1)
        assert_residual(X.conj().T @ X - np.eye(h0), X, X, n=F.dim_c0)
        assert (M.lowest < 1e-8) == (h0 > 0)
    else:
        assert name not in {"graph", "two components", "consistent bundle", "noisy bundle"}


@pytest.mark.large
def test_a_hub_does_not_make_the_next_level_dense():
    """Smoothing P would join all clusters through the centre of the star."""
    F = unit_sheaf(sc.CellularSheaf.constant(nx.star_graph(12_000)))[0]
    assert Multigrid(F).operators[1].nnz < F.n_vertices


@pytest.mark.parametrize("name", ["noisy bundle", "complex connection"])
def test_the_last_level_is_factored_if_coarsening_stalls(name, monkeypatch):
    monkeypatch.setattr(Multigrid, "_coarsened", lambda *_: None)
    monkeypatch.setattr(multigrid, "LARGEST_DENSE", 30)
    F = SHEAVES[name]
    M = Multigrid(F)
    assert M.dims == [F.dim_c0]
    assert M.kernel() is None  # factors do not determine the kernel
    b = np.random.default_rng(3).standard_normal((F.dim_c0, 1)).astype(F.dtype)
    error = sc.laplacian(F) @ M.cycle(b) - b
    assert np.linalg.norm(error) <= 1e-2 * np.linalg.norm(b)


def test_the_cycle_of_the_eigensolver_needs_neither_coarsenings_nor_the_finest_operator():
    F = SHEAVES["consistent bundle"]
    M, X = Pencil(F).cycle, np.random.default_rng(4).standard_normal((F.dim_c0, 3))
    assert (M.coarsenings, M.operators[0]) == ([], None)
    assert np.array_equal(M.cycle(X), Multigrid(F).cycle(X))
    assert M.operators[1].shape[0] == M.dims[1]
    assert M.kernel() is not None


@pytest.mark.large
@pytest.mark.parametrize("spread", [0.0, 1.0, 4.0])
def test_chains_with_few_closures_take_as_few_iterations_as_grids(spread, monkeypatch):
    """Chains of different length have different stiffness, so clusters have over d low modes."""
    monkeypatch.undo()
    rng, edges, n = np.random.default_rng(0), [], 250  # crossings, as in a pose graph
    for u, v in nx.random_regular_graph(3, n, seed=0).edges:
        chain = [u, *range(n, n + int(rng.integers(1, 60))), v]
        edges += itertools.pairwise(chain)
        n += len(chain) - 2
    F = sc.gallery.bundle(np.array(edges), 2, noise=0.01, seed=0)
    weights = np.exp(spread / 2 * rng.standard_normal(F.n_edges)).repeat(4)
    F = F.with_maps(weights * F.tail_data, weights * F.head_data)
    solve = sc.Solver(F, method="multigrid", fixed=[0])
    solve(np.random.default_rng(1).standard_normal(F.dim_c0))
    assert solve.iterations <= 16


def test_clusters_keep_d_modes_if_these_suffice():
    F = unit_sheaf(sc.gallery.bundle(nx.grid_2d_graph(40, 40), 2, noise=0.1, seed=0))[0]
    M = Multigrid(F)
    assert M.dims[1] == 2 * M.coarsenings[0].sheaf.n_vertices


def test_zero_modes_discarded_by_some_clusters_are_detected():
    """Clusters of the bundle keep their sections; those with maps from dimension 3 to 1 do not."""
    many = sc.CellularSheaf.random(nx.random_regular_graph(4, 60, seed=0), 3, 1, seed=0)
    F = sc.disjoint_union([SHEAVES["consistent bundle"], many])[0]
    M = Multigrid(unit_sheaf(F)[0])
    assert M.unseen == 0
    discarded = M.coarsenings[0].modes.next_eigenvalues < 1e-6
    assert discarded.any()
    assert not discarded.all()
    assert not M.holds_kernel
    assert M.kernel() is None


def test_components_inside_clusters_are_solved_with_global_sections(monkeypatch):
    """Each component is one cluster, so the coarsest level does not determine the kernel."""
    monkeypatch.undo()
    F = sc.disjoint_union([sc.CellularSheaf.constant(nx.cycle_graph(10))] * 60)[0]
    assert Multigrid(unit_sheaf(F)[0]).kernel() is None
    b = np.random.default_rng(0).standard_normal(600)
    b -= np.repeat(b.reshape(60, 10).mean(axis=1), 10)
    x = sc.Solver(F, method="multigrid")(b)
    assert abs(x.reshape(60, 10).sum(axis=1)).max() <= 1e-8 * np.linalg.norm(x)
    assert np.linalg.norm(sc.laplacian(F) @ x - b) <= 1e-8 * np.linalg.norm(b)


# ---------------------------------------------------------------- conjugate gradients
RNG = np.random.default_rng(1)


@pytest.mark.parametrize("dtype", [float, complex])
def test_converged_columns_are_no_longer_iterated(dtype):
    turn = 1j if dtype is complex else 0
    Q = np.linalg.qr(RNG.standard_normal((80, 80)) + turn * RNG.standard_normal((80, 80)))[0]
    A = (Q * np.linspace(0.01, 1, 80)) @ Q.conj().T
    b = RNG.standard_normal((80, 3)) * (1 + turn)
    b[:, 1] = A @ Q[:, 5]  # an eigenvector takes one step
    b[:, 2] = 0
    widths, target = [], 1e-10 * np.linalg.norm(b, axis=0)
    found = conjugate_gradients(
        lambda X: widths.append(X.shape[1]) or A @ X, lambda R: R, b, np.zeros_like(b), target
    )
    assert (np.linalg.norm(b - A @ found.x, axis=0) <= 2 * target).all()
    assert widths[1:4] == [2, 1, 1]  # widths[0] is that of the first residual
    assert not found.x[:, 2].any()


def test_a_few_small_eigenvalues_do_not_stall_the_iteration():
    """After a few small eigenvalues are found, the recursion does not find them again."""
    d = np.append(np.geomspace(1e-6, 1e-3, 12), np.linspace(0.1, 1.0, 400))[:, None]
    b = np.random.default_rng(3).standard_normal((412, 1))
    target = 1e-9 * np.linalg.norm(b, axis=0)
    found = conjugate_gradients(lambda X: d * X, lambda R: R, b, 0 * b, target)
    assert found.steps < 300
    assert found.residuals[0] <= target


@pytest.mark.parametrize("size", [1e8, 1e12])
def test_the_target_is_reached_from_a_distant_start(size):
    """The residual of the recursion then has the rounding errors of the large first residual."""
    d = np.linspace(0.5, 1, 60)[:, None]
    b = RNG.standard_normal((60, 2))
    target = 1e-12 * np.linalg.norm(b, axis=0)
    found = conjugate_gradients(lambda X: d * X, lambda R: R, b, size + b, target)
    assert (np.linalg.norm(b - d * found.x, axis=0) <= target).all()


@pytest.mark.parametrize(("part", "seen"), [(1.0, 1.0), (0.1, 1.0), (0.1, 0.0)])
def test_kernel_components_do_not_grow(part, seen):
    """In the second step, p is in the kernel of A or the preconditioner returns 0."""
    d, b, inverse = np.array([[1.0], [0.0]]), np.array([[1.0], [part]]), np.array([[1.0], [seen]])
    found = conjugate_gradients(lambda X: d * X, lambda R: inverse * R, b, 0 * b, np.zeros(1))
    assert np.array_equal(found.residuals, np.linalg.norm(b - d * found.x, axis=0))
    assert found.steps < 10
    assert abs(found.x).max() <= 2


def test_stagnating_iterations_stop(monkeypatch):
    """The residuals are those of x even if the maximum number of steps is reached."""
    b = RNG.standard_normal((200, 1))
    for least, target, most in ((0.1, 1e-18, 200), (1e-16, 0.0, 10_000)):
        d = np.geomspace(least, 1, 200)[:, None]
        found = conjugate_gradients(lambda X, d=d: d * X, lambda R: R, b, 0 * b, np.array([target]))
        assert found.steps < most
        assert np.array_equal(found.residuals, np.linalg.norm(b - d * found.x, axis=0))
        assert least < 0.1 or found.residuals < 1e-14
    monkeypatch.setattr("sheafcoarsen.solve.conjugate_gradients.MOST_STEPS", 20)
    found = conjugate_gradients(lambda X: X, lambda R: R / (1 + d), b, b + 1e12, np.zeros(1))
    assert found.steps == 20
    assert np.array_equal(found.residuals, np.linalg.norm(b - found.x, axis=0))


def test_the_preconditioner_may_change_between_steps():
    """With the formula for beta of a constant preconditioner, it would take 737 steps."""
    d, turn = np.geomspace(1e-4, 1, 400)[:, None], iter(range(1000))
    b = np.random.default_rng(0).standard_normal((400, 2))

    def changing(R):
        return R / (d * (1 + 0.5 * np.sin(np.arange(400)[:, None] * next(turn))))

    target = 1e-10 * np.linalg.norm(b, axis=0)
    assert conjugate_gradients(lambda X: d * X, changing, b, 0 * b, target).steps < 60


def test_a_residual_orthogonal_to_all_steps_ends_the_iteration():
    """The residual lies in the kernel of A, but the preconditioned residual does not."""
    A, step = np.diag([2.0, 3.0, 0.0]), np.array([[1.0], [0.0], [0.0]])
    b, zero = np.array([[0.0], [0.0], [1.0]]), np.zeros((3, 1))
    found = conjugate_gradients(A.__matmul__, lambda R: step, b, zero, np.array([1e-3]))
    assert (found.x.tolist(), found.residuals.tolist()) == (zero.tolist(), [1.0])
