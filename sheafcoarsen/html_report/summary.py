"""The verdict in one sentence: what was kept, how far the low spectrum is off, what it costs."""

import numpy as np

from sheafcoarsen._support import tables
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.html_report.results import Findings
from sheafcoarsen.operators import count_nonzeros
from sheafcoarsen.synchronization import Synchronization
from sheafcoarsen.verification import Verification


def verdict_of(C: Coarsening, found: Findings) -> str:
    """Return the sentence."""
    parts = [_kept(found), _spectrum(found), _size(C), _checks(found)]
    sentence = "; ".join(part for part in parts if part)
    return sentence[:1].upper() + sentence[1:] + "."


def poses_verdict(S: Synchronization) -> str:
    """Return the sentence for poses."""
    Z = S.certify()
    if Z.is_optimal:
        known = f"no poses have a lower cost than these, {Z.cost:.6g}"
    else:
        known = (
            f"the cost is {Z.cost:.6g}, and that of all poses at least "
            f"{Z.lower_bound:.6g}: these may be the best or a local minimum"
        )
    if S.weights is not None:
        out = int((S.weights < 0.5).sum())
        known += f"; {out:,} of {S.n_edges:,} measurements were left out"
    return f"{known[:1].upper()}{known[1:]}."


def _kept(found: Findings) -> str:
    if isinstance(found.ledgers, str):
        return "what is kept of a smooth cochain is not known, because R is no isometry"
    smooth = found.ledgers[1]
    kept = 1 - float(smooth.discarded_norm2.sum())
    return f"{percent(kept)} of the squared norm of a smooth cochain is kept"


def _spectrum(found: Findings) -> str:
    if isinstance(found.quality, str):
        return ""
    Q = found.quality[0]
    lost = Q.kernel_fine - Q.kernel_coarse
    zeros = "all zero eigenvalues stay" if lost <= 0 else f"{lost:,} zero eigenvalues are lost"
    if Q.kernel_fine == 0:
        zeros = "there is no zero eigenvalue"
    errors = Q.relative_errors
    there = errors[np.isfinite(errors)]
    if not len(errors):
        return f"{zeros} and there are no others"
    if not len(there):
        return f"{zeros}, and none of the lowest {len(errors)} positive ones has a coarse one"
    many = (
        f"the lowest {len(there)} positive eigenvalues are"
        if len(there) > 1
        else ("the lowest positive eigenvalue is")
    )
    much = f"{many} at most {percent(float(there.max()))} too high"
    if len(there) > 2:
        much += f" ({percent(float(np.median(there)))} in the median)"
    if len(there) < len(errors):
        much += f", {len(errors) - len(there)} more have no coarse one"
    return f"{zeros}, {much}"


def _size(C: Coarsening) -> str:
    before, after = count_nonzeros(C.fine), count_nonzeros(C.sheaf)
    dims = f"dim C^0 is {C.sheaf.dim_c0:,} instead of {C.fine.dim_c0:,}"
    word = "LARGER than it was" if after > before else "smaller than it was"
    if after == before:
        word = "as large as it was"
    return f"{dims}, and the Laplacian is {word}, {after:,} entries instead of {before:,}"


def _checks(found: Findings) -> str:
    verdict = found.verdict
    applied = [check for check in verdict.checks if check.skipped_because is None]
    failed = [check for check in applied if not check.passed]
    if failed:
        return f"{len(failed)} of {len(applied)} checks of the theory FAILED"
    return f"all {len(applied)} checks of the theory that apply passed"


def elimination_verdict(K: Elimination, verdict: Verification) -> str:
    """Return the sentence of an elimination: its size, its cost, and how far rounding goes."""
    S = K.sizes
    gone, before = S.vertices[0] - S.vertices[1], max(S.nonzeros[0], 1)
    growth = "without bound" if np.isinf(K.growth) else f"up to {K.growth:.3g} times"
    parts = [
        f"{gone:,} of {S.vertices[0]:,} vertices are solved for",
        f"the Laplacian of the others has {S.nonzeros[1] / before:.0%} of the nonzeros",
        f"right sides, and rounding, grow {growth} on their way to them"
        if S.vertices[1]
        else f"nothing is left to solve; rounding grows {growth} on the way",
    ]
    if not K.is_determined:
        parts.append("some sections live on eliminated vertices alone")
    parts.append("all checks passed" if verdict.passed else "a check FAILED")
    return "; ".join(parts) + "."


def percent(share: float) -> str:
    """Return a share in percent, so many digits that it does not look like all or nothing."""
    if share >= 10:
        return f"{tables.text(100 * share)} %"
    if 0.99 < share < 1:
        missing = 100 * (1 - share)
        digits = int(np.clip(np.ceil(-np.log10(missing) - 1e-6), 1, 12))
        return f"{100 * share:.{digits}f} %"
    return f"{100 * share:.3g} %"
