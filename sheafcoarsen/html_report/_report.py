"""A self-contained HTML page: the notebook representations of objects, and pictures."""

from __future__ import annotations

import base64
import datetime
import importlib.metadata
import io
import os
import platform
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sheafcoarsen import plot
from sheafcoarsen._support import CochainLike, checks, files, linalg, tables
from sheafcoarsen.coarsening import Coarsening, check_coarsening, energy_ledger
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.hierarchy import Hierarchy
from sheafcoarsen.html_report.results import (
    SMOOTHING_STEPS,
    call_of,
    percent,
    sizes_and_checks,
    smooth_cochain,
    spectra_of,
    spectrum_errors,
    stage,
    worst_edges,
)
from sheafcoarsen.sheaf import component_count
from sheafcoarsen.solve import Sparsification
from sheafcoarsen.synchronization import PoseCertificate, PoseGraph, Synchronization
from sheafcoarsen.verification import Verification, verify

STYLE = """
:root { color-scheme: light dark; --ink: #1d2329; --paper: #ffffff; --rule: #d5dbe1;
  --soft: #5a6672; --head: #f1f4f7; --bad: #b00020;
  --mark: #2a788e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ec; --paper: #15191d; --rule: #3a434c; --soft: #a3afba; --head: #20262c;
  --bad: #ff8a80; --mark: #6fc3d8; }
}
body { color: var(--ink); background: var(--paper); font: 15px/1.5 system-ui, sans-serif;
  max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0.2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 0.6rem; border-bottom: 1px solid var(--rule);
  padding-bottom: 0.2rem; }
p.note { color: var(--soft); }
p.verdict { font-size: 1.08rem; border-left: 4px solid var(--mark);
  padding: 0.1rem 0 0.1rem 0.9rem; }
pre { background: var(--head); padding: 0.6rem 0.8rem; border-radius: 6px; font-size: 0.9rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
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
figure { margin: 1rem 0; overflow-x: auto; }
figure img { max-width: 100%; height: auto; background: #ffffff; border: 1px solid var(--rule);
  border-radius: 6px; padding: 0.5rem; box-sizing: border-box; }
@media (prefers-color-scheme: dark) {
  figure img { filter: invert(0.91) hue-rotate(180deg); border-color: #c8c8c8; }
}
@media (max-width: 44rem) {
  body { margin: 1rem auto; padding: 0 0.8rem; }
  h1 { font-size: 1.25rem; }
  p.note { overflow-wrap: anywhere; }
  th, td { padding-right: 0.6rem; max-width: 16rem; }
  figure img { max-width: none; width: 27rem; }
  figure.partition img { width: 42rem; }
  .wide td:nth-child(n + 5):last-child { min-width: 16rem; }
}
"""
"""Style of light and dark, wide and narrow pages. Dark pages invert pictures but keep hues."""


class Positions(NamedTuple):
    """Vertex positions, faces and up axis for the plots of a report."""

    pos: Any = None
    faces: Any = None
    up: Any = "z"


# parts of the verdict, the call, and sections: a heading, and HTML or the objects below it
Contents = tuple[list[str], str, list[tuple[str, list]]]


