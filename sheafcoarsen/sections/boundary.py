"""Checks of stalk values that users pass for some vertices."""

from typing import Any

import numpy as np
import scipy.sparse

from sheafcoarsen._support import checks
from sheafcoarsen.operators import as_columns
from sheafcoarsen.sheaf import CellularSheaf


def given_values(
    sheaf: CellularSheaf, vertices: np.ndarray, values: Any, name: str = "values"
) -> np.ndarray:
    """Check stalk values and return them concatenated, shape (sum d_v,) or (sum d_v, h)."""
    if (
        scipy.sparse.issparse(values)
        or not hasattr(values, "__len__")
        or isinstance(values, str | bytes | dict | set)
    ):
        raise TypeError(
            f"`{name}` must be a sequence of arrays, one per vertex in their order, got "
            f"{type(values).__name__}"
        )
    if len(values) != len(vertices):
        raise ValueError(
            f"`{name}` must hold one array for each of the {len(vertices)} vertices, "
            f"got {len(values)}"
        )
    if not len(vertices):
        return np.zeros(0, sheaf.dtype)
    if isinstance(values, np.ndarray) and values.ndim in (2, 3):
        given = checks.scalar_array(name, values)
        if (bad := checks.first_true(sheaf.vertex_dims[vertices] != given.shape[1])) is not None:
            v = int(vertices[bad])
            raise ValueError(
                f"`{name}[{bad}]` must have shape {_shapes(sheaf, v)}, got shape {given.shape[1:]}"
            )
        given = given.reshape(given.shape[0] * given.shape[1], *given.shape[2:])
    else:
        # a number is a vector of length 1; a Python loop, because the values are separate objects
        arrays = [
            np.atleast_1d(checks.scalar_array(f"{name}[{i}]", x)) for i, x in enumerate(values)
        ]
        for i, (v, array) in enumerate(zip(vertices, arrays, strict=True)):
            if array.ndim not in (1, 2) or len(array) != sheaf.vertex_dims[v]:
                raise ValueError(
                    f"`{name}[{i}]` must have shape {_shapes(sheaf, v)}, got shape {array.shape}"
                )
            if array.shape[1:] != arrays[0].shape[1:]:
                raise ValueError(
                    f"the arrays in `{name}` must have the same number of columns, "
                    f"got shape {arrays[0].shape} at index 0 and {array.shape} at index {i}"
                )
        dtype = np.result_type(sheaf.dtype, *{array.dtype for array in arrays if array.size})
        given = np.concatenate(arrays).astype(dtype)
    if (row := checks.first_true(~np.isfinite(as_columns(given)).all(axis=1))) is not None:
        i = int(np.searchsorted(np.cumsum(sheaf.vertex_dims[vertices]), row, side="right"))
        raise ValueError(
            f"`{name}[{i}]` must be finite, got {given[row].tolist()} for vertex {vertices[i]}"
        )
    return given


def _shapes(sheaf: CellularSheaf, v: int) -> str:
    """Return the part of error messages that describes the valid shapes at vertex v."""
    d, names = sheaf.vertex_dims[v], sheaf.vertex_labels
    name = v if names is None else repr(names[v])
    return f"({d},) or ({d}, h), because the stalk of vertex {name} has dimension {d}"
