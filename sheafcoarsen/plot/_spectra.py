"""Plots of eigenvalues: of all clusters, and of the fine and the coarse sheaf."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sheafcoarsen._support import eps_of
from sheafcoarsen.coarsening import Coarsening, check_coarsening
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
    set_title,
    tick_whole_numbers,
)
from sheafcoarsen.quality import Certificate, SpectralQuality

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def spectra(C: Coarsening, *, ax: Axes | None = None) -> Axes:
    """Plot each cluster's retained eigenvalues, the first discarded one, and the gap.

    A cluster that keeps no mode has no gap. Values that are zero to working accuracy are drawn
    at 0. Up to 60 clusters have a column each; more are sorted by their first discarded eigenvalue.
    If positive eigenvalues span more than two decades, the scale is logarithmic, and if there are
    also zeros, linear up to about the smallest positive one.

    Parameters
    ----------
    C : Coarsening
        It must have modes, not a user-supplied basis.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        For a user-supplied basis, or axes that are not plane.
    ImportError
        Without matplotlib: ``pip install "sheafcoarsen[plot]"``.

    See Also
    --------
    quality : the low spectra of both sheaves.
    sheafcoarsen.local_modes : what is drawn.
    sheafcoarsen.ranks : rules for the number of retained modes.

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
            "`C` must be computed from local modes: a basis of your own has no local spectra"
        )
    ax = axes_or_new(ax, 7, 4)
    kept, after = modes._without_rounding()
    cluster, K = np.repeat(np.arange(len(after)), modes.ranks), len(after)
    last, some = np.zeros(K), modes.ranks > 0  # the last retained eigenvalue of each cluster
    last[some] = kept[modes.rank_offsets[1:][some] - 1]
    cut = np.isfinite(after)  # mask of clusters with discarded modes
    last[~some & cut] = after[~some & cut]  # no gap where no mode is kept
    place, many = np.arange(K), K > 60
    if many:
        place[np.lexsort((last, after))] = np.arange(K)
    at, size = place[cluster], float(np.clip(2000 / max(K, 1), 0.3, 30))
    style: dict = {"zorder": 3, "rasterized": len(kept) > MARKERS}
    ax.scatter(at, kept, s=size, color=DARK, linewidths=0, label="kept", **style)
    if many:  # draw discarded eigenvalues as a line, and gaps as the area below it
        order = np.argsort(place)
        low, high = last[order[cut[order]]], after[order[cut[order]]]
        area: dict = {"color": LIGHT, "linewidth": 0, "zorder": 1, "rasterized": K > MARKERS}
        ax.fill_between(np.arange(len(low)), low, high, step="mid", label="gap", **area)
        ax.plot(np.arange(len(low)), high, color=MIDDLE, lw=2, label="first discarded", zorder=4)
        ax.set_xlabel(f"{K:,} clusters, sorted by first discarded eigenvalue")
    else:
        ring: dict = {"facecolors": "white", "edgecolors": MIDDLE, "linewidths": 1.3}
        ring |= style | {"zorder": 2}  # below retained eigenvalues close to it
        ax.vlines(place[cut], last[cut], after[cut], color=LIGHT, lw=4, zorder=1, label="gap")
        ax.scatter(place[cut], after[cut], s=size, label="first discarded", **ring)
        ax.set_xlabel("cluster")
        tick_whole_numbers(ax)
        ax.set_xlim(-0.6, max(K, 1) - 0.4)
    if K <= NUMBERED:
        near = np.sqrt(eps_of(C.fine.dtype)) * modes.operator_norms[cluster]
        # write multiplicities next to coinciding eigenvalues, which ascend in each cluster
        begins = np.append(True, (np.diff(at) != 0) | (np.diff(kept) > near[1:]))[: len(at)]
        first = np.flatnonzero(begins)
        counts = np.diff(np.append(first, len(at)))
        for k, count in zip(first.tolist(), counts.tolist(), strict=True):
            if count > 1:
                text: dict = {"xytext": (5, 0), "textcoords": "offset points", "va": "center"}
                ax.annotate(rf"$\times${count}", (at[k], kept[k]), fontsize=7, **text)
    tied = modes.tied & cut
    if tied.any():
        label = f"the cut splits a multiple eigenvalue ({tied.sum():,})"
        style |= {"marker": "x", "color": "black", "linewidths": 1, "zorder": 5}
        ax.scatter(place[tied], after[tied], s=max(3 * size, 8), label=label, **style)
    ax.set_ylabel(f"eigenvalue of the\n{modes.operator.label}")
    set_scale(ax, np.concatenate([kept, last[cut], after[cut]]))
    set_title(ax, "local spectra: retained eigenvalues and the gap above them")
    add_legend(ax)
    return ax


def quality(
    Q: SpectralQuality, certificate: Certificate | None = None, *, ax: Axes | None = None
) -> Axes:
    """Plot the low positive eigenvalues of L and of R* L R.

    With a certificate, also plot the interval that contains each eigenvalue of L.

    The index i counts the zero eigenvalues, so that the interval of the i-th coarse eigenvalue
    contains the i-th fine one even if a global section is lost. The legend counts fine
    eigenvalues without a coarse counterpart. The part of an interval more than four decades below
    the lowest eigenvalue is omitted.

    Parameters
    ----------
    Q : SpectralQuality
    certificate : Certificate, optional
        Certificate of the same coarsening.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        Axes that are not plane.
    ImportError
        Without matplotlib: ``pip install "sheafcoarsen[plot]"``.

    See Also
    --------
    spectra : the spectra of the clusters.
    sheafcoarsen.spectral_quality : what is drawn.
    sheafcoarsen.certificate : the intervals around the eigenvalues.

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
            floor = 1e-4 * bottom
            lower, upper = certificate.interval(coarse)
            drawn = np.maximum(lower, floor / 2)
            below = " (and below the axis)" if (lower < floor).any() else ""
            style = {"color": "#DDE9EC", "edgecolor": MIDDLE, "linewidth": 0.6, "zorder": 1}
            style |= {"bottom": drawn, "width": 0.7, "label": f"certificate{below}"}
            ax.bar(j, upper - drawn, **style)
            bottom = min(bottom, max(float(lower.min()), floor))
        ax.set_ylim(bottom / 1.4, top * 1.4)
    missing = int((~there).sum())
    if missing:
        ax.plot([], [], linestyle="none", label=f"{missing} have no coarse value")
    tick_whole_numbers(ax)
    zeros = f"{Q.kernel_fine} of $L$, {Q.kernel_coarse} of $R^* L R$"
    ax.set_xlabel(f"i-th eigenvalue, counted with the zeros ({zeros})")
    ax.set_ylabel("eigenvalue")
    set_title(ax, "low spectrum, fine against coarse")
    add_legend(ax)
    return ax