def report(
    C: Coarsening | Elimination | Hierarchy | Synchronization,
    path: str | os.PathLike,
    name: str | None = None,
    pos: npt.ArrayLike | Mapping | None = None,
    faces: npt.ArrayLike | None = None,
    up: str = "z",
    x: CochainLike | None = None,
) -> Verification | PoseCertificate:
    """Write a self-contained HTML page about a coarsening, a hierarchy, an elimination or poses.

    It begins with a verdict in one sentence: the retained fraction of ``x`` or of a smooth cochain,
    the errors of the low spectrum, the change in the size of the Laplacian. Then follow the call,
    the sheaves, the losses, the low spectra if the dimension of the fine C^0 is at most 100,000,
    and the result of :func:`verify`, with pictures. For an elimination it shows the eliminated and
    the remaining vertices, and the growth of right-hand sides and rounding errors. For a hierarchy
    it has the sizes of all sheaves, the losses and a picture of each level. For poses it has the
    certificate, the map before and after, and the worst edges. The page is written to a temporary
    name and renamed, so an old file is not damaged by an error. It requires matplotlib.

    Parameters
    ----------
    C : Coarsening, Elimination, Hierarchy or Synchronization
    path : str or path-like
    name : str, optional
        Name of the input, for the title.
    pos : array_like, shape (n, 2) or (n, 3), or dict from vertex labels to positions, optional
        Positions of the fine vertices in the pictures, as in :func:`sheafcoarsen.plot.partition`.
        For a synchronized sheaf, which has no positions of its own, they are those of its map.
    faces : array_like of int, shape (f, k), optional
        Faces of a surface with the vertices ``pos`` in space, on which clusters are drawn.
    up : {"z", "y", "x", "-z", "-y", "-x"}
        The coordinate axis that points up in space, or down with a minus sign; not for poses.
    x : array_like, shape (dim_c0,) or (dim_c0, h), optional
        A fine cochain, or several, whose losses are shown. By default it is a random one, smoothed.

    Returns
    -------
    Verification or PoseCertificate
        The result shown in the page; for a hierarchy the checks of all levels, by level.

    Raises
    ------
    ImportError
        Without matplotlib: ``pip install "sheafcoarsen[plot]"``.
    OSError
        If the page cannot be written.
    ValueError, TypeError
        If positions or ``x`` are inconsistent with the fine sheaf, if faces are not a surface, or
        if faces or ``x`` are passed for an elimination or poses, which have no clusters.

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
    if name is not None and not isinstance(name, str):
        raise TypeError(f"`name` must be a string, got {type(name).__name__}")
    first = C[0] if isinstance(C, Hierarchy) and len(C) else C
    if faces is not None and not isinstance(first, Coarsening):
        raise ValueError(
            f"`faces` require clusters, but got a result of type {type(first).__name__}"
        )
    if x is not None:
        if not isinstance(C, Coarsening | Hierarchy):
            raise ValueError(
                f"`x` requires a coarsening or a hierarchy, but got a result of type "
                f"{type(C).__name__}"
            )
        x = checks.cochain(C.fine, x, "x")
    return write_report(C, path, name, at=Positions(pos, faces, up), x=x)


def write_report(
    C: Coarsening | Elimination | Hierarchy | Synchronization,
    path: str | os.PathLike,
    name: str | None = None,
    command: str | None = None,
    times: dict[str, float] | None = None,
    at: Positions | None = None,
    x: np.ndarray | None = None,
) -> Verification | PoseCertificate:
    """Write the page of `report`, with the command line and the time of each earlier stage."""
    if not isinstance(C, Elimination | Hierarchy | Synchronization):
        check_coarsening(C)
    target = files.output_path(path)
    checks.check_matplotlib()
    own: dict[str, float] = {}
    at, body = at or Positions(), []
    verdict: Any
    if isinstance(C, Synchronization):
        with stage(own, "certificate"):
            verdict = C.certify()
        parts, call, sections = _about_poses(C, verdict, at.pos, own)
        title, heading = f"{C.n_vertices:,} poses", "Certificate"
        remark = (
            "No poses have a lower cost than the lower bound (Rosen et al., IJRR 2019). If cost "
            "and bound differ, the poses may be in a local minimum, or the bound is not sharp."
        )
    else:
        with stage(own, "verification"):
            verdict = verify(C)
        coarse = C.sheaves[-1] if isinstance(C, Hierarchy) else C.sheaf
        if isinstance(C, Elimination):
            parts, call, sections = _about_elimination(C, verdict, at, own)
        else:
            about: Callable = _about_hierarchy if isinstance(C, Hierarchy) else _about_coarsening
            parts, call, sections = about(C, at, own, x)
            parts += sizes_and_checks(C.fine, coarse, verdict)
        title = f"{C.fine.n_vertices:,} → {coarse.n_vertices:,} vertices"
        heading = "Verification"
        remark = (
            'Labels with a colon are those of "Hierarchical Pooling for Sheaf Neural Networks"; '
            "sections and facts are those of docs/conventions.md. A check compares all entries "
            "(exact), random cochains or some clusters (probe), or dense matrices (dense)."
        )
        if not verdict.passed:
            body.append(f'<p class="failed">Verification: {tables.text(verdict.summary)}</p>')
    sentence = "; ".join(parts)
    sentence = sentence[:1].upper() + sentence[1:] + "."
    body += [f'<p class="verdict">{tables.text(sentence)}</p>', note(repr(C).partition("\n")[0])]
    seconds = (times or {}) | {f"this report: {step}": took for step, took in own.items()}
    rows = [(step, f"{took:.3f} s") for step, took in seconds.items()]
    for headline, blocks in (
        ("How it was made", _reproduction(name, command or call)),
        *sections,
        (heading, [verdict, note(remark)]),
        ("Times", [_wide(tables.table(rows))]),
    ):
        body.append(f"<h2>{tables.text(headline)}</h2>")
        body += [b if isinstance(b, str) else _wide(b._repr_html_()) for b in blocks]
    title = tables.text(f"{name or type(C).__name__}: {title}")
    content = "\n".join(body)
    page = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{STYLE}</style></head><body>
<h1>{title}</h1>
{content}
</body></html>
"""
    with files.replacing(target) as stream:
        stream.write(page.encode())
    return verdict


