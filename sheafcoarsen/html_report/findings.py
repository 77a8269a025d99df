"""What the page reports: checks, ledgers of two cochains, low spectra; and how long they took."""

import contextlib
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sheafcoarsen.coarsening import Coarsening, EnergyLedger, energy_ledger
from sheafcoarsen.html_report.smoothing import random_cochain, smooth_cochain
from sheafcoarsen.quality import Certificate, SpectralQuality, certificate, spectral_quality
from sheafcoarsen.verification import Verification, verify

QUALITY_BELOW = 100_000
"""Fine dimension up to which eigenvalues are computed, so that a report takes bounded time."""


EIGENVALUES = 10


class Findings(NamedTuple):
    """What was found; a text stands for what could not be computed and says why."""

    verdict: Verification
    ledgers: tuple[EnergyLedger, EnergyLedger] | str  # of a random cochain and of a smooth one
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
    """Return the ledgers of a random cochain and of a smooth one, or why there are none."""
    try:
        return energy_ledger(C, random_cochain(C.fine)), energy_ledger(C, smooth_cochain(C.fine))
    except ValueError as error:
        return str(error)


def _quality(C: Coarsening) -> tuple[SpectralQuality, Certificate | None] | str:
    """Return the low spectra and, for internal modes, their certificate; or why there are none."""
    if C.fine.dim_c0 > QUALITY_BELOW:
        return (
            f"left out, because dim C^0 = {C.fine.dim_c0:,} is above {QUALITY_BELOW:,} and it "
            f"might take long: spectral_quality(C, k) computes them"
        )
    k = min(EIGENVALUES, C.sheaf.dim_c0)
    if k == 0:
        return "the coarse C^0 has dimension 0"
    try:
        quality = spectral_quality(C, k)
    except (ValueError, np.linalg.LinAlgError) as error:
        return str(error)
    spectral = C.modes is not None and C.modes.operator.spectral
    return quality, certificate(C) if spectral else None
