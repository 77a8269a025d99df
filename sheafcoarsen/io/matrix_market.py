"""Reader of MatrixMarket files: a symmetric matrix as the adjacency of a graph."""

import numpy as np

from sheafcoarsen._support import MAX_VERTICES, counted, first_true
from sheafcoarsen.io.edge_list import SIGNS, EdgeList, first_unpaired
from sheafcoarsen.io.text import Words, file_error, read_lines, shown

IDLE = 2**20
"""Number of isolated vertices in a file above which ``n_vertices`` must confirm the file's size."""


def read_matrix_market(path: str, signed: bool = False, n_vertices: int | None = None) -> EdgeList:
    """Read the upper triangle, row by row; ``n_vertices`` confirms the number of vertices."""
    lines = read_lines(path)
    coordinate, pattern, symmetric = _banner(path, next(lines, ""))
    body = [
        (k, line)
        for k, line in enumerate(lines, start=2)
        if line.strip() and not line.lstrip().startswith("%")
    ]
    if not body:
        raise file_error(path, None, "not a MatrixMarket matrix: no line with its size")
    header, size = body.pop(0)
    words = Words(path, "a number of the size line")
    words.add(header, size.split())
    numbers = words.integers()
    wanted = ("rows", "columns", "entries")[: 3 if coordinate else 2]
    if len(numbers) != len(wanted) or min(numbers) < 0:
        message = f"the size line must be `{' '.join(wanted)}`, got {shown(size.strip())}"
        raise file_error(path, header, message)
    n = numbers[0]
    if n != numbers[1]:
        raise file_error(path, header, f"an adjacency is a square matrix, got {n} x {numbers[1]}")
    if n > MAX_VERTICES:
        raise file_error(path, header, f"{n} vertices exceed the maximum of {MAX_VERTICES}")
    if n_vertices not in (None, n):
        message = f"`n_vertices` = {n_vertices} contradicts the size line, {n}"
        raise file_error(path, header, message)
    count = numbers[2] if coordinate else n * (n + 1) // 2 if symmetric else n * n
    if n_vertices is None and coordinate and n > 2 * count + IDLE:
        message = f"{n} vertices, but {count} entries contain at most {2 * count} of them"
        raise file_error(path, header, f"{message}: pass n_vertices={n} to confirm the number")
    if len(body) != count:
        message = f"the size line promises {count} entries, the file holds {len(body)}"
        raise file_error(path, header, message)
    return _upper_triangle(path, *_entries(path, n, body, coordinate, pattern, symmetric), signed)


def _banner(path: str, line: str) -> tuple[bool, bool, bool]:
    """Parse the first line.

    Return whether lines hold row, column and weight, not all entries by column; whether entries
    have no weights; and whether only one triangle is listed.
    """
    words = line.lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        message = (
            f"not a MatrixMarket matrix: the first line must be `%%MatrixMarket matrix ...`, got "
            f"{shown(line)}"
        )
        raise file_error(path, 1, message)
    layout, field, symmetry = words[2:]
    if layout not in ("coordinate", "array") or (layout == "array" and field == "pattern"):
        message = f"not a MatrixMarket matrix: unknown layout {shown(f'{layout} {field}')}"
        raise file_error(path, 1, message)
    if field not in ("real", "double", "integer", "unsigned-integer", "pattern"):
        raise file_error(path, 1, f"weights must be real, integer or pattern, got {shown(field)}")
    if symmetry not in ("symmetric", "general"):
        message = "an adjacency is symmetric (or general with symmetric entries), got"
        raise file_error(path, 1, f"{message} {shown(symmetry)}")
    return layout == "coordinate", field == "pattern", symmetry == "symmetric"


def _entries(
    path: str,
    n: int,
    body: list[tuple[int, str]],
    coordinate: bool,
    pattern: bool,
    symmetric: bool,
) -> tuple[EdgeList, np.ndarray]:
    """Return the entries of both triangles, and their line numbers."""
    ends = Words(path, "a row or column")
    weights = Words(path, "the weight of an edge")
    n_ends = 2 * coordinate
    for number, line in body:
        words = line.split()
        if len(words) != n_ends + (not pattern):
            form = "row column" if pattern else "row column weight" if n_ends else "weight"
            raise file_error(
                path, number, f"an entry is `{form}`, got {counted(len(words), 'word')}"
            )
        ends.add(number, words[:n_ends])
        weights.add(number, words[n_ends:])
    values = np.ones(len(body)) if pattern else weights.numbers()
    if coordinate:
        rows, columns = ends.indices(n).reshape(-1, 2).T
    else:
        columns, rows = np.divmod(np.arange(n * n), max(n, 1))  # entries are listed by column
        if symmetric:
            columns, rows = columns[rows >= columns], rows[rows >= columns]
    lines = np.array([number for number, _ in body], dtype=np.int64)
    entry = np.arange(len(body)) if coordinate else np.flatnonzero(values)
    rows, columns = rows[entry], columns[entry]
    if symmetric:  # each mirror image follows its entry: errors name the first bad line
        twice = 1 + (rows != columns)
        entry, rows, columns = (np.repeat(array, twice) for array in (entry, rows, columns))
        mirrored = np.diff(entry, prepend=-1) == 0
        rows, columns = np.where(mirrored, columns, rows), np.where(mirrored, rows, columns)
    return EdgeList(n, np.stack([rows, columns], axis=1), values[entry], None), lines[entry]


def _upper_triangle(path: str, entries: EdgeList, lines: np.ndarray, signed: bool) -> EdgeList:
    """Return the upper triangle, row by row, after checking the symmetry of the entries."""
    (rows, columns), weights = entries.edges.T, entries.weights

    def refuse(k: int, message: str) -> None:
        place = f"entry ({rows[k] + 1}, {columns[k] + 1})"
        raise file_error(path, int(lines[k]), f"{place} {message}")

    if not signed and (k := first_true(weights < 0)) is not None:
        message = f"must not be negative as the weight of an edge, got {weights[k]}"
        refuse(k, f"{message}; {SIGNS}")
    found = first_unpaired(entries)
    if found is not None:
        k, why, other = found
        if why == "repeated":
            refuse(k, "occurs a second time")
        mirror = f"mirror image ({columns[k] + 1}, {rows[k] + 1})"
        if why == "alone":
            refuse(k, f"has no {mirror}; an adjacency is symmetric")
        values = f"is {weights[k]:.17g}, but its {mirror} is {weights[other]:.17g}"
        refuse(k, f"{values}; an adjacency is symmetric")
    upper = np.flatnonzero(rows <= columns)
    upper = upper[np.lexsort((columns[upper], rows[upper]))]
    return entries._replace(edges=entries.edges[upper], weights=weights[upper])
