"""The library's objects as named arrays, as docs/file_format.md describes them."""

import numpy as np
import scipy.sparse

from sheafcoarsen._support import encode_labels
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.hierarchy import Hierarchy
from sheafcoarsen.modes import Oversampled
from sheafcoarsen.sheaf import CellularSheaf

STEPS = ("vertices", "starts", "neighbors", "blocks", "inverses")
"""The arrays of the steps of an elimination."""

OVERSAMPLING = ("rings", "target", "pilot", "over_budget")
"""What oversampled modes have beyond others.

Versions that do not know these refuse the operator by its name.
"""


def sheaf_arrays(sheaf: CellularSheaf, prefix: str = "") -> dict[str, np.ndarray]:
    """Return what a sheaf is made of."""
    names = ("edges", "vertex_dims", "edge_dims", "tail_data", "head_data")
    arrays = {prefix + name: getattr(sheaf, name) for name in names}
    if sheaf.vertex_labels is not None:
        arrays[prefix + "vertex_labels"] = encode_labels(sheaf.vertex_labels)
    return arrays


def level_arrays(C: Coarsening, prefix: str = "") -> dict[str, np.ndarray]:
    """Return what a coarsening holds beside its two sheaves."""
    arrays = {
        "partition.labels": C.partition.labels,
        **_csr_arrays(C.prolongation, "R."),
        "loops": np.array(C.loops),
        "compress": np.array(C.crossing_rows is None),
        "restored_loops": C.restored_loops,
    }
    if C.crossing_rows is not None:
        arrays["crossing_rows"] = C.crossing_rows
    if C.modes is not None:
        arrays["modes.local_operator"] = np.array(C.modes.local_operator)
        arrays["modes.singular"] = np.array(C.modes.singular)
        for name in ("ranks", "scores", "next_eigenvalues", "tied", "operator_norms"):
            arrays[f"modes.{name}"] = getattr(C.modes, name)
        if isinstance(C.modes.operator, Oversampled):
            for name in OVERSAMPLING:
                arrays[f"modes.{name}"] = np.array(getattr(C.modes, name))
        if C.modes.prolongation is not C.prolongation:
            arrays.update(_csr_arrays(C.modes.prolongation, "modes.R."))
    return {prefix + name: array for name, array in arrays.items()}


def coarsening_arrays(C: Coarsening) -> dict[str, np.ndarray]:
    """Return a coarsening with both of its sheaves."""
    sheaves = {**sheaf_arrays(C.fine, "fine."), **sheaf_arrays(C.sheaf, "sheaf.")}
    return {**sheaves, **level_arrays(C)}


def elimination_arrays(K: Elimination) -> dict[str, np.ndarray]:
    """Return what an elimination is made of: the sheaves, what was kept, and the steps."""
    return {**sheaf_arrays(K.fine, "fine."), **sheaf_arrays(K.sheaf, "sheaf."), **step_arrays(K)}


def step_arrays(K: Elimination, prefix: str = "") -> dict[str, np.ndarray]:
    """Return what an elimination holds beside its two sheaves."""
    arrays = {f"steps.{name}": getattr(K.steps, name) for name in STEPS}
    arrays |= {"kept": K.kept, "max_neighbors": np.array(K.max_neighbors)}
    return {prefix + name: array for name, array in arrays.items()}


def hierarchy_arrays(H: Hierarchy) -> dict[str, np.ndarray]:
    """Return all sheaves of a hierarchy, and what lies between them."""
    arrays = {"n_levels": np.array(len(H)), "stopped_because": np.array(H.stopped_because)}
    for i, sheaf in enumerate(H.sheaves):
        arrays.update(sheaf_arrays(sheaf, f"sheaves.{i}."))
    for i, C in enumerate(H):
        if isinstance(C, Elimination):
            arrays.update(step_arrays(C, f"levels.{i}."))
        else:
            arrays.update(level_arrays(C, f"levels.{i}."))
    return arrays


def _csr_arrays(R: scipy.sparse.csr_array, prefix: str) -> dict[str, np.ndarray]:
    return {prefix + name: getattr(R, name) for name in ("data", "indices", "indptr")}
