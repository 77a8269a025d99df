"""The cochains whose losses are reported: a random one, and the same smoothed."""

import numpy as np

from sheafcoarsen.operators import laplacian_operator
from sheafcoarsen.sheaf import CellularSheaf

SMOOTHING_STEPS = 50
"""Damped steps that turn a random cochain into the smooth one whose losses are reported."""


def smooth_cochain(sheaf: CellularSheaf) -> np.ndarray:
    """Return a random cochain of norm 1 after damped steps x - L x / bound."""
    A = laplacian_operator(sheaf)
    x = random_cochain(sheaf)
    top = x
    for _ in range(10):  # a few power steps; twice their estimate is a safe step for smoothing
        top = A @ top
        top /= top.dtype.type(float(np.abs(top).max(initial=0)) or 1.0)
    bound = 2 * float(np.abs(A @ top).max(initial=0)) or 1.0
    for _ in range(SMOOTHING_STEPS):
        x = x - (A @ x) / x.dtype.type(bound)
    return x / x.dtype.type(float(np.linalg.norm(x)) or 1.0)


def random_cochain(sheaf: CellularSheaf) -> np.ndarray:
    """Return a normally distributed cochain, always the same, of norm 1."""
    x = np.random.default_rng(0).standard_normal(sheaf.dim_c0).astype(sheaf.dtype)
    return x / x.dtype.type(float(np.linalg.norm(x)) or 1.0)
