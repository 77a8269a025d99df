"""MatrixMarket files."""

import numpy as np

from sheafcoarsen.io.edges import EdgeList, first_unpaired
from sheafcoarsen.io.text import Words, file_error, read_lines, shown


def read_matrix_market(path: str) -> EdgeList:
    lines = read_lines(path)
    layout, pattern, symmetric = _mtx_banner(path, lines[0] if lines else "")
    numbered = [
        (k, line)
        for k, line in enumerate(lines, start=1)
        if line.strip() and not line.lstrip().startswith("%")
    ]
    if not numbered:
        raise file_error(path, None, "not a MatrixMarket matrix: no line with its size")
    (header, size), body = numbered[0], numbered[1:]
    sizes = Words(path, "a number of the size line")
    sizes.add(header, size.split())
    numbers = sizes.integers()
    wanted = 3 if layout == "coordinate" else 2
    if len(numbers) != wanted or min(numbers) < 0:
        parts = ("rows", "columns", "entries")[:wanted]
        raise file_error(
            path, header, f"the size line must be `{' '.join(parts)}`, got {shown(size.strip())}"
        )
    n = numbers[0]
    if n != numbers[1]:
        raise file_error(path, header, f"an adjacency is a square matrix, got {n} x {numbers[1]}")
    if n > 2**31:  # row n + column must fit 64 bits
        raise file_error(path, header, f"{n} vertices are more than read_graph can take")
    count = numbers[2] if layout == "coordinate" else n * (n + 1) // 2 if symmetric else n * n
    if len(body) != count:
        raise file_error(
            path, header, f"the size line promises {count} entries, the file holds {len(body)}"
        )

    ends = Words(path, "a row or column")
    weights = Words(path, "the weight of an edge")
    n_ends = 2 * (layout == "coordinate")
    for number, line in body:
        words = line.split()
        if len(words) != n_ends + (not pattern):
            form = "row column" if pattern else "row column weight" if n_ends else "weight"
            raise file_error(path, number, f"an entry is `{form}`, got {len(words)} words")
        ends.add(number, words[:n_ends])
        weights.add(number, words[n_ends:])
    values = np.ones(count) if pattern else weights.numbers()
    if layout == "coordinate":
        rows, columns = _mtx_places(ends, n)
    else:
        columns, rows = np.divmod(np.arange(n * n), max(n, 1))  # column by column
        if symmetric:
            columns, rows = columns[rows >= columns], rows[rows >= columns]
    return _mtx_edges(
        path, n, rows, columns, values, [number for number, _ in body], layout, symmetric
    )


def _mtx_banner(path: str, line: str) -> tuple[str, bool, bool]:
    """Return (layout, whether there are no weights, whether one triangle stands for both)."""
    words = line.lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        message = f"not a MatrixMarket matrix: the first line must be `%%MatrixMarket matrix ...`, got {shown(line)}"
        raise file_error(path, 1, message)
    layout, field, symmetry = words[2:]
    known = {
        "real": False,
        "double": False,
        "integer": False,
        "unsigned-integer": False,
        "pattern": True,
    }
    if layout not in ("coordinate", "array") or (layout == "array" and field == "pattern"):
        raise file_error(
            path, 1, f"not a MatrixMarket matrix: unknown layout {shown(f'{layout} {field}')}"
        )
    if field not in known:
        raise file_error(path, 1, f"weights must be real, integer or pattern, got {shown(field)}")
    if symmetry not in ("symmetric", "general"):
        raise file_error(
            path,
            1,
            f"an adjacency is symmetric (or general with symmetric entries), got {shown(symmetry)}",
        )
    return layout, known[field], symmetry == "symmetric"


def _mtx_places(ends: Words, n: int) -> tuple[np.ndarray, np.ndarray]:
    numbers = ends.integers()
    if numbers and not (min(numbers) >= 1 and max(numbers) <= n):
        k = next(k for k, v in enumerate(numbers) if not 1 <= v <= n)
        message = f"row or column {shown(ends.words[k])} is out of range; they count from 1 to {n}"
        raise file_error(ends.path, ends.line(k), message)
    places = np.array(numbers, dtype=np.int64).reshape(-1, 2) - 1
    return places[:, 0], places[:, 1]


def _mtx_edges(path, n, rows, columns, weights, lines, layout, symmetric) -> EdgeList:
    """Return the upper triangle row by row of a matrix that is symmetric as its entries say."""
    entry = np.flatnonzero(weights) if layout == "array" else np.arange(len(rows))
    mirrored = entry[rows[entry] != columns[entry]] if symmetric else entry[:0]
    order = np.argsort(
        np.concatenate([entry, mirrored]), kind="stable"
    )  # a mirror image right after its entry
    rows, columns = (
        np.concatenate([rows[entry], columns[mirrored]])[order],
        np.concatenate([columns[entry], rows[mirrored]])[order],
    )
    entry = np.concatenate([entry, mirrored])[order]
    weights = weights[entry]

    def refuse(k: int, message: str):
        raise file_error(
            path, lines[entry[k]], f"entry ({rows[k] + 1}, {columns[k] + 1}) {message}"
        )

    if (weights < 0).any():
        k = int((weights < 0).argmax())
        refuse(
            k,
            f"must not be negative as the weight of an edge, got {weights[k]}; CellularSheaf.signed takes signs",
        )
    found = first_unpaired(rows, columns, weights, n)
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
    return EdgeList(n, np.stack([rows[upper], columns[upper]], axis=1), weights[upper], None)