# ---------------------------------------------------------------- kinds of results


def _losses(
    C: Coarsening | Hierarchy, given: np.ndarray | None, times: dict
) -> tuple[list[str], tuple[str, list]]:
    """Return what the verdict says about the losses of a cochain, and the section about them."""
    with stage(times, "losses"):
        x = smooth_cochain(C.fine) if given is None else given
        try:
            ledger: Any = C.ledger(x) if isinstance(C, Hierarchy) else energy_ledger(C, x)
        except ValueError as error:
            unknown = "the retained part of a cochain is not known, because R is not an isometry"
            return [unknown], ("What was lost", [note(str(error))])
        lost = linalg.norm(x - C.lift(C.pool(x))) / (linalg.norm(x) or 1.0)
        part = f"{percent(1 - lost**2)} of the squared norm of "
    which = "x"
    if given is None:
        part += "a random cochain, smoothed, is kept (for yours: sc.report(C, path, x=x))"
        which = f"a random cochain of norm 1 after {SMOOTHING_STEPS} damped steps x - L x / s, s "
        which += "the row sums of abs(L),"
    else:
        part += "x is kept"
        if np.size(ledger.fine_energy) > 1:
            columns = tables.counted(given.shape[1], "column")
            which = f"the {columns} of x, which the picture adds up,"
    remark = (
        f"The energy norm(delta x)^2 of {which} and what becomes of it. The first "
        f"{len(ledger.lines)} lines add up to the fine energy, up to rounding, which the closure "
        f"measures. The kept energy may exceed the fine energy, because retained and discarded "
        f"components can cancel across clusters."
    )
    with stage(times, "pictures"):
        size, alt = (7.5, 2.3 + 0.32 * len(ledger.lines)), "The energy of the cochain, line by line"
        picture = figure("ledger", alt, plot.ledger, ledger, size=size)
    return [part], ("What was lost", [note(remark), ledger, picture])


def _about_coarsening(
    C: Coarsening, at: Positions, times: dict, given: np.ndarray | None
) -> Contents:
    parts, losses = _losses(C, given, times)
    with stage(times, "eigenvalues"):
        low = spectra_of(C)
    with stage(times, "pictures"):
        clusters = [C.partition, _cluster_table(C)]
        if C.modes is not None:
            alt = "Kept and first discarded eigenvalues of every cluster"
            clusters += [C.modes, figure("spectra", alt, plot.spectra, C)]
        sheaves = _level(C, at, "fine graph")
        if not C.loops:
            remark = "No loop-cells were requested: retained internal energy is omitted."
            sheaves.append(note(remark))
        if isinstance(low, str):
            spectra: list = [note(low)]
        else:
            parts.append(spectrum_errors(low[0], component_count(C.fine)))
            spectra = [Q for Q in low if Q is not None]
            if low[1] is not None:
                remark = (
                    "The i-th eigenvalues of L and R* L R are lambda and nu; gamma is the smallest "
                    "first discarded eigenvalue of a cluster, beta at least the norm of the rows "
                    "of delta on edges between clusters, kappa = beta^2 / gamma, mu = 1 + (kappa + "
                    "sqrt(kappa^2 + 4 kappa)) / 2, and rounding the largest error of a computed nu."
                )
                spectra.append(note(remark))
            alt = "Low eigenvalues of the fine and the coarse Laplacian"
            spectra.append(figure("quality", alt, plot.quality, *low))
    sections = [
        ("What went in", [C.fine]),
        ("What came out", sheaves),
        ("Clusters and their modes", clusters),
        losses,
        ("Low eigenvalues", spectra),
    ]
    return parts, call_of(C), sections


