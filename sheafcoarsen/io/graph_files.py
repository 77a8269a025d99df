"""Readers of graphs in text files: edge lists, MatrixMarket, and METIS with lines of neighbours."""

import csv
import re
import warnings
from typing import NamedTuple

import numpy as np

from sheafcoarsen._support import MAX_VERTICES, counted, eps_of, first_true, vertex_count
from sheafcoarsen.io.text import Words, file_error, read_lines, shown

SIGNS = "CellularSheaf.signed, read_graph(path, signed=True) and --signed accept negative weights"
"""Hint in error messages about negative weights."""

IDLE = 2**20
"""Excess of vertices over twice the entries above which ``n_vertices`` must confirm the size."""


class EdgeList(NamedTuple):
    """Edges, weights and vertex names of a graph file."""

    n_vertices: int
    edges: np.ndarray  # (m, 2) int64
    weights: np.ndarray  # (m,) float64, finite; negative only if signs are allowed
    names: tuple | None  # names of the vertices; None if they are indices


# ---------------------------------------------------------------- edge lists, one edge per line


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
    """Return the fields of a line without its comment, separated by ``table`` if it occurs.

    Such fields may contain blanks. Otherwise white space and commas both separate fields, except
    that only commas do in a line with quotes and commas.
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
    # if a single edge between integers follows, the first line may be an edge between names
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


# ---------------------------------------------------------------- adjacencies


def _first_unpaired(entries: EdgeList) -> tuple[int, str, int] | None:
    """Return (entry, reason, other entry) for a repeated or else an unsymmetric entry, or None."""
    n, (rows, columns), weights = entries.n_vertices, entries.edges.T, entries.weights
    keys = rows * n + columns
    order = np.argsort(keys, kind="stable")
    ascending = keys[order]
    again = np.flatnonzero(ascending[1:] == ascending[:-1])
    if again.size:
        first = int(order[again + 1].argmin())
        return int(order[again[first] + 1]), "repeated", int(order[again[first]])
    mirrored = columns * n + rows
    place = np.minimum(np.searchsorted(ascending, mirrored), len(keys) - 1)
    if (k := first_true(ascending[place] != mirrored)) is not None:
        return k, "alone", -1
    other = order[place]
    # same tolerance as CellularSheaf: products such as A^T A are symmetric only up to rounding
    allowed = 8 * eps_of(float) * np.abs(weights).max(initial=0)
    if (k := first_true(np.abs(weights - weights[other]) > allowed)) is not None:
        return k, "differs", int(other[k])
    return None


# ---------------------------------------------------------------- MatrixMarket


def read_matrix_market(path: str, signed: bool = False, n_vertices: int | None = None) -> EdgeList:
    """Return the upper triangle of a matrix, row by row; ``n_vertices`` confirms its dimension."""
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

    Return whether the layout is "coordinate" and not "array", whether the field is "pattern", so
    that entries have no weights, and whether only one triangle is listed ("symmetric").
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
    path: str, n: int, body: list[tuple[int, str]], coordinate: bool, pattern: bool, symmetric: bool
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
    found = _first_unpaired(entries)
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


# ---------------------------------------------------------------- METIS


def read_metis(path: str, signed: bool = False) -> EdgeList:
    """Read edges (u, v) with u < v in the order of lines; ``signed`` allows negative weights."""
    numbered = enumerate(read_lines(path), start=1)
    lines = [(k, line) for k, line in numbered if not line.lstrip().startswith("%")]
    start = next((k for k, (_, line) in enumerate(lines) if line.strip()), None)
    if start is None:
        message = "no header `n m [fmt [ncon]]`: not a METIS graph, or an empty file"
        raise file_error(path, None, message)
    line, header = lines[start]
    n, m, skip, weighted = _metis_header(path, line, header.split())
    body = lines[start + 1 :]
    while len(body) > n and not body[-1][1].strip():
        body.pop()
    if len(body) != n:
        message = (
            f"the header promises {n} vertices, one line each (empty if it has no neighbours), "
            f"got {len(body)} lines"
        )
        raise file_error(path, line, message)
    found, words = _metis_neighbours(path, body, skip, weighted)
    _check_metis_pairs(found, words, body, signed)
    once = np.flatnonzero(found.edges[:, 0] < found.edges[:, 1])
    if len(once) != m:
        message = f"the header promises {m} edges, the lines hold {len(once)}"
        raise file_error(path, line, message)
    return found._replace(edges=found.edges[once], weights=found.weights[once])


def _metis_header(path: str, line: int, words: list[str]) -> tuple[int, int, int, bool]:
    """Parse the header, ``n m [fmt [ncon]]``.

    Return the numbers of vertices, of edges, and of sizes and weights that begin each line; and
    whether a weight follows each neighbour.
    """
    if not 2 <= len(words) <= 4:
        message = f"the header must be `n m [fmt [ncon]]`, got {counted(len(words), 'word')}"
        raise file_error(path, line, message)
    fmt = words[2] if len(words) > 2 else "0"
    if not re.fullmatch("[01]{1,3}", fmt):
        raise file_error(path, line, f"fmt must be up to three digits 0 or 1, got {shown(fmt)}")
    sizes, vertex_weights, weighted = (digit == "1" for digit in fmt.zfill(3))
    header = Words(path, "a number of the header")
    header.add(line, [*words[:2], *words[3:]])
    numbers = header.integers()
    if min(numbers) < 0:
        message = f"the header must not hold negative numbers, got {min(numbers)}"
        raise file_error(path, line, message)
    n_weights = numbers[2] if len(numbers) > 2 else 1
    return numbers[0], numbers[1], sizes + n_weights * vertex_weights, weighted


def _metis_neighbours(
    path: str, body: list[tuple[int, str]], skip: int, weighted: bool
) -> tuple[EdgeList, Words]:
    """Return the neighbours in all lines, as edges from both ends and as words."""
    n, step = len(body), 1 + weighted
    skipped = Words(path, "a vertex size or weight")
    neighbours = Words(path, "a neighbour")
    weights = Words(path, "the weight of an edge")
    degrees = np.zeros(n, dtype=np.int64)
    for u, (number, line) in enumerate(body):
        words = line.split()
        if len(words) < skip or (len(words) - skip) % step:
            wanted = f"{skip} vertex sizes and weights first"
            if len(words) >= skip:
                wanted = "a weight after each neighbour"
            message = f"the header's fmt requires {wanted}, got {counted(len(words), 'number')}"
            raise file_error(path, number, message)
        degrees[u] = (len(words) - skip) // step
        skipped.add(number, words[:skip])
        neighbours.add(number, words[skip::step])
        if weighted:
            weights.add(number, words[skip + 1 :: step])
    skipped.numbers()  # parsed although not needed, to detect damaged files
    rows = np.repeat(np.arange(n), degrees)
    edges = np.stack([rows, neighbours.indices(n)], axis=1)
    values = weights.numbers() if weighted else np.ones(len(rows))
    return EdgeList(n, edges, values, None), neighbours


def _check_metis_pairs(
    found: EdgeList, words: Words, body: list[tuple[int, str]], signed: bool
) -> None:
    """Raise an error for negative weights, loops, and edges whose entries at both ends differ."""
    (rows, columns), weights = found.edges.T, found.weights

    def refuse(k: int, message: str) -> None:
        raise file_error(words.path, words.line(k), message)

    if not signed and (k := first_true(weights < 0)) is not None:
        message = f"the weight of an edge must not be negative, got {weights[k]:.17g}"
        refuse(k, f"{message}; {SIGNS}")
    if (k := first_true(rows == columns)) is not None:
        refuse(k, f"vertex {rows[k] + 1} is its own neighbour; a METIS graph has no loops")
    unpaired = _first_unpaired(found)
    if unpaired is None:
        return
    k, why, other = unpaired
    u, v = int(rows[k]) + 1, int(columns[k]) + 1
    if why == "repeated":
        refuse(k, f"vertex {u} has neighbour {v} twice")
    if why == "alone":
        other_end = f"vertex {v} (line {body[v - 1][0]})"
        refuse(k, f"vertex {u} has neighbour {v}, but {other_end} does not have {u}")
    values = f"weight {weights[k]:.17g} here and {weights[other]:.17g} at its other end"
    refuse(k, f"edge {u} {v} has {values} (line {words.line(other)})")
