"""The parts of the page below the verdict, as lines of HTML."""

from typing import Any

import numpy as np

from sheafcoarsen._support import eps_of, tables, zero_level
from sheafcoarsen.coarsening import Coarsening, growth_of
from sheafcoarsen.html_report.origin import Origin, today, versions
from sheafcoarsen.html_report.smoothing import SMOOTHING_STEPS
from sheafcoarsen.html_report.style import STYLE
from sheafcoarsen.operators import count_nonzeros
from sheafcoarsen.sheaf import sheaf_rows
from sheafcoarsen.verification import Verification

CLUSTERS = 20
"""Clusters that have a row of their own."""


def note(sentence: str) -> str:
    """Return a paragraph in the colour of remarks."""
    return f'<p class="note">{tables.text(sentence)}</p>'


def wide(table: str) -> str:
    """Return a table that scrolls where it is wider than the page."""
    return f'<div class="wide">{table}</div>'


def figure(pictures: dict[str, str], name: str, alt: str) -> list[str]:
    """Return a picture with its words, where there is one."""
    return (
        [f'<figure class="{name}"><img alt="{tables.text(alt)}" src="{pictures[name]}"></figure>']
        if name in pictures
        else []
    )


def document(title: str, failed: list[str], lines: list[str]) -> str:
    """Return the page with a title, what failed, and then these lines."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{tables.text(title)}</title><style>{STYLE}</style></head><body>",
            f"<h1>{tables.text(title)}</h1>",
            *(f'<p class="failed">{tables.text(line)}</p>' for line in failed),
            *lines,
            "</body></html>\n",
        ]
    )


def made_by(origin: Origin, parameters: dict[str, object], call: str, unknown: str) -> list[str]:
    """Say what to do for the same again: name, date, versions, parameters, command."""
    rows: list[tuple] = [("input", origin.name)] if origin.name else []
    rows += [("date", today()), ("made with", versions())]
    rows += list((origin.parameters or parameters).items())
    return [
        "<h2>How it was made</h2>",
        wide(tables.table(rows)),
        "<p>For the same again:</p>",
        f'<pre class="wide">{tables.text(origin.command or call)}</pre>',
        *([] if origin.command else [note(unknown)]),
    ]


def what_went_in(C: Coarsening) -> list[str]:
    """Say what the fine sheaf is, and how it is divided."""
    rows = [
        *sheaf_rows(C.fine),
        ("nonzeros of L, as stored", count_nonzeros(C.fine)),
        ("scalars", str(C.fine.dtype)),
        ("clusters", C.partition.n_clusters),
        ("vertices in a cluster", tables.span(C.partition.sizes)),
    ]
    if C.modes is None:
        rows.append(("modes", "a basis of the user's own"))
    else:
        rows += C.modes._rows()[1:]
    if C.fine.vertex_labels:
        rows.append(("vertex labels", tables.names(C.fine.vertex_labels)))
    return ["<h2>What went in</h2>", wide(tables.table(rows))]


def what_came_out(C: Coarsening, pictures: dict) -> list[str]:
    """Say what the coarse sheaf is, and its clusters."""
    rows = [
        *sheaf_rows(C.sheaf),
        ("nonzeros of its L, as stored", count_nonzeros(C.sheaf)),
        ("edge stalks compressed", C.crossing_rows is None),
    ]
    if not C.loops:
        rows.append(("loop-cells", "not asked for: retained internal energy is left out"))
    growth = growth_of(C)
    return [
        "<h2>What came out</h2>",
        wide(tables.table(rows)),
        *([note(f"Of the coarse sheaf: {growth}.")] if growth else []),
        *figure(pictures, "partition", "The fine graph in its clusters, and the coarse graph"),
        wide(tables.table(_cluster_rows(C), head=_CLUSTER_HEAD, caption=_cluster_caption(C))),
        *figure(pictures, "spectra", "Kept and first discarded eigenvalues of every cluster"),
    ]


_CLUSTER_HEAD = (
    "cluster",
    "vertices",
    "dim",
    "modes",
    "kept eigenvalues",
    "first discarded",
    "members",
)


def _cluster_caption(C: Coarsening) -> str:
    K = C.partition.n_clusters
    return f"The first {CLUSTERS} of {K:,} clusters" if K > CLUSTERS else "The clusters"


def _cluster_rows(C: Coarsening) -> list[tuple]:
    labels = C.fine.vertex_labels
    rows: list[tuple] = []
    if C.modes is not None:  # what is zero to working accuracy is shown as 0
        level = zero_level(C.clusters.dims, eps_of(C.fine.dtype), C.modes.operator_norms)
    for a in range(min(C.partition.n_clusters, CLUSTERS)):
        members = C.partition.cluster(a)
        kept, after = "", ""
        if C.modes is not None:
            values = C.modes.eigenvalues(a)
            kept = tables.span(np.where(values <= level[a], 0, values))
            first_out = C.modes.next_eigenvalues[a]
            after = tables.text(first_out * (first_out > level[a]))
            after = after if np.isfinite(first_out) else "none"
        first = [
            labels[v] if labels is not None else v for v in members[: tables.SHOWN + 1].tolist()
        ]
        shown = tables.names(first[: tables.SHOWN]) + (", …" if len(first) > tables.SHOWN else "")
        rows.append((a, len(members), int(C.clusters.dims[a]), int(C.ranks[a]), kept, after, shown))
    return rows


def losses(C: Coarsening, ledgers: Any, pictures: dict) -> list[str]:
    """Say what becomes of the energy of two cochains."""
    head = ["<h2>What was lost</h2>"]
    if isinstance(ledgers, str):
        return [*head, note(ledgers)]
    rough, smooth = ledgers
    rows: list[tuple] = [
        (name, value, smooth._shown()[name]) for name, value in rough._shown().items()
    ]
    rows += [("squared norm discarded, of 1", *(float(E.discarded_norm2.sum()) for E in ledgers))]
    explained = (
        "The energy norm(delta x)^2 of two cochains of norm 1 and what becomes of it: a random "
        f"one, and the same after {SMOOTHING_STEPS} "
        "damped steps x - L x / (2 norm(L)). The first six lines add up to the fine energy, up "
        "to rounding, which the closure measures."
    )
    return [
        *head,
        f"<p>{tables.text(explained)}</p>",
        wide(tables.table(rows, head=("", "random", "smoothed"))),
        *figure(pictures, "ledger", "The energy of the smoothed cochain, line by line"),
        note("The picture is that of the smoothed cochain."),
    ]


def eigenvalues(quality: Any, pictures: dict) -> list[str]:
    """Say how far the low spectrum is off."""
    head = ["<h2>Low eigenvalues</h2>"]
    if isinstance(quality, str):
        return [*head, note(quality)]
    Q, B = quality
    return [
        *head,
        wide(Q._repr_html_()),
        *([] if B is None else [wide(B._repr_html_())]),
        *figure(pictures, "quality", "Low eigenvalues of the fine and the coarse Laplacian"),
    ]


def verification(verdict: Verification) -> list[str]:
    """List the checks."""
    explained = (
        'Labels with a colon are those of "Hierarchical Pooling for Sheaf Neural Networks"; '
        "sections and facts are those of "
        "docs/conventions.md. Compared was everything (exact), random cochains or some clusters "
        "(probe), or dense matrices (dense)."
    )
    return ["<h2>Verification</h2>", wide(verdict._repr_html_()), note(explained)]


def times(given: dict, own: dict, what: str) -> list[str]:
    """Say how long it took."""
    rows = [(name, f"{seconds:.3f} s") for name, seconds in given.items()]
    rows += [(f"this report: {name}", f"{seconds:.3f} s") for name, seconds in own.items()]
    said = f"{what} does not hold how long it took; these are the stages of this report."
    return [
        "<h2>Times</h2>",
        *([] if given else [note(said)]),
        wide(tables.table(rows)),
    ]
