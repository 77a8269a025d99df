"""One self-contained HTML page about a coarsening: sizes, losses, spectra, verdict, pictures."""

import base64
import contextlib
import importlib.metadata
import io
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sheafcoarsen import plot
from sheafcoarsen._support import (
    check_matplotlib,
    eps_of,
    output_path,
    replacing,
    tables,
    zero_level,
)
from sheafcoarsen.coarsening import (
    Coarsening,
    EnergyLedger,
    check_coarsening,
    energy_ledger,
    growth_of,
)
from sheafcoarsen.operators import count_nonzeros, laplacian_operator
from sheafcoarsen.quality import Certificate, SpectralQuality, certificate, spectral_quality
from sheafcoarsen.sheaf import CellularSheaf, sheaf_rows
from sheafcoarsen.verification import Verification, verify

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


QUALITY_BELOW = 3000
"""Fine dimension up to which eigenvalues are computed, so that a report takes bounded time."""


EIGENVALUES = 10


CLUSTERS = 20
"""Clusters that have a row of their own."""


STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --paper: #ffffff; --rule: #d5dbe1;
  --soft: #5a6672; --head: #f1f4f7; --bad: #b00020; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ec; --paper: #15191d; --rule: #3a434c; --soft: #a3afba; --head: #20262c;
  --bad: #ff8a80; }
}
body { color: var(--ink); background: var(--paper); font: 15px/1.5 system-ui, sans-serif;
  max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0.2rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 0.6rem; border-bottom: 1px solid var(--rule);
  padding-bottom: 0.2rem; }
p.note { color: var(--soft); }
p.failed { color: var(--bad); font-weight: bold; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 0.6rem 0; font-size: 0.92rem; }
caption { text-align: left; color: var(--soft); padding-bottom: 0.2rem; }
th, td { text-align: left; padding: 0.2rem 0.9rem 0.2rem 0.4rem;
  border-bottom: 1px solid var(--rule); vertical-align: top; overflow-wrap: break-word;
  max-width: 30rem; }
td:nth-child(n + 5):last-child { min-width: 12rem; }
thead th { background: var(--head); overflow-wrap: normal; }
tbody th { font-weight: normal; color: var(--soft); }
figure { margin: 1rem 0; }
figure img { max-width: 100%; height: auto; background: #ffffff; border: 1px solid var(--rule);
  border-radius: 6px; padding: 0.5rem; box-sizing: border-box; }
