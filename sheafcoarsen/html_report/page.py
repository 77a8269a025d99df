"""One self-contained HTML page about a coarsening: sizes, losses, spectra, verdict, pictures."""

import os

from sheafcoarsen._support import check_matplotlib, output_path, replacing, tables
from sheafcoarsen.coarsening import Coarsening, check_coarsening
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.hierarchy import Hierarchy
from sheafcoarsen.html_report.eliminations import elimination_page
from sheafcoarsen.html_report.findings import Findings, findings_of, stage
from sheafcoarsen.html_report.origin import Origin, call_of, parameters_of
from sheafcoarsen.html_report.parts import (
    document,
    eigenvalues,
    losses,
    made_by,
    note,
    times,
    verification,
    what_came_out,
    what_went_in,
)
from sheafcoarsen.html_report.pictures import pictures_of
from sheafcoarsen.html_report.summary import verdict_of
from sheafcoarsen.verification import Verification

UNKNOWN = "A coarsening does not hold where its sheaf F and its partition P came from."


def report(
    C: Coarsening | Elimination, path: str | os.PathLike, name: str | None = None
) -> Verification:
    """Write one self-contained HTML page about a coarsening or an elimination.

    It begins with a verdict in one sentence: what is kept of a smooth cochain, how far the low
    spectrum is off, whether the Laplacian grew. Then it says how it was made, what went in and what
    came out, what is lost, how near the low spectra are, where the fine C^0 has dimension 100,000
    at most, and what :func:`verify` finds, with pictures. Of an elimination it says what went and
    what is left, and how far right sides and rounding grow. The page is written beside ``path`` and
    renamed, so that a file that was there stays whole where anything fails. It needs matplotlib.

    Parameters
    ----------
    C : Coarsening or Elimination
    path : str or path-like
    name : str, optional
        Of what went in, for the title.

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
    if name is not None and not isinstance(name, str):
        raise TypeError(f"`name` must be a text, got {type(name).__name__}")
    return write_report(C, path, Origin(name))


def write_report(
    C: Coarsening | Elimination, path: str | os.PathLike, origin: Origin
) -> Verification:
    """Write the page of `report`, with what is known of the origin."""
    if isinstance(C, Hierarchy):
        raise TypeError(
            "`C` must be a Coarsening or an Elimination, got a Hierarchy: write a page for each of "
            "its levels, report(H[i], path); print(H) tells of all"
        )
    if not isinstance(C, Elimination):
        check_coarsening(C)
    target = output_path(path)
    check_matplotlib()
    if isinstance(C, Elimination):
        page, verdict = elimination_page(C, origin)
    else:
        own: dict[str, float] = {}
        found = findings_of(C, own)
        with stage(own, "pictures"):
            pictures = pictures_of(C, found)
        page, verdict = _page(C, found, pictures, origin, own), found.verdict
    with replacing(target) as stream:
        stream.write(page.encode("utf-8", "xmlcharrefreplace"))
    return verdict


def _page(
    C: Coarsening, found: Findings, pictures: dict[str, str], origin: Origin, own: dict[str, float]
) -> str:
    title = (
        f"{origin.name or 'Coarsening'}: {C.fine.n_vertices:,} → {C.sheaf.n_vertices:,} vertices"
    )
    failed = [] if found.verdict.passed else [f"Verification: {found.verdict.summary}"]
    lines = [
        f'<p class="verdict">{tables.text(verdict_of(C, found))}</p>',
        note(repr(C)),
        *made_by(origin, parameters_of(C), call_of(C), UNKNOWN),
        *what_went_in(C),
        *what_came_out(C, pictures),
        *losses(C, found.ledgers, pictures),
        *eigenvalues(found.quality, pictures),
        *verification(found.verdict),
        *times(origin.times, own, "A coarsening"),
    ]
    return document(title, failed, lines)
