"""Named arrays of a file as the library's objects, or why they are none.

What is read is checked as if a stranger had written it: parts that contradict each other are a
ValueError.
"""

from typing import TypeAlias

import numpy as np
import scipy.sparse

from sheafcoarsen._support import (
    check_squares,
    decode_labels,
    integer_array,
    read_only,
    scalar_array,
)
from sheafcoarsen.coarsening import Coarsening, check_pattern
from sheafcoarsen.elimination import Elimination, as_steps
from sheafcoarsen.hierarchy import Hierarchy
from sheafcoarsen.io.npz_archive import text_of
from sheafcoarsen.io.npz_write import OVERSAMPLING, STEPS
from sheafcoarsen.modes import OPERATORS, LocalModes, Oversampled
from sheafcoarsen.partition import Partition
from sheafcoarsen.sheaf import CellularSheaf, checked_sheaf

Arrays: TypeAlias = dict[str, np.ndarray]


def read_sheaf(arrays: Arrays, prefix: str = "") -> CellularSheaf:
    """Return a sheaf."""
    names = ("edges", "tail_data", "head_data", "vertex_dims", "edge_dims")
    edges, tail, head, vertex_dims, edge_dims = (arrays[prefix + name] for name in names)
    if vertex_dims.ndim != 1 or edge_dims.ndim != 1:
        raise ValueError("`vertex_dims` and `edge_dims` must be one-dimensional")
    labels = None
    if prefix + "vertex_labels" in arrays:
        labels = decode_labels(arrays[prefix + "vertex_labels"], len(vertex_dims))
    sheaf = checked_sheaf(edges, tail, head, vertex_dims, edge_dims, labels)
    check_squares("its maps", sheaf.largest_entry, sheaf.dtype)
    return sheaf


def read_partition(arrays: Arrays, prefix: str = "") -> Partition:
    """Return a partition."""
    return Partition(arrays[prefix + "labels"])


def _csr(arrays: Arrays, prefix: str, shape: tuple[int, int]) -> scipy.sparse.csr_array:
    data = scalar_array("R", arrays[prefix + "data"])
    indices, indptr = (
        integer_array(f"R.{name}", arrays[prefix + name]) for name in ("indices", "indptr")
    )
    if data.ndim != 1 or not np.isfinite(data).all():
        raise ValueError("R must be finite")
    check_squares("the entries of R", float(np.abs(data).max(initial=0)), data.dtype)
    if (
        len(indptr) != shape[0] + 1
        or indptr[0] != 0
        or (np.diff(indptr) < 0).any()
        or indptr[-1] != len(data)
    ):
        raise ValueError(f"R does not have {shape[0]} rows")
    if len(indices) != len(data) or (
        len(indices) and not (indices.min() >= 0 and indices.max() < shape[1])
    ):
        raise ValueError(f"R does not have {shape[1]} columns")
    itype = np.int32 if max(len(data), *shape) <= np.iinfo(np.int32).max else np.int64
    R = scipy.sparse.csr_array(
        (data.copy(), indices.astype(itype), indptr.astype(itype)), shape=shape
    )
    if not R.has_canonical_format:
        R.sum_duplicates()
    for array in (R.indptr, R.indices, R.data):
        read_only(array)
    return R


def read_coarsening(arrays: Arrays) -> Coarsening:
    """Return a coarsening; what it holds must fit together."""
    return _level(arrays, read_sheaf(arrays, "fine."), read_sheaf(arrays, "sheaf."))


def read_elimination(arrays: Arrays) -> Elimination:
    """Return an elimination; its steps must fit its two sheaves."""
    return _steps(arrays, read_sheaf(arrays, "fine."), read_sheaf(arrays, "sheaf."))


def _steps(arrays: Arrays, fine: CellularSheaf, left: CellularSheaf) -> Elimination:
    """Read what an elimination holds beside its two sheaves, and refuse what does not fit them."""
    most = arrays["max_neighbors"]
    if most.shape != () or most.dtype.kind not in "iu" or most < 0:
        raise ValueError("`max_neighbors` must be an integer of at least 0")
    vertices, starts, neighbors, blocks, inverses = (arrays[f"steps.{name}"] for name in STEPS)
    if fine.dtype.kind != "c" and "c" in (blocks.dtype.kind, inverses.dtype.kind):
        raise ValueError("`steps` must be real, as the maps are")
    kept = read_only(integer_array("kept", arrays["kept"]))
    steps = as_steps(fine, vertices, (starts, neighbors), blocks, inverses)
    return Elimination(fine, left, kept, int(most), steps)


