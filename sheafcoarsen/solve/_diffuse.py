"""Sheaf diffusion: the flow exp(-t L), and one step of a sheaf network with given weights."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.special

from sheafcoarsen._support import cochain, eps_of, real_number, scalar_array, vertex_mask
from sheafcoarsen.operators import as_columns, coboundary, laplacian, laplacian_operator, normalized
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, unit_sheaf

LONGEST = 1e6
"""Largest t norm(L) that `diffuse` takes: about 7,000 products with L."""


STAGES = (1e2, 1e4)
"""Values of t norm(L) at which `diffuse` starts anew.

Once the high modes are gone, later terms add no rounding of their size to the low ones. On a
complete graph at t norm(L) = 1e6 that brings the error from 42 n eps to 0.06, for 10 % more
products.
"""


def diffuse(
    sheaf: CellularSheaf,
    X: npt.ArrayLike,
    t: float | Sequence[float] | np.ndarray,
    fixed: npt.ArrayLike | None = None,
) -> np.ndarray:
    """Return exp(-t L) X, the sheaf diffusion of X for a time t (``eq:app-sheaf-diffusion``).

    The paper's flow is that of the normalized Laplacian (``eq:app-continuous-sheaf-diffusion``; on
    the constant sheaf, ``eq:app-graph-heat-diffusion``): ``diffuse(normalize(sheaf), X, t)``. In
    the limit of large t the flow projects on the global sections.

    Vertices in ``fixed`` are stubborn: their values S stay, and the others I flow by
    dx_I/dt = -L_II x_I - L_IS x_S, towards the harmonic extension of those values.

    Parameters
    ----------
    sheaf : CellularSheaf
    X : array_like, shape (dim_c0,) or (dim_c0, h)
    t : float, or a sequence of them
        At least 0. Several times cost what the longest does. With beta = norm(L, inf), t beta may
        be at most 1e6: the number of products with L grows like 6 sqrt(t beta).
    fixed : array_like of int, or of bool and shape (n,), optional
        Vertices whose values stay, as numbers or as a mask. beta is then that of L_II.

    Returns
    -------
    ndarray, shape of X, or ``(len(t), *X.shape)`` for several times
        In the common scalar type of X and the sheaf.

    Raises
    ------
    ValueError
        t negative, not finite, or so long that t beta exceeds 1e6; vertices in ``fixed`` that do
        not exist.

    Notes
    -----
    With tau = t beta / 2 and the modified Bessel functions I_k, ``exp(-t L) = sum_k c_k T_k(I - 2 L
    / beta)``, c_k = (2 - [k = 0]) exp(-tau) I_k(tau). The c_k are positive and sum to 1, and no T_k
    exceeds 1 on the spectrum, so that the sum of the terms left out bounds the error: at most 2 eps
    norm(X), in each of three stages. Rounding adds what changing the maps by a few eps would do.
    Products are taken as delta* (delta x), with which global sections keep still a hundred times
    better than with an assembled L. All is computed in double precision.

    With fixed vertices the rows of L at them are left out. T_k of that matrix grows like k at most,
    and so may the values themselves, like sqrt(t beta): on most sheaves neither does.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(3))
    >>> sc.diffuse(F, [3.0, 0.0, 0.0], 1.0).round(3)
    array([1.577, 0.95 , 0.473])
    >>> sc.diffuse(F, [3.0, 0.0, 0.0], [0.0, 100.0]).round(3)
    array([[3., 0., 0.],
           [1., 1., 1.]])

    A stubborn vertex at one end convinces the others in time:

    >>> sc.diffuse(F, [3.0, 0.0, 0.0], [1.0, 10.0, 100.0], fixed=[0]).round(3)
    array([[3.   , 1.458, 0.64 ],
           [3.   , 2.952, 2.923],
           [3.   , 3.   , 3.   ]])
    """
    X = cochain(check_sheaf(sheaf), X, "X")
    times = _times(t)
    stays = vertex_mask("fixed", () if fixed is None else fixed, sheaf.n_vertices)
    flows = np.repeat(~stays, sheaf.vertex_dims)
    result = np.repeat(X[None], len(times), axis=0)
    unit, scale = unit_sheaf(sheaf)
    L = abs(laplacian(unit))
    beta = float((L @ flows)[flows].max(initial=0.0))
    with np.errstate(over="ignore", invalid="ignore"):
        reaches = times * scale * scale * beta if beta > 0 else 0 * times
    longest = float(reaches.max(initial=0.0))
    if longest > LONGEST:
        raise ValueError(
            f"`t` times norm(L, inf) must be at most {LONGEST:.0e}, got {longest:.3g}: "
            f"{_remedy(stays)}"
        )
    if longest > 0:
        delta = coboundary(unit)
        adjoint = scipy.sparse.csr_array(delta.conj().T)
        if stays.any():
            keep = scipy.sparse.diags_array(flows.astype(adjoint.dtype), format="csr")
            adjoint = scipy.sparse.csr_array(keep @ adjoint)
        x = as_columns(X).astype(np.result_type(X.dtype, np.float64))
        eps = eps_of(X.dtype)
        if stays.any():  # what T_k may grow by
            eps /= 1 + 6 * np.sqrt(longest)
        begin = 0.0
        for stop in [*(stop for stop in STAGES if stop < longest), longest]:
            here = np.flatnonzero((reaches > begin) & (reaches <= stop))
            taus = (np.append(reaches[here], stop) - begin) / 2
            *values, x = _flow(delta, adjoint, beta, x, taus, eps)
            for which, value in zip(here.tolist(), values, strict=True):
                result[which, flows] = value.reshape(X.shape).astype(X.dtype)[flows]
            begin = stop
    return result[0] if np.ndim(t) == 0 else result


def _remedy(stays: np.ndarray) -> str:
    """Return what to do instead of a flow that takes too long."""
    if stays.any():
        return (
            "take the limit of long times, harmonic_extension(sheaf, fixed, values), which the "
            "values come to wherever a fixed vertex is in reach"
        )
    return (
        "diffuse on a coarse sheaf, C.lift(diffuse(C.sheaf, C.pool(X), t)), or take the limit of "
        "long times, nearest_section(sheaf, X)"
    )


def _times(t: Any) -> np.ndarray:
    """Return one time or several as an array of finite numbers, none of them negative."""
    if np.ndim(t) == 0:
        named = {"t": t}
    elif np.ndim(t) == 1:
        named = {f"t[{i}]": value for i, value in enumerate(t)}
    else:
        raise ValueError(f"`t` must be a number or a sequence of them, got shape {np.shape(t)}")
    times = np.array([real_number(name, value) for name, value in named.items()], np.float64)
    bad = np.flatnonzero(~((times >= 0) & (times < np.inf)))
    if bad.size:
        name = list(named)[bad[0]]
        raise ValueError(f"`{name}` must be finite and at least 0, got {times[bad[0]]}")
    return times


def _flow(
    delta: scipy.sparse.csr_array,
    adjoint: scipy.sparse.csr_array,
    beta: float,
    x: np.ndarray,
    taus: np.ndarray,
    eps: float,
) -> list[np.ndarray]:
    """Return exp(-2 tau L / beta) x for every tau, each up to an error of 2 eps norm(x)."""
    coefficients = [_coefficients(tau, eps) for tau in taus]
    term = x.copy()
    totals = [c[0] * term for c in coefficients]
    # T_{k+1} x - T_k x = T_k x - T_{k-1} x - (4 / beta) L T_k x: in differences, which are small
    # where L x is (Reinsch)
    step = np.zeros_like(term)
    for k in range(1, max(map(len, coefficients))):
        step -= (4 if k > 1 else 2) / beta * (adjoint @ (delta @ term))
        term += step
        for c, total in zip(coefficients, totals, strict=True):
            if k < len(c):
                total += c[k] * term
    return totals


def _coefficients(tau: float, eps: float) -> np.ndarray:
    """Return the c_k of exp(-tau (1 - z)) = sum_k c_k T_k(z), but for a tail below 2 eps in all."""
    # c_k is the chance that a random walk in continuous time is k steps away, left or right;
    # Bernstein's inequality
    decay = np.log(2 / eps)
    last = int(decay / 3 + np.sqrt(decay**2 / 9 + 2 * decay * tau)) + 1
    c = scipy.special.ive(np.arange(last + 1), tau)
    c[1:] *= 2
    c = c[np.cumsum(c[::-1])[::-1] > eps]
    return c / c.sum()


def diffusion_step(
    sheaf: CellularSheaf,
    X: npt.ArrayLike,
    W1: npt.ArrayLike,
    W2: npt.ArrayLike,
    activation: Callable[[np.ndarray], np.ndarray] = np.tanh,
) -> np.ndarray:
    """Return X - activation(Delta (I (x) W1) X W2), a discrete step of neural sheaf diffusion.

    That is ``eq:nsd-layer`` and ``eq:app-discrete-nsd``, for given maps and weights; on the
    constant sheaf, with W1, W2 and the activation identities, ``eq:app-euler-graph-diffusion``.
    Delta is the normalized sheaf Laplacian, as in the paper: the step normalizes the sheaf itself,
    with the pseudo-inverse where a diagonal block is singular. A sheaf that is normalized already
    stays as it is.

    Parameters
    ----------
    sheaf : CellularSheaf
        All vertex stalks of one dimension d.
    X : array_like, shape (N d, f)
        Lifted features: one row per stalk coordinate, one column per channel
        (``eq:nsd-feature-matrix``).
    W1 : array_like, shape (d, d)
        Acts on the stalks.
    W2 : array_like, shape (f, f)
        Acts on the channels.
    activation : callable
        Array to array of the same shape, such as ``np.tanh``.

    Returns
    -------
    ndarray, shape (N d, f)
        In the common scalar type of all four.

    Raises
    ------
    ValueError, TypeError
        Weights of other shapes, an activation that changes the shape, or results that overflow.

    Warns
    -----
    SingularDegreeWarning
        Where a diagonal block of L is singular, as in :func:`normalize`.

    Notes
    -----
    With another operator the step is a line: ``X - np.tanh(sc.laplacian_operator(F) @ Y)``, where
    ``Y = (W1 @ X.reshape(N, d, f)).reshape(N * d, f) @ W2``; without the normalization, or with
    ``sc.normalize(F, "augment")`` for F.

    Examples
    --------
    One round of a sheaf network, whose maps come from elsewhere, here from a fixed function of the
    features; then pooling:

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
    >>> out = sc.HiSP(n_modes=4, n_clusters=2)(F, Y)
    >>> out.x.shape, sc.readout(out.x, "mean").shape
    ((2, 12), (12,))
    """
    check_sheaf(sheaf)
    dims = sheaf.vertex_dims
    if (dims != dims[:1]).any():
        v = int(np.flatnonzero(dims != dims[0])[0])
        raise ValueError(
            f"`sheaf` must have vertex stalks of one dimension, on which `W1` acts; vertex {v} "
            f"has dimension {dims[v]}, "
            f"vertex 0 has {dims[0]}: write the step with one matrix per dimension and "
            "laplacian_operator(normalize(sheaf))"
        )
    X = cochain(sheaf, X, "X")
    if X.ndim != 2:
        raise ValueError(
            f"`X` must have shape (N d, f), got {X.shape}: X[:, None] makes a single channel"
        )
    n, f = sheaf.n_vertices, X.shape[1]
    d = int(dims[0]) if n else len(np.atleast_1d(scalar_array("W1", W1)))
    W1, W2 = (
        _weights("W1", W1, d, "the dimension of the stalks"),
        _weights("W2", W2, f, "the number of channels"),
    )
    if not callable(activation):
        raise TypeError(
            f"`activation` must be a function of arrays, such as numpy.tanh, got {activation!r}"
        )
    Delta = laplacian_operator(normalized(sheaf, stacklevel=3))
    with np.errstate(over="ignore", invalid="ignore"):
        Y = Delta @ ((W1 @ X.reshape(n, d, f)).reshape(n * d, f) @ W2)
    _all_finite("Delta (I (x) W1) X W2", Y, "rescale the weights or X")
    change = scalar_array("activation(...)", activation(Y))
    if change.shape != Y.shape:
        raise ValueError(
            f"`activation` must keep the shape of its argument, {Y.shape}, got {change.shape}"
        )
    _all_finite("activation(...)", change, "it must be finite wherever its argument is")
    with np.errstate(over="ignore"):
        result = X - change
    _all_finite("X - activation(...)", result, "rescale X or the weights")
    return result


def _weights(name: str, value: Any, size: int, what: str) -> np.ndarray:
    array = scalar_array(name, value)
    if array.shape != (size, size):
        raise ValueError(
            f"`{name}` must have shape ({size}, {size}), {what} twice, got {array.shape}"
        )
    _all_finite(f"`{name}`", array, "check where the weights come from")
    return array


def _all_finite(what: str, array: np.ndarray, remedy: str) -> None:
    bad = np.argwhere(~np.isfinite(array))
    if bad.size:
        where = tuple(bad[0].tolist())
        raise ValueError(f"{what} must be finite, got {array[where]} at {where}: {remedy}")
