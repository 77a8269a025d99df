"""Save and load the library's objects in ``.npz`` files, without pickle, and as named arrays.

docs/file_format.md describes the file and its arrays; stores have the same arrays. Input is
untrusted: truncated or foreign files and inconsistent arrays raise a ValueError, and memory is
allocated only for what a file really contains.
"""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse

from sheafcoarsen._support import PathLike, checks, files, labels, ragged
from sheafcoarsen.coarsening import Coarsening, check_pattern
from sheafcoarsen.elimination import Elimination, as_steps
from sheafcoarsen.hierarchy import Hierarchy
from sheafcoarsen.io.text import FileError, reading
from sheafcoarsen.modes import OPERATORS, LocalModes, Oversampled
from sheafcoarsen.partition import Partition
from sheafcoarsen.sheaf import CellularSheaf, checked_sheaf
from sheafcoarsen.solve import Sparsification

VERSION = 2
"""Version of the file format. Files of higher versions are rejected."""

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


def save(path: PathLike, obj: Saved) -> None:
    """Save a sheaf, a partition, a hierarchy or one of its levels to one ``.npz`` file.

    The file is written to a temporary name and renamed, so a crash does not damage an old file.

    Parameters
    ----------
    path : str or path-like
        Used literally; no file extension is added.
    obj : CellularSheaf, Partition, Coarsening, Hierarchy, Elimination or Sparsification

    Raises
    ------
    FileNotFoundError, OSError
        There is no such folder, or the file cannot be written.
    TypeError
        For another object, such as a PoseGraph, which :func:`write_g2o` writes; for vertex labels
        that are not numbers, strings, booleans, None or tuples of them.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sc.save(pathlib.Path(folder) / "path.npz", F)
    ...     sc.load(pathlib.Path(folder) / "path.npz")
    CellularSheaf(n_vertices=3, n_edges=2, dim_c0=3, dim_c1=2, dtype=float64)
    """
    target = checks.file_path(path)
    kind, arrays = to_arrays(obj)
    with files.replacing(target) as stream:
        np.savez(stream, format="sheafcoarsen", version=VERSION, kind=kind, **arrays)  # type: ignore[arg-type]


def load(path: PathLike) -> Saved:
    """Load an object written by :func:`save`.

    Untrusted files are safe to load: nothing in them is executed.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    CellularSheaf, Partition, Coarsening, Hierarchy, Elimination or Sparsification

    Raises
    ------
    FileNotFoundError, OSError
        The file cannot be opened.
    ValueError
        The file is truncated, damaged, inconsistent, of another format or from a newer version.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import sheafcoarsen as sc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sc.save(pathlib.Path(folder) / "p.npz", sc.Partition([0, 1, 1]))
    ...     sc.load(pathlib.Path(folder) / "p.npz").labels
    array([0, 1, 1])
    """
    path = checks.file_path(path)
    with reading(path), open(path, "rb") as stream:
        try:
            if stream.read(4) != b"PK\x03\x04":
                raise FileError(
                    "not a sheafcoarsen file, because it is not an .npz archive; read_graph and "
                    "read_g2o read graphs"
                )
            with zipfile.ZipFile(stream) as archive:
                # several members may refer to the same bytes
                claimed = sum(info.compress_size for info in archive.infolist())
                if claimed > os.fstat(stream.fileno()).st_size:
                    raise FileError("its arrays are larger than the file")
                members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
                names = [name for name in ("format", "version", "kind") if name in members]
                kind = _kind({name: _member(archive, members[name]) for name in names})
                arrays = {name: _member(archive, info) for name, info in members.items()}
        except FileError:
            raise
        # zipfile and numpy may raise KeyError, struct.error, MemoryError and others
        except Exception as error:
            what = " ".join(str(error).split()) or type(error).__name__
            raise FileError(f"truncated or damaged ({what})") from None
        return from_arrays(kind, arrays)


def _kind(header: Arrays) -> str:
    """Check the format and version of a file, and return the kind of its object."""
    if "format" not in header or text_of(header, "format") != "sheafcoarsen":
        raise FileError("not a sheafcoarsen file")
    version = header.get("version", np.array(0))
    if version.shape != () or version.dtype.kind not in "iu" or not 1 <= version <= VERSION:
        raise FileError(
            f"written in format version {version}; this library reads up to {VERSION}: upgrade "
            f"sheafcoarsen"
        )
    kind = text_of(header, "kind") if "kind" in header else None
    if kind is None or kind not in KINDS:
        raise FileError(f"holds an object of kind {kind!r}, which this version does not support")
    return kind


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """Return a read-only array, after checking its length against the shape in its header."""
    if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
        raise FileError(
            f"array {info.filename!r} is compressed: write it with numpy.savez, not "
            f"savez_compressed"
        )
    content = archive.read(info)
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise FileError(f"array {info.filename!r} is not of .npy version 1.0")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.kind not in "biufcU":
        raise FileError(f"array {info.filename!r} holds {dtype}, not numbers or text")
    size = math.prod(shape)
    if min(shape, default=0) < 0 or stream.tell() + size * dtype.itemsize != len(content):
        raise FileError(f"array {info.filename!r} is not as long as its shape {shape} requires")
    array = np.frombuffer(content, dtype, size, stream.tell())
    if dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
        raise FileError(f"array {info.filename!r} holds values that are neither true nor false")
    return array.reshape(shape, order="F" if by_columns else "C")


