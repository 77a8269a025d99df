"""Numbers of vertices, edges and dimensions before and after an elimination."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen.sheaf import CellularSheaf


class Sizes(NamedTuple):
    """Counts for the fine and the reduced sheaf, as pairs.

    ``by_neighbors[k]`` is the number of vertices that had k neighbours at their elimination.
    """

    vertices: tuple[int, int]
    edges: tuple[int, int]
    loops: tuple[int, int]
    dim_c0: tuple[int, int]
    dim_c1: tuple[int, int]
    nonzeros: tuple[int, int]
    by_neighbors: tuple[int, ...]

    @property
    def rows(self) -> list[tuple]:
        """Rows of the HTML table, with the columns name, fine and reduced."""
        names = "vertices", "edges", "of them loops", "dim C^0", "dim C^1", "nonzeros of L"
        table: list[tuple] = [(name, *pair) for name, pair in zip(names, self, strict=False)]
        return table + [(f"eliminated: {text}", "", "") for text in self._eliminated()]

    @property
    def summary(self) -> str:
        """One line with the counts, for the repr of an elimination."""
        fine, reduced = self.vertices
        what = self._eliminated()
        edges, loops = self.edges[1] - self.loops[1], self.loops[1]
        return (
            f"{fine} -> {reduced} vertices{': ' if what else ''}{', '.join(what)}; dim C^0 "
            f"{self.dim_c0[0]} -> {self.dim_c0[1]}, {self.edges[0]} -> {edges} edges + {loops} "
            f"loops"
        )

    @property
    def remark(self) -> str:
        """One line on the eliminated vertices, for the table of a hierarchy."""
        fine, reduced = self.vertices
        words = ", ".join(self._eliminated()) or "nothing"
        what = f"{fine - reduced} of {fine} vertices eliminated exactly ({words})"
        return f"{what}; dim C^0 {self.dim_c0[0]} -> {self.dim_c0[1]}"

    def _eliminated(self) -> list[str]:
        """Return phrases such as "11 in chains" that count the eliminated vertices."""
        none, one, two, *more = *self.by_neighbors, *[0] * 3
        texts = {"without neighbours": none, "leaf" if one == 1 else "leaves": one}
        texts |= {"in chains": two, "with 3 or more neighbours": sum(more)}
        return [f"{count} {text}" for text, count in texts.items() if count]


def dim_of_few_edges(sheaf: CellularSheaf) -> int:
    """Return the total stalk dimension of vertices with at most two half-edges, except loops."""
    ends = sheaf.edges[sheaf.edges[:, 0] != sheaf.edges[:, 1]]
    few = np.bincount(ends.reshape(-1), minlength=sheaf.n_vertices) <= 2
    return int(sheaf.vertex_dims[few].sum())
