"""What is refused where a sheaf is asked for, and how one is read from flat maps."""

import networkx as nx
import numpy as np
import scipy.sparse

from sheafcoarsen.sheaf.container import CellularSheaf


def check_sheaf(value: object, name: str = "sheaf") -> CellularSheaf:
    """Refuse anything but a sheaf, with the way from what came to one."""
    if isinstance(value, CellularSheaf):
        return value
    remedy = ""
    if isinstance(getattr(value, "sheaf", None), CellularSheaf):
        remedy = ": it has one in its attribute `sheaf`"
    elif (
        isinstance(value, nx.Graph) or scipy.sparse.issparse(value) or isinstance(value, np.ndarray)
    ):
        remedy = ": CellularSheaf.constant(graph) makes one"
    raise TypeError(f"`{name}` must be a CellularSheaf, got {type(value).__name__}{remedy}")
