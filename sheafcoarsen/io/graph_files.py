"""Weighted graphs in five text formats, each read as the constant sheaf."""

import io
import os
import re
from collections.abc import Callable
from typing import NamedTuple
from xml.etree.ElementTree import ParseError

import networkx as nx
import numpy as np

from sheafcoarsen._checks import file_path, whole_number
from sheafcoarsen._linalg import eps_of
from sheafcoarsen.io.text import Words, file_error, named, read_bytes, read_lines, shown
from sheafcoarsen.sheaf import CellularSheaf


class _Edges(NamedTuple):
    """What a file says of a graph."""

    n_vertices: int
    edges: np.ndarray  # (m, 2) int64
    weights: np.ndarray  # (m,) float64, finite and not negative
    names: tuple | None


def read_graph(path, dim: int = 1) -> CellularSheaf:
    r"""Read a weighted graph as the constant sheaf: sqrt(w) I on both ends of every edge.

    The ending decides the format; each may be followed by ``.gz``:

    ``.mtx``
        MatrixMarket. Symmetric, or general with symmetric entries; a pattern has weight 1, a
        diagonal entry is a loop. Edges are the upper triangle row by row.
    ``.graph``
        METIS adjacency: ``n m [fmt [ncon]]``, then a line for each vertex. Vertex sizes and
        weights are passed over. Each edge is kept as (u, v), u < v, in the order of the lines.
    ``.txt .edges .edgelist .el .csv .tsv``
        Edge list: ``u v [weight]`` (missing = 1), separated by white space or commas; ``#`` and
        ``%`` begin a comment. Names are integers if all of them are, else strings; they are
        numbered in the order of their first appearance and kept as ``vertex_labels``. Edges stay
        in the order of the file; repeated ones are parallel, u = v is a loop.
    ``.graphml``
        As networkx reads it, undirected, with the edge attribute "weight" (missing = 1).
    ``.gml``
        The same. Names are the nodes' labels where each has one of its own, else their ids.

    Parameters
    ----------
    path : str or path-like
    dim : int
        Dimension of every stalk.

    Returns
    -------
    CellularSheaf

    Raises
    ------
    FileNotFoundError
    ValueError
        ``path:line: ...`` or ``path: ...`` for a file that is damaged, contradicts itself, or has
        weights that are negative or not finite; another ending.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sheafcoarsen.io import read_graph
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "triangle.csv"
    ...     _ = path.write_text("# from, to, weight\nb,a,4\na,c\nc,b\n")
    ...     F = read_graph(path, dim=2)
    >>> F.vertex_labels, F.edges.tolist()
    (('b', 'a', 'c'), [[0, 1], [1, 2], [2, 0]])
    >>> F.tail_map(0)
    array([[2., 0.],
           [0., 2.]])
    """
    path = file_path(path)
    dim = whole_number("dim", dim, at_least=0)
    stem = path[:-3] if path.lower().endswith(".gz") else path
    ending = os.path.splitext(stem)[1].lower()
    if ending not in _READERS:
        hint = {".g2o": "; read_g2o reads pose graphs", ".npz": "; load reads what save wrote"}.get(ending, "")
        known = ", ".join(_READERS)
        message = f"unknown ending {ending!r}; read_graph reads {known}, each also .gz{hint}"
        raise file_error(path, None, message)
    graph = _READERS[ending](path)
    try:
        if isinstance(graph, nx.Graph):
            return CellularSheaf.constant(graph, dim)
        sheaf = CellularSheaf.constant(graph.edges, dim, graph.weights, graph.n_vertices)
    except (TypeError, ValueError) as error:
        raise file_error(path, None, str(error)) from None
    return sheaf if graph.names is None else named(sheaf, graph.names)


# ---------------------------------------------------------------- MatrixMarket
#
# scipy.io.mmread is not used: it allocates whatever the size line says, and some damaged files end the process (scipy 1.17)


