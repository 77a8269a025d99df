"""Charts: eigenvalues of clusters and of both sheaves, sizes of a hierarchy, an energy ledger."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from sheafcoarsen._support import checks, linalg, tables
from sheafcoarsen.coarsening import Coarsening, EnergyLedger, check_coarsening
from sheafcoarsen.hierarchy import Hierarchy, HierarchyLedger
from sheafcoarsen.operators import count_nonzeros
from sheafcoarsen.plot import draw
from sheafcoarsen.plot.draw import DARK, LIGHT, MARKERS, MIDDLE, NUMBERED
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
    ax = draw.axes_or_new(ax, 7, 4)
    kept, after = modes._without_rounding()
    cluster, K = np.repeat(np.arange(len(after)), modes.ranks), len(after)
    cut = np.isfinite(after)  # mask of clusters with discarded modes
    last = np.where(cut, after, 0.0)  # the last retained eigenvalue; no gap where none is retained
    some = modes.ranks > 0
    last[some] = kept[modes.rank_offsets[1:][some] - 1]
    order = np.lexsort((last, after)) if K > 60 else np.arange(K)
    place = np.argsort(order)
    at, size = place[cluster], float(np.clip(2000 / max(K, 1), 0.3, 30))
    discarded = np.stack([place, after], axis=1)
    draw.marks(ax, "kept", np.stack([at, kept], axis=1), s=size, color=DARK, linewidths=0)
    if K > 60:  # draw discarded eigenvalues as a line, and gaps as the area below it
        low, high = last[order][cut[order]], after[order][cut[order]]
        style: dict = {"color": LIGHT, "linewidth": 0, "zorder": 1, "rasterized": K > MARKERS}
        ax.fill_between(np.arange(len(low)), low, high, step="mid", label="gap", **style)
        ax.plot(high, color=MIDDLE, lw=2, label="first discarded", zorder=4)
        ax.set_xlabel(f"{K:,} clusters, sorted by first discarded eigenvalue")
    else:
        width = np.sqrt(size) + 5  # wider than the markers, which cover short gaps
        ax.vlines(place[cut], last[cut], after[cut], color=LIGHT, lw=width, zorder=1, label="gap")
        style = {"facecolors": "white", "edgecolors": MIDDLE, "linewidths": 1.3}
        style["zorder"] = 2  # below retained eigenvalues close to it
        draw.marks(ax, "first discarded", discarded[cut], s=size, **style)
        ax.set_xlabel("cluster")
        draw.tick_whole_numbers(ax)
        ax.set_xlim(-0.6, max(K, 1) - 0.4)
    if K <= NUMBERED:
        near = np.sqrt(linalg.eps_of(C.fine.dtype)) * modes.operator_norms[cluster]
        # write multiplicities next to coinciding eigenvalues, which ascend in each cluster
        begins = np.append(True, (np.diff(at) != 0) | (np.diff(kept) > near[1:]))[: len(at)]
        first = np.flatnonzero(begins)
        counts = np.diff(np.append(first, len(at)))
        style = {"xytext": (5, 0), "textcoords": "offset points", "va": "center", "fontsize": 7}
        for k, count in zip(first[counts > 1], counts[counts > 1], strict=True):
            ax.annotate(rf"$\times${count}", (at[k], kept[k]), **style)
    tied = modes.tied & cut
    if tied.any():
        label = f"the cut splits a multiple eigenvalue ({tied.sum():,})"
        style = {"marker": "x", "color": "black", "linewidths": 1, "zorder": 5}
        draw.marks(ax, label, discarded[tied], s=max(3 * size, 8), **style)
    ax.set_ylabel(f"eigenvalue of the\n{modes.operator.label}")
    draw.scale(ax, np.concatenate([kept, last[cut], after[cut]]))
    draw.title(ax, "local spectra: retained eigenvalues and the gap above them")
    draw.legend(ax)
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
    checks.kind("Q", Q, SpectralQuality)
    if certificate is not None:
        checks.kind("certificate", certificate, Certificate)
    ax = draw.axes_or_new(ax, 6, 4)
    there = np.isfinite(Q.coarse)
    i = Q.kernel_fine + 1 + np.arange(len(Q.fine))
    j = (max(Q.kernel_fine, Q.kernel_coarse) + 1 + np.arange(len(Q.coarse)))[there]
    coarse = Q.coarse[there]
    ax.plot(i, Q.fine, "o", label=r"fine, of $L$", color=DARK, markersize=6, zorder=4)
    style: dict = {"markersize": 9, "markerfacecolor": "none", "markeredgewidth": 1.6, "zorder": 3}
    ax.plot(j, coarse, "s", label=r"coarse, of $R^* L R$", color=MIDDLE, **style)
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
        space = max(1.4, (top / bottom) ** 0.05)
        ax.set_ylim(bottom / space, top * space)
    missing = int((~there).sum())
    if missing:
        ax.plot([], [], " ", label=f"{missing} have no coarse value")
    draw.tick_whole_numbers(ax)
    zeros = f"{Q.kernel_fine} of $L$, {Q.kernel_coarse} of $R^* L R$"
    ax.set_xlabel(f"i-th eigenvalue, counted with the zeros ({zeros})")
    ax.set_ylabel("eigenvalue")
    draw.title(ax, "low spectrum, fine against coarse")
    draw.legend(ax)
    return ax


def hierarchy(H: Hierarchy, *, ax: Axes | None = None) -> Axes:
    """Plot the sizes of all sheaves of a hierarchy.

    The scale is logarithmic if positive sizes differ by more than a factor of 100, and then linear
    near zero if some sizes are zero.

    Parameters
    ----------
    H : Hierarchy
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        Axes that are not plane.

    See Also
    --------
    partition : one level, as two graphs.
    sheafcoarsen.coarsen_levels : what is drawn.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> from matplotlib.figure import Figure
    >>> F = sc.CellularSheaf.constant(nx.karate_club_graph())
    >>> H = sc.coarsen_levels(F, 3, rank=1, min_vertices=5)
    >>> ax = sc.plot.hierarchy(H, ax=Figure().add_subplot())
    >>> len(ax.lines)
    5
    """
    checks.kind("H", H, Hierarchy)
    ax = draw.axes_or_new(ax, 6.5, 4)
    kinds = (
        ("nonzeros of $L$", count_nonzeros, "D:", LIGHT),
        ("edges, with loops", attrgetter("n_edges"), "v--", "#6B9F2F"),
        ("$\\dim C^1$", attrgetter("dim_c1"), "^-.", "0.45"),
        ("$\\dim C^0$", attrgetter("dim_c0"), "s-", MIDDLE),
        ("vertices", attrgetter("n_vertices"), "o-", DARK),
    )
    levels = np.arange(len(H.sheaves))
    counts = np.array([[count(F) for F in H.sheaves] for _, count, *_ in kinds], dtype=float)
    for (label, _, form, color), line in zip(kinds, counts, strict=True):
        style: dict = {"color": color, "markersize": 7, "markeredgecolor": "0.2", "label": label}
        ax.plot(levels, line, form, **style)
    below: dict = {"xytext": (0, -13), "textcoords": "offset points", "ha": "center"}
    for level, F in enumerate(H.sheaves):
        ax.annotate(f"{F.n_vertices:,}", (level, F.n_vertices), fontsize=8, **below)
    draw.scale(ax, counts.ravel())
    if ax.get_yscale() == "log":
        ax.set_ylim(bottom=ax.get_ylim()[0] / 1.6)  # space for the numbers below points
    ax.set_xticks(levels, ["0 (fine)", *map(str, levels[1:])])
    ax.set_xlim(-0.4, max(len(levels) - 0.6, 0.4))
    ax.set_xlabel("sheaf: level i leads from sheaf i to sheaf i + 1")
    ax.set_ylabel("count")
    draw.title(ax, f"hierarchy: {tables.counted(len(H), 'level')}")
    draw.legend(ax)
    return ax


def ledger(E: EnergyLedger | HierarchyLedger, *, ax: Axes | None = None) -> Axes:
    """Plot an energy ledger as a waterfall, from zero to the fine energy norm(delta x)^2.

    Bars of medium lightness are retained energy, light ones discarded, hatched ones coupling
    energy, of either sign. The dark bar is the fine energy, computed independently. For several
    cochains their sums are drawn.

    Parameters
    ----------
    E : EnergyLedger or HierarchyLedger
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    ValueError
        Axes that are not plane.

    See Also
    --------
    quality : eigenvalues rather than the energy of one cochain.
    sheafcoarsen.energy_ledger : what is drawn.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> from matplotlib.figure import Figure
    >>> F = sc.CellularSheaf.constant(nx.karate_club_graph())
    >>> C = sc.coarsen(F, sc.select(F, 5), rank=1)
    >>> ax = sc.plot.ledger(sc.energy_ledger(C, range(34)), ax=Figure().add_subplot())
    >>> [label.get_text() for label in ax.get_yticklabels()][-1]
    'fine energy'
    """
    checks.kind("E", E, EnergyLedger, HierarchyLedger)
    kinds = (
        ("kept", MIDDLE, ""),
        ("discarded", "#E8E3B0", ""),
        ("coupling", "white", "////"),
        ("fine energy, computed on its own", DARK, ""),
    )
    names = [*E.lines, "fine energy"]
    values = np.array([*map(np.sum, E.lines.values()), np.sum(E.fine_energy)], dtype=float)
    is_lost = ["discarded" in name or name.startswith("level") for name in names]
    kind = np.where(["coupling" in name for name in names], 2, is_lost)
    kind[-1] = 3
    if isinstance(E, EnergyLedger):
        order = np.argsort(kind, kind="stable")
        names, values, kind = [names[i] for i in order], values[order], kind[order]
    ax = draw.axes_or_new(ax, 7, 1.2 + 0.4 * len(names))
    fine, ends = float(values[-1]), np.cumsum(values[:-1])
    starts = np.append(ends - values[:-1], 0.0)
    y = np.arange(len(names))
    for k, (label, color, hatch) in enumerate(kinds):
        own = kind == k
        if own.any():
            style: dict = {"facecolor": color, "hatch": hatch, "height": 0.62, "label": label}
            style |= {"edgecolor": "black", "linewidth": 0.7}
            ax.barh(y[own], values[own], left=starts[own], **style)
    ax.vlines(ends, y[:-1], y[1:], color="0.4", linewidth=0.8, linestyle=":", zorder=0)
    right = np.maximum(starts, starts + values)
    rounding = 1e3 * np.finfo(float).eps * float(np.abs(values).sum())
    for at, (end, value) in enumerate(zip(right.tolist(), values.tolist(), strict=True)):
        share = f"  ({round(100 * value / fine, 2) + 0.0:.2f} %)" if fine > 0 else ""
        text = "0, to rounding" if 0 < abs(value) <= rounding else f"{value:.4g}{share}"
        offset: dict = {"xytext": (5, 0), "textcoords": "offset points", "va": "center"}
        ax.annotate(text, (end, at), fontsize=8, **offset)
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set_yticks(y, names)
    ax.invert_yaxis()
    _make_space(ax)
    low, high = min(float(starts.min()), float((starts + values).min()), 0.0), float(right.max())
    span = high - low or 1.0
    margin = span * 110 / max(draw.width_in_points(ax) - 110, 110)  # for the numbers at the bars
    ax.set_xlim(low - (0.03 * span if low < 0 else 0), high + margin)
    columns = np.size(E.fine_energy)
    summed = f", summed over {columns} cochains" if columns != 1 else ""
    ax.set_xlabel(f"energy, in squared units of $\\delta x${summed}")
    draw.title(ax, r"energy ledger: the lines add up to $\|\delta x\|^2$")
    draw.legend(ax, below=True)
    _make_space(ax)
    return ax


def _make_space(ax: Any) -> None:
    """Shrink axes so that names and legend are inside the figure, if it has no layout engine."""
    if ax.figure.get_layout_engine() is not None:
        return
    box, full, needed = ax.get_position(), ax.figure.bbox, ax.get_tightbbox()
    shift = np.array([full.x0 + 4 - needed.x0, full.y0 + 4 - needed.y0]) / full.size
    x, y = np.clip(shift, 0, box.size / 2)
    grid = ax.get_subplotspec()
    if grid is not None and grid.get_gridspec().get_geometry() == (1, 1):
        # unlike ``set_position``, this can be followed by ``tight_layout``
        ax.figure.subplots_adjust(left=box.x0 + x, bottom=box.y0 + y)
    else:
        ax.set_position((box.x0 + x, box.y0 + y, box.width - x, box.height - y))
