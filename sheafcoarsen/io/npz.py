"""Saves and loads the library's objects: one ``.npz`` file, no pickle, written beside and then renamed.

Schema, version 2. Every file holds ``format`` = "sheafcoarsen", ``version`` and ``kind``; the rest by kind, names of parts
prefixed:

=============  ==========================================================================================================
``sheaf``      ``edges``, ``vertex_dims``, ``edge_dims``, ``tail_data``, ``head_data``; ``vertex_labels``: JSON in UTF-8 bytes
``partition``  ``labels``
``coarsening`` ``fine.*`` and ``sheaf.*``: two sheaves; ``partition.*``; ``R.data``, ``R.indices``, ``R.indptr``; ``loops``;
               ``compress`` and, where it is false, ``crossing_rows``; ``restored_loops``; ``modes.*`` unless the basis
               was the user's own: ``local_operator``, ``ranks``, ``scores``, ``next_eigenvalues``, ``tied``,
               ``operator_norms``, ``singular``, and ``modes.R.*`` where it is not R itself; of oversampled modes also
               ``rings``, ``target``, ``pilot``, ``over_budget``
``hierarchy``  ``n_levels``, ``stopped_because``; ``sheaves.0.*``, ... the fine sheaf first; ``levels.0.*``, ... as a coarsening's,
               without its two sheaves
=============  ==========================================================================================================

Version 1 had no ``compress``, ``restored_loops`` and ``modes.singular``: nothing, no cluster and false.
"""

import json
import zipfile
import zlib
from collections.abc import Callable

import numpy as np
import scipy.sparse

from sheafcoarsen._checks import file_path, integer_array, scalar_array
from sheafcoarsen._files import replacing
from sheafcoarsen._ragged import read_only
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.hierarchy import Hierarchy
from sheafcoarsen.modes import LOCAL_OPERATORS, LocalModes, check_settings
from sheafcoarsen.partition import Partition
from sheafcoarsen.prolongation import as_matrix, check_layout
from sheafcoarsen.sheaf import CellularSheaf

VERSION = 2

OVERSAMPLING = ("rings", "target", "pilot", "over_budget")
"""What oversampled modes have beyond others; versions that do not know these refuse the operator by its name."""


def save(path, obj) -> None:
    """Save a sheaf, a partition, a coarsening or a hierarchy to one ``.npz`` file.

    The file is written beside ``path`` and renamed, so that a crash leaves an old file whole.

    Parameters
    ----------
    path : str or path-like
        Used as it is; no ending is added.
    obj : CellularSheaf, Partition, Coarsening or Hierarchy

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
    target = file_path(path)
    if isinstance(obj, CellularSheaf):
        kind = "sheaf"
        arrays = _sheaf_arrays(obj)
    elif isinstance(obj, Partition):
        kind, arrays = "partition", {"labels": obj.labels}
    elif isinstance(obj, Coarsening):
        sheaves = {**_sheaf_arrays(obj.fine, "fine."), **_sheaf_arrays(obj.sheaf, "sheaf.")}
        kind, arrays = "coarsening", {**sheaves, **_level_arrays(obj)}
    elif isinstance(obj, Hierarchy):
        kind, arrays = "hierarchy", _hierarchy_arrays(obj)
    else:
        raise TypeError(
            f"`obj` must be a CellularSheaf, a Partition, a Coarsening or a Hierarchy, got {type(obj).__name__}"
        )
    header = {"format": np.array("sheafcoarsen"), "version": np.array(VERSION), "kind": np.array(kind)}
    with replacing(target) as stream:
        np.savez(stream, **header, **arrays)  # type: ignore[arg-type]


def load(path) -> CellularSheaf | Partition | Coarsening | Hierarchy:
    """Load what :func:`save` wrote.

    Raises
    ------
    FileNotFoundError, OSError
        The file cannot be opened.
    ValueError
        The file is truncated, damaged, not one of ours, or from a newer version.
    """
    arrays = _read(file_path(path))
    try:
        if str(arrays.get("format")) != "sheafcoarsen":
            raise ValueError("not a sheafcoarsen file")
        version = int(arrays.get("version", np.array(0)))
        if not 1 <= version <= VERSION:
            raise ValueError(
                f"written in format version {version}; this library reads up to {VERSION}: upgrade sheafcoarsen"
            )
        kind = str(arrays.get("kind"))
        readers: dict[str, Callable] = {
            "sheaf": _sheaf, "partition": _partition, "coarsening": _coarsening, "hierarchy": _hierarchy
        }  # fmt: skip
        if kind not in readers:
            raise ValueError(f"holds a {kind!r}, which this version does not know")
        return readers[kind](arrays)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        what = f"has no array {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path}: {what}") from None


def _read(path) -> dict[str, np.ndarray]:
    try:
        with open(path, "rb") as stream:
            if stream.read(4) != b"PK\x03\x04":
                raise ValueError(f"{path}: not a sheafcoarsen file (an .npz begins otherwise)")
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        KeyError,
        MemoryError,
        RuntimeError,
    ) as error:
        raise ValueError(f"{path}: truncated or damaged ({error or type(error).__name__})") from None
    except (ValueError, OSError) as error:
        if (isinstance(error, OSError) and error.filename is not None) or str(error).startswith(str(path)):
            raise
        raise ValueError(f"{path}: truncated or damaged ({error})") from None


# -------------------------------------------------------------------- to arrays


def _sheaf_arrays(sheaf: CellularSheaf, prefix: str = "") -> dict[str, np.ndarray]:
    names = ("edges", "vertex_dims", "edge_dims", "tail_data", "head_data")
    arrays = {prefix + name: getattr(sheaf, name) for name in names}
    if sheaf.vertex_labels is not None:
        text = json.dumps([_plain(label) for label in sheaf.vertex_labels])
        arrays[prefix + "vertex_labels"] = np.frombuffer(text.encode(), np.uint8)
    return arrays


def _plain(label):
    """Return a node name as JSON knows it; a tuple becomes {"tuple": [...]}."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return {"tuple": [_plain(item) for item in label]}
    if label is None or isinstance(label, bool | int | float | str):
        return label
    raise TypeError(
        f"vertex label {label!r} cannot be saved: only numbers, strings, booleans, None and tuples of them can; "
        f"relabel the graph, e.g. with networkx.convert_node_labels_to_integers"
    )


