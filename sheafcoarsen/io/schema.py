"""Conversion between the library's objects and named arrays.

docs/file_format.md describes the arrays. Input is untrusted: inconsistent arrays are a ValueError.
Containers (files, stores) are implemented elsewhere.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse

from sheafcoarsen._support import checks, labels, ragged
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


# ---------------------------------------------------------------- to arrays


def to_arrays(obj: Saved) -> tuple[str, Arrays]:
    """Return the kind of an object and its named arrays; raise a TypeError for other objects."""
    if isinstance(obj, CellularSheaf):
        return "sheaf", _sheaf_arrays(obj)
    if isinstance(obj, Partition):
        return "partition", {"labels": obj.labels}
    if isinstance(obj, Hierarchy):
        own = {"n_levels": np.array(len(obj)), "stopped_because": np.array(obj.stopped_because)}
        parts = {f"sheaves.{i}.": _sheaf_arrays(sheaf) for i, sheaf in enumerate(obj.sheaves)}
        parts |= {f"levels.{i}.": _between_arrays(level) for i, level in enumerate(obj)}
        return "hierarchy", _joined({"": own, **parts})
    if isinstance(obj, Level):
        sheaves = {"fine.": _sheaf_arrays(obj.fine), "sheaf.": _sheaf_arrays(obj.sheaf)}
        return type(obj).__name__.lower(), _joined({**sheaves, "": _between_arrays(obj)})
    advice = ": write_g2o writes pose graphs and poses, numpy.savez the arrays of other results"
    if hasattr(obj, "coarsening"):
        advice = ": save its `coarsening`"
    raise TypeError(
        f"`obj` must be a CellularSheaf, a Partition, a Coarsening, a Hierarchy, an Elimination "
        f"or a Sparsification, got {type(obj).__name__}{advice}"
    )


def _joined(parts: dict[str, Arrays]) -> Arrays:
    """Return the arrays of all parts, with the prefix of each part before their names."""
    return {prefix + name: array for prefix, part in parts.items() for name, array in part.items()}


def _sheaf_arrays(sheaf: CellularSheaf) -> Arrays:
    names = ("edges", "vertex_dims", "edge_dims", "tail_data", "head_data")
    arrays = {name: getattr(sheaf, name) for name in names}
    if sheaf.vertex_labels is not None:
        arrays["vertex_labels"] = labels.encode_labels(sheaf.vertex_labels)
    return arrays


def _between_arrays(level: Level) -> Arrays:
    """Return the arrays of a level except those of its two sheaves."""
    if isinstance(level, Elimination):
        own = {f"steps.{name}": getattr(level.steps, name) for name in STEPS}
        return own | {"kept": level.kept, "max_neighbors": np.array(level.max_neighbors)}
    if isinstance(level, Sparsification):
        own = {"edges": level.edges, "weights": level.weights}
        return own if level.eps is None else own | {"eps": np.array(level.eps)}
    own = {
        "partition.labels": level.partition.labels,
        "loops": np.array(level.loops),
        "compress": np.array(level.crossing_rows is None),
        "restored_loops": level.restored_loops,
    }
    if level.crossing_rows is not None:
        own["crossing_rows"] = level.crossing_rows
    matrices = {"R.": level.prolongation}
    if (modes := level.modes) is not None:
        names = ["local_operator", "singular", "ranks", "scores", "next_eigenvalues", "tied"]
        names += ["operator_norms"]
        names += SETTINGS if isinstance(modes.operator, Oversampled) else []
        own |= {f"modes.{name}": np.asarray(getattr(modes, name)) for name in names}
        if modes.prolongation is not level.prolongation:
            matrices["modes.R."] = modes.prolongation
    csr = ("data", "indices", "indptr")
    parts = {prefix: {name: getattr(R, name) for name in csr} for prefix, R in matrices.items()}
    return _joined({"": own, **parts})


# ---------------------------------------------------------------- from arrays


class _Part(dict[str, np.ndarray]):
    """The arrays whose names begin with a prefix, keyed by the rest of their names."""

    def __init__(self, arrays: Arrays, prefix: str):
        self.prefix = getattr(arrays, "prefix", "") + prefix
        super().__init__(
            (name.removeprefix(prefix), array)
            for name, array in arrays.items()
            if name.startswith(prefix)
        )

    def __missing__(self, name: str) -> np.ndarray:
        raise KeyError(self.prefix + name)


def from_arrays(kind: str, arrays: Arrays) -> Saved:
    """Construct an object of one of the `KINDS` from its arrays, after checking them."""
    if kind == "sheaf":
        return _read_sheaf(arrays)
    if kind == "partition":
        return Partition(arrays["labels"])
    if kind in LEVELS:
        fine, coarse = (_read_sheaf(_Part(arrays, prefix)) for prefix in ("fine.", "sheaf."))
        return LEVELS[kind](arrays, fine, coarse)
    count = checks.whole_number("n_levels", arrays["n_levels"][()], at_least=0)
    sheaves = [_read_sheaf(_Part(arrays, "sheaves.0."))]
    levels: list[Level] = []
    for i in range(count):  # a count that is too large raises an error for a missing array
        sheaves.append(_read_sheaf(_Part(arrays, f"sheaves.{i + 1}.")))
        own = _Part(arrays, f"levels.{i}.")
        kind = "sparsification" if "weights" in own else "coarsening"
        kind = "elimination" if "steps.vertices" in own else kind
        try:
            levels.append(LEVELS[kind](own, sheaves[i], sheaves[i + 1]))
        except (TypeError, ValueError) as error:
            raise ValueError(f"level {i}: {error}") from None
    return Hierarchy(sheaves[0], tuple(levels), text_of(arrays, "stopped_because"))


def text_of(arrays: Arrays, name: str) -> str:
    """Check that an array contains one line of text, and return it as a string."""
    array = arrays[name]
    if array.shape != () or array.dtype.kind != "U" or not str(array).isprintable():
        raise ValueError(f"`{name}` must be one line of text")
    return str(array)


def _read_sheaf(arrays: Arrays) -> CellularSheaf:
    names = ("edges", "tail_data", "head_data", "vertex_dims", "edge_dims")
    edges, tail, head, vertex_dims, edge_dims = (arrays[name] for name in names)
    if vertex_dims.ndim != 1 or edge_dims.ndim != 1:
        raise ValueError("`vertex_dims` and `edge_dims` must be one-dimensional")
    stored = arrays.get("vertex_labels")
    known = None if stored is None else labels.decode_labels(stored, len(vertex_dims))
    sheaf = checked_sheaf(edges, tail, head, vertex_dims, edge_dims, known)
    checks.check_squares("its maps", sheaf.largest_entry, sheaf.dtype)
    return sheaf


def _csr(arrays: Arrays, shape: tuple[int, int]) -> scipy.sparse.csr_array:
    data = checks.scalar_array("R", arrays["data"])
    if data.ndim != 1 or not np.isfinite(data).all():
        raise ValueError("R must be finite")
    checks.check_squares("the entries of R", float(np.abs(data).max(initial=0)), data.dtype)
    indices, indptr = (
        checks.integer_array(f"R.{name}", arrays[name]) for name in ("indices", "indptr")
    )
    itype = index_dtype(max(len(data), *shape))
    entries = data, indices.astype(itype), indptr.astype(itype)
    R = checks.csr_matrix("R", scipy.sparse.csr_array(entries, shape=shape))
    R.sum_duplicates()
    for array in (R.indptr, R.indices, R.data):
        ragged.read_only(array)
    return R


def _read_elimination(arrays: Arrays, fine: CellularSheaf, left: CellularSheaf) -> Elimination:
    """Return the elimination between two sheaves; raise an error for inconsistent arrays."""
    most = checks.whole_number("max_neighbors", arrays["max_neighbors"][()], at_least=0)
    own = {name: arrays[f"steps.{name}"] for name in STEPS}
    if fine.dtype.kind != "c" and "c" in (own["blocks"].dtype.kind, own["inverses"].dtype.kind):
        raise ValueError("`steps` must be real, because the maps are real")
    kept = ragged.read_only(checks.integer_array("kept", arrays["kept"]))
    return Elimination(fine, left, kept, most, as_steps(fine, own))


def _read_sparsification(
    arrays: Arrays, fine: CellularSheaf, sparse: CellularSheaf
) -> Sparsification:
    """Return the sparsification between two sheaves; raise an error for inconsistent arrays."""
    edges, weights = checks.integer_array("edges", arrays["edges"]), arrays["weights"]
    weights = checks.real_array("weights", weights, [(len(edges),)], "have one entry per edge")
    eps = arrays.get("eps")
    if eps is not None:
        eps = checks.real_array("eps", eps, [()], "be a single number").item()
    return Sparsification(fine, sparse, ragged.read_only(edges), ragged.read_only(weights), eps)


def read_level(arrays: Arrays, fine: CellularSheaf, coarse: CellularSheaf) -> Coarsening:
    """Return the coarsening between two sheaves; raise an error for inconsistent arrays."""
    partition = Partition(arrays["partition.labels"])
    if partition.n_vertices != fine.n_vertices or partition.n_clusters != coarse.n_vertices:
        raise ValueError(
            f"its parts are inconsistent: {fine.n_vertices} vertices, a partition of "
            f"{partition.n_vertices} into {partition.n_clusters} clusters, {coarse.n_vertices} "
            f"coarse vertices"
        )
    R = _csr(_Part(arrays, "R."), (fine.dim_c0, coarse.dim_c0))
    restored = np.zeros(0, np.int64)
    if "restored_loops" in arrays:
        restored = checks.integer_array("restored_loops", arrays["restored_loops"])
    compress = "compress" in arrays and checks.flag("compress", arrays["compress"][()])
    rows = None
    if not compress:
        rows = ragged.read_only(checks.integer_array("crossing_rows", arrays["crossing_rows"]))
    modes = _modes(arrays, fine, partition, coarse, R) if "modes.ranks" in arrays else None
    loops = checks.flag("loops", arrays["loops"][()])
    C = Coarsening(fine, partition, modes, R, coarse, rows, loops, ragged.read_only(restored))
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
    ranks = checks.integer_array("modes.ranks", arrays["modes.ranks"])
    if not np.array_equal(ranks, coarse.vertex_dims):
        raise ValueError("the ranks of its modes do not match the dimensions of its coarse stalks")
    own = _csr(_Part(arrays, "modes.R."), R.shape) if "modes.R.data" in arrays else R
    singular = "modes.singular" in arrays and checks.flag(
        "modes.singular", arrays["modes.singular"][()]
    )
    names = ("scores", "next_eigenvalues", "operator_norms")
    settings: dict[str, Any] = {
        name: ragged.read_only(checks.scalar_array(f"modes.{name}", arrays[f"modes.{name}"]).copy())
        for name in names
    }
    if operator == Oversampled.name:
        settings |= {name: arrays[f"modes.{name}"].item() for name in SETTINGS}
    settings |= {
        "ranks": ragged.read_only(ranks),
        "tied": ragged.read_only(arrays["modes.tied"].copy()),
    }
    return LocalModes(fine, partition, operator, prolongation=own, singular=singular, **settings)


LEVELS: dict[str, Callable[[Arrays, CellularSheaf, CellularSheaf], Level]] = {
    "coarsening": read_level,
    "elimination": _read_elimination,
    "sparsification": _read_sparsification,
}
"""Readers of the arrays between two sheaves."""

KINDS = ("sheaf", "partition", "hierarchy", *LEVELS)
"""Kinds of objects that can be saved."""
