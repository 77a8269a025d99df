"""Reader of METIS graph files, which have a line of neighbours for each vertex."""

import re

import numpy as np

from sheafcoarsen._support import counted, first_true
from sheafcoarsen.io.edge_list import SIGNS, EdgeList, first_unpaired
from sheafcoarsen.io.text import Words, file_error, read_lines, shown


def read_metis(path: str, signed: bool = False) -> EdgeList:
    """Read edges (u, v) with u < v in the order of lines; ``signed`` allows negative weights."""
    numbered = enumerate(read_lines(path), start=1)
    lines = [(k, line) for k, line in numbered if not line.lstrip().startswith("%")]
    start = next((k for k, (_, line) in enumerate(lines) if line.strip()), None)
    if start is None:
        message = "no header `n m [fmt [ncon]]`: not a METIS graph, or an empty file"
        raise file_error(path, None, message)
    line, header = lines[start]
    n, m, skip, weighted = _header(path, line, header.split())
    body = lines[start + 1 :]
    while len(body) > n and not body[-1][1].strip():
        body.pop()
    if len(body) != n:
        message = (
            f"the header promises {n} vertices, one line each (empty if it has no neighbours), "
            f"got {len(body)} lines"
        )
        raise file_error(path, line, message)
    found, words = _neighbours(path, body, skip, weighted)
    _check_pairs(found, words, body, signed)
    once = np.flatnonzero(found.edges[:, 0] < found.edges[:, 1])
    if len(once) != m:
        message = f"the header promises {m} edges, the lines hold {len(once)}"
        raise file_error(path, line, message)
    return found._replace(edges=found.edges[once], weights=found.weights[once])


def _header(path: str, line: int, words: list[str]) -> tuple[int, int, int, bool]:
    """Parse the first line, ``n m [fmt [ncon]]``.

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


def _neighbours(
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


def _check_pairs(found: EdgeList, words: Words, body: list[tuple[int, str]], signed: bool) -> None:
    """Raise an error for negative weights, loops, and edges whose entries at both ends differ."""
    (rows, columns), weights = found.edges.T, found.weights

    def refuse(k: int, message: str) -> None:
        raise file_error(words.path, words.line(k), message)

    if not signed and (k := first_true(weights < 0)) is not None:
        message = f"the weight of an edge must not be negative, got {weights[k]:.17g}"
        refuse(k, f"{message}; {SIGNS}")
    if (k := first_true(rows == columns)) is not None:
        refuse(k, f"vertex {rows[k] + 1} is its own neighbour; a METIS graph has no loops")
    unpaired = first_unpaired(found)
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
