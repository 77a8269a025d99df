"""Energy ledger and verification of a stored coarsening, part by part."""

from typing import Literal

import numpy as np
import numpy.typing as npt

from sheafcoarsen._kernels.dense import power_of_two
from sheafcoarsen._support import (
    RESIDUAL_LIMIT,
    cochain,
    eps_of,
    physical_memory,
    whole_number,
)
from sheafcoarsen.coarsening import EnergyLedger, ledger_over
from sheafcoarsen.distributed._open_store import SheafStore, amount
from sheafcoarsen.distributed.streaming_operators import (
    blocks_of,
    cluster_values,
    energy_of,
    labels_of,
    laplacian_operator,
    lifted,
    parts_of,
    pooled,
)
from sheafcoarsen.operators import as_columns
from sheafcoarsen.verification import Check, Judged, Verification, judged

COCHAINS = 12
"""Fine cochains that are in memory together for each probe of `verified`."""


def ledger_of(sheaf: SheafStore, fine: SheafStore, x: npt.ArrayLike) -> EnergyLedger:
    """Account for the energy of a fine cochain, reading the fine store once."""
    x = cochain(fine, x, "x", " of the fine sheaf")
    gaps = None
    if sheaf.header.local_operator == "internal":
        real = np.zeros(0, fine.dtype).real.dtype
        following, sizes = (
            cluster_values(sheaf, name, real) for name in ("next_eigenvalues", "operator_norms")
        )
        gaps = following, sizes, fine.dtype
    return ledger_over(
        ((part.sheaf, part.vertices, part.rows) for part in parts_of(fine)),
        labels_of(sheaf, fine.n_vertices),
        fine.vertex_dims().astype(np.int64),
        x,
        lifted(sheaf, fine, pooled(sheaf, fine, as_columns(x))),
        gaps,
    )


def verified(sheaf: SheafStore, fine: SheafStore, probes: int, seed: int) -> Verification:
    """Check the statements about R and the coarse sheaf on random cochains, streamed."""
    probes = whole_number("probes", probes, at_least=1)
    column = COCHAINS * fine.dim_c0 * fine.dtype.itemsize
    most = int(physical_memory() / max(column, 1))
    if probes > most:
        raise ValueError(
            f"`probes` = {probes} random cochains take {amount(probes * column)}, but this machine "
            f"has {amount(physical_memory())}: give at most {most}"
        )
    rng = np.random.default_rng(whole_number("seed", seed, at_least=0))
    unit = power_of_two(fine.largest_entry)
    sheaf, fine = InUnits(sheaf, unit), InUnits(fine, unit)
    Z, X = random_columns(rng, sheaf, probes), random_columns(rng, fine, probes)
    eps = eps_of(fine.dtype)
    name, label = "columns of R are orthonormal", "section-2"
    if sheaf.header.local_operator is None:
        why = "a basis of your own need not be orthonormal"
        checks = [Check(name, label, None, RESIDUAL_LIMIT, True, why, None)]
    else:
        checks = [check(name, label, *isometry(sheaf, fine, eps))]
    n = largest_block(sheaf, fine)
    lift = lifted(sheaf, fine, Z)
    L, L_coarse = laplacian_operator(fine), laplacian_operator(sheaf)
    image = L @ lift
    galerkin, coarse = pooled(sheaf, fine, image), L_coarse @ Z
    bound, sizes = bound_of(fine), np.linalg.norm(lift, axis=0)
    tiny = np.finfo(float).tiny
    stretch = sizes / np.maximum(np.linalg.norm(Z, axis=0), tiny)  # norm(R z) / norm(z)
    pairing = np.abs(
        np.sum(X.conj() * lift, axis=0) - np.sum(pooled(sheaf, fine, X).conj() * Z, axis=0)
    )
    lengths = np.linalg.norm(X, axis=0)
    found = judged(pairing, n, eps, lengths, sizes)
    checks.append(check("pool is the adjoint of lift", "eq:local_pooling_adjoint", found))
    energies = energy_of(fine, lift)
    form = np.real(np.sum(Z.conj() * galerkin, axis=0))
    checks.append(
        check(
            "energy identity",
            "eq:galerkin_energy_identity",
            judged(np.abs(form - energies), n, eps, bound, sizes, sizes),
        )
    )
    name, label = "loop-cell realization", "thm:Galerkin_realization"
    if sheaf.header.loops:
        error = np.linalg.norm(coarse - galerkin, axis=0)
        checks.append(check(name, label, judged(error, n, eps, bound, sizes, stretch)))
    else:
        why = "loops=False leaves out the retained internal energy"
        checks.append(Check(name, label, None, RESIDUAL_LIMIT, True, why, None))
    E = ledger_of(sheaf, fine, X)
    lines = np.array(list(E.lines.values()))
    gap = np.abs(lines.sum(axis=0) - E.fine_energy)
    roots = np.sqrt(np.abs(lines).sum(axis=0))
    found = judged(gap, n, eps, bound**0.5, lengths, np.maximum(stretch, 1) ** 2, roots)
    checks.append(check("the energy ledger closes", "section 4", found))
    return Verification(tuple(checks))


