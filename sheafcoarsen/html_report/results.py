"""Data of a report: ledgers of two cochains, low spectra, and the verdict."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from sheafcoarsen._support import counted
from sheafcoarsen.coarsening import Coarsening, EnergyLedger, energy_ledger
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.hierarchy import Hierarchy
from sheafcoarsen.operators import count_nonzeros, laplacian
from sheafcoarsen.quality import Certificate, SpectralQuality, certificate, spectral_quality
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.synchronization import PoseCertificate, Synchronization
from sheafcoarsen.verification import Verification

QUALITY_BELOW = 100_000
"""Maximum fine dimension for which eigenvalues are computed, to bound the time of a report."""


SMOOTHING_STEPS = 50
"""Number of damped steps that turn a random cochain into the smooth one of the report."""


def ledgers_of(C: Coarsening) -> tuple[EnergyLedger, EnergyLedger] | str:
    """Return the ledger of a random and a smooth cochain and that of the smooth one.

    If R is not an isometry, return the reason why there is no ledger.
    """
    rough, smooth = random_cochain(C.fine), smooth_cochain(C.fine)
    try:
        return energy_ledger(C, np.stack([rough, smooth], axis=1)), energy_ledger(C, smooth)
    except ValueError as error:
        return str(error)


def spectra_of(C: Coarsening) -> tuple[SpectralQuality, Certificate | None] | str:
    """Return the low spectra of both sheaves with their certificate, or why they are missing."""
    k = min(10, C.sheaf.dim_c0)
    if C.fine.dim_c0 > QUALITY_BELOW:
        return (
            f"left out, because dim C^0 = {C.fine.dim_c0:,} is above {QUALITY_BELOW:,} and it "
            f"might take long: spectral_quality(C, k) computes them"
        )
    if k == 0:
        return "the coarse C^0 has dimension 0"
    try:
        Q = spectral_quality(C, k)
    except (ValueError, np.linalg.LinAlgError) as error:
        return str(error)
    spectral = C.modes is not None and C.modes.operator.spectral
    return Q, certificate(C) if spectral else None


@contextlib.contextmanager
def stage(times: dict[str, float], name: str) -> Iterator[None]:
    """Record the time that a stage takes, in seconds, under ``name``."""
    start = time.perf_counter()
    yield
    times[name] = time.perf_counter() - start


def smooth_cochain(sheaf: CellularSheaf) -> np.ndarray:
    """Return a random cochain of norm 1 after steps x - L x / s, s the row sums of abs(L).

    Steps by norm(L) would leave all but the vertices of the strongest edges as they are.
    """
    L, x = laplacian(sheaf), random_cochain(sheaf)
    sums = np.asarray(abs(L).sum(axis=1)).reshape(-1)
    sums[sums == 0] = 1
    for _ in range(SMOOTHING_STEPS):
        x = x - (L @ x) / sums
    return x / x.dtype.type(float(np.linalg.norm(x)) or 1.0)


def random_cochain(sheaf: CellularSheaf) -> np.ndarray:
    """Return a Gaussian random cochain scaled to norm 1, with a fixed seed."""
    x = np.random.default_rng(0).standard_normal(sheaf.dim_c0).astype(sheaf.dtype)
    return x / x.dtype.type(float(np.linalg.norm(x)) or 1.0)


# ---------------------------------------------------------------- the verdict


def verdict_of(C: Coarsening, ledgers: tuple | str, spectra: tuple | str, checks: Any) -> str:
    """Return a sentence with the retained fraction, the errors of the spectrum and the sizes.

    ``ledgers`` and ``spectra`` are those of `ledgers_of` and `spectra_of`.
    """
    parts = ["the retained part of a smooth cochain is not known, because R is not an isometry"]
    if not isinstance(ledgers, str):
        parts = [_kept(float(ledgers[1].discarded_norm2.sum()))]
    if not isinstance(spectra, str):
        parts.append(_spectrum(spectra[0]))
    return _sentence(*parts, *_sizes_and_checks(C.fine, C.sheaf, checks))


def hierarchy_verdict(H: Hierarchy, lost: float | None, verdict: Verification) -> str:
    """Return a sentence about a hierarchy, with the retained fraction of a smooth cochain."""
    levels = f"{counted(H.fine.n_vertices, 'vertex', 'vertices')} become "
    levels += f"{H.sheaves[-1].n_vertices:,} in {counted(len(H), 'level')}"
    parts = [levels] if lost is None else [levels, _kept(lost)]
    return _sentence(*parts, *_sizes_and_checks(H.fine, H.sheaves[-1], verdict))


def _kept(lost: float) -> str:
    return f"{percent(1 - lost)} of the squared norm of a smooth cochain is kept"


def _sentence(*parts: str) -> str:
    sentence = "; ".join(parts)
    return sentence[:1].upper() + sentence[1:] + "."


def _sizes_and_checks(fine: CellularSheaf, coarse: CellularSheaf, verdict: Verification) -> tuple:
    before, after = count_nonzeros(fine), count_nonzeros(coarse)
    word = "LARGER than it was" if after > before else "smaller than it was"
    word = "as large as it was" if after == before else word
    size = f"dim C^0 is {coarse.dim_c0:,} instead of {fine.dim_c0:,}, and the Laplacian is {word}"
    held, applied = verdict._counts()
    checks = f"all {applied} checks of the theory that apply passed"
    if held < applied:
        checks = f"{applied - held} of {applied} checks of the theory FAILED"
    return f"{size}, {after:,} entries instead of {before:,}", checks


def poses_verdict(S: Synchronization, Z: PoseCertificate) -> str:
    """Return a sentence about the cost of poses and its lower bound."""
    if Z.is_optimal:
        known = f"no poses have a lower cost than these, {Z.cost:.6g}"
    else:
        known = (
            f"the cost is {Z.cost:.6g}, and that of all poses at least "
            f"{Z.lower_bound:.6g}: these may be the best or a local minimum"
        )
    if S.weights is not None:
        known += f"; {S._n_left_out:,} of {S.n_edges:,} measurements were left out"
    return _sentence(known)


def _spectrum(Q: SpectralQuality) -> str:
    lost = Q.kernel_fine - Q.kernel_coarse
    zeros = "all zero eigenvalues stay" if lost <= 0 else f"{lost:,} zero eigenvalues are lost"
    if Q.kernel_fine == 0:
        zeros = "there is no zero eigenvalue"
    errors = Q.relative_errors
    there = errors[np.isfinite(errors)]
    if not len(errors):
        return f"{zeros} and there are no others"
    if not len(there):
        return f"{zeros}, and none of the lowest {len(errors)} positive ones has a coarse value"
    many = f"{len(there)} positive eigenvalues are" if len(there) > 1 else "positive eigenvalue is"
    top, middle = float(there.max()), float(np.median(there))
    if top < 10:
        much, half = f"{percent(top)} too high", percent(middle)
    else:
        much, half = f"{1 + top:,.3g} times the fine ones", f"{1 + middle:,.3g} times"
    much = f"the lowest {many} up to {much}" + f" ({half} in the median)" * (len(there) > 2)
    if len(there) < len(errors):
        much += f", {len(errors) - len(there)} more have no coarse value"
    return f"{zeros}, {much}"


def elimination_verdict(K: Elimination, verdict: Verification) -> str:
    """Return a sentence about the size of an elimination and the growth of rounding errors."""
    S = K.sizes
    gone, before = S.vertices[0] - S.vertices[1], max(S.nonzeros[0], 1)
    growth = "without bound" if np.isinf(K.growth) else f"up to {K.growth:.3g} times"
    parts = [
        f"{gone:,} of {S.vertices[0]:,} vertices are solved for",
        f"the Laplacian of the others has {S.nonzeros[1] / before:.0%} of the nonzeros",
        f"right-hand sides and rounding errors grow {growth} in the reduction to them"
        if S.vertices[1]
        else f"nothing is left to solve; rounding errors grow {growth} in the elimination",
    ]
    if not K.is_determined:
        parts.append("some sections live on eliminated vertices alone")
    parts.append("all checks passed" if verdict.passed else "a check FAILED")
    return _sentence(*parts)


def percent(share: float) -> str:
    """Format a fraction in percent, below 1 never as 100 %, or as a factor from 1000 % on."""
    if round(100 * share) >= 1000:
        return f"{share:,.0f} times"
    if 0.99 < share < 1:
        missing = 100 * (1 - share)
        digits = int(np.clip(np.ceil(-np.log10(missing) - 1e-6), 1, 12))
        return f"{100 * share:.{digits}f} %"
    return f"{100 * share:.3g} %"
