"""Pictures of eigenvalues: of every cluster, and of both sheaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sheafcoarsen._support import eps_of, zero_level
from sheafcoarsen.coarsening import Coarsening, check_coarsening
from sheafcoarsen.modes import LocalModes
from sheafcoarsen.plot.axes import (
    DARK,
    LIGHT,
    MARKERS,
    MIDDLE,
    NUMBERED,
    add_legend,
    axes_or_new,
    check_kind,
    set_scale,
    tick_whole_numbers,
)
from sheafcoarsen.quality import Certificate, SpectralQuality

if TYPE_CHECKING:
    from matplotlib.axes import Axes


COLUMNS = 60
"""Clusters up to which each has a column of eigenvalues of its own."""


def spectra(C: Coarsening, *, ax: Axes | None = None) -> Axes:
    """Draw every cluster's kept eigenvalues, the first discarded one, and the gap between them.

    What is zero to working accuracy stands at 0. Up to 60 clusters have a column each; more are
    sorted by their first discarded eigenvalue. The scale is linear up to the smallest positive
    eigenvalue and logarithmic beyond where they spread over more than two decades.

    Parameters
    ----------
    C : Coarsening
        With modes, not a basis of your own.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        For a basis of your own.
    ImportError
        Without matplotlib: ``pip install "sheafcoarsen[plot]"``.

    See Also
    --------
    quality : the low spectra of both sheaves.
    sheafcoarsen.local_modes : what is drawn.
    sheafcoarsen.ranks : rules for how many modes are kept.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> from matplotlib.figure import Figure
    >>> F = sc.CellularSheaf.constant(nx.karate_club_graph())
    >>> ax = sc.plot.spectra(sc.coarsen(F, sc.select(F, 5), rank=1), ax=Figure().add_subplot())
    >>> ax.get_xlabel()
    'cluster'
    """
    check_coarsening(C)
    modes = C.modes
    if modes is None:
        raise ValueError(
            "`C` must be made of local modes: a basis of your own has no local spectra"
        )
    ax = axes_or_new(ax, 7, 4)
    S = _LocalSpectra.of(C, modes)
    K, size = len(S.after), float(np.clip(2000 / max(len(S.after), 1), 0.3, 30))
    style: dict = {"zorder": 3, "rasterized": len(S.kept) > MARKERS}
    at = S.place[S.cluster]
    ax.scatter(at, S.kept, s=size, color=DARK, linewidths=0, label="kept", **style)
    if S.many:
        _draw_sorted_gaps(ax, S)
        ax.set_xlabel(f"{K:,} clusters, sorted by first discarded eigenvalue")
    else:
        _draw_gaps(ax, S, size, style)
        ax.set_xlabel("cluster")
        tick_whole_numbers(ax)
        ax.set_xlim(-0.6, max(K, 1) - 0.4)
    if K <= NUMBERED:
        near = np.sqrt(eps_of(C.fine.dtype)) * modes.operator_norms[S.cluster]
        _write_multiplicities(ax, at, S.kept, near)
    tied = modes.tied & S.cut
    if tied.any():
        label = f"the cut splits a multiple eigenvalue ({tied.sum():,})"
        style |= {"marker": "x", "color": "black", "linewidths": 1, "zorder": 5}
        ax.scatter(S.place[tied], S.after[tied], s=max(size, 8), label=label, **style)
    ax.set_ylabel(f"eigenvalue of the\n{modes.operator.label}")
    set_scale(ax, np.concatenate([S.kept, S.last[S.cut], S.after[S.cut]]))
    ax.set_title("local spectra: what is kept, and the gap to what is not", fontsize=10)
    add_legend(ax)
    return ax


class _LocalSpectra(NamedTuple):
    """What the picture of local spectra shows."""

    kept: np.ndarray  # all kept eigenvalues, ascending in each cluster
    cluster: np.ndarray  # of each of them
    last: np.ndarray  # (K,) the last kept one of each cluster, 0 where none is kept
    after: np.ndarray  # (K,) the first discarded one, inf where nothing is discarded
    place: np.ndarray  # (K,) where each cluster stands, from left to right

    @classmethod
    def of(cls, C: Coarsening, modes: LocalModes) -> _LocalSpectra:
        """Read the spectra off a coarsening; what is zero to working accuracy is 0."""
        K, sizes = len(modes.ranks), modes.operator_norms.astype(np.float64)
        level = zero_level(C.clusters.dims, eps_of(C.fine.dtype), sizes)
        cluster = np.repeat(np.arange(K), modes.ranks)
        kept = _zeroed(modes.scores, level[cluster])
        after = _zeroed(modes.next_eigenvalues, level)
        last = np.zeros(K)
        some = modes.ranks > 0
        last[some] = kept[modes.rank_offsets[1:][some] - 1]
        place = np.arange(K)
        if K > COLUMNS:
            place[np.lexsort((last, after))] = np.arange(K)
        return cls(kept, cluster, last, after, place)

    @property
    def many(self) -> bool:
        """Whether there are too many clusters for a column each."""
        return len(self.after) > COLUMNS

    @property
    def cut(self) -> np.ndarray:
        """Clusters that discard something, shape (K,) of bool."""
        return np.isfinite(self.after)


def _draw_gaps(ax: Axes, S: _LocalSpectra, size: float, style: dict) -> None:
    """Draw a bar from the last kept eigenvalue of each cluster to the first discarded one."""
    x, low, high = S.place[S.cut], S.last[S.cut], S.after[S.cut]
    marker: dict = {"marker": "o", "facecolors": "white", "edgecolors": MIDDLE, "linewidths": 1.3}
    ax.vlines(x, low, high, color=LIGHT, linewidth=4, zorder=1, label="gap")
    ax.scatter(x, high, s=size, label="first discarded", **marker, **style)


def _draw_sorted_gaps(ax: Axes, S: _LocalSpectra) -> None:
    """Draw the first discarded eigenvalues, ascending, as a line, the gaps as the area below."""
    order = np.argsort(S.place)
    order = order[S.cut[order]]
    low, high, at = S.last[order], S.after[order], np.arange(len(order))
    area: dict = {"color": LIGHT, "linewidth": 0, "zorder": 1, "rasterized": len(S.after) > MARKERS}
    ax.fill_between(at, low, high, step="mid", label="gap", **area)
    ax.plot(at, high, color=MIDDLE, linewidth=2, label="first discarded", zorder=4)


def _write_multiplicities(ax: Axes, x: np.ndarray, values: np.ndarray, near: np.ndarray) -> None:
    """Write beside a place how many eigenvalues stand there; they ascend for each x."""
    first = np.flatnonzero(
        np.append(True, (np.diff(x) != 0) | (np.diff(values) > near[1:]))[: len(x)]
    )
    for k, count in zip(first.tolist(), np.diff(np.append(first, len(x))).tolist(), strict=True):
        if count > 1:
            ax.annotate(
                rf"$\times${count}",
                (x[k], values[k]),
                xytext=(5, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
            )


def _zeroed(values: np.ndarray, level: Any) -> np.ndarray:
    """Return the values, those at or below the level as 0."""
    values = values.astype(np.float64)
    return np.where(values <= level, 0.0, values)


def quality(
    Q: SpectralQuality, certificate: Certificate | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw the low positive eigenvalues of L beside those of R* L R.

    With a certificate, the band in which each eigenvalue of L lies is drawn, too.

    The i-th eigenvalue is counted with the zeros, so that the band of the i-th coarse one encloses
    the i-th fine one also where a global section is lost. Eigenvalues that the coarse space does
    not have are left out, and so is the part of the band more than four decades below the
    eigenvalues.

    Parameters
    ----------
    Q : SpectralQuality
    certificate : Certificate, optional
        That of the same coarsening.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    ImportError
        Without matplotlib: ``pip install "sheafcoarsen[plot]"``.

    See Also
    --------
    spectra : the spectra of the clusters.
    sheafcoarsen.spectral_quality : what is drawn.
    sheafcoarsen.certificate : the bands around the eigenvalues.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> from matplotlib.figure import Figure
    >>> F = sc.CellularSheaf.constant(nx.karate_club_graph())
    >>> C = sc.coarsen(F, sc.select(F, 5), rank=1)
    >>> Q, B = sc.spectral_quality(C, 4), sc.certificate(C)
    >>> ax = sc.plot.quality(Q, B, ax=Figure().add_subplot())
    >>> bool(ax.get_xlim()[1] > 5)
    True
    """
    check_kind("Q", Q, SpectralQuality)
    if certificate is not None:
        check_kind("certificate", certificate, Certificate)
    ax = axes_or_new(ax, 6, 4)
    there = np.isfinite(Q.coarse)
    i = Q.kernel_fine + 1 + np.arange(len(Q.fine))
    j = (max(Q.kernel_fine, Q.kernel_coarse) + 1 + np.arange(len(Q.coarse)))[there]
    coarse = Q.coarse[there]
    style: dict = {"linestyle": "none", "color": DARK, "marker": "o", "markersize": 6}
    ax.plot(i, Q.fine, label=r"fine, of $L$", zorder=4, **style)
    style |= {"color": MIDDLE, "marker": "s", "markersize": 9, "markerfacecolor": "none"}
    ax.plot(j, coarse, label=r"coarse, of $R^* L R$", zorder=3, markeredgewidth=1.6, **style)
    shown = np.concatenate([Q.fine, coarse])
    if len(shown):
        ax.set_yscale("log")
        bottom, top = float(shown.min()), float(shown.max())
        if certificate is not None and len(coarse):
            bottom = min(bottom, _draw_certificate(ax, j, coarse, certificate, 1e-4 * bottom))
        ax.set_ylim(bottom / 1.4, top * 1.4)
    missing = int((~there).sum())
    if missing:
        ax.plot([], [], linestyle="none", label=f"{missing} have no coarse one")
    tick_whole_numbers(ax)
    zeros = f"{Q.kernel_fine} of $L$, {Q.kernel_coarse} of $R^* L R$"
    ax.set_xlabel(f"i-th eigenvalue, counted with the zeros ({zeros})")
    ax.set_ylabel("eigenvalue")
    ax.set_title("low spectrum, fine against coarse", fontsize=10)
    add_legend(ax)
    return ax


def _draw_certificate(
    ax: Axes, j: int, coarse: np.ndarray, certificate: Certificate, floor: float
) -> float:
    """Draw the band of each fine eigenvalue; return where it ends below, or ``floor``."""
    lower, upper = certificate.interval(coarse)
    shown = np.maximum(lower, floor / 2)
    below = " (and below the axis)" if (lower < floor).any() else ""
    style: dict = {"color": "#DDE9EC", "edgecolor": MIDDLE, "linewidth": 0.6, "zorder": 1}
    ax.bar(j, upper - shown, bottom=shown, width=0.7, label=f"certificate{below}", **style)
    return max(float(lower.min()), floor)
