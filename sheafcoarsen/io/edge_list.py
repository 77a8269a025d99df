"""Edges and weights of a graph file, and the reader of edge lists, one edge per line."""

import csv
import re
import warnings
from typing import NamedTuple

import numpy as np

from sheafcoarsen._support import MAX_VERTICES, counted, first_true, vertex_count
from sheafcoarsen.io.text import Words, file_error, read_lines, shown

SIGNS = "CellularSheaf.signed, read_graph(path, signed=True) and --signed accept negative weights"
"""Hint in error messages about negative weights."""


class EdgeList(NamedTuple):
    """Edges, weights and vertex names of a graph file."""

    n_vertices: int
    edges: np.ndarray  # (m, 2) int64
    weights: np.ndarray  # (m,) float64, finite; negative only if signs are allowed
    names: tuple | None  # names of the vertices; None if they are indices


def read_edge_list(path: str, signed: bool = False, n_vertices: int | None = None) -> EdgeList:
    """Read lines ``u v [weight]``; warnings about names are attributed to the caller's caller."""
    ends, lines, weights = _lines(path, signed, n_vertices is not None)
    spellings = dict.fromkeys(ends)
    number_of = {name: v for name in spellings if (v := _integer(name)) is not None}
    # codes such as 01001 are names, unless it is said that all are indices
    padded = n_vertices is None and any(re.match(r"[-+]?0\d", name) for name in number_of)
    if padded or len(number_of) < len(spellings):
        if n_vertices is not None:
            k = next(k for k, word in enumerate(ends) if word not in number_of)
            message = f"`n_vertices` requires names that are integers, got {shown(ends[k])}"
            raise file_error(path, lines[k // 2], message)
        return _by_appearance(ends, spellings, weights)
    integers = [number_of[name] for name in ends]
    low, high, named = min(integers), max(integers), len(set(integers))
    if n_vertices is not None:
        vertex_count("n_vertices", n_vertices)
        for k, v in enumerate(integers):
            if not 0 <= v < n_vertices:
                message = f"vertex {v} is out of range for `n_vertices` = {n_vertices}"
                raise file_error(path, lines[k // 2], f"{message} (0 .. {n_vertices - 1})")
    elif low < 0 or high >= 4 * named:  # too sparse for indices, so they become names
        if low >= 0:
            message = (
                f"{path}: {named} vertices have numbers up to {high}, too sparse for indices, so "
                f"the numbers are kept as vertex_labels"
            )
            if high < MAX_VERTICES:
                message += f"; pass n_vertices={high + 1} to use them as indices"
            warnings.warn(message, UserWarning, stacklevel=3)
        return _by_appearance(integers, dict.fromkeys(integers), weights)
    elif low > 0:
        alone = "vertex 0 has no edge" if low == 1 else f"vertices 0 to {low - 1} have no edges"
        message = (
            f"{path}: numbers begin with {low}, so {alone}. If the file numbers vertices from "
            f"{low}, F.subsheaf(range({low}, F.n_vertices)) removes the others; if not, pass "
            f"n_vertices={high + 1} to disable this warning"
        )
        warnings.warn(message, UserWarning, stacklevel=3)
    edges = np.array(integers, dtype=np.int64).reshape(-1, 2)
    return EdgeList(high + 1 if n_vertices is None else n_vertices, edges, weights, None)


def _lines(path: str, signed: bool, numbered: bool) -> tuple[list[str], list[int], np.ndarray]:
    """Return the flat list of the edges' ends, and the line number and weight of each edge.

    ``numbered`` says whether the ends must be integers.
    """
    ends: list[str] = []
    lines: list[int] = []
    weights = Words(path, "the weight of an edge")
    weighted: list[int] = []  # indices of edges with a weight
    extension = path.lower().removesuffix(".gz")[-4:]
    table = {".csv": ",", ".tsv": "\t"}.get(extension)
    for number, line in enumerate(read_lines(path), start=1):
        words = _fields(path, number, line, table)
        if not words:
            continue
        if not 2 <= len(words) <= 3 or "" in words:
            got = "an empty field" if "" in words else counted(len(words), "word")
            message = "an edge is `u v [weight]`, separated by white space or commas, got"
            hint = "; put names that contain blanks in quotes" if len(words) > 3 else ""
            raise file_error(path, number, f"{message} {got}{hint}")
        if len(words) == 3:
            weighted.append(len(lines))
            weights.add(number, words[2:])
        ends += words[:2]
        lines.append(number)
    if not lines:
        raise file_error(path, None, "no edge `u v [weight]` in this file")
    first = weights.words[0] if weighted[:1] == [0] else None
    skipped = int(_begins_with_headings(ends, first, numbered))
    if skipped and first is not None:
        weights.words[0] = "1"
    values = np.ones(len(lines))
    values[weighted] = weights.numbers()
    if not signed and (e := first_true(values < 0)) is not None:
        message = f"the weight of an edge must not be negative, got {values[e]:.17g}"
        raise file_error(path, lines[e], f"{message}; {SIGNS}")
    return ends[2 * skipped :], lines[skipped:], values[skipped:]


def _fields(path: str, number: int, line: str, table: str | None) -> list[str]:
    """Return the fields of a line without its comment; names between marks ``table`` hold blanks.

    Elsewhere white space and commas both separate fields.
    """
    if "#" in line or "%" in line:
        # up to the first # or % that begins a word outside quotes
        matched = re.match(r"""(?:"[^"]*"|[^#%"]|(?<=[^\s,])[#%]|")*""", line)
        line = matched[0].rstrip(" \t,") if matched and matched.end() < len(line) else line
    if '"' in line:
        bare = re.sub('"[^"]*"', "", line)
        mark = table if table and table in bare else "," if "," in bare else " "
        text = " ".join(line.split()) if mark == " " else line
        try:
            rows = csv.reader([text], delimiter=mark, skipinitialspace=True, strict=True)
            return [field.strip() for field in next(rows, [])]
        except csv.Error as error:
            raise file_error(path, number, f"a field in quotes cannot be read: {error}") from None
    if table and table in line:
        return [field.strip() for field in line.split(table)]
    return re.split(r"\s*,\s*|\s+", line.strip()) if "," in line else line.split()


def _begins_with_headings(ends: list[str], weight: str | None, numbered: bool) -> bool:
    """Return whether the first line holds the headings of a table instead of an edge."""
    first, others = ends[:2], {*ends[2:]}
    # a name that occurs again is a vertex, and so is a number
    if not others or not others.isdisjoint(first) or any(re.match(r"[-+.]?\d", u) for u in first):
        return False
    if weight is not None:
        return weight.isidentifier() and weight.lower() not in ("nan", "inf", "infinity")
    if [u.lower() for u in first] in (["source", "target"], ["from", "to"]):
        return True
    # after a single edge between integers, the first line may be an edge between names
    likely = len(ends) > 4 and first[0] != first[1]
    return numbered or (likely and all(_integer(u) is not None for u in others))


def _by_appearance(ends: list, names: dict, weights: np.ndarray) -> EdgeList:
    """Return the edge list with indices assigned to names in order of first occurrence."""
    place = {name: v for v, name in enumerate(names)}
    edges = np.array([place[name] for name in ends], dtype=np.int64).reshape(-1, 2)
    return EdgeList(len(place), edges, weights, tuple(names))


def _integer(word: str) -> int | None:
    """Return the integer that a word denotes, also in the form ``3.000e+00``, or None."""
    if not word.isascii() or "_" in word:  # int accepts 1_000 and digits of other scripts
        return None
    try:
        return int(word)
    except ValueError:
        pass
    try:
        value = float(word)
    except ValueError:
        return None
    # above 2^53 a number with a point or an exponent is not exact, and stays a name
    return int(value) if value.is_integer() and abs(value) < 2.0**53 else None
