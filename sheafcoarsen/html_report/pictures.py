"""Pictures as data in the page, drawn without pyplot."""

import base64
import io
from collections.abc import Callable
from typing import Any

from sheafcoarsen import plot
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.html_report.findings import Findings


def pictures_of(C: Coarsening, found: Findings) -> dict[str, str]:
    """Return the pictures as data URIs, by what they show."""
    pictures = {"partition": drawn(plot.partition, C, size=(12.5, 7))}
    if C.modes is not None:
        pictures["spectra"] = drawn(plot.spectra, C)
    if not isinstance(found.ledgers, str):
        pictures["ledger"] = drawn(plot.ledger, found.ledgers[1])
    if not isinstance(found.quality, str):
        pictures["quality"] = drawn(plot.quality, *found.quality)
    return pictures


def drawn(draw: Callable, *what: Any, size: tuple[float, float] = (7.5, 4.2)) -> str:
    """Return a picture, drawn without pyplot, as an SVG in a data URI."""
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    figure = Figure(figsize=size, dpi=150)
    ax = draw(*what, ax=figure.subplots())
    box = Bbox.union([part.get_tightbbox() for part in ax.child_axes or [ax]])
    # without white borders
    inches = box.transformed(figure.dpi_scale_trans.inverted()).padded(0.06)
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
