"""Edge lists: a line for each edge."""

import re

import numpy as np

from sheafcoarsen.io.edges import EdgeList
from sheafcoarsen.io.text import Words, file_error, read_lines, shown

_SEPARATOR = re.compile(r"\s*,\s*|\s+")


def read_edge_list(path: str) -> EdgeList:
    """Read lines ``u v [weight]``; what becomes of names, :func:`read_graph` says."""
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
            raise file_error(
                path,
                number,
                f"an edge is `u v [weight]`, separated by white space or commas, got {got}",
            )
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
    return EdgeList(len(labels), edges, values, labels)


def _integer(word: str) -> int | None:
    if not word.isascii() or "_" in word:  # int reads 1_000 and digits of other scripts too
        return None
    try:
        return int(word)
    except ValueError:
        return None
