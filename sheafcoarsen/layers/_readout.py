"""Readout of a graph-level model, from one row per vertex to one row per graph."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import CochainLike, checks

Readout: TypeAlias = Literal["mean", "sum", "max"]
"""Function that reduces the values of a channel over all clusters to a single value."""


def readout(
    x: CochainLike, how: Readout = "mean", batch: npt.ArrayLike | None = None
) -> np.ndarray:
    """Reduce vertex features to one row per graph, as the last step of a graph-level model.

    Parameters
    ----------
    x : array_like, shape (K, c)
        Features, such as the ``x`` of the last :class:`HiSP`. Zeros from padding count like any
        other value.
    how : {"mean", "sum", "max"}
        Function applied to each channel; "max" requires real features.
    batch : array_like of int, shape (K,), optional
        Index in 0 .. g-1 of the graph that each vertex belongs to, in any order, as in PyTorch
        Geometric. The result then has one row per graph.

    Returns
    -------
    ndarray, shape (c,), or (g, c) with ``batch``

    Raises
    ------
    ValueError, TypeError
        If ``x`` is not a finite matrix, a graph has no vertices and ``how`` is not "sum", ``how``
        is "max" for complex features, or sums overflow.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> sc.readout([[1.0, 4.0], [3.0, 0.0]], "max")
    array([3., 4.])
    >>> sc.readout([[1.0, 4.0], [3.0, 0.0], [5.0, 6.0]], "sum", batch=[0, 1, 0])
    array([[ 6., 10.],
           [ 3.,  0.]])
    """
    checks.choice("how", how, get_args(Readout))
    x = feature_array("x", x)
    if how == "max" and x.dtype.kind == "c":
        raise TypeError(
            f'`how` = "max" is undefined for complex `x` of type {x.dtype}: use another `how` or '
            "pass abs(x)"
        )
    graphs = np.zeros(len(x), np.int64)
    if batch is not None:
        graphs = checks.integer_array("batch", batch)
        if len(graphs) != len(x):
            raise ValueError(
                f"`batch` must hold one index for each of the {len(x)} rows of `x`, got "
                f"{len(graphs)}"
            )
        if (bad := checks.first_true((graphs < 0) | (graphs >= checks.MAX_VERTICES))) is not None:
            raise ValueError(
                f"`batch` must hold graph indices in 0 .. g-1, got {graphs[bad]} at index {bad}"
            )
    counts = np.bincount(graphs, minlength=int(batch is None))
    if (g := checks.first_true(counts == 0)) is not None and how != "sum":
        raise ValueError(
            f"no row of `x` belongs to graph {g}, so its {how} is undefined: use `how` = "
            '"sum" for zeros, or did a cluster join several graphs? Pass `partition` to HiSP'
        )
    shape, gather = (len(counts), x.shape[1]), np.maximum if how == "max" else np.add
    total = np.full(shape, -np.inf if how == "max" else 0, np.result_type(x.dtype, np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        gather.at(total, graphs, x)
        result = (total / counts[:, None] if how == "mean" else total).astype(x.dtype)
    if not np.isfinite(result).all():
        raise ValueError(f"the {how} of `x` exceeds the range of {x.dtype}: rescale `x`")
    return result[0] if batch is None else result


def feature_array(name: str, value: Any) -> np.ndarray:
    """Check features and return them as a C-ordered 2-D array, so that reshaping is a view."""
    array = checks.scalar_array(name, value)
    if array.ndim != 2:
        advice = f"{name}[:, None] for a single channel"
        if array.ndim == 3:
            advice = f"{name}.reshape(-1, {array.shape[2]}) for signals of shape (n, d, f)"
        raise ValueError(f"`{name}` must be 2-dimensional, got shape {array.shape}: pass {advice}")
    return checks.finite(f"`{name}`", np.ascontiguousarray(array))