class InUnits(SheafStore):
    """A stored sheaf whose maps are read divided by a power of two, so that squares are safe."""

    def __init__(self, store: SheafStore, unit: float) -> None:
        super().__init__(store.place)
        self.unit = unit

    def maps_at(self, p: int, end: Literal["tail", "head"]) -> np.ndarray:
        """Return the maps of one end of the edges of part ``p``, divided."""
        maps = super().maps_at(p, end)
        real = np.zeros(0, self.dtype).real.dtype  # numpy divides complex ones by a reciprocal
        return (maps.view(real) / real.type(self.unit)).view(self.dtype)


def check(name: str, label: str, found: Judged, how: str = "probe") -> Check:
    """Return the outcome of a check."""
    passed = found.ratio < RESIDUAL_LIMIT
    sides = (found.error, RESIDUAL_LIMIT * found.rounding)
    return Check(name, label, found.ratio, RESIDUAL_LIMIT, passed, None, how, *sides)


def random_columns(rng: np.random.Generator, store: SheafStore, count: int) -> np.ndarray:
    """Return random cochains in the store's scalar type."""
    x = rng.standard_normal((store.dim_c0, count))
    if store.dtype.kind == "c":
        x = x + 1j * rng.standard_normal(x.shape)
    return x.astype(store.dtype)


def largest_block(sheaf: SheafStore, fine: SheafStore) -> int:
    """Return the largest dimension of a cluster."""
    dims = np.bincount(labels_of(sheaf, fine.n_vertices), fine.vertex_dims(), sheaf.n_vertices)
    return int(dims.max(initial=1))


def bound_of(store: SheafStore) -> float:
    """Return a bound for norm(L): twice the largest sum of squared map entries at a vertex."""
    total = np.zeros(store.n_vertices)
    for part in parts_of(store):
        F = part.sheaf
        for end, data, starts in (
            (0, F.tail_data, F.tail_offsets),
            (1, F.head_data, F.head_offsets),
        ):
            squares = np.concatenate([[0.0], np.cumsum(np.abs(data).astype(np.float64) ** 2)])
            np.add.at(total, part.vertices[F.edges[:, end]], np.diff(squares[starts]))
    return 2 * float(total.max(initial=0.0))


def isometry(sheaf: SheafStore, fine: SheafStore, eps: float) -> tuple[Judged, str]:
    """Return the worst of norm(R_a* R_a - I), all clusters of all shards, in units of rounding."""
    worst = Judged(0.0, 0.0, 0.0)
    for part in blocks_of(sheaf, fine.vertex_dims().astype(np.int64)):
        gram = (part.R.conj().T @ part.R).tocoo()
        error = np.abs(gram.data - (gram.coords[0] == gram.coords[1]))
        cluster = np.repeat(np.arange(len(part.ranks)), part.ranks)[gram.coords[0]]
        squares = np.bincount(cluster, error.astype(np.float64) ** 2, len(part.ranks))
        dims = np.bincount(part.labels, part.dims, len(part.ranks))
        found = judged(np.sqrt(squares), np.maximum(dims, 1), eps, np.maximum(part.ranks, 1))
        worst = max(worst, found)
    return worst, "exact"