# ---------------------------------------------------------------- to arrays


def to_arrays(obj: Saved) -> tuple[str, Arrays]:
    """Return the kind of an object and its named arrays; raise a TypeError for other objects."""
    if isinstance(obj, CellularSheaf):
        return "sheaf", _sheaf_arrays(obj)
    if isinstance(obj, Partition):
        return "partition", {"labels": obj.labels}
    if isinstance(obj, Hierarchy):
        arrays = {"n_levels": np.array(len(obj)), "stopped_because": np.array(obj.stopped_because)}
        for i, sheaf in enumerate(obj.sheaves):
            arrays |= _sheaf_arrays(sheaf, f"sheaves.{i}.")
        for i, level in enumerate(obj):
            arrays |= _between_arrays(level, f"levels.{i}.")
        return "hierarchy", arrays
    if isinstance(obj, Level):
        arrays = _sheaf_arrays(obj.fine, "fine.") | _sheaf_arrays(obj.sheaf, "sheaf.")
        return type(obj).__name__.lower(), arrays | _between_arrays(obj)
    advice = ": write_g2o writes pose graphs and poses, numpy.savez the arrays of other results"
    if hasattr(obj, "coarsening"):
        advice = ": save its `coarsening`"
    raise TypeError(
        f"`obj` must be a CellularSheaf, a Partition, a Coarsening, a Hierarchy, an Elimination "
        f"or a Sparsification, got {type(obj).__name__}{advice}"
    )


def _sheaf_arrays(sheaf: CellularSheaf, prefix: str = "") -> Arrays:
    names = ("edges", "vertex_dims", "edge_dims", "tail_data", "head_data")
    arrays = {prefix + name: getattr(sheaf, name) for name in names}
    if sheaf.vertex_labels is not None:
        arrays[f"{prefix}vertex_labels"] = labels.encode_labels(sheaf.vertex_labels)
    return arrays


def _between_arrays(level: Level, prefix: str = "") -> Arrays:
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
            "loops": np.array(level.loops),
            "compress": np.array(level.crossing_rows is None),
            "restored_loops": level.restored_loops,
        }
        if level.crossing_rows is not None:
            own["crossing_rows"] = level.crossing_rows
        matrices = {"R": level.prolongation}
        if (modes := level.modes) is not None:
            names = ["local_operator", "singular", "ranks", "scores", "next_eigenvalues", "tied"]
            names += ["operator_norms"]
            names += SETTINGS if isinstance(modes.operator, Oversampled) else []
            own |= {f"modes.{name}": np.asarray(getattr(modes, name)) for name in names}
            if modes.prolongation is not level.prolongation:
                matrices["modes.R"] = modes.prolongation
        for name, R in matrices.items():
            own |= {f"{name}.{part}": getattr(R, part) for part in ("data", "indices", "indptr")}
    return {prefix + name: array for name, array in own.items()}


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
    itype = ragged.index_dtype(max(len(data), *shape))
    indices, indptr = (
        checks.integer_array(f"R.{name}", arrays[name]).astype(itype)
        for name in ("indices", "indptr")
    )
    R = checks.csr_matrix("R", scipy.sparse.csr_array((data, indices, indptr), shape=shape))
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
    restored = checks.integer_array("restored_loops", arrays.get("restored_loops", np.zeros(0)))
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
    R = _csr(_Part(arrays, "modes.R."), R.shape) if "modes.R.data" in arrays else R
    singular = "modes.singular" in arrays and checks.flag(
        "modes.singular", arrays["modes.singular"][()]
    )
    values = {"ranks": ranks, "tied": arrays["modes.tied"]}
    for name in ("scores", "next_eigenvalues", "operator_norms"):
        values[name] = checks.scalar_array(f"modes.{name}", arrays[f"modes.{name}"])
    own: dict[str, Any] = {name: ragged.read_only(array.copy()) for name, array in values.items()}
    if operator == Oversampled.name:
        own |= {name: arrays[f"modes.{name}"].item() for name in SETTINGS}
    return LocalModes(fine, partition, operator, prolongation=R, singular=singular, **own)


LEVELS: dict[str, Callable[[Arrays, CellularSheaf, CellularSheaf], Level]] = {
    "coarsening": read_level,
    "elimination": _read_elimination,
    "sparsification": _read_sparsification,
}
"""Readers of the arrays between two sheaves."""

KINDS = ("sheaf", "partition", "hierarchy", *LEVELS)
"""Kinds of objects that can be saved."""
