"""Isotropic information: one concentration for rotations and one for translations (SE-Sync)."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._support import eps_of, zero_level


class Concentrations(NamedTuple):
    """Concentrations kappa and tau of every edge, and masks of edges where they are undefined."""

    kappa: np.ndarray  # (m,): concentrations of rotations
    tau: np.ndarray  # (m,): concentrations of translations
    rotation_fails: np.ndarray  # (m,) bool: the rotation's block is not positive definite
    fails: np.ndarray  # (m,) bool: one of the two blocks is not positive definite
    indefinite: np.ndarray  # (m,) bool: both blocks are positive definite, but the matrix is not


def concentrations(information: np.ndarray, dim: int) -> Concentrations:
    """Return kappa and tau of information matrices, (m, 3, 3) for dim 2 or (m, 6, 6) for dim 3.

    Translations come first. tau is the harmonic mean d / tr(inv(Omega_t)) of the translation's
    eigenvalues; kappa the information of the angle in the plane, and half the harmonic mean in
    space, 3 / (2 tr(inv(Omega_R))) (Rosen et al. 2019).
    """
    if dim == 2:
        kappa = information[:, 2, 2]
        rotation_fails = ~(kappa > 0)
    else:
        kappa, rotation_fails = harmonic_means(information[:, dim:, dim:])
        kappa = kappa / 2
    tau, translation_fails = harmonic_means(information[:, :dim, :dim])
    _, matrix_fails = _scaled(information)
    fails = rotation_fails | translation_fails
    return Concentrations(kappa, tau, rotation_fails, fails, matrix_fails & ~fails)


def isotropic_information(kappa: np.ndarray, tau: np.ndarray, dim: int) -> np.ndarray:
    """Return isotropic information matrices with given concentrations."""
    n_angles = 1 if dim == 2 else 3
    diagonal = np.empty((len(kappa), dim + n_angles))
    diagonal[:, :dim] = tau[:, None]
    diagonal[:, dim:] = (kappa if dim == 2 else 2 * kappa)[:, None]
    return diagonal[:, :, None] * np.eye(dim + n_angles)


def harmonic_means(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return k / tr(inv(B)) of matrices B (m, k, k), and which are not positive definite."""
    scaled, fails = _scaled(blocks)
    diagonal = np.where(fails[:, None], 1.0, np.einsum("eii->ei", blocks))
    inverse = np.einsum("eii->ei", np.linalg.inv(scaled)) / diagonal
    return blocks.shape[1] / inverse.sum(axis=1), fails


def _scaled(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale matrices B to D^-1/2 B D^-1/2 with unit diagonal; mark those not positive definite.

    After scaling, matrices with very different units are not singular to rounding. The identity
    replaces a B that is not positive definite.
    """
    k = blocks.shape[1]
    diagonal = np.einsum("eii->ei", blocks)
    fails = ~(diagonal > 0).all(axis=1)
    roots = np.sqrt(np.where(fails[:, None], 1.0, diagonal))
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = blocks / roots[:, :, None] / roots[:, None, :]
    fails |= ~np.isfinite(scaled).all(axis=(1, 2))
    scaled[fails] = np.eye(k)
    fails |= np.linalg.eigvalsh(scaled)[:, 0] <= zero_level(k, eps_of(float), float(k))
    scaled[fails] = np.eye(k)
    return scaled, fails
