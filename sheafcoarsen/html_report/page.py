"""One self-contained HTML page about a coarsening: sizes, losses, spectra, verdict, pictures."""

import os

from sheafcoarsen._support import check_matplotlib, output_path, replacing, tables
from sheafcoarsen.coarsening import Coarsening, check_coarsening
from sheafcoarsen.html_report.findings import Findings, findings_of, stage
from sheafcoarsen.html_report.origin import Origin
from sheafcoarsen.html_report.parts import (
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
from sheafcoarsen.html_report.style import STYLE
from sheafcoarsen.html_report.summary import verdict_of
from sheafcoarsen.verification import Verification


def report(C: Coarsening, path: str | os.PathLike, name: str | None = None) -> Verification:
    """Write one self-contained HTML page about a coarsening, to be opened from disk.

    It begins with a verdict in one sentence: what is kept of a smooth cochain, how far the low
    spectrum is off, whether the Laplacian grew. Then it says how it was made, what went in and what
    came out, what is lost, how near the low spectra are, where the fine C^0 has dimension 100,000
    at most, and what :func:`verify` finds, with pictures. The page is written beside ``path`` and
    renamed, so that a file that was there stays whole where anything fails. It needs matplotlib.

    Parameters
    ----------
    C : Coarsening
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


def write_report(C: Coarsening, path: str | os.PathLike, origin: Origin) -> Verification:
    """Write the page of `report`, with what is known of the origin."""
    check_coarsening(C)
    target = output_path(path)
    check_matplotlib()
    own: dict[str, float] = {}
    found = findings_of(C, own)
    with stage(own, "pictures"):
        pictures = pictures_of(C, found)
    page = _page(C, found, pictures, origin, own)
    with replacing(target) as stream:
        stream.write(page.encode("utf-8", "xmlcharrefreplace"))
    return found.verdict


def _page(
    C: Coarsening, found: Findings, pictures: dict[str, str], origin: Origin, own: dict[str, float]
) -> str:
    title = (
        f"{origin.name or 'Coarsening'}: {C.fine.n_vertices:,} → {C.sheaf.n_vertices:,} vertices"
    )
    failed = [] if found.verdict.passed else [f"Verification: {found.verdict.summary}"]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{tables.text(title)}</title><style>{STYLE}</style></head><body>",
            f"<h1>{tables.text(title)}</h1>",
            *(f'<p class="failed">{tables.text(line)}</p>' for line in failed),
            f'<p class="verdict">{tables.text(verdict_of(C, found))}</p>',
            note(repr(C)),
            *made_by(C, origin),
            *what_went_in(C),
            *what_came_out(C, pictures),
            *losses(C, found.ledgers, pictures),
            *eigenvalues(found.quality, pictures),
            *verification(found.verdict),
            *times(origin.times, own),
            "</body></html>\n",
        ]
    )
