"""The layers of a sheaf network around its pooling layers: a diffusion step, and the readout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import CochainLike, checks
from sheafcoarsen.layers._hisp import feature_array
from sheafcoarsen.operators import laplacian_operator, normalize
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf

Readout: TypeAlias = Literal["mean", "sum", "max"]
"""Function that reduces the values of a channel over all clusters to a single value."""


def diffusion_step(
    sheaf: CellularSheaf,
    X: CochainLike,
    W1: npt.ArrayLike,
    W2: npt.ArrayLike,
    activation: Callable[[np.ndarray], np.ndarray] = np.tanh,
) -> np.ndarray:
    """Return X - activation(Delta (I (x) W1) X W2), a discrete step of neural sheaf diffusion.

    This is ``eq:nsd-layer`` and ``eq:app-discrete-nsd`` for given maps and weights. On the constant
    sheaf, if W1, W2 and the activation are identities, it is ``eq:app-euler-graph-diffusion``.
    Delta is the Laplacian of the normalized sheaf, computed with the pseudo-inverse if a diagonal
    block is singular. With identities, I - Delta keeps modes of eigenvalues near 2 as well as those
    near 0; W1 = I / 2 or :func:`diffuse` smooths.

    Parameters
    ----------
    sheaf : CellularSheaf
        A sheaf whose vertex stalks have the same dimension d.
    X : array_like, shape (N d, f)
        Lifted features: one row per stalk coordinate, one column per channel
        (``eq:nsd-feature-matrix``).
    W1 : array_like, shape (d, d)
        Weights that act on the stalks.
    W2 : array_like, shape (f, f)
        Weights that act on the channels.
    activation : callable
        Function that maps an array to an array of the same shape, such as ``np.tanh``.

    Returns
    -------
    ndarray, shape (N d, f)
        The new features, in the common scalar type of all four arrays.

    Raises
    ------
    ValueError, TypeError
        If weights have other shapes, the activation changes the shape, or results overflow.

    Warns
    -----
    SingularDegreeWarning
        If a diagonal block of L is singular, as in :func:`normalize`.

    Notes
    -----
    With ``Y = (W1 @ X.reshape(N, d, f)).reshape(N * d, f) @ W2``, a step without normalization is
    ``X - np.tanh(sc.laplacian_operator(F) @ Y)``. For another normalization, replace F in this
    formula by ``sc.normalize(F, "augment")``; passed as ``sheaf`` it would be normalized again.

    Examples
    --------
    One layer, then pooling with modes of the normalized sheaf, whose Laplacian the layer uses:

    >>> import networkx as nx
    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.cycle_graph(8), dim=2)
    >>> X = np.random.default_rng(0).standard_normal((16, 3))
    >>> Y = sc.diffusion_step(F, X, np.eye(2), np.eye(3))
    >>> out = sc.HiSP(n_modes=4, n_clusters=2)(sc.normalize(F), Y)
    >>> out.x.shape, sc.readout(out.x, "mean").shape
    ((2, 12), (12,))
    """
    check_sheaf(sheaf)
    dims = sheaf.vertex_dims
    if (v := checks.first_true(dims != dims[:1])) is not None:
        raise ValueError(
            "`sheaf` must have vertex stalks of the same dimension, because `W1` acts on all of "
            f"them, but vertex {v} has dimension {dims[v]} and vertex 0 has {dims[0]}: apply "
            "laplacian_operator(normalize(sheaf)) with one matrix per dimension"
        )
    X = checks.cochain(sheaf, X, "X")
    if X.ndim != 2:
        raise ValueError(
            f"`X` must have shape (N d, f), got {X.shape}: pass X[:, None] for a single channel"
        )
    n, f = sheaf.n_vertices, X.shape[1]
    d = int(dims[0]) if n else len(np.atleast_1d(checks.scalar_array("W1", W1)))
    W1 = _weights("W1", W1, d, "dimension of the stalks")
    W2 = _weights("W2", W2, f, "number of channels")
    if not callable(activation):
        message = "`activation` must be a function of arrays, such as numpy.tanh, got"
        raise TypeError(f"{message} {activation!r}")
    Delta = laplacian_operator(normalize(sheaf))
    with np.errstate(over="ignore", invalid="ignore"):
        Y = Delta @ ((W1 @ X.reshape(n, d, f)).reshape(n * d, f) @ W2)
    checks.finite("Delta (I (x) W1) X W2", Y, ": rescale the weights or X")
    change = checks.scalar_array("activation(...)", activation(Y))
    if change.shape != Y.shape:
        message = f"`activation` must keep the shape of its argument, {Y.shape}, got"
        raise ValueError(f"{message} {change.shape}")
    remedy = ": it must be finite wherever its argument is"
    return X - checks.finite("activation(...)", change, remedy)


def _weights(name: str, value: Any, size: int, what: str) -> np.ndarray:
    array = checks.scalar_array(name, value)
    if array.shape != (size, size):
        message = f"`{name}` must have shape ({size}, {size}), where {size} is the {what}"
        raise ValueError(f"{message}, got {array.shape}")
    return checks.finite(f"`{name}`", array, ": check how the weights were computed")


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
            message = f"`batch` must hold one index for each of the {len(x)} rows of `x`"
            raise ValueError(f"{message}, got {len(graphs)}")
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
