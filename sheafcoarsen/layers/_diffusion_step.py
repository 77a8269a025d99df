"""One diffusion step of a sheaf network with given weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import CochainLike, checks
from sheafcoarsen.operators import laplacian_operator, normalize
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf


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
    Delta is the normalized sheaf Laplacian, as in the paper: the function normalizes the sheaf,
    using the pseudo-inverse if a diagonal block is singular. A sheaf that is already normalized
    does not change. With identities, I - Delta keeps modes of eigenvalues near 2 as well as those
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
    Apply one layer of a sheaf network, whose maps are a fixed function of the features, then pool
    the result with modes of the normalized sheaf, whose Laplacian the layer uses:

    >>> import networkx as nx
    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> graph, d, h = nx.cycle_graph(8), 2, 3
    >>> rng = np.random.default_rng(0)
    >>> X, weights = rng.standard_normal((8, d * h)), rng.standard_normal((2 * d * h, d * d))
    >>> W1, W2 = rng.standard_normal((d, d)), rng.standard_normal((h, h))
    >>> def maps(x_u, x_v):
    ...     return np.tanh(np.hstack([x_u, x_v]) @ weights).reshape(-1, d, d)
    >>> F = sc.CellularSheaf.constant(graph, d)  # the graph and its stalks
    >>> u, v = F.edges.T
    >>> # learned maps (eq:learned-restriction-maps)
    >>> F = F.with_maps(maps(X[u], X[v]), maps(X[v], X[u]))
    >>> Y = sc.diffusion_step(F, X.reshape(-1, h), W1, W2)
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
        raise TypeError(
            f"`activation` must be a function of arrays, such as numpy.tanh, got {activation!r}"
        )
    Delta = laplacian_operator(normalize(sheaf))
    with np.errstate(over="ignore", invalid="ignore"):
        Y = Delta @ ((W1 @ X.reshape(n, d, f)).reshape(n * d, f) @ W2)
    checks.finite("Delta (I (x) W1) X W2", Y, ": rescale the weights or X")
    change = checks.scalar_array("activation(...)", activation(Y))
    if change.shape != Y.shape:
        raise ValueError(
            f"`activation` must keep the shape of its argument, {Y.shape}, got {change.shape}"
        )
    return X - checks.finite(
        "activation(...)", change, ": it must be finite wherever its argument is"
    )


def _weights(name: str, value: Any, size: int, what: str) -> np.ndarray:
    array = checks.scalar_array(name, value)
    if array.shape != (size, size):
        raise ValueError(
            f"`{name}` must have shape ({size}, {size}), where {size} is the {what}, "
            f"got {array.shape}"
        )
    return checks.finite(f"`{name}`", array, ": check how the weights were computed")