def _level(C: Coarsening | Elimination | Sparsification, at: Positions, graph: str) -> list:
    """Return one level, and the picture of its two graphs."""
    if isinstance(C, Sparsification):
        return [C]
    alt = f"The {graph} in its clusters, and the coarse graph"
    draw: Callable = partial(plot.partition, **at._asdict())
    if isinstance(C, Elimination):
        alt = "The fine graph, and the graph that is left"
        draw = partial(plot.elimination, pos=at.pos, up=at.up)
    return [C, figure("partition", alt, draw, C, size=(12.5, 7))]


def _about_elimination(
    K: Elimination, verdict: Verification, at: Positions, times: dict
) -> Contents:
    with stage(times, "pictures"):
        graphs = _level(K, at, "fine graph")
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
    return parts, call_of(K), [("What went, and what is left", graphs), ("What is left", [K.sheaf])]


def _about_hierarchy(
    H: Hierarchy, at: Positions, times: dict, given: np.ndarray | None
) -> Contents:
    vertices = tables.counted(H.fine.n_vertices, "vertex", "vertices")
    levels = tables.counted(len(H), "level")
    parts, losses = _losses(H, given, times)
    with stage(times, "pictures"):
        sizes = figure("hierarchy", "The sizes of the sheaves of all levels", plot.hierarchy, H)
        sections: list = [("What went in", [H.fine]), ("Levels", [H, sizes]), losses]
        for i, level in enumerate(H):
            sections.append((f"Level {i}", _level(level, at, f"graph of level {i}")))
            if at.pos is None or isinstance(level, Sparsification):  # which moves no vertex
                continue
            pos = at.pos
            if isinstance(pos, Mapping):  # drawing the first level checked them
                names = H.fine.vertex_labels or range(H.fine.n_vertices)
                pos = [pos[name] for name in names]
            pos = np.asarray(pos, float)
            if isinstance(level, Elimination):
                pos = pos[level.kept]
            else:  # means of clusters
                sums = level.partition.assignment_matrix().T @ pos
                pos = sums / level.partition.sizes[:, None]
            at = Positions(pos, None, at.up)
    become = f"{vertices} become {H.sheaves[-1].n_vertices:,} in {levels}"
    call = "\n".join(f"level {i}: {call_of(level)}" for i, level in enumerate(H))
    return [become, *parts], call, sections


def _about_poses(S: Synchronization, Z: PoseCertificate, pos: Any, times: dict) -> Contents:
    G, is_graph = S.measurements, isinstance(S.measurements, PoseGraph)
    sections: list = [("What was measured", [G])]
    with stage(times, "pictures"):
        head, *rows = worst_edges(S)
        if S.translations is not None or pos is not None:
            maps = []
            if isinstance(G, PoseGraph) and G.poses is not None and pos is None:
                before = figure("map", "The map before", plot.poses, G)
                maps += [note("As the file has it:"), before]
            maps.append(note("The computed map, with the worst edges between poses in red:"))
            draw = partial(plot.poses, outliers=min(len(rows), S.n_edges), pos=pos)
            sections.append(("The map", [*maps, figure("map", "The computed map", draw, S)]))
    worst = [_wide(tables.table(rows, head=head))]
    if S.weights is None and S.landmarks is None:
        remark = (
            "The suspicion is the residual in a second fit that leaves large residuals to few "
            'edges, in standard deviations (sd); it ranks the edges, and robust="tls" tests them. '
            "Residuals, angles and distances are those of this map."
        )
        worst.insert(0, note(remark))
    sections += [("Result", [S]), ("Worst edges", worst)]
    parts = [f"no poses have a lower cost than these, {Z.cost:.6g}"]
    if not Z.is_optimal:
        parts = [
            f"the cost is {Z.cost:.6g}, and that of all poses at least "
            f"{Z.lower_bound:.6g}: these may be the best or a local minimum"
        ]
    if S.weights is not None:
        parts.append(f"{S._n_left_out:,} of {S.n_edges:,} measurements were left out")
    # the call, but for its seed, its start and its trusted edges
    how = {"tls": 'robust="tls"', "start": "start=..."}.get(S.method, f'method="{S.method}"')
    call = f"sc.synchronize({'G' if is_graph else 'F'}, {how}, refine={len(S.costs) > 1})"
    return parts, call, sections


