"""Plot of an energy ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sheafcoarsen.coarsening import EnergyLedger
from sheafcoarsen.hierarchy import HierarchyLedger
from sheafcoarsen.plot.axes import (
    DARK,
    MIDDLE,
    add_legend,
    axes_or_new,
    check_kind,
    set_title,
    square_points,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    ImportError
        Without matplotlib: ``pip install "sheafcoarsen[plot]"``.

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
    check_kind("E", E, (EnergyLedger, HierarchyLedger))
    bars = {
        "kept": (MIDDLE, "", "kept"),
        "lost": ("#E8E3B0", "", "discarded"),
        "coupling": ("white", "////", "coupling"),
        "total": (DARK, "", "fine energy, computed on its own"),
    }
    lines = {name: float(np.sum(value)) for name, value in E.lines.items()}
    if isinstance(E, EnergyLedger):  # sort lines as in `bars`
        lines = dict(sorted(lines.items(), key=lambda line: list(bars).index(_role(line[0]))))
    fine = float(np.sum(E.fine_energy))
    ax = axes_or_new(ax, 7, 1.2 + 0.4 * (len(lines) + 1))
    names, values = [*lines, "fine energy"], np.array([*lines.values(), fine])
    ends = np.cumsum(values[:-1])
    starts = np.append(ends - values[:-1], 0.0)
    y = np.arange(len(names))
    for role, (color, hatch, label) in bars.items():
        own = np.array([_role(name) == role for name in names])
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
    margin = span * 110 / max(square_points(ax) - 110, 110)  # for the numbers at the bars
    ax.set_xlim(low - (0.03 * span if low < 0 else 0), high + margin)
    columns = np.size(E.fine_energy)
    summed = f", summed over {columns} cochains" if columns != 1 else ""
    ax.set_xlabel(f"energy, in squared units of $\\delta x${summed}")
    set_title(ax, r"energy ledger: the lines add up to $\|\delta x\|^2$")
    add_legend(ax, below=True)
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


def _role(name: str) -> str:
    """Return the role of the ledger line with the given name, a key of ``bars`` in `ledger`."""
    if name == "fine energy":
        return "total"
    if "coupling" in name:
        return "coupling"
    return "lost" if "discarded" in name or name.startswith("level") else "kept"
