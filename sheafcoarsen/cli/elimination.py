"""``sheafcoarsen eliminate``: leaves and chains of a network solved for."""

import numpy as np

from sheafcoarsen._support import PathLike
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.sheaf import CellularSheaf


def vertices_in(path: PathLike, F: CellularSheaf) -> np.ndarray:
    """Return the vertices named in a text file: numbers, or names of the graph, any white space.

    What follows a # in a line is a comment.
    """
    with open(path, encoding="utf-8") as stream:
        words = [word for line in stream for word in line.partition("#")[0].split()]
    names = {str(label): v for v, label in enumerate(F.vertex_labels or ())}
    found = []
    for word in words:
        if word in names:
            found.append(names[word])
        elif not names and word.isdecimal() and int(word) < F.n_vertices:
            found.append(int(word))
        else:
            what = "name" if names else f"number from 0 to {F.n_vertices - 1}"
            raise ValueError(f"--keep {path}: {word!r} is no vertex; one is given by its {what}")
    return np.array(found, np.int64)


def describe_elimination(K: Elimination) -> str:
    """Return what was saved, as lines of text."""
    rows = [(str(name), str(fine), str(left)) for name, fine, left in K.sizes.rows]
    lines = [f"        {'':<30}  {'fine':>12}  {'left':>12}"]
    for name, fine, left in rows:
        lines.append(f"        {name:<30}  {fine:>12}  {left:>12}".rstrip())
    return "\n".join(lines)