def _read_mtx(path: str) -> _Edges:
    lines = read_lines(path)
    layout, pattern, symmetric = _mtx_banner(path, lines[0] if lines else "")
    numbered = [
        (k, line) for k, line in enumerate(lines, start=1) if line.strip() and not line.lstrip().startswith("%")
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
        raise file_error(path, header, f"the size line must be `{' '.join(parts)}`, got {shown(size.strip())}")
    n = numbers[0]
    if n != numbers[1]:
        raise file_error(path, header, f"an adjacency is a square matrix, got {n} x {numbers[1]}")
    if n > 2**31:  # row n + column must fit 64 bits
        raise file_error(path, header, f"{n} vertices are more than read_graph can take")
    count = numbers[2] if layout == "coordinate" else n * (n + 1) // 2 if symmetric else n * n
    if len(body) != count:
        raise file_error(path, header, f"the size line promises {count} entries, the file holds {len(body)}")

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
    return _mtx_edges(path, n, rows, columns, values, [number for number, _ in body], layout, symmetric)


def _mtx_banner(path: str, line: str) -> tuple[str, bool, bool]:
    """Return (layout, whether there are no weights, whether one triangle stands for both)."""
    words = line.lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        message = f"not a MatrixMarket matrix: the first line must be `%%MatrixMarket matrix ...`, got {shown(line)}"
        raise file_error(path, 1, message)
    layout, field, symmetry = words[2:]
    known = {"real": False, "double": False, "integer": False, "unsigned-integer": False, "pattern": True}
    if layout not in ("coordinate", "array") or (layout == "array" and field == "pattern"):
        raise file_error(path, 1, f"not a MatrixMarket matrix: unknown layout {shown(f'{layout} {field}')}")
    if field not in known:
        raise file_error(path, 1, f"weights must be real, integer or pattern, got {shown(field)}")
    if symmetry not in ("symmetric", "general"):
        raise file_error(
            path, 1, f"an adjacency is symmetric (or general with symmetric entries), got {shown(symmetry)}"
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


def _mtx_edges(path, n, rows, columns, weights, lines, layout, symmetric) -> _Edges:
    """Return the upper triangle row by row of a matrix that is symmetric as its entries say."""
    entry = np.flatnonzero(weights) if layout == "array" else np.arange(len(rows))
    mirrored = entry[rows[entry] != columns[entry]] if symmetric else entry[:0]
    order = np.argsort(np.concatenate([entry, mirrored]), kind="stable")  # a mirror image right after its entry
    rows, columns = (
        np.concatenate([rows[entry], columns[mirrored]])[order],
        np.concatenate([columns[entry], rows[mirrored]])[order],
    )
    entry = np.concatenate([entry, mirrored])[order]
    weights = weights[entry]

    def refuse(k: int, message: str):
        raise file_error(path, lines[entry[k]], f"entry ({rows[k] + 1}, {columns[k] + 1}) {message}")

    if (weights < 0).any():
        k = int((weights < 0).argmax())
        refuse(k, f"must not be negative as the weight of an edge, got {weights[k]}; CellularSheaf.signed takes signs")
    found = _first_unpaired(rows, columns, weights, n)
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
    return _Edges(n, np.stack([rows[upper], columns[upper]], axis=1), weights[upper], None)


def _first_unpaired(rows, columns, weights, n: int) -> tuple[int, str, int] | None:
    """Return (entry, why, other) for the first one repeated or unlike its mirror image."""
    if not len(rows):
        return None
    keys = rows * n + columns
    order = np.argsort(keys, kind="stable")
    ascending = keys[order]
    again = np.flatnonzero(ascending[1:] == ascending[:-1])
    if again.size:
        first = int(order[again + 1].argmin())
        return int(order[again[first] + 1]), "repeated", int(order[again[first]])
    mirrored = columns * n + rows
    place = np.minimum(np.searchsorted(ascending, mirrored), len(keys) - 1)
    alone = np.flatnonzero(ascending[place] != mirrored)
    if alone.size:
        return int(alone[0]), "alone", -1
    other = order[place]
    # as CellularSheaf allows in an adjacency: a product such as A^T A is symmetric up to rounding
    differs = np.flatnonzero(np.abs(weights - weights[other]) > 8 * eps_of(float) * weights.max())
    if differs.size:
        return int(differs[0]), "differs", int(other[differs[0]])
    return None


# ---------------------------------------------------------------- METIS


def _read_metis(path: str) -> _Edges:
    numbered = enumerate(read_lines(path), start=1)
    lines = [(k, line) for k, line in numbered if not line.lstrip().startswith("%")]
    start = next((k for k, (_, line) in enumerate(lines) if line.strip()), None)
    if start is None:
        message = "no header `n m [fmt [ncon]]`: not a METIS graph, or an empty file"
        raise file_error(path, None, message)
    header, words = lines[start][0], lines[start][1].split()
    n, m, skip, weighted = _metis_header(path, header, words)
    body = lines[start + 1 :]
    while len(body) > n and not body[-1][1].strip():
        body.pop()
    if len(body) != n:
        message = (
            f"the header promises {n} vertices, one line each (empty where there is no neighbour), "
            f"got {len(body)} lines"
        )
        raise file_error(path, header, message)

    step = 1 + weighted
    skipped = Words(path, "a vertex size or weight")
    neighbours = Words(path, "a neighbour")
    edge_weights = Words(path, "the weight of an edge")
    degrees = np.zeros(n, dtype=np.int64)
    for u, (number, line) in enumerate(body):
        words = line.split()
        if len(words) < skip or (len(words) - skip) % step:
            wanted = f"{skip} vertex sizes and weights first"
            if len(words) >= skip:
                wanted = "a weight after each neighbour"
            message = f"the header's fmt wants {wanted}, got {len(words)} numbers"
            raise file_error(path, number, message)
        degrees[u] = (len(words) - skip) // step
        skipped.add(number, words[:skip])
        neighbours.add(number, words[skip::step])
        if weighted:
            edge_weights.add(number, words[skip + 1 :: step])
    skipped.numbers()
    rows = np.repeat(np.arange(n), degrees)
    columns = _metis_neighbours(neighbours, n)
    weights = edge_weights.numbers() if weighted else np.ones(len(rows))

    def refuse(k: int, message: str):
        raise file_error(path, neighbours.line(k), message)

    if (weights < 0).any():
        k = int((weights < 0).argmax())
        refuse(k, f"the weight of an edge must not be negative, got {weights[k]:.17g}")
    if (rows == columns).any():
        k = int((rows == columns).argmax())
        refuse(k, f"vertex {rows[k] + 1} is its own neighbour; a METIS graph has no loops")
    found = _first_unpaired(rows, columns, weights, n)
    if found is not None:
        k, why, other = found
        u, v = int(rows[k]) + 1, int(columns[k]) + 1
        if why == "repeated":
            refuse(k, f"vertex {u} has neighbour {v} twice")
        elif why == "alone":
            other_end = f"vertex {v} (line {body[v - 1][0]})"
            refuse(k, f"vertex {u} has neighbour {v}, but {other_end} does not have {u}")
        values = f"weight {weights[k]:.17g} here and {weights[other]:.17g} at its other end"
        refuse(k, f"edge {u} {v} has {values} (line {neighbours.line(other)})")
    once = np.flatnonzero(rows < columns)
    if len(once) != m:
        raise file_error(path, header, f"the header promises {m} edges, the lines hold {len(once)}")
    return _Edges(n, np.stack([rows[once], columns[once]], axis=1), weights[once], None)


def _metis_header(path: str, line: int, words: list[str]) -> tuple[int, int, int, bool]:
    """Return (n, m, numbers to skip on each line, whether edges have weights)."""
    if not 2 <= len(words) <= 4:
        message = f"the header must be `n m [fmt [ncon]]`, got {len(words)} words"
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
    n_weights = (numbers[2] or 1) if len(numbers) > 2 else 1
    return numbers[0], numbers[1], sizes + n_weights * vertex_weights, weighted


def _metis_neighbours(neighbours: Words, n: int) -> np.ndarray:
    numbers = neighbours.integers()
    if numbers and not (min(numbers) >= 1 and max(numbers) <= n):
        k = next(k for k, v in enumerate(numbers) if not 1 <= v <= n)
        word = shown(neighbours.words[k])
        message = f"neighbour {word} is out of range; vertices count from 1 to {n}"
        raise file_error(neighbours.path, neighbours.line(k), message)
    return np.array(numbers, dtype=np.int64) - 1


# ---------------------------------------------------------------- edge list

_SEPARATOR = re.compile(r"\s*,\s*|\s+")


def _read_edge_list(path: str) -> _Edges:
    ends: list[str] = []
    lines: list[int] = []
    weights = Words(path, "the weight of an edge")
    weighted: list[int] = []  # the edges that have one
    for number, line in enumerate(read_lines(path), start=1):
        words = _SEPARATOR.split(line.strip()) if "," in line else line.split()
        if "#" in line or "%" in line:
            begin = next((k for k, word in enumerate(words) if word[:1] in ("#", "%")), len(words))
            words = words[:begin]
        if not words or words == [""]:
            continue
        if not 2 <= len(words) <= 3 or "" in words:
            got = "an empty field" if "" in words else f"{len(words)} words"
            raise file_error(path, number, f"an edge is `u v [weight]`, separated by white space or commas, got {got}")
        if len(words) == 3:
            weighted.append(len(lines))
            weights.add(number, words[2:])
        ends += words[:2]
        lines.append(number)
    if not lines:
        raise file_error(path, None, "no edge `u v [weight]` in this file")
    values = np.ones(len(lines))
    values[weighted] = weights.numbers()
    if (values < 0).any():
        e = int((values < 0).argmax())
        message = f"the weight of an edge must not be negative, got {values[e]:.17g}"
        raise file_error(path, lines[e], f"{message}; CellularSheaf.signed takes signs")
    names = dict.fromkeys(ends)
    numbers = [_integer(name) for name in names]
    if None not in numbers:
        number_of = dict(zip(names, numbers, strict=True))
        labels: tuple = tuple(dict.fromkeys(numbers))
        index = dict(zip(labels, range(len(labels)), strict=True))
        place = {name: index[number_of[name]] for name in names}
    else:
        once = not {*ends[:2]}.intersection(ends[2:])
        if once and numbers[:2] == [None, None] and None not in numbers[2:] and len(lines) > 2:
            message = (
                f"{shown(ends[0])} and {shown(ends[1])} look like the headings of a table, because "
                f"all other names are integers; begin that line with #"
            )
            raise file_error(path, lines[0], message)
        labels = tuple(names)
        place = dict(zip(labels, range(len(labels)), strict=True))
    edges = np.array([place[name] for name in ends], dtype=np.int64).reshape(-1, 2)
    return _Edges(len(labels), edges, values, labels)


def _integer(word: str) -> int | None:
    if not word.isascii() or "_" in word:  # int reads 1_000 and digits of other scripts too
        return None
    try:
        return int(word)
    except ValueError:
        return None


# ---------------------------------------------------------------- GraphML and GML


def _read_graphml(path: str) -> nx.Graph:
    content = read_bytes(path)
    try:
        graph = nx.read_graphml(io.BytesIO(content))
    except ParseError as error:
        raise file_error(path, error.position[0], f"not XML: {error}") from None
    except Exception as error:  # networkx lets KeyError and others of its own through
        said = str(error) or type(error).__name__
        raise file_error(path, None, f"not a GraphML graph: {said}") from None
    if graph.is_directed():
        message = 'the graph is directed; write it with edgedefault="undirected" (networkx: graph.to_undirected())'
        raise file_error(path, None, message)
    return graph


def _read_gml(path: str) -> nx.Graph:
    lines = read_lines(path)
    try:
        graph = nx.parse_gml(lines, label=None)
        labels = [label for _, label in graph.nodes(data="label")]
        if None not in labels and len(set(labels)) == len(labels):
            graph = nx.relabel_nodes(graph, dict(zip(graph, labels, strict=True)))
    except Exception as error:  # networkx lets TypeError, RecursionError and others through
        said = str(error) or type(error).__name__
        place = re.search(r" at \((\d+), \d+\)$", said)
        raise file_error(path, int(place[1]) if place else None, f"not a GML graph: {said}") from None
    if graph.is_directed():
        raise file_error(path, None, "the graph is directed; leave out `directed 1` (networkx: graph.to_undirected())")
    return graph


_READERS: dict[str, Callable[[str], _Edges | nx.Graph]] = {
    ".mtx": _read_mtx,
    ".graph": _read_metis,
    **dict.fromkeys((".txt", ".edges", ".edgelist", ".el", ".csv", ".tsv"), _read_edge_list),
    ".graphml": _read_graphml,
    ".gml": _read_gml,
}
