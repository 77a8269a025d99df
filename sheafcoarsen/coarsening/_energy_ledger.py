"""The energy of a cochain as a sum of retained, discarded and coupling terms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels.operators import sum_products
from sheafcoarsen._support import CochainLike, ReadOnly, checks, linalg, ragged, tables
from sheafcoarsen.coarsening._coarsen import Coarsening, check_coarsening
from sheafcoarsen.operators import apply_coboundary, as_columns
from sheafcoarsen.sheaf import CellularSheaf

if TYPE_CHECKING:
    import pandas as pd


class Ledger:
    """Base class of ledgers: terms that add up to the energy of a fine cochain, and their table."""

    fine_energy: Any
    lines: Any

    @property
    def closure(self) -> float | np.ndarray:
        """(sum of lines - fine energy) / (sum of their absolute values), 0 if all lines are 0.

        It is meaningless near a global section, where all lines are rounding errors; ``verify``
        uses residuals relative to norms.
        """
        values = np.array(list(self.lines.values()))
        gap, size = values.sum(axis=0) - self.fine_energy, np.abs(values).sum(axis=0)
        result = np.divide(gap, size, out=np.zeros_like(size), where=size != 0)
        return result if result.ndim else float(result)

    def _shown(self) -> dict[str, float | np.ndarray]:
        """Return the lines, the fine energy and the closure."""
        return {**self.lines, "fine energy": self.fine_energy, "closure": self.closure}

    def _titled(self) -> tuple[str, dict[str, float | np.ndarray]]:
        """Return a title and the numbers to show, summed over columns if there are many."""
        title, shown, h = type(self).__name__, self._shown(), np.size(self.fine_energy)
        if h <= 4:
            return title, shown
        closure = float(np.abs(shown.pop("closure")).max())
        sums = {name: float(np.sum(value)) for name, value in shown.items()}
        return f"{title}: sums over {h} columns", {**sums, "largest closure": closure}

    def __repr__(self) -> str:
        title, shown = self._titled()
        return f"{title}\n" + tables.number_lines(shown)

    def _repr_html_(self) -> str:
        title, shown = self._titled()
        rows = [(name, *np.asarray(value).reshape(-1).tolist()) for name, value in shown.items()]
        return tables.table(rows, caption=title)


@dataclass(frozen=True, eq=False, repr=False)
class EnergyLedger(Ledger, ReadOnly):
    """The energy of a fine cochain x, split into retained, discarded and coupling terms.

    The retained component is x_ret = R R* x and the discarded one x_disc = x - x_ret
    (``eq:retained_discarded_definition``). For internal modes, the internal lines are sums of
    ``lambda_i |alpha_i|^2`` over modes (``eq:retained_internal_energy_modes``,
    ``eq:discarded_norm_truncation``, ``eq:discarded_energy_truncation``;
    ``prop:truncation_loss``).

    ``galerkin_energy`` may exceed ``fine_energy``: it does where x_ret and x_disc cancel across
    clusters (``crossing_coupling`` far below 0), which is common for smooth x.

    Attributes
    ----------
    retained_internal, discarded_internal : ndarray, shape (K,) or (K, h)
        norm(delta_a x_ret)^2 in each cluster, which a coarse sheaf without loops omits
        (``eq:loss_accounting_realization``), and norm(delta_a x_disc)^2, the truncation loss
        (``eq:loss_accounting_truncation``).
    internal_coupling : ndarray, shape (K,) or (K, h)
        2 Re <delta_a x_ret, delta_a x_disc>, zero for internal modes.
    discarded_norm2 : ndarray, shape (K,) or (K, h)
        norm(x_disc)^2 on the cluster.
    truncation_bound : ndarray, shape (K,) or (K, h), or None
        norm(delta_a x)^2 / lambda_{r_a+1} >= discarded_norm2
        (``eq:spectral_gap_truncation_bound``); None unless the modes are internal.
    retained_crossing, crossing_coupling, discarded_crossing : float or ndarray, shape (h,)
        norm(delta_X x_ret)^2, 2 Re <delta_X x_ret, delta_X x_disc>, of either sign, and
        norm(delta_X x_disc)^2, where delta_X consists of the rows of delta of crossing edges.
    fine_energy : float or ndarray, shape (h,)
        norm(delta x)^2, computed independently; the six lines add up to it.
    fine_norm2 : float or ndarray, shape (h,)
        norm(x)^2, of which ``discarded_norm2.sum()`` is lost.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]])
    >>> C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1)
    >>> E = sc.energy_ledger(C, [1.0, 0.0, 0.0, 0.0])
    >>> E.fine_energy, E.discarded_internal.round(12)
    (1.0, array([1., 0.]))
    """

    retained_internal: np.ndarray
    discarded_internal: np.ndarray
    internal_coupling: np.ndarray
    discarded_norm2: np.ndarray
    truncation_bound: np.ndarray | None
    retained_crossing: float | np.ndarray
    crossing_coupling: float | np.ndarray
    discarded_crossing: float | np.ndarray
    fine_energy: float | np.ndarray
    fine_norm2: float | np.ndarray | None = None

    @property
    def galerkin_energy(self) -> float | np.ndarray:
        """Energy of the retained component, norm(delta x_ret)^2 = z* L_Gal z with z = R* x.

        See ``eq:galerkin_energy_identity``.
        """
        return self.realization_loss + self.retained_crossing

    @property
    def realization_loss(self) -> float | np.ndarray:
        """Retained internal energy, which a coarse sheaf without loops omits."""
        return _total(self.retained_internal)

    @property
    def truncation_loss(self) -> float | np.ndarray:
        """Internal energy of the discarded component."""
        return _total(self.discarded_internal)

    @property
    def lines(self) -> dict[str, float | np.ndarray]:
        """The six lines that add up to the fine energy."""
        return {
            "retained internal": self.realization_loss,
            "discarded internal": self.truncation_loss,
            "internal coupling": _total(self.internal_coupling),
            "retained crossing": self.retained_crossing,
            "crossing coupling": self.crossing_coupling,
            "discarded crossing": self.discarded_crossing,
        }

    def to_frame(self) -> pd.DataFrame:
        """Return the terms of each cluster as a pandas table.

        Returns
        -------
        pandas.DataFrame
            A row for each cluster, by index, or for each cluster and cochain if there are several;
            the columns are the attributes of shape (K,).

        Raises
        ------
        ImportError
            Without pandas: ``pip install "sheafcoarsen[pandas]"``.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]])
        >>> C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1)
        >>> frame = sc.energy_ledger(C, [1.0, 0.0, 0.0, 0.0]).to_frame()  # doctest: +SKIP
        >>> frame.sort_values("discarded_internal")  # doctest: +SKIP
        """
        names = ("retained_internal", "discarded_internal", "internal_coupling", "discarded_norm2")
        own = {name: getattr(self, name) for name in (*names, "truncation_bound")}
        shape = self.retained_internal.shape
        number = np.indices(shape).reshape(len(shape), -1)
        columns = {"cochain": number[1]} if len(shape) == 2 else {}
        columns |= {name: value.reshape(-1) for name, value in own.items() if value is not None}
        return tables.data_frame("cluster", number[0], columns)

    def _shown(self) -> dict[str, float | np.ndarray]:
        kept = {"kept (Galerkin) energy": self.galerkin_energy, "closure": self.closure}
        shown = {**self.lines, "fine energy": self.fine_energy, **kept}
        if self.fine_norm2 is not None:
            shown |= {"norm(x)^2": self.fine_norm2, "of it discarded": _total(self.discarded_norm2)}
        return shown


def _total(per_cluster: np.ndarray) -> float | np.ndarray:
    total = per_cluster.sum(axis=0)
    return total if total.ndim else float(total)


def isometry_errors(R: scipy.sparse.csr_array, ranks: np.ndarray) -> np.ndarray:
    """Return norm(R_a* R_a - I)_F for every cluster, whose block R_a has ``ranks[a]`` columns."""
    with np.errstate(over="ignore", invalid="ignore"):
        defect = R.conj().T @ R - scipy.sparse.eye_array(R.shape[1], dtype=R.dtype)
    return linalg.norms_by(defect, np.repeat(np.arange(len(ranks)), ranks), None, len(ranks))


def check_isometry(C: Coarsening, what: str) -> None:
    """Raise if R is not an isometry; ``what`` names the computation that requires it."""
    errors = isometry_errors(C.prolongation, C.ranks)
    check_errors(errors, C.clusters.dims, C.ranks, C.prolongation.dtype, what)


def check_errors(
    errors: np.ndarray, dims: np.ndarray, ranks: np.ndarray, dtype: np.dtype, what: str
) -> None:
    """Raise if `isometry_errors` of clusters of given dimensions and ranks exceed rounding."""
    ratio = linalg.residual_ratio(errors, dims, linalg.eps_of(dtype), np.maximum(ranks, 1))
    bad = np.flatnonzero(~(ratio <= linalg.RESIDUAL_LIMIT))
    if bad.size:
        raise ValueError(
            f"{what} requires orthonormal columns, but R_a* R_a is not the identity in cluster "
            f"{bad[0]} (and {bad.size - 1} others): orthonormalize each block of the basis, "
            f"e.g. by numpy.linalg.qr(R_a)[0]"
        )


def energy_ledger(C: Coarsening, x: CochainLike) -> EnergyLedger:
    """Return the energy norm(delta x)^2 of a fine cochain as a sum of six terms.

    The terms are those of docs/conventions.md, section 4. Each is computed from the cochains
    x_ret = R R* x and x_disc = x - x_ret, and none as a remainder, so the closure is a check. For
    internal modes, the internal terms are the paper's two losses
    (``cor:truncation_realization_errors``).

    Parameters
    ----------
    C : Coarsening
        A coarsening whose prolongation R is an isometry.
    x : array_like, shape (dim_c0,) or (dim_c0, h)

    Returns
    -------
    EnergyLedger

    Raises
    ------
    ValueError
        If the basis is not orthonormal.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> C = sc.coarsen(sc.CellularSheaf.constant(nx.path_graph(4)), sc.Partition([0, 0, 1, 1]), 1)
    >>> E = sc.energy_ledger(C, [0.0, 1.0, 2.0, 4.0])
    >>> E.fine_energy, round(E.truncation_loss, 12), round(E.retained_crossing, 12)
    (6.0, 5.0, 6.25)
    """
    x = checks.cochain(check_coarsening(C).fine, x, "x", " of the fine sheaf")
    check_isometry(C, "the ledger")
    R, columns, modes = C.prolongation, as_columns(x), C.modes
    gaps = None
    if modes is not None and modes.operator.spectral:
        gaps = modes.next_eigenvalues, modes.operator_norms, C.fine.dtype
    everything = slice(None)
    return ledger_over(
        [(C.fine, everything, everything)],
        C.partition.labels,
        C.fine.vertex_dims,
        x,
        R @ (R.conj().T @ columns),
        gaps,
    )


def ledger_over(
    parts: Iterable[tuple[CellularSheaf, Any, Any]],
    labels: np.ndarray,
    vertex_dims: np.ndarray,
    x: np.ndarray,
    retained: np.ndarray,
    gaps: tuple[np.ndarray, np.ndarray, np.dtype] | None,
) -> EnergyLedger:
    """Return the ledger of a fine cochain x, processing the fine sheaf in parts.

    Each part holds some edges, their vertices, and the vertices' rows in C^0. ``labels`` and
    ``vertex_dims`` are those of all fine vertices, ``retained`` is R R* x, shape (dim_c0, h).
    ``gaps`` holds the next eigenvalues, operator norms and scalar type of internal modes.
    """
    columns, retained = as_columns(x), np.ascontiguousarray(retained)
    discarded = columns - retained
    K, h = int(labels.max(initial=-1)) + 1, columns.shape[1]
    # first axis: fine, retained, discarded and coupling energy
    inside, crossing = np.zeros((4, K, h)), np.zeros((4, h))
    for F, vertices, rows in parts:
        cochains = (columns, retained, discarded)
        y, y_ret, y_disc = (apply_coboundary(F, some[rows]) for some in cochains)
        ends = labels[vertices][F.edges]
        internal = ends[:, 0] == ends[:, 1]
        pairs = ((y, y), (y_ret, y_ret), (y_disc, y_disc), (2 * y_ret, y_disc))
        for k, (left, right) in enumerate(pairs):
            values = np.empty((F.n_edges, h))
            sum_products(F.edge_offsets, left, right, values)
            inside[k] += sums_by(ends[internal, 0], values[internal], K)
            crossing[k] += values[~internal].sum(axis=0)
    norms = np.empty((len(labels), h))
    sum_products(ragged.offsets(vertex_dims), discarded, discarded, norms)
    bound = None
    if gaps is not None:
        next_eigenvalues, sizes, dtype = gaps
        gap = next_eigenvalues.astype(np.float64)
        level = linalg.zero_energy(np.bincount(labels, vertex_dims, minlength=K), dtype, sizes)
        gap = np.where(gap <= level, 0.0, gap)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = np.where(gap == 0, np.inf, inside[0] / gap)

    def shaped(values: np.ndarray) -> Any:
        """Return terms in the form of x: without the last axis if x is one cochain."""
        values = values.reshape((*values.shape[:-1], *x.shape[1:]))
        return ragged.read_only(values) if values.ndim else float(values)

    return EnergyLedger(
        retained_internal=shaped(inside[1]),
        discarded_internal=shaped(inside[2]),
        internal_coupling=shaped(inside[3]),
        discarded_norm2=shaped(sums_by(labels, norms, K)),
        truncation_bound=None if bound is None else shaped(bound),
        retained_crossing=shaped(crossing[1]),
        crossing_coupling=shaped(crossing[3]),
        discarded_crossing=shaped(crossing[2]),
        fine_energy=shaped(crossing[0] + inside[0].sum(axis=0)),
        fine_norm2=shaped((abs(columns) ** 2).sum(axis=0, dtype=np.float64)),
    )


def sums_by(groups: np.ndarray, values: np.ndarray, count: int) -> np.ndarray:
    """Return the sum of the rows of ``values`` in each group, shape (count, h)."""
    indices = groups, np.arange(len(groups))
    select = scipy.sparse.csr_array((np.ones(len(groups)), indices), shape=(count, len(groups)))
    return select @ values
