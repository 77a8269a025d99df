"""Readers of graphs in text files: edge lists, MatrixMarket, and METIS adjacency lists."""

import csv
import re
import warnings
from itertools import dropwhile
from typing import NamedTuple

import networkx as nx
import numpy as np

from sheafcoarsen._support import checks, linalg, tables
from sheafcoarsen.io.text import FileError, numbers, ordinals, parsed, read_lines, shown

SIGNS = "CellularSheaf.signed, read_graph(path, signed=True) and --signed accept negative weights"
"""Hint in error messages about negative weights."""

IDLE = 2**20
"""Excess of vertices over twice the entries above which ``n_vertices`` must confirm the size."""


class EdgeList(NamedTuple):
    """Edges, weights and vertex names of a graph file."""

    n_vertices: int | None  # None for a networkx graph
    edges: np.ndarray | nx.Graph  # (m, 2) int64
    weights: np.ndarray  # (m,) float64, finite; negative only if signs are allowed
    names: tuple | None = None  # names of the vertices; None if they are indices, or nodes


# ---------------------------------------------------------------- edge lists, one edge per line


def read_edge_list(path: str, signed: bool = False, n_vertices: int | None = None) -> EdgeList:
    """Read lines ``u v [weight]``; warnings about names are attributed to the caller's caller."""
    ends, lines, weights = _lines(path, n_vertices is not None)
    if not signed and (e := checks.first_true(weights < 0)) is not None:
        message = f"the weight of an edge must not be negative, got {weights[e]:.17g}; {SIGNS}"
        raise FileError(message, lines[e])
    number_of = {name: _integer(name) for name in dict.fromkeys(ends)}
    vertices: list = [number_of[name] for name in ends]
    message = ""
    if n_vertices is not None:
        for k, v in enumerate(vertices):
            if v is None:
                message = f"`n_vertices` requires names that are integers, got {shown(ends[k])}"
            elif not 0 <= v < n_vertices:
                span = f"`n_vertices` = {n_vertices} (0 .. {n_vertices - 1})"
                message = f"vertex {v} is out of range for {span}"
            if message:
                raise FileError(message, lines[k // 2])
    elif None in vertices or any(re.match(r"[-+]?0\d", name) for name in number_of):
        vertices = ends  # names, such as codes with leading zeros
    else:
        low, high, named = min(vertices), max(vertices), len(set(vertices))
        if low >= 0 and high < 4 * named:
            n_vertices = high + 1
            if low > 0:
                alone = f"vertices 0 to {low - 1} have no edges"
                message = (
                    f"numbers begin with {low}, so {alone if low > 1 else 'vertex 0 has no edge'}. "
                    f"If the file numbers vertices from {low}, F.subsheaf(range({low}, "
                    f"F.n_vertices)) removes the others; if not, pass n_vertices={high + 1} to "
                    f"disable this warning"
                )
        elif low >= 0:
            message = (
                f"{named} vertices have numbers up to {high}, too sparse for indices, so the "
                f"numbers are kept as vertex_labels"
            )
            if high < checks.MAX_VERTICES:
                message += f"; pass n_vertices={high + 1} to use them as indices"
        if message:
            warnings.warn(f"{path}: {message}", UserWarning, stacklevel=3)
    names = None
    if n_vertices is None:  # the vertices are no indices, so they are numbered by occurrence
        index = {name: v for v, name in enumerate(dict.fromkeys(vertices))}
        vertices = [index[name] for name in vertices]
        n_vertices, names = len(index), tuple(index)
    edges = np.array(vertices, dtype=np.int64).reshape(-1, 2)
    return EdgeList(n_vertices, edges, weights, names)


def _lines(path: str, numbered: bool) -> tuple[list[str], list[int], np.ndarray]:
    """Return ends of edges as a flat list, lines and weights; ``numbered`` ends are integers."""
    ends: list[str] = []
    lines: list[int] = []
    weights: list[str] = []  # empty without a weight
    table = {".csv": ",", ".tsv": "\t"}.get(path.lower().removesuffix(".gz")[-4:])
    for number, line in enumerate(read_lines(path), start=1):
        words = _fields(number, line, table)
        if not words:
            continue
        if not 2 <= len(words) <= 3 or "" in words:
            got = "an empty field" if "" in words else tables.counted(len(words), "word")
            message = "an edge is `u v [weight]`, separated by white space or commas, got"
            hint = "; put names that contain blanks in quotes" if len(words) > 3 else ""
            raise FileError(f"{message} {got}{hint}", number)
        ends += words[:2]
        lines.append(number)
        weights.append(words[2] if len(words) == 3 else "")
    if not lines:
        raise FileError("no edge `u v [weight]` in this file")
    if _begins_with_headings(ends, weights[0], numbered):
        ends, lines, weights = ends[2:], lines[1:], weights[1:]
    given = [word or "1" for word in weights]
    return ends, lines, numbers(given, lines, "the weight of an edge")


def _fields(number: int, line: str, table: str | None) -> list[str]:
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
            raise FileError(f"a field in quotes cannot be read: {error}", number) from None
    if table and table in line:
        return [field.strip() for field in line.split(table)]
    return re.split(r"\s*,\s*|\s+", line.strip()) if "," in line else line.split()


def _begins_with_headings(ends: list[str], weight: str, numbered: bool) -> bool:
    """Return whether the first line holds the headings of a table instead of an edge."""
    first, others = ends[:2], {*ends[2:]}
    # a name that occurs again is a vertex, and so is a number
    if not others or not others.isdisjoint(first) or any(re.match(r"[-+.]?\d", u) for u in first):
        return False
    if weight:
        return weight.isidentifier() and weight.lower() not in ("nan", "inf", "infinity")
    if [u.lower() for u in first] in (["source", "target"], ["from", "to"]):
        return True
    # if a single edge between integers follows, the first line may be an edge between names
    likely = len(ends) > 4 and first[0] != first[1]
    return numbered or (likely and all(_integer(u) is not None for u in others))


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


def _check_adjacency(
    n: int,
    edges: np.ndarray,
    weights: np.ndarray,
    lines: np.ndarray,
    signed: bool,
    symmetric: bool = False,
) -> None:
    """Raise an error for an invalid entry of an adjacency matrix.

    If ``symmetric``, only one of the entries (i, j) and (j, i) is listed, otherwise both.
    """

    def refuse(k: int, message: str) -> None:
        i, j = (edges[k] + 1).tolist()
        raise FileError(f"entry {(i, j)} {message.format(mirror=(j, i))}", lines[k])

    if not signed and (k := checks.first_true(weights < 0)) is not None:
        refuse(k, f"must not be negative as the weight of an edge, got {weights[k]:.17g}; {SIGNS}")
    rows, columns = (np.sort(edges, axis=1) if symmetric else edges).T
    keys = rows * n + columns
    order = np.argsort(keys, kind="stable")
    ascending = keys[order]
    again = order[1:][ascending[1:] == ascending[:-1]]
    if again.size:
        refuse(again.min(), "occurs a second time")
    if symmetric:
        return
    mirrored = columns * n + rows
    place = np.minimum(np.searchsorted(ascending, mirrored), len(keys) - 1)
    if (k := checks.first_true(ascending[place] != mirrored)) is not None:
        refuse(k, "has no mirror image {mirror}; an adjacency is symmetric")
    other = weights[order[place]]
    # same tolerance as CellularSheaf: products such as A^T A are symmetric only up to rounding
    allowed = 8 * linalg.eps_of(float) * np.abs(weights).max(initial=0)
    if (k := checks.first_true(np.abs(weights - other) > allowed)) is not None:
        mirror = f"its mirror image {{mirror}} is {other[k]:.17g}"
        refuse(k, f"is {weights[k]:.17g}, but {mirror}; an adjacency is symmetric")


# ---------------------------------------------------------------- MatrixMarket


def read_matrix_market(path: str, signed: bool = False, n_vertices: int | None = None) -> EdgeList:
    """Return the upper triangle of a matrix, row by row; ``n_vertices`` confirms its dimension."""
    lines = enumerate(read_lines(path), start=1)
    coordinate, pattern, symmetric = _banner(next(lines, (1, ""))[1])
    body = ((k, line) for k, line in lines if line.strip() and not line.lstrip().startswith("%"))
    header, size = next(body, (0, ""))
    if not header:
        raise FileError("not a MatrixMarket matrix: no line with its size")
    sizes = parsed(int, size.split(), [header], "a number of the size line")
    wanted = ("rows", "columns", "entries")[: 3 if coordinate else 2]
    if len(sizes) != len(wanted) or min(sizes) < 0:
        message = f"the size line must be `{' '.join(wanted)}`, got {shown(size.strip())}"
        raise FileError(message, header)
    n = sizes[0]
    if n != sizes[1]:
        raise FileError(f"an adjacency is a square matrix, got {n} x {sizes[1]}", header)
    if n > checks.MAX_VERTICES:
        raise FileError(f"{n} vertices exceed the maximum of {checks.MAX_VERTICES}", header)
    if n_vertices not in (None, n):
        raise FileError(f"`n_vertices` = {n_vertices} contradicts the size line, {n}", header)
    count = sizes[2] if coordinate else n * (n + 1) // 2 if symmetric else n * n
    if n_vertices is None and coordinate and n > 2 * count + IDLE:
        message = f"{n} vertices, but {count} entries contain at most {2 * count} of them"
        raise FileError(f"{message}: pass n_vertices={n} to confirm the number", header)
    form = ("row", "column", "weight")[0 if coordinate else 2 : 2 if pattern else 3]
    places: list[str] = []
    weights: list[str] = []
    at: list[int] = []
    for number, line in body:
        words = line.split()
        if len(words) != len(form):
            message = f"an entry is `{' '.join(form)}`, got {tables.counted(len(words), 'word')}"
            raise FileError(message, number)
        places += words[: 2 * coordinate]
        weights += words[2 * coordinate :]
        at.append(number)
    if len(at) != count:
        raise FileError(f"the size line promises {count} entries, the file holds {len(at)}", header)
    values = np.ones(count) if pattern else numbers(weights, at, "the weight of an edge")
    if coordinate:
        edges = ordinals(places, at, "a row or column", n).reshape(-1, 2)
    else:
        listed = np.tri(n) if symmetric else np.ones((n, n))
        edges = np.argwhere(listed.T)[:, ::-1]  # column by column
    stored = np.flatnonzero(values)
    edges, values = edges[stored], values[stored]
    _check_adjacency(n, edges, values, np.array(at, np.int64)[stored], signed, symmetric)
    if symmetric:
        edges = np.sort(edges, axis=1)
    upper = np.flatnonzero(edges[:, 0] <= edges[:, 1])
    upper = upper[np.lexsort(edges[upper].T[::-1])]
    return EdgeList(n, edges[upper], values[upper])


def _banner(line: str) -> tuple[bool, bool, bool]:
    """Return whether a MatrixMarket file has coordinates, no weights, and only one triangle."""
    words = line.lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        wanted = "not a MatrixMarket matrix: the first line must be `%%MatrixMarket matrix ...`"
        raise FileError(f"{wanted}, got {shown(line)}", 1)
    layout, field, symmetry = words[2:]
    if layout not in ("coordinate", "array") or (layout == "array" and field == "pattern"):
        message = f"not a MatrixMarket matrix: unknown layout {shown(f'{layout} {field}')}"
        raise FileError(message, 1)
    if field not in ("real", "double", "integer", "unsigned-integer", "pattern"):
        raise FileError(f"weights must be real, integer or pattern, got {shown(field)}", 1)
    if symmetry not in ("symmetric", "general"):
        message = "an adjacency is symmetric (or general with symmetric entries), got"
        raise FileError(f"{message} {shown(symmetry)}", 1)
    return layout == "coordinate", field == "pattern", symmetry == "symmetric"


# ---------------------------------------------------------------- METIS


def read_metis(path: str, signed: bool = False) -> EdgeList:
    """Read edges (u, v) with u < v in the order of lines; ``signed`` allows negative weights."""
    numbered = enumerate(read_lines(path), start=1)
    written = ((k, line) for k, line in numbered if not line.lstrip().startswith("%"))
    body = list(dropwhile(lambda item: not item[1].strip(), written))
    if not body:
        raise FileError("no header `n m [fmt [ncon]]`: not a METIS graph, or an empty file")
    start, header = body.pop(0)
    n, m, skip, weighted = _metis_header(header.split(), start)
    while len(body) > n and not body[-1][1].strip():
        body.pop()
    if len(body) != n:
        raise FileError(
            f"the header promises {n} vertices, one line each (empty if it has no neighbours), "
            f"got {len(body)} lines",
            start,
        )
    neighbours: list[str] = []
    weights: list[str] = []
    degrees = np.zeros(n, dtype=np.int64)
    for u, (number, line) in enumerate(body):
        words = line.split()
        if len(words) < skip or (len(words) - skip) % (1 + weighted):
            wanted, got = "a weight after each neighbour", tables.counted(len(words), "number")
            if len(words) < skip:
                wanted = f"{skip} vertex sizes and weights first"
            raise FileError(f"the header's fmt requires {wanted}, got {got}", number)
        if skip:  # parsed although not needed, to detect damaged files
            numbers(words[:skip], [number], "a vertex size or weight")
        degrees[u] = (len(words) - skip) // (1 + weighted)
        neighbours += words[skip :: 1 + weighted]
        weights += words[skip + 1 :: 2] if weighted else []
    lines = np.array([number for number, _ in body], dtype=np.int64)
    rows = np.repeat(np.arange(n), degrees)
    what = "the weight of an edge"
    values = numbers(weights, lines[rows], what) if weighted else np.ones(len(rows))
    columns = ordinals(neighbours, lines[rows], "a neighbour", n)
    edges = np.stack([rows, columns], axis=1)
    del neighbours, weights  # they are larger than all arrays
    if (k := checks.first_true(rows == columns)) is not None:
        message = f"vertex {columns[k] + 1} is its own neighbour; a METIS graph has no loops"
        raise FileError(message, lines[rows[k]])
    _check_adjacency(n, edges, values, lines[rows], signed)
    once = np.flatnonzero(rows < columns)
    if len(once) != m:
        raise FileError(f"the header promises {m} edges, the lines hold {len(once)}", start)
    return EdgeList(n, edges[once], values[once])


def _metis_header(words: list[str], line: int) -> tuple[int, int, int, bool]:
    """Parse the header, ``n m [fmt [ncon]]``.

    Return n, m, the number of words before the neighbours, and whether these have weights.
    """
    if not 2 <= len(words) <= 4:
        message = f"the header must be `n m [fmt [ncon]]`, got {tables.counted(len(words), 'word')}"
        raise FileError(message, line)
    fmt = words[2] if len(words) > 2 else "0"
    if not re.fullmatch("[01]{1,3}", fmt):
        raise FileError(f"fmt must be up to three digits 0 or 1, got {shown(fmt)}", line)
    sizes, vertex_weights, weighted = (digit == "1" for digit in fmt.zfill(3))
    n, m, *rest = parsed(int, [*words[:2], *words[3:]], [line], "a number of the header")
    if min(n, m, *rest) < 0:
        raise FileError(f"the header must not hold negative numbers, got {min(n, m, *rest)}", line)
    return n, m, sizes + vertex_weights * (rest[0] if rest else 1), weighted