"""


def report(C: Coarsening, path: str | os.PathLike) -> Verification:
    """Write one self-contained HTML page about a coarsening, to be opened from disk.

    It says what went in and what came out, what is lost of a random cochain and of a smooth one,
    how near the low spectra are where the fine C^0 has dimension 3000 at most, and what
    :func:`verify` finds, with pictures. The page is written beside ``path`` and renamed, so that a
    file that was there stays whole where anything fails. It needs matplotlib.

    Parameters
    ----------
    C : Coarsening
    path : str or path-like

    Returns
    -------
    Verification
        The one in the page.

    Raises
    ------
    ImportError
        Without matplotlib: ``pip install "sheafcoarsen[plot]"``.
    OSError
        Where the page cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.karate_club_graph())
    >>> C = sc.coarsen(F, sc.select(F, 4), rank=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pathlib.Path(folder) / "karate.html"
    ...     passed = bool(sc.report(C, page))
    ...     passed, page.read_text(encoding="utf-8")[:15]
    (True, '<!DOCTYPE html>')
    """
    return write_report(C, path, {})


def write_report(C: Coarsening, path: str | os.PathLike, given: dict[str, float]) -> Verification:
    """Write the page of `report`, with the seconds that stages before it took."""
    check_coarsening(C)
    target = output_path(path)
    check_matplotlib()
    own: dict[str, float] = {}
    with stage(own, "verification"):
        verdict = verify(C)
    with stage(own, "losses"):
        ledgers = _ledgers(C)
    with stage(own, "eigenvalues"):
        quality = _quality(C)
    with stage(own, "pictures"):
        pictures = _pictures(C, ledgers, quality)
    page = _page(C, verdict, ledgers, quality, pictures, given, own)
    with replacing(target) as stream:
        stream.write(page.encode("utf-8", "xmlcharrefreplace"))
    return verdict


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
            "might take long: "
            f"spectral_quality(C, k) computes them"
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


def _pictures(C: Coarsening, ledgers: Any, quality: Any) -> dict[str, str]:
    """Return the pictures as data URIs, by what they show."""
    drawn = {"partition": _drawn(plot.partition, C, size=(12.5, 7))}
    if C.modes is not None:
        drawn["spectra"] = _drawn(plot.spectra, C)
    if not isinstance(ledgers, str):
        drawn["ledger"] = _drawn(plot.ledger, ledgers[1])
    if not isinstance(quality, str):
        drawn["quality"] = _drawn(plot.quality, *quality)
    return drawn


def _drawn(draw: Callable, *what: Any, size: tuple[float, float] = (7.5, 4.2)) -> str:
    """Return a picture, drawn without pyplot, as an SVG in a data URI."""
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    figure = Figure(figsize=size, dpi=150)
    ax = draw(*what, ax=figure.subplots())
    drawn = Bbox.union([part.get_tightbbox() for part in ax.child_axes or [ax]])
    inches = drawn.transformed(figure.dpi_scale_trans.inverted()).padded(
        0.06
    )  # without white borders
    stream = io.BytesIO()
    figure.savefig(
        stream,
        format="svg",
        dpi=150,
        bbox_inches=inches,
        facecolor="white",
        metadata={"Date": None},
    )
    return "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode("ascii")


def _page(
    C: Coarsening,
    verdict: Verification,
    ledgers: Any,
    quality: Any,
    pictures: dict,
    given: dict,
    own: dict,
) -> str:
    title = f"Coarsening: {C.fine.n_vertices:,} → {C.sheaf.n_vertices:,} vertices"
    version = importlib.metadata.version("sheafcoarsen")
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{tables.text(title)}</title><style>{STYLE}</style></head><body>",
            f"<h1>{tables.text(title)}</h1>",
            _note(repr(C)),
            *(
                []
                if verdict.passed
                else [f'<p class="failed">{tables.text("Verification: " + verdict.summary)}</p>']
            ),
            *_what_went_in(C),
            *_what_came_out(C, pictures),
            *_losses(C, ledgers, pictures),
            *_eigenvalues(quality, pictures),
            *_verification(verdict),
            *_times(given, own),
            _note(f"Made by sheafcoarsen {version}."),
            "</body></html>\n",
        ]
    )


def _note(sentence: str) -> str:
    return f'<p class="note">{tables.text(sentence)}</p>'


def _wide(table: str) -> str:
    return f'<div class="wide">{table}</div>'


def _figure(pictures: dict[str, str], name: str, alt: str) -> list[str]:
    return (
        [f'<figure><img alt="{tables.text(alt)}" src="{pictures[name]}"></figure>']
        if name in pictures
        else []
    )


def _what_went_in(C: Coarsening) -> list[str]:
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
    return ["<h2>What went in</h2>", _wide(tables.table(rows))]


def _what_came_out(C: Coarsening, pictures: dict) -> list[str]:
    rows = [
        *sheaf_rows(C.sheaf),
        ("nonzeros of its L, as stored", count_nonzeros(C.sheaf)),
        ("edge stalks compressed", C.crossing_rows is None),
    ]
    if not C.loops:
        rows.append(("loop-cells", "not asked for: retained internal energy is left out"))
    note = growth_of(C)
    return [
        "<h2>What came out</h2>",
        _wide(tables.table(rows)),
        *([_note(f"Of the coarse sheaf: {note}.")] if note else []),
        *_figure(pictures, "partition", "The fine graph in its clusters, and the coarse graph"),
        _wide(tables.table(_cluster_rows(C), head=_CLUSTER_HEAD, caption=_cluster_caption(C))),
        *_figure(pictures, "spectra", "Kept and first discarded eigenvalues of every cluster"),
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
            after = (
                tables.text(C.modes.next_eigenvalues[a])
                if np.isfinite(C.modes.next_eigenvalues[a])
                else "none"
            )
        first = [
            labels[v] if labels is not None else v for v in members[: tables.SHOWN + 1].tolist()
        ]
        shown = tables.names(first[: tables.SHOWN]) + (", …" if len(first) > tables.SHOWN else "")
        rows.append((a, len(members), int(C.clusters.dims[a]), int(C.ranks[a]), kept, after, shown))
    return rows


def _losses(C: Coarsening, ledgers: Any, pictures: dict) -> list[str]:
    head = ["<h2>What was lost</h2>"]
    if isinstance(ledgers, str):
        return [*head, _note(ledgers)]
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
        _wide(tables.table(rows, head=("", "random", "smoothed"))),
        *_figure(pictures, "ledger", "The energy of the smoothed cochain, line by line"),
        _note("The picture is that of the smoothed cochain."),
    ]


def _eigenvalues(quality: Any, pictures: dict) -> list[str]:
    head = ["<h2>Low eigenvalues</h2>"]
    if isinstance(quality, str):
        return [*head, _note(quality)]
    Q, B = quality
    return [
        *head,
        _wide(Q._repr_html_()),
        *([] if B is None else [_wide(B._repr_html_())]),
        *_figure(pictures, "quality", "Low eigenvalues of the fine and the coarse Laplacian"),
    ]


def _verification(verdict: Verification) -> list[str]:
    explained = (
        'Labels with a colon are those of "Hierarchical Pooling for Sheaf Neural Networks"; '
        "sections and facts are those of "
        "docs/conventions.md. Compared was everything (exact), random cochains or some clusters "
        "(probe), or dense matrices (dense)."
    )
    return ["<h2>Verification</h2>", _wide(verdict._repr_html_()), _note(explained)]


def _times(given: dict, own: dict) -> list[str]:
    rows = [(name, f"{seconds:.3f} s") for name, seconds in given.items()]
    rows += [(f"this report: {name}", f"{seconds:.3f} s") for name, seconds in own.items()]
    note = (
        []
        if given
        else [
            _note(
                "A coarsening does not hold how long it took; these are the stages of this report."
            )
        ]
    )
    return ["<h2>Times</h2>", *note, _wide(tables.table(rows))]
