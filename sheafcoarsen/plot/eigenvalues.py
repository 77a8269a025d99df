"""Pictures of eigenvalues: of every cluster, and of both sheaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sheafcoarsen._support import eps_of, zero_level
from sheafcoarsen.coarsening import Coarsening, check_coarsening
from sheafcoarsen.plot.axes import (
    DARK,
    LIGHT,
    MARKERS,
    MIDDLE,
    add_legend,
    axes_or_new,
    check_kind,
    set_scale,
    whole_number_ticks,
)
from sheafcoarsen.plot.graphs import NUMBERED
from sheafcoarsen.quality import Certificate, SpectralQuality

if TYPE_CHECKING:
    from matplotlib.axes import Axes


COLUMNS = 60
"""Clusters up to which each has a column of eigenvalues of its own."""


def spectra(C: Coarsening, *, ax=None) -> Axes:
    """Draw the kept eigenvalues of every cluster, the first discarded one, and the gap between them.

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
    K = len(modes.ranks)
    level = zero_level(
        C.clusters.dims, eps_of(C.fine.dtype), modes.operator_norms.astype(np.float64)
    )
    cluster = np.repeat(np.arange(K), modes.ranks)
    kept = _zeroed(modes.scores, level[cluster])
    after = _zeroed(modes.next_eigenvalues, level)  # inf where nothing is discarded
    cut = np.isfinite(after)
    last = np.zeros(K)  # where no mode is kept the gap begins at 0
    some = modes.ranks > 0
    last[some] = kept[modes.rank_offsets[1:][some] - 1]
    many = K > COLUMNS
    order = np.lexsort((last, after)) if many else np.arange(K)
    x = np.empty(K)
    x[order] = np.arange(K)
    tied = modes.tied & cut
    size = float(np.clip(2000 / max(K, 1), 0.3, 30))
    style = {"zorder": 3, "rasterized": len(kept) > MARKERS}
    ax.scatter(x[cluster], kept, s=size, color=DARK, linewidths=0, label="kept", **style)
    if many:  # the first discarded ones are ascending: a line, and the gaps are the area below it
        low, high = last[order][cut[order]], after[order][cut[order]]
        at = np.arange(len(high))
        ax.fill_between(
            at,
            low,
            high,
            step="mid",
            color=LIGHT,
            linewidth=0,
            zorder=1,
            rasterized=K > MARKERS,
            label="gap",
        )
        ax.plot(at, high, color=MIDDLE, linewidth=2, label="first discarded", zorder=4)
    else:
        marker = {"marker": "o", "facecolors": "white", "edgecolors": MIDDLE, "linewidths": 1.3}
        ax.vlines(x[cut], last[cut], after[cut], color=LIGHT, linewidth=4, zorder=1, label="gap")
        ax.scatter(x[cut], after[cut], s=size, label="first discarded", **marker, **style)
    if K <= NUMBERED:
        near = np.sqrt(eps_of(C.fine.dtype)) * modes.operator_norms[cluster]
        _multiplicities(ax, x[cluster], kept, near)
    if tied.any():
        label = f"the cut splits a multiple eigenvalue ({tied.sum():,})"
        ax.scatter(
            x[tied],
            after[tied],
            s=max(size, 8),
            marker="x",
            color="black",
            linewidths=1,
            label=label,
            **{**style, "zorder": 5},
        )
    ax.set_xlabel(f"{K:,} clusters, sorted by first discarded eigenvalue" if many else "cluster")
    if not many:
        ax.xaxis.set_major_locator(whole_number_ticks())
        ax.set_xlim(-0.6, max(K, 1) - 0.4)
    operator = {
        "internal": "internal Laplacian $L_a$",
        "principal": "principal block $L[C_a, C_a]$",
    }
    ax.set_ylabel(
        f"eigenvalue of the\n{operator.get(modes.local_operator, modes.local_operator + ' operator')}"
    )
    set_scale(ax, np.concatenate([kept, last[cut], after[cut]]))
    ax.set_title("local spectra: what is kept, and the gap to what is not", fontsize=10)
    add_legend(ax)
    return ax


def _multiplicities(ax, x, values, near) -> None:
    """Write how many eigenvalues stand at one place, beside it; they are ascending for each x."""
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


def _zeroed(values, level) -> np.ndarray:
    """Return the values, those at or below the level as 0."""
    values = values.astype(np.float64)
    return np.where(values <= level, 0.0, values)


def quality(Q: SpectralQuality, certificate: Certificate | None = None, *, ax=None) -> Axes:
    """Draw the low positive eigenvalues of L beside those of R* L R, and where a certificate says that the former lie.

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

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> from matplotlib.figure import Figure
    >>> F = sc.CellularSheaf.constant(nx.karate_club_graph())
    >>> C = sc.coarsen(F, sc.select(F, 5), rank=1)
    >>> ax = sc.plot.quality(sc.spectral_quality(C, 4), sc.certificate(C), ax=Figure().add_subplot())
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
    ax.plot(
        i,
        Q.fine,
        linestyle="none",
        marker="o",
        markersize=6,
        color=DARK,
        label=r"fine, of $L$",
        zorder=4,
    )
    ax.plot(
        j, coarse, linestyle="none", marker="s", markersize=9, markerfacecolor="none", markeredgecolor=MIDDLE, markeredgewidth=1.6,
        label=r"coarse, of $R^* L R$", zorder=3,
    )  # fmt: skip
    shown = np.concatenate([Q.fine, coarse])
    if len(shown):
        ax.set_yscale("log")
        bottom, top = float(shown.min()), float(shown.max())
        if certificate is not None and len(coarse):
            lower, upper = certificate.interval(coarse)
            floor = 1e-4 * bottom
            bottom = min(bottom, max(float(lower.min()), floor))
            below = " (and below the axis)" if (lower < floor).any() else ""
            ax.bar(
                j, upper - np.maximum(lower, floor / 2), bottom=np.maximum(lower, floor / 2), width=0.7, color="#DDE9EC", edgecolor=MIDDLE,
                linewidth=0.6, label=f"certificate{below}", zorder=1,
            )  # fmt: skip
        ax.set_ylim(bottom / 1.4, top * 1.4)
    missing = int((~there).sum())
    if missing:
        ax.plot([], [], linestyle="none", label=f"{missing} have no coarse one")
    ax.xaxis.set_major_locator(whole_number_ticks())
    zeros = f"{Q.kernel_fine} of $L$, {Q.kernel_coarse} of $R^* L R$"
    ax.set_xlabel(f"i-th eigenvalue, counted with the zeros ({zeros})")
    ax.set_ylabel("eigenvalue")
    ax.set_title("low spectrum, fine against coarse", fontsize=10)
    add_legend(ax)
    return ax
