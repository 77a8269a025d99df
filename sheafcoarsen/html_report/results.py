"""What the page reports: checks, ledgers of two cochains, low spectra; and how long they took."""

import contextlib
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sheafcoarsen.coarsening import Coarsening, EnergyLedger, energy_ledger
from sheafcoarsen.operators import laplacian_operator
from sheafcoarsen.quality import Certificate, SpectralQuality, certificate, spectral_quality
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.verification import Verification, verify

QUALITY_BELOW = 100_000
"""Fine dimension up to which eigenvalues are computed, so that a report takes bounded time."""


SMOOTHING_STEPS = 50
"""Damped steps that turn a random cochain into the smooth one whose losses are reported."""


class Findings(NamedTuple):
    """What was found; a text stands for what could not be computed and says why."""

    verdict: Verification
    ledgers: tuple[EnergyLedger, EnergyLedger] | str  # of a random and a smooth cochain; of this
    quality: tuple[SpectralQuality, Certificate | None] | str


def findings_of(C: Coarsening, times: dict[str, float]) -> Findings:
    """Compute all of it, and note how long each part takes."""
    with stage(times, "verification"):
        verdict = verify(C)
    with stage(times, "losses"):
        ledgers = _ledgers(C)
    with stage(times, "eigenvalues"):
        quality = _quality(C)
    return Findings(verdict, ledgers, quality)


@contextlib.contextmanager
def stage(times: dict[str, float], name: str) -> Iterator[None]:
    """Note under ``name`` how many seconds a stage took."""
    start = time.perf_counter()
    yield
    times[name] = time.perf_counter() - start


def _ledgers(C: Coarsening) -> tuple[EnergyLedger, EnergyLedger] | str:
    """Return the ledger of two cochains and that of the smooth one, or why there is none."""
    rough, smooth = random_cochain(C.fine), smooth_cochain(C.fine)
    try:
        return energy_ledger(C, np.stack([rough, smooth], axis=1)), energy_ledger(C, smooth)
    except ValueError as error:
        return str(error)


def _quality(C: Coarsening) -> tuple[SpectralQuality, Certificate | None] | str:
    """Return the low spectra and, for internal modes, their certificate; or why there are none."""
    if C.fine.dim_c0 > QUALITY_BELOW:
        return (
            f"left out, because dim C^0 = {C.fine.dim_c0:,} is above {QUALITY_BELOW:,} and it "
            f"might take long: spectral_quality(C, k) computes them"
        )
    k = min(10, C.sheaf.dim_c0)
    if k == 0:
        return "the coarse C^0 has dimension 0"
    try:
        quality = spectral_quality(C, k)
    except (ValueError, np.linalg.LinAlgError) as error:
        return str(error)
    spectral = C.modes is not None and C.modes.operator.spectral
    return quality, certificate(C) if spectral else None


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