def _level_arrays(C: Coarsening, prefix: str = "") -> dict[str, np.ndarray]:
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
        if C.modes.local_operator == "oversampled":
            for name in OVERSAMPLING:
                arrays[f"modes.{name}"] = np.array(getattr(C.modes, name))
        if C.modes.prolongation is not C.prolongation:
            arrays.update(_csr_arrays(C.modes.prolongation, "modes.R."))
    return {prefix + name: array for name, array in arrays.items()}


def _hierarchy_arrays(H: Hierarchy) -> dict[str, np.ndarray]:
    arrays = {"n_levels": np.array(len(H)), "stopped_because": np.array(H.stopped_because)}
    for i, sheaf in enumerate(H.sheaves):
        arrays.update(_sheaf_arrays(sheaf, f"sheaves.{i}."))
    for i, C in enumerate(H):
        arrays.update(_level_arrays(C, f"levels.{i}."))
    return arrays


def _csr_arrays(R, prefix: str) -> dict[str, np.ndarray]:
    return {prefix + name: getattr(R, name) for name in ("data", "indices", "indptr")}


# -------------------------------------------------------------------- from arrays


def _sheaf(arrays, prefix: str = "") -> CellularSheaf:
    labels = None
    if prefix + "vertex_labels" in arrays:
        try:
            text = arrays[prefix + "vertex_labels"].tobytes().decode()
            labels = tuple(_label(item) for item in json.loads(text))
        except (UnicodeDecodeError, json.JSONDecodeError, AttributeError, RecursionError) as error:
            raise ValueError(f"`vertex_labels` cannot be read ({error})") from None
    names = ("edges", "tail_data", "head_data", "vertex_dims", "edge_dims")
    edges, tail, head, vertex_dims, edge_dims = (arrays[prefix + name] for name in names)
    if vertex_dims.ndim != 1 or edge_dims.ndim != 1:
        raise ValueError("`vertex_dims` and `edge_dims` must be one-dimensional")
    if labels is not None and len(labels) != len(vertex_dims):
        raise ValueError(f"`vertex_labels` has {len(labels)} names for {len(vertex_dims)} vertices")
    return CellularSheaf._from_flat(edges, tail, head, vertex_dims, edge_dims, labels, limits=False)


def _label(item):
    if isinstance(item, dict):
        return tuple(_label(part) for part in item["tuple"])
    return item


def _partition(arrays, prefix: str = "") -> Partition:
    return Partition(arrays[prefix + "labels"])


def _csr(arrays, prefix: str, shape) -> scipy.sparse.csr_array:
    data = scalar_array("R", arrays[prefix + "data"])
    indices, indptr = (integer_array(f"R.{name}", arrays[prefix + name]) for name in ("indices", "indptr"))
    if not np.isfinite(data).all():
        raise ValueError("R must be finite")
    if len(indptr) != shape[0] + 1 or indptr[0] != 0 or (np.diff(indptr) < 0).any() or indptr[-1] != len(data):
        raise ValueError(f"R does not have {shape[0]} rows")
    if len(indices) != len(data) or (len(indices) and not (indices.min() >= 0 and indices.max() < shape[1])):
        raise ValueError(f"R does not have {shape[1]} columns")
    itype = np.int32 if max(len(data), *shape) <= np.iinfo(np.int32).max else np.int64
    R = scipy.sparse.csr_array((data.copy(), indices.astype(itype), indptr.astype(itype)), shape=shape)
    if not R.has_canonical_format:
        R.sum_duplicates()
    return as_matrix(R.indptr, R.indices, R.data, shape[1])


