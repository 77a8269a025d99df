"""Whether a sheaf may take the place of the one that was coarsened: new maps, nothing else."""

import numpy as np

from sheafcoarsen.sheaf import CellularSheaf


def check_topology(fine: CellularSheaf, sheaf: CellularSheaf, maker: str) -> None:
    """Refuse a sheaf on another graph, or with other stalks, than what ``maker`` coarsened."""
    for name in ("edges", "vertex_dims", "edge_dims"):
        mine, other = getattr(fine, name), getattr(sheaf, name)
        if mine is other or np.array_equal(mine, other):
            continue
        if len(mine) != len(other):
            what = f"there are {len(other)} of them, not {len(mine)}"
        else:
            i = int(np.argmax((mine != other).reshape(len(mine), -1).any(axis=1)))
            what = f"first at index {i}, where {other[i].tolist()} stands for {mine[i].tolist()}"
        raise ValueError(
            f"`sheaf` must have the graph and the stalks of the sheaf that was coarsened, "
            f"but its {name} differ, {what}: use {maker} for another graph"
        )
