"""The end of a graph-level model: one row for each graph, out of one per vertex."""

from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import (
    MAX_VERTICES,
    choice,
    finite,
    integer_array,
    offsets,
    scalar_array,
)

Readout: TypeAlias = Literal["mean", "sum", "max"]
"""What a channel's values over all clusters become."""


def readout(
    x: npt.ArrayLike, how: Readout = "mean", batch: npt.ArrayLike | None = None
) -> np.ndarray:
    """Return one row for a whole graph, out of one per vertex, as graph-level models end.

    Parameters
    ----------
    x : array_like, shape (K, c)
        Such as the ``x`` of the last :class:`HiSP`; zeros that pad it count like any other.
    how : {"mean", "sum", "max"}
        "max" is for real features.
    batch : array_like of int, shape (K,), optional
        The graph that each vertex is in, 0 .. g-1 in any order, as PyTorch Geometric has it: one
        row for each graph.

    Returns
    -------
    ndarray, shape (c,), or (g, c) with ``batch``

    Raises
    ------
    ValueError, TypeError
        For what is not a finite matrix with rows, the largest of complex numbers, or sums that
        overflow; a graph without vertices, unless ``how`` is "sum".

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> sc.readout([[1.0, 4.0], [3.0, 0.0]], "max")
    array([3., 4.])
    >>> sc.readout([[1.0, 4.0], [3.0, 0.0], [5.0, 6.0]], "sum", batch=[0, 1, 0])
    array([[ 6., 10.],
           [ 3.,  0.]])
    """
    choice("how", how, get_args(Readout))
    x = feature_array("x", x)
    if len(x) == 0 and how != "sum":
        raise ValueError(f'`x` has no rows, of which there is no {how}: `how` = "sum" gives zeros')
    if how == "max" and x.dtype.kind == "c":
        raise TypeError(
            f"`x` is {x.dtype}, of which there is no largest: take another `how`, or abs(x)"
        )
    graphs = np.zeros(len(x), np.int64) if batch is None else _graphs(batch, len(x))
    counts = np.bincount(graphs, minlength=int(batch is None))
    some = np.flatnonzero(counts)
    if len(some) < len(counts) and how != "sum":
        g = int(np.flatnonzero(counts == 0)[0])
        raise ValueError(
            f"`batch` names no vertex of graph {g}, of which there is no {how}: `how` = "
            f'"sum" gives zeros'
        )
    by_graph, first = x[np.argsort(graphs, kind="stable")], offsets(counts)[some]
    gather = np.maximum if how == "max" else np.add
    total = np.zeros((len(counts), x.shape[1]), np.result_type(x.dtype, np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        if len(some):
            total[some] = gather.reduceat(by_graph, first, axis=0, dtype=total.dtype)
        result = (total / counts[:, None] if how == "mean" else total).astype(x.dtype)
    if not np.isfinite(result).all():
        raise ValueError(f"the {how} of `x` exceeds the range of {x.dtype}: rescale `x`")
    return result[0] if batch is None else result


def _graphs(batch: npt.ArrayLike, n: int) -> np.ndarray:
    """Return the graph that each of n vertices is in."""
    graphs = integer_array("batch", batch)
    if len(graphs) != n:
        raise ValueError(
            f"`batch` must hold one graph for each of the {n} rows of `x`, got {len(graphs)}"
        )
    bad = np.flatnonzero((graphs < 0) | (graphs >= MAX_VERTICES))
    if bad.size:
        raise ValueError(
            f"`batch` must hold numbers of graphs, 0 .. g-1, got {graphs[bad[0]]} at index {bad[0]}"
        )
    return graphs


def feature_array(name: str, value: Any) -> np.ndarray:
    """Return a finite 2-D array, C-ordered so that its views share memory."""
    array = np.ascontiguousarray(scalar_array(name, value))
    if np.ndim(value) != 2:
        raise ValueError(
            f"`{name}` must be 2-dimensional, got shape {np.shape(value)}: {name}[:, None] makes "
            "a single channel"
        )
    return finite(f"`{name}`", array)