def _coarsening(arrays) -> Coarsening:
    return _level(arrays, _sheaf(arrays, "fine."), _sheaf(arrays, "sheaf."))


def _hierarchy(arrays) -> Hierarchy:
    count = arrays["n_levels"]
    if count.shape != () or count.dtype.kind not in "iu" or count < 0:
        raise ValueError("`n_levels` must be an integer of at least 0")
    sheaves = [_sheaf(arrays, "sheaves.0.")]
    levels = []
    for i in range(int(count)):  # a count that is too large runs into a missing array
        sheaves.append(_sheaf(arrays, f"sheaves.{i + 1}."))
        start = f"levels.{i}."
        own = {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
        try:
            levels.append(_level(own, sheaves[i], sheaves[i + 1]))
        except KeyError as error:
            raise KeyError(start + error.args[0]) from None
        except (TypeError, ValueError) as error:
            raise ValueError(f"level {i}: {error}") from None
    return Hierarchy(sheaves[0], tuple(levels), str(arrays["stopped_because"]))


def _level(arrays, fine: CellularSheaf, coarse: CellularSheaf) -> Coarsening:
    """Read what a coarsening holds beside its two sheaves, and refuse what does not fit them."""
    partition = _partition(arrays, "partition.")
    if partition.n_vertices != fine.n_vertices or partition.n_clusters != coarse.n_vertices:
        raise ValueError(
            f"its parts do not fit: {fine.n_vertices} vertices, a partition of {partition.n_vertices} into "
            f"{partition.n_clusters} clusters, {coarse.n_vertices} coarse vertices"
        )
    shape = (fine.dim_c0, coarse.dim_c0)
    R = _csr(arrays, "R.", shape)
    check_layout(R, fine, partition, coarse.vertex_dims, "`R`")
    rows = None
    if not _flag(arrays, "compress"):
        rows = _within(arrays, "crossing_rows", fine.dim_c1)
    restored = read_only(np.zeros(0, np.int64))
    if "restored_loops" in arrays:
        restored = _within(arrays, "restored_loops", partition.n_clusters)
    modes = None
    if "modes.ranks" in arrays:
        modes = _modes(arrays, fine, partition, coarse, R)
    return Coarsening(fine, partition, modes, R, coarse, rows, bool(arrays["loops"]), restored)


def _flag(arrays, name: str) -> bool:
    """Read a boolean that version 1 did not know."""
    value = arrays.get(name, np.array(False))
    if value.shape != () or value.dtype != np.bool_:
        raise ValueError(f"`{name}` must be true or false")
    return bool(value)


def _within(arrays, name: str, count: int) -> np.ndarray:
    """Read numbers of rows or clusters, of which there are ``count``."""
    numbers = integer_array(name, arrays[name])
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < count):
        raise ValueError(f"`{name}` must lie in 0 .. {count - 1}")
    return read_only(numbers)


def _modes(arrays, fine, partition, coarse, R) -> LocalModes:
    operator = str(arrays["modes.local_operator"])
    if operator not in LOCAL_OPERATORS:
        raise ValueError(f"its modes are of the local operator {operator!r}, which this version does not know")
    K = partition.n_clusters
    ranks = integer_array("modes.ranks", arrays["modes.ranks"])
    if not np.array_equal(ranks, coarse.vertex_dims):
        raise ValueError("the ranks of its modes are not the dimensions of its coarse stalks")
    values = {}
    for name, length in (("scores", int(ranks.sum())), ("next_eigenvalues", K), ("operator_norms", K)):
        values[name] = scalar_array(f"modes.{name}", arrays[f"modes.{name}"]).copy()
        if values[name].shape != (length,) or values[name].dtype.kind == "c" or np.isnan(values[name]).any():
            raise ValueError(f"`modes.{name}` must hold {length} real numbers")
    tied = arrays["modes.tied"]
    if tied.shape != (K,) or tied.dtype != np.bool_:
        raise ValueError(f"`modes.tied` must hold {K} booleans")
    own = R
    if "modes.R.data" in arrays:
        own = _csr(arrays, "modes.R.", R.shape)
        check_layout(own, fine, partition, ranks, "`modes.R`")
    oversampling = {}
    if operator == "oversampled":
        oversampling = {name: arrays[f"modes.{name}"].item() for name in OVERSAMPLING}
    modes = LocalModes(
        fine, partition, operator, read_only(ranks), read_only(values["scores"]), read_only(values["next_eigenvalues"]),
        read_only(tied), read_only(values["operator_norms"]), own, _flag(arrays, "modes.singular"), **oversampling,
    )  # fmt: skip
    check_settings(modes, "its modes")
    return modes
