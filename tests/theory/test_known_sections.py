"""Trees, cycles and bundles of known H^0, through one and two levels of exact coarsening."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from tests.support import reference
from tests.support.helpers import (
    assert_residual,
    dense_kernel,
    same_subspace,
    singular_values,
    size,
)
from tests.support.strategies import known_sections, partitions

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def maps(sheaf):
    """Return all map entries, whose norm rounding is relative to, since loop maps may cancel."""
    return np.concatenate([sheaf.tail_data, sheaf.head_data, [np.finfo(float).tiny]])


def nullity(sheaf, scale):
    """Return dim H^0, where zero is relative to the fine coboundary."""
    sigma = singular_values(reference.coboundary(sheaf))
    return sheaf.dim_c0 - int(
        (sigma > 30 * max(sheaf.dim_c0, 1) * np.finfo(float).eps * scale).sum()
    )


@given(known_sections())
def test_known_sections_are_an_orthonormal_basis_of_the_kernel(case):
    F, Z = case
    assert_residual(reference.coboundary(F) @ Z, maps(F), Z, n=F.dim_c0)
    assert_residual(Z.conj().T @ Z - np.eye(Z.shape[1]), n=F.dim_c0)
    assert nullity(F, size(maps(F))) == Z.shape[1]


@pytest.mark.filterwarnings("ignore::sheafcoarsen.SingularProblemWarning")
@given(known_sections(), st.data())
def test_kernel_modes_preserve_global_sections_on_every_level(case, data):
    """By fact-2 and prop:kernel_preservation_loopless, repeated coarsening computes H^0."""
    F, Z = case
    scale = size(maps(F))
    sheaf, R = F, np.eye(F.dim_c0)
    for _ in range(2):
        C = sc.coarsen(sheaf, data.draw(partitions(sheaf.n_vertices)), sc.ranks.kernel())
        assert C.sheaf.n_edges == C.n_crossing_edges
        sheaf, R = C.sheaf, R @ C.prolongation.toarray()
        assert nullity(sheaf, scale) == Z.shape[1]
        assert_residual(Z - R @ (R.conj().T @ Z), Z, n=F.dim_c0)
    sigma = singular_values(reference.coboundary(sheaf))
    if Z.shape[1] and (sigma <= 30 * F.dim_c0 * np.finfo(float).eps * scale).all():
        lifted = R  # all remaining vectors are sections
    elif Z.shape[1]:
        lifted = R @ dense_kernel(reference.coboundary(sheaf))
    else:
        return
    assert same_subspace(lifted, Z, condition=1e3)


@given(known_sections(), st.data(), st.integers(0, 3))
def test_additional_modes_with_loops_also_preserve_global_sections(case, data, more):
    F, Z = case
    P = data.draw(partitions(F.n_vertices))
    kernels = sc.local_modes(F, P, sc.ranks.kernel()).ranks
    C = sc.coarsen(F, P, kernels + more)
    R = C.prolongation.toarray()
    assert_residual(Z - R @ (R.conj().T @ Z), Z, n=F.dim_c0, eps=1e3 * np.finfo(float).eps)
    L = reference.laplacian(C.sheaf)
    pooled = C.pool(Z)
    assert_residual(L @ pooled, maps(F), maps(F), pooled, n=F.dim_c0, eps=1e3 * np.finfo(float).eps)


def test_the_principal_operator_loses_global_sections():
    F = sc.gallery.cycle(12, 0.0)
    P = sc.Partition(np.arange(12) // 4)
    kept = {}
    for operator in ("internal", "principal"):
        C = sc.coarsen(F, P, 2, local_operator=operator)
        kept[operator] = np.linalg.eigvalsh(sc.laplacian(C.sheaf).toarray())[:2]
    assert_residual(kept["internal"], reference.laplacian(F), n=12)
    assert (kept["principal"] > 0.01).all()
