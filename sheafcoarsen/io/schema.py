"""Conversion between the library's objects and named arrays.

docs/file_format.md describes the arrays. Input is untrusted: inconsistent arrays are a ValueError.
Containers (files, stores) are implemented elsewhere.
"""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse

from sheafcoarsen._support import (
    check_squares,
    csr_matrix,
    decode_labels,
    encode_labels,
    flag,
    integer_array,
    read_only,
    real_array,
    scalar_array,
    whole_number,
)
from sheafcoarsen.coarsening import Coarsening, check_pattern
from sheafcoarsen.elimination import Elimination, as_steps
from sheafcoarsen.hierarchy import Hierarchy
from sheafcoarsen.modes import OPERATORS, LocalModes, Oversampled
from sheafcoarsen.operators import index_dtype
from sheafcoarsen.partition import Partition
from sheafcoarsen.sheaf import CellularSheaf, checked_sheaf
from sheafcoarsen.solve import Sparsification

Arrays: TypeAlias = dict[str, np.ndarray]

Level: TypeAlias = Coarsening | Elimination | Sparsification
"""Types of the levels of a hierarchy."""

Saved: TypeAlias = CellularSheaf | Partition | Hierarchy | Level
"""Types of objects that can be saved."""

STEPS = ("vertices", "starts", "neighbors", "blocks", "inverses")
"""Names of the arrays of an elimination's steps."""

SETTINGS = ("rings", "target", "pilot", "over_budget")
"""Names of the settings of oversampled modes.

Older versions of the library lack these settings, and reject the operator as unknown.
"""


def to_arrays(obj: Saved) -> tuple[str, Arrays]:
    """Return the kind of an object and its named arrays; raise a TypeError for other objects."""
    if isinstance(obj, CellularSheaf):
        return "sheaf", sheaf_arrays(obj)
    if isinstance(obj, Partition):
        return "partition", {"labels": obj.labels}
    if isinstance(obj, Hierarchy):
        arrays = {"n_levels": np.array(len(obj)), "stopped_because": np.array(obj.stopped_because)}
        for i, sheaf in enumerate(obj.sheaves):
            arrays |= sheaf_arrays(sheaf, f"sheaves.{i}.")
        for i, level in enumerate(obj):
            arrays |= between_arrays(level, f"levels.{i}.")
        return "hierarchy", arrays
    if isinstance(obj, Level):
        sheaves = {**sheaf_arrays(obj.fine, "fine."), **sheaf_arrays(obj.sheaf, "sheaf.")}
        return type(obj).__name__.lower(), {**sheaves, **between_arrays(obj)}
    advice = ": write_g2o writes pose graphs and poses, numpy.savez the arrays of other results"
    if hasattr(obj, "coarsening"):
        advice = ": save its `coarsening`"
    raise TypeError(
        f"`obj` must be a CellularSheaf, a Partition, a Coarsening, a Hierarchy, an Elimination "
        f"or a Sparsification, got {type(obj).__name__}{advice}"
    )


