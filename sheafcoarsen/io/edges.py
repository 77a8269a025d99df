"""Edges as a graph file gives them."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._support import eps_of

SIGNS = "CellularSheaf.signed takes signs, and so do read_graph(path, signed=True) and --signed"
"""What to do with negative weights."""


class EdgeList(NamedTuple):
    """What a file says of a graph."""

    n_vertices: int
    edges: np.ndarray  # (m, 2) int64
    weights: np.ndarray  # (m,) float64, finite; negative only where signs were asked for
    names: tuple | None  # of the vertices, where they are not their numbers


def first_unpaired(
    rows: np.ndarray, columns: np.ndarray, weights: np.ndarray, n: int
) -> tuple[int, str, int] | None:
    """Return (entry, why, other) for the first one repeated or unlike its mirror image."""
    if not len(rows):
        return None
    keys = rows * n + columns
    order = np.argsort(keys, kind="stable")
    ascending = keys[order]
    again = np.flatnonzero(ascending[1:] == ascending[:-1])
    if again.size:
        first = int(order[again + 1].argmin())
        return int(order[again[first] + 1]), "repeated", int(order[again[first]])
    mirrored = columns * n + rows
    place = np.minimum(np.searchsorted(ascending, mirrored), len(keys) - 1)
    alone = np.flatnonzero(ascending[place] != mirrored)
    if alone.size:
        return int(alone[0]), "alone", -1
    other = order[place]
    # as CellularSheaf allows in an adjacency: a product such as A^T A is symmetric up to rounding
    allowed = 8 * eps_of(float) * np.abs(weights).max()
    differs = np.flatnonzero(np.abs(weights - weights[other]) > allowed)
    if differs.size:
        return int(differs[0]), "differs", int(other[differs[0]])
    return None
