"""The page about an elimination: what went, how far rounding goes, whether all comes back."""

import numpy as np

from sheafcoarsen import plot
from sheafcoarsen._support import tables
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.html_report.findings import stage
from sheafcoarsen.html_report.origin import Origin
from sheafcoarsen.html_report.parts import document, figure, made_by, times, verification, wide
from sheafcoarsen.html_report.pictures import drawn
from sheafcoarsen.sheaf import sheaf_rows
from sheafcoarsen.verification import Verification, verify

UNKNOWN = "An elimination does not hold where its sheaf F came from."


def elimination_page(K: Elimination, origin: Origin) -> tuple[str, Verification]:
    """Return the page, and the checks that are in it."""
    own: dict[str, float] = {}
    with stage(own, "verification"):
        verdict = verify(K)
    with stage(own, "pictures"):
        pictures = {"partition": drawn(plot.elimination, K, size=(12.5, 7))}
    fine, left = K.sizes.vertices
    title = f"{origin.name or 'Elimination'}: {fine:,} → {left:,} vertices"
    failed = [] if verdict.passed else [f"Verification: {verdict.summary}"]
    lines = [
        f'<p class="verdict">{tables.text(sentence_of(K, verdict))}</p>',
        *made_by(origin, _parameters(K), _call(K), UNKNOWN),
        "<h2>What went, and what is left</h2>",
        wide(tables.table(K.sizes.rows, head=("", "fine", "left"))),
        *figure(pictures, "partition", "The fine graph, and the graph that is left"),
        "<h2>What is left</h2>",
        wide(tables.table([*sheaf_rows(K.sheaf), ("growth of right sides", K.growth)])),
        *verification(verdict),
        *times(origin.times, own, "An elimination"),
    ]
    return document(title, failed, lines), verdict


def sentence_of(K: Elimination, verdict: Verification) -> str:
    """Return the verdict: what was solved for, what its Laplacian costs, how far rounding goes."""
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


def _parameters(K: Elimination) -> dict[str, object]:
    return {"vertices kept": len(K.kept), "max_neighbors": K.max_neighbors}


def _call(K: Elimination) -> str:
    return f"sc.eliminate(F, keep=kept, max_neighbors={K.max_neighbors})"