@contextlib.contextmanager
def reading(where: str, refusal: type[ValueError] = ValueError) -> Iterator[None]:
    """Convert errors for missing or inconsistent arrays to one error that names the file."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        if refusal is not ValueError and isinstance(error, refusal):
            raise
        what = f"has no array {error}" if isinstance(error, KeyError) else str(error)
        raise refusal(f"{where}: {what}") from None


# ---------------------------------------------------------------- to arrays


def sheaf_arrays(sheaf: CellularSheaf, prefix: str = "") -> dict[str, np.ndarray]:
    """Return the arrays of a sheaf."""
    names = ("edges", "vertex_dims", "edge_dims", "tail_data", "head_data")
    arrays = {prefix + name: getattr(sheaf, name) for name in names}
    if sheaf.vertex_labels is not None:
        arrays[prefix + "vertex_labels"] = encode_labels(sheaf.vertex_labels)
    return arrays


def between_arrays(level: Level, prefix: str = "") -> dict[str, np.ndarray]:
    """Return the arrays of a level except those of its two sheaves."""
    if isinstance(level, Elimination):
        own = {f"steps.{name}": getattr(level.steps, name) for name in STEPS}
        own |= {"kept": level.kept, "max_neighbors": np.array(level.max_neighbors)}
    elif isinstance(level, Sparsification):
        own = {"edges": level.edges, "weights": level.weights}
        own |= {} if level.eps is None else {"eps": np.array(level.eps)}
    else:
        own = {
            "partition.labels": level.partition.labels,
            **_csr_arrays(level.prolongation, "R."),
            "loops": np.array(level.loops),
            "compress": np.array(level.crossing_rows is None),
            "restored_loops": level.restored_loops,
        }
        if level.crossing_rows is not None:
            own["crossing_rows"] = level.crossing_rows
        if level.modes is not None:
            names = ["local_operator", "singular", "ranks", "scores", "next_eigenvalues", "tied"]
            names += ["operator_norms"]
            names += SETTINGS if isinstance(level.modes.operator, Oversampled) else []
            own |= {f"modes.{name}": np.asarray(getattr(level.modes, name)) for name in names}
            if level.modes.prolongation is not level.prolongation:
                own |= _csr_arrays(level.modes.prolongation, "modes.R.")
    return {prefix + name: array for name, array in own.items()}


def _csr_arrays(R: scipy.sparse.csr_array, prefix: str) -> dict[str, np.ndarray]:
    return {prefix + name: getattr(R, name) for name in ("data", "indices", "indptr")}


# ---------------------------------------------------------------- from arrays


def text_of(arrays: Arrays, name: str) -> str:
    """Check that an array contains one line of text, and return it as a string."""
    array = arrays[name]
    if array.shape != () or array.dtype.kind != "U" or not str(array).isprintable():
        raise ValueError(f"`{name}` must be one line of text")
    return str(array)


def read_sheaf(arrays: Arrays, prefix: str = "") -> CellularSheaf:
    """Check the arrays of a sheaf, and return the sheaf."""
    names = ("edges", "tail_data", "head_data", "vertex_dims", "edge_dims")
    edges, tail, head, vertex_dims, edge_dims = (arrays[prefix + name] for name in names)
    if vertex_dims.ndim != 1 or edge_dims.ndim != 1:
        raise ValueError("`vertex_dims` and `edge_dims` must be one-dimensional")
    stored = arrays.get(prefix + "vertex_labels")
    labels = None if stored is None else decode_labels(stored, len(vertex_dims))
    sheaf = checked_sheaf(edges, tail, head, vertex_dims, edge_dims, labels)
    check_squares("its maps", sheaf.largest_entry, sheaf.dtype)
    return sheaf


def _csr(arrays: Arrays, prefix: str, shape: tuple[int, int]) -> scipy.sparse.csr_array:
    data = scalar_array("R", arrays[prefix + "data"])
    if data.ndim != 1 or not np.isfinite(data).all():
        raise ValueError("R must be finite")
    check_squares("the entries of R", float(np.abs(data).max(initial=0)), data.dtype)
    indices, indptr = (
        integer_array(f"R.{name}", arrays[prefix + name]) for name in ("indices", "indptr")
    )
    itype = index_dtype(max(len(data), *shape))
    entries = data, indices.astype(itype), indptr.astype(itype)
    R = csr_matrix("R", scipy.sparse.csr_array(entries, shape=shape))
    R.sum_duplicates()
    for array in (R.indptr, R.indices, R.data):
        read_only(array)
    return R


def _steps(arrays: Arrays, fine: CellularSheaf, left: CellularSheaf) -> Elimination:
    """Return the elimination between two sheaves; raise an error for inconsistent arrays."""
    most = whole_number("max_neighbors", arrays["max_neighbors"][()], at_least=0)
    own = {name: arrays[f"steps.{name}"] for name in STEPS}
    if fine.dtype.kind != "c" and "c" in (own["blocks"].dtype.kind, own["inverses"].dtype.kind):
        raise ValueError("`steps` must be real, because the maps are real")
    kept = read_only(integer_array("kept", arrays["kept"]))
    return Elimination(fine, left, kept, most, as_steps(fine, own))


def _edges(arrays: Arrays, fine: CellularSheaf, sparse: CellularSheaf) -> Sparsification:
    """Return the sparsification between two sheaves; raise an error for inconsistent arrays."""
    edges, weights = integer_array("edges", arrays["edges"]), arrays["weights"]
    weights = real_array("weights", weights, [(len(edges),)], "have one entry per edge")
    eps = arrays.get("eps")
    if eps is not None:
        eps = real_array("eps", eps, [()], "be a single number").item()
    return Sparsification(fine, sparse, read_only(edges), read_only(weights), eps)


def read_hierarchy(arrays: Arrays) -> Hierarchy:
    """Check the arrays of a hierarchy, whose levels must match its sheaves, and return it."""
    count = whole_number("n_levels", arrays["n_levels"][()], at_least=0)
    sheaves = [read_sheaf(arrays, "sheaves.0.")]
    levels: list[Level] = []
    for i in range(count):  # a count that is too large raises an error for a missing array
        sheaves.append(read_sheaf(arrays, f"sheaves.{i + 1}."))
        start = f"levels.{i}."
        own = {
            name.removeprefix(start): array
            for name, array in arrays.items()
            if name.startswith(start)
        }
        try:
            read = _steps if "steps.vertices" in own else _edges if "weights" in own else read_level
            levels.append(read(own, sheaves[i], sheaves[i + 1]))
        except KeyError as error:
            raise KeyError(start + error.args[0]) from None
        except (TypeError, ValueError) as error:
            raise ValueError(f"level {i}: {error}") from None
    return Hierarchy(sheaves[0], tuple(levels), text_of(arrays, "stopped_because"))


def read_level(arrays: Arrays, fine: CellularSheaf, coarse: CellularSheaf) -> Coarsening:
    """Return the coarsening between two sheaves; raise an error for inconsistent arrays."""
    partition = Partition(arrays["partition.labels"])
    if partition.n_vertices != fine.n_vertices or partition.n_clusters != coarse.n_vertices:
        raise ValueError(
            f"its parts are inconsistent: {fine.n_vertices} vertices, a partition of "
            f"{partition.n_vertices} into {partition.n_clusters} clusters, {coarse.n_vertices} "
            f"coarse vertices"
        )
    shape = (fine.dim_c0, coarse.dim_c0)
    R = _csr(arrays, "R.", shape)
    restored = np.zeros(0, np.int64)
    if "restored_loops" in arrays:
        restored = integer_array("restored_loops", arrays["restored_loops"])
    compress = "compress" in arrays and flag("compress", arrays["compress"][()])
    rows = None if compress else read_only(integer_array("crossing_rows", arrays["crossing_rows"]))
    modes = _modes(arrays, fine, partition, coarse, R) if "modes.ranks" in arrays else None
    loops = flag("loops", arrays["loops"][()])
    C = Coarsening(fine, partition, modes, R, coarse, rows, loops, read_only(restored))
    check_pattern(C)
    return C


def _modes(
    arrays: Arrays,
    fine: CellularSheaf,
    partition: Partition,
    coarse: CellularSheaf,
    R: scipy.sparse.csr_array,
) -> LocalModes:
    operator = text_of(arrays, "modes.local_operator")
    if operator not in OPERATORS:
        raise ValueError(
            f"its modes have the local operator {operator!r}, which this version does not support"
        )
    ranks = integer_array("modes.ranks", arrays["modes.ranks"])
    if not np.array_equal(ranks, coarse.vertex_dims):
        raise ValueError("the ranks of its modes do not match the dimensions of its coarse stalks")
    own = _csr(arrays, "modes.R.", R.shape) if "modes.R.data" in arrays else R
    singular = "modes.singular" in arrays and flag("modes.singular", arrays["modes.singular"][()])
    names = ("scores", "next_eigenvalues", "operator_norms")
    settings: dict[str, Any] = {
        name: read_only(scalar_array(f"modes.{name}", arrays[f"modes.{name}"]).copy())
        for name in names
    }
    if operator == Oversampled.name:
        settings |= {name: arrays[f"modes.{name}"].item() for name in SETTINGS}
    settings |= {"ranks": read_only(ranks), "tied": read_only(arrays["modes.tied"].copy())}
    return LocalModes(fine, partition, operator, prolongation=own, singular=singular, **settings)


def _with_sheaves(read: Callable[..., Level], arrays: Arrays) -> Level:
    """Read a single level together with its two sheaves."""
    return read(arrays, read_sheaf(arrays, "fine."), read_sheaf(arrays, "sheaf."))


KINDS: dict[str, Callable[[Arrays], Saved]] = {
    "sheaf": read_sheaf,
    "partition": lambda arrays: Partition(arrays["labels"]),
    "coarsening": partial(_with_sheaves, read_level),
    "hierarchy": read_hierarchy,
    "elimination": partial(_with_sheaves, _steps),
    "sparsification": partial(_with_sheaves, _edges),
}
"""Function that reads each kind of object."""
