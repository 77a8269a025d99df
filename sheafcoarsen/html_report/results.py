"""Data of a report: smooth cochains, low spectra, worst edges, calls, and the verdict."""

import contextlib
import time
from collections.abc import Iterator

import numpy as np

from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.operators import count_nonzeros, laplacian
from sheafcoarsen.quality import Certificate, SpectralQuality, certificate, spectral_quality
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.solve import Sparsification
from sheafcoarsen.synchronization import Synchronization
from sheafcoarsen.verification import Verification

QUALITY_BELOW = 100_000
"""Maximum fine dimension for which eigenvalues are computed, to bound the time of a report."""


SMOOTHING_STEPS = 50
"""Number of damped steps that turn a random cochain into the smooth one of the report."""


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
    """Add the time that a stage takes, in seconds, to that under ``name``."""
    start = time.perf_counter()
    yield
    times[name] = times.get(name, 0.0) + time.perf_counter() - start


def smooth_cochain(sheaf: CellularSheaf) -> np.ndarray:
    """Return a smooth cochain of norm 1: steps x - L x / s from a random one, s row sums of abs(L).

    Steps by norm(L) would leave all but the vertices of the strongest edges as they are.
    """
    L = laplacian(sheaf)
    x = np.random.default_rng(0).standard_normal(sheaf.dim_c0).astype(sheaf.dtype)
    sums = np.asarray(abs(L).sum(axis=1)).reshape(-1)
    sums[sums == 0] = 1
    for _ in range(SMOOTHING_STEPS):
        x = x - (L @ x) / sums
    return x / x.dtype.type(float(np.linalg.norm(x)) or 1.0)


def worst_edges(S: Synchronization) -> list[tuple]:
    """Return the headings and rows of a table of the ten most suspicious edges and sightings."""
    found = S._residuals(10)
    found["angle"] = np.degrees(found["angle"])
    del found["cost"]
    if S.weights is not None or S.landmarks is not None:
        del found["suspicion"]  # these are the residuals
    heads = {"suspicion": "suspicion (sd)", "residual": "residual (sd)", "angle": "angle (degrees)"}
    rows: list[tuple] = [tuple(heads.get(name, name) for name in found)]
    for e, *row in zip(*found.values(), strict=True):
        numbers = ("-" if np.isnan(x) else f"{x:.3g}" for x in row[2:])
        rows.append((str(e), *map(str, row[:2]), *numbers))  # identifiers, not counts
    return rows


def call_of(C: Coarsening | Elimination | Sparsification) -> str:
    """Return the call that creates C from its sheaf F, and its partition P or retained vertices."""
    if isinstance(C, Sparsification):
        return f"sc.sparsify(F, {C.eps or 'eps'})"
    if isinstance(C, Elimination):
        return f"sc.eliminate(F, keep=kept, max_neighbors={C.max_neighbors})"
    if C.modes is None:
        options = ["basis=blocks"]
    else:
        kept, after = C.modes._without_rounding()
        ranks, top = C.modes.ranks, C.modes.ranks.max(initial=0)
        rank = str(ranks.tolist()) if len(ranks) <= 20 else "C.ranks"
        if C.modes.singular and not kept.any() and after.all():
            rank = "sc.ranks.kernel()"
        elif (ranks == np.minimum(C.clusters.dims, top)).all():
            rank = str(top)
        options = [f"rank={rank}"]
        options.append(f'local_operator="{C.modes.local_operator}"')
        given = {name: getattr(C.modes.operator, name, None) for name in ("rings", "target")}
        options += [f"{name}={value!r}" for name, value in given.items() if value is not None]
    options += [f"loops={C.loops}", f"compress={C.crossing_rows is None}"]
    return f"sc.coarsen(F, P, {', '.join(options)})"


# ---------------------------------------------------------------- the verdict


def sizes_and_checks(fine: CellularSheaf, coarse: CellularSheaf, verdict: Verification) -> list:
    """Return phrases on the sizes of two sheaves and their Laplacians, and on failed checks."""
    before, after = count_nonzeros(fine), count_nonzeros(coarse)
    word = "LARGER than it was" if after > before else "smaller than it was"
    word = "as large as it was" if after == before else word
    size = f"dim C^0 is {coarse.dim_c0:,} instead of {fine.dim_c0:,}, and the Laplacian is {word}"
    held, applied = verdict._counts()
    checks = f"all {applied} checks of the theory that apply passed"
    if held < applied:
        checks = f"{applied - held} of {applied} checks of the theory FAILED"
    return [f"{size}, {after:,} entries instead of {before:,}", checks]


def spectrum_errors(Q: SpectralQuality, n_components: int) -> str:
    """Return a phrase on lost sections and the relative errors of the low eigenvalues."""
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
    if n_components > 1:
        much += f", of all {n_components:,} components together"
    if len(there) < len(errors):
        much += f", {len(errors) - len(there)} more have no coarse value"
    return f"{zeros}, {much}"


def percent(share: float) -> str:
    """Format a fraction in percent, never rounding up to 100 %, or as a factor from 1000 % on."""
    if round(100 * share) >= 1000:
        return f"{share:,.0f} times"
    if 0.99 < share < 1:
        missing = 100 * (1 - share)
        digits = int(np.clip(np.ceil(-np.log10(missing) - 1e-6), 1, 14))
        return f"{100 * share:.{digits}f} %"
    return f"{100 * share:.3g} %"
