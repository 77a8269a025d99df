"""METIS graph files."""

import re

import numpy as np

from sheafcoarsen.io.edges import EdgeList, first_unpaired
from sheafcoarsen.io.text import Words, file_error, read_lines, shown


def read_metis(path: str) -> EdgeList:
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
    found = first_unpaired(rows, columns, weights, n)
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
    return EdgeList(n, np.stack([rows[once], columns[once]], axis=1), weights[once], None)


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