def _cluster_table(C: Coarsening) -> str:
    """Return a table of the first clusters, with eigenvalues at rounding level shown as 0."""
    K, rows, limit = C.partition.n_clusters, [], 20
    names = range(C.fine.n_vertices) if C.fine.vertex_labels is None else C.fine.vertex_labels
    kept, after = [""] * K, [""] * K
    if C.modes is not None:
        scores, following = C.modes._without_rounding()
        kept = list(map(tables.span, np.split(scores, C.modes.rank_offsets[1:-1])))
        after = ["none" if value == np.inf else tables.text(value) for value in following]
    for a in range(min(K, limit)):
        members = C.partition.cluster(a)
        first = tables.names([names[v] for v in members.tolist()], 50)
        rows.append((a, len(members), C.clusters.dims[a], C.ranks[a], kept[a], after[a], first))
    head = ("cluster", "vertices", "dim", "modes", "kept eigenvalues", "first discarded", "members")
    caption = f"The first {limit} of {K:,} clusters" if limit < K else "The clusters"
    return _wide(tables.table(rows, head=head, caption=caption))


def _reproduction(name: str | None, call: str) -> list[str]:
    """Return the input, the date, the versions and the call that reproduce the result."""
    versions = [
        f"{package} {importlib.metadata.version(package)}"
        for package in ("sheafcoarsen", "numpy", "scipy", "numba")
    ]
    rows = [("input", name)] if name else []
    rows += [
        ("date", datetime.datetime.now().astimezone().isoformat(sep=" ", timespec="minutes")),
        ("made with", ", ".join([*versions, f"Python {platform.python_version()}"])),
    ]
    lines = "\n".join(map(tables.text, call.splitlines()))
    return [_wide(tables.table(rows)), f'<pre class="wide">{lines}</pre>']


# ---------------------------------------------------------------- parts of a section


def note(sentence: str) -> str:
    """Return a paragraph in the style of remarks."""
    return f'<p class="note">{tables.text(sentence)}</p>'


def _wide(table: str) -> str:
    """Return a table that scrolls if it is wider than the page."""
    return f'<div class="wide">{table}</div>'


def figure(name: str, alt: str, draw: Callable, *what: Any, size: tuple = (7.5, 4.2)) -> str:
    """Return an HTML figure of a picture with its alternative text."""
    source = drawn(draw, *what, size=size)
    return f'<figure class="{name}"><img alt="{tables.text(alt)}" src="{source}"></figure>'


def drawn(draw: Callable, *what: Any, size: tuple[float, float]) -> str:
    """Draw a picture without pyplot, and return it as an SVG data URI."""
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    picture = Figure(figsize=size, dpi=150, layout="constrained")
    ax = draw(*what, ax=picture.subplots())
    picture.draw_without_rendering()  # the layout is computed now
    box = Bbox.union([part.get_tightbbox() for part in ax.child_axes or [ax]])
    # crop the white borders
    inches = box.transformed(picture.dpi_scale_trans.inverted()).padded(0.06)
    stream = io.BytesIO()
    options: dict = {"bbox_inches": inches, "facecolor": "white", "metadata": {"Date": None}}
    picture.savefig(stream, format="svg", dpi=150, **options)
    return "data:image/svg+xml;base64," + base64.b64encode(stream.getvalue()).decode("ascii")
