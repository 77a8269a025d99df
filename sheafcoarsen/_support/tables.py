"""Tables for terminals, notebooks and the HTML report.

HTML is escaped and without colours, for light and dark themes.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from sheafcoarsen._support.checks import optional_module

if TYPE_CHECKING:
    import pandas as pd


def counted(n: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun, singular or plural."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def printable(value: object) -> str:
    """Return a value as one line of text, with escapes for control characters."""
    # control characters, line separators, marks of the direction of text, and surrogates
    special = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
    return re.sub(special, lambda found: found[0].encode("unicode_escape").decode(), str(value))


def table(rows: Iterable[Sequence], head: Sequence | None = None, caption: str = "") -> str:
    """Return an HTML table; without ``head``, the first cell of each row is its header."""
    title = f"<caption>{text(caption)}</caption>" if caption else ""
    top = "" if head is None else f"<thead>{_row(head, 'th', 'th')}</thead>"
    body = "".join(_row(row, "th" if head is None else "td", "td") for row in rows)
    return f"<table>{title}{top}<tbody>{body}</tbody></table>"


def _row(cells: Sequence, first: str, others: str) -> str:
    tags = [first] + [others] * (len(cells) - 1)
    row = (f"<{tag}>{text(cell)}</{tag}>" for tag, cell in zip(tags, cells, strict=True))
    return f"<tr>{''.join(row)}</tr>"


def text(cell: object) -> str:
    """Return a cell as escaped text: integers with commas, other numbers with four digits."""
    if isinstance(cell, bool | np.bool_):
        return "yes" if cell else "no"
    if isinstance(cell, int | np.integer):
        return f"{cell:,}"
    if isinstance(cell, Number):
        return f"{cell:.4g}"
    return html.escape(printable(cell))


def aligned(rows: Sequence[Sequence[str]], align: Callable[[str, int], str]) -> list[str]:
    """Return rows of cells as lines of plain text with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(align, row, widths)).rstrip() for row in rows]


def span(values: np.ndarray) -> str:
    """Return the range of an array of numbers as text, such as ``2 .. 5``."""
    if not len(values):
        return "none"
    low, high = text(values.min()), text(values.max())
    return low if low == high else f"{low} .. {high}"


def names(labels: Sequence, shown: int = 8) -> str:
    """Return the first ``shown`` names as text, each cut to 40 characters."""
    first = [printable(label) for label in labels[:shown]]
    cut = [name if len(name) <= 40 else name[:39] + "…" for name in first]
    return ", ".join(cut) + (f", … ({len(labels):,} in all)" if len(labels) > shown else "")


def data_frame(index: str, numbers: Any, columns: dict[str, Any]) -> pd.DataFrame:
    """Return the named columns that are not None as a pandas table with numbered rows."""
    message = 'to_frame() needs pandas: pip install "sheafcoarsen[pandas]"'
    pandas = optional_module("pandas", message)
    given = {name: column for name, column in columns.items() if column is not None}
    return pandas.DataFrame(given, index=pandas.Index(numbers, name=index))


def number_lines(lines: dict) -> str:
    """Return a line of plain text for each named number or sequence of numbers."""
    width = max(map(len, lines)) + 2
    return "\n".join(
        f"  {name:<{width}}{np.array2string(np.asarray(value), precision=6)}"
        for name, value in lines.items()
    )