def read_hierarchy(arrays: Arrays) -> Hierarchy:
    """Return a hierarchy; each level must fit its two sheaves."""
    count = arrays["n_levels"]
    if count.shape != () or count.dtype.kind not in "iu" or not 0 <= count <= len(arrays):
        raise ValueError(
            "`n_levels` must be an integer of at least 0, and no more than there are arrays"
        )
    sheaves = [read_sheaf(arrays, "sheaves.0.")]
    levels: list[Coarsening | Elimination] = []
    for i in range(int(count)):  # a count that is too large runs into a missing array
        sheaves.append(read_sheaf(arrays, f"sheaves.{i + 1}."))
        start = f"levels.{i}."
        own = {
            name.removeprefix(start): array
            for name, array in arrays.items()
            if name.startswith(start)
        }
        try:
            read = _steps if i == 0 and "steps.vertices" in own else _level
            levels.append(read(own, sheaves[i], sheaves[i + 1]))
        except KeyError as error:
            raise KeyError(start + error.args[0]) from None
        except (TypeError, ValueError) as error:
            raise ValueError(f"level {i}: {error}") from None
    return Hierarchy(sheaves[0], tuple(levels), text_of(arrays, "stopped_because"))


def _level(arrays: Arrays, fine: CellularSheaf, coarse: CellularSheaf) -> Coarsening:
    """Read what a coarsening holds beside its two sheaves, and refuse what does not fit them."""
    partition = read_partition(arrays, "partition.")
    if partition.n_vertices != fine.n_vertices or partition.n_clusters != coarse.n_vertices:
        raise ValueError(
            f"its parts do not fit: {fine.n_vertices} vertices, a partition of "
            f"{partition.n_vertices} into {partition.n_clusters} clusters, {coarse.n_vertices} "
            f"coarse vertices"
        )
    shape = (fine.dim_c0, coarse.dim_c0)
    R = _csr(arrays, "R.", shape)
    restored = np.zeros(0, np.int64)
    if "restored_loops" in arrays:
        restored = integer_array("restored_loops", arrays["restored_loops"])
    compress = "compress" in arrays and _flag(arrays, "compress")
    rows = None if compress else read_only(integer_array("crossing_rows", arrays["crossing_rows"]))
    modes = _modes(arrays, fine, partition, coarse, R) if "modes.ranks" in arrays else None
    C = Coarsening(
        fine, partition, modes, R, coarse, rows, _flag(arrays, "loops"), read_only(restored)
    )
    check_pattern(C)
    return C


def _flag(arrays: Arrays, name: str) -> bool:
    value = arrays[name]
    if value.shape != () or value.dtype != np.bool_:
        raise ValueError(f"`{name}` must be true or false")
    return bool(value)


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
            f"its modes are of the local operator {operator!r}, which this version does not know"
        )
    ranks = integer_array("modes.ranks", arrays["modes.ranks"])
    if not np.array_equal(ranks, coarse.vertex_dims):
        raise ValueError("the ranks of its modes are not the dimensions of its coarse stalks")
    names = ("scores", "next_eigenvalues", "operator_norms")
    scores, following, norms = (
        scalar_array(f"modes.{name}", arrays[f"modes.{name}"]).copy() for name in names
    )
    own = _csr(arrays, "modes.R.", R.shape) if "modes.R.data" in arrays else R
    singular = "modes.singular" in arrays and _flag(arrays, "modes.singular")
    settings = {}
    if operator == Oversampled.name:
        settings = {name: arrays[f"modes.{name}"].item() for name in OVERSAMPLING}
    return LocalModes(
        fine,
        partition,
        operator,
        ranks=read_only(ranks),
        scores=read_only(scores),
        next_eigenvalues=read_only(following),
        tied=read_only(arrays["modes.tied"].copy()),
        operator_norms=read_only(norms),
        prolongation=own,
        singular=singular,
        **settings,
    )
