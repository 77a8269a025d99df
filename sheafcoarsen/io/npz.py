"""Saves and loads the library's objects: one ``.npz`` file, no pickle, written beside and then renamed.

docs/file_format.md describes the file. What is read is checked as if a stranger had written it: a
file that is not whole, not ours or contradicts itself is a ValueError, before anything of a size
that the file only claims is allocated.
"""

import io
import json
import math
import os
import zipfile
from collections.abc import Callable

import numpy as np
import scipy.sparse

from sheafcoarsen._support import (
    file_path,
    integer_array,
    offsets,
    range_limits,
    ranges,
    read_only,
    replacing,
    scalar_array,
)
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.hierarchy import Hierarchy
from sheafcoarsen.modes import LOCAL_OPERATORS, LocalModes, as_matrix, check_layout, check_modes
from sheafcoarsen.partition import Partition
from sheafcoarsen.sheaf import CellularSheaf, checked_sheaf

VERSION = 2


HEADER = ("format", "version", "kind")


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

    Raises
    ------
    FileNotFoundError, OSError
        There is no such folder, or the file cannot be written.
    TypeError
        For another object, or vertex labels that are not numbers, strings, booleans, None or tuples
        of them.

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
    header = {
        "format": np.array("sheafcoarsen"),
        "version": np.array(VERSION),
        "kind": np.array(kind),
    }
    with replacing(target) as stream:
        np.savez(stream, **header, **arrays)  # type: ignore[arg-type]


def load(path) -> CellularSheaf | Partition | Coarsening | Hierarchy:
    """Load what :func:`save` wrote.

    Files from anywhere may be loaded: nothing in them is executed, and what does not fit together
    is refused.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    CellularSheaf, Partition, Coarsening or Hierarchy

    Raises
    ------
    FileNotFoundError, OSError
        The file cannot be opened.
    ValueError
        The file is truncated, damaged, not one of ours, or from a newer version, or its parts
        contradict each other.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import sheafcoarsen as sc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sc.save(pathlib.Path(folder) / "p.npz", sc.Partition([0, 1, 1]))
    ...     sc.load(pathlib.Path(folder) / "p.npz").labels
    array([0, 1, 1])
    """
    path = file_path(path)
    kind, arrays = _read(path)
    try:
        return READERS[kind](arrays)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        what = f"has no array {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path}: {what}") from None


class _RefusedError(ValueError):
    """What is wrong with a file that is whole."""


def _read(path: str) -> tuple[str, dict[str, np.ndarray]]:
    """Return the kind of object in a file and its arrays."""
    with open(path, "rb") as stream:
        try:
            if stream.read(4) != b"PK\x03\x04":
                raise _RefusedError(
                    "not a sheafcoarsen file (an .npz begins otherwise); read_graph and read_g2o read graphs"
                )
            with zipfile.ZipFile(stream) as archive:
                members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
                kind = _kind(
                    {name: _member(archive, members[name]) for name in HEADER if name in members}
                )
                claimed = sum(info.file_size for info in archive.infolist())
                if (
                    len(members) < len(archive.infolist())
                    or claimed > os.fstat(stream.fileno()).st_size
                ):
                    raise _RefusedError("its arrays are more than the file holds")
                return kind, {name: _member(archive, info) for name, info in members.items()}
        except _RefusedError as error:
            raise ValueError(f"{path}: {error}") from None
        except (
            Exception
        ) as error:  # zipfile and numpy let KeyError, struct.error, MemoryError and others through
            what = " ".join(str(error).split()) or type(error).__name__
            raise ValueError(f"{path}: truncated or damaged ({what})") from None


def _kind(header: dict[str, np.ndarray]) -> str:
    """Return what a file holds, if it is one of ours and not too new."""
    if "format" not in header or _text(header, "format") != "sheafcoarsen":
        raise _RefusedError("not a sheafcoarsen file")
    version = header.get("version", np.array(0))
    if version.shape != () or version.dtype.kind not in "iu" or not 1 <= version <= VERSION:
        raise _RefusedError(
            f"written in format version {version}; this library reads up to {VERSION}: upgrade sheafcoarsen"
        )
    kind = _text(header, "kind") if "kind" in header else None
    if kind not in READERS:
        raise _RefusedError(f"holds a {kind!r}, which this version does not know")
    return kind


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """Return one array, read-only; its bytes are looked at only where they are as many as its header says."""
    if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
        raise _RefusedError(
            f"array {info.filename!r} is compressed; numpy.savez, not savez_compressed, writes them as they are"
        )
    if info.file_size > os.fstat(archive.fp.fileno()).st_size:  # type: ignore[union-attr]
        raise _RefusedError("its arrays are more than the file holds")
    content = archive.read(info)
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise _RefusedError(f"array {info.filename!r} is not of .npy version 1.0")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.kind not in "biufcU":
        raise _RefusedError(f"array {info.filename!r} holds {dtype}, not numbers or text")
    if min(shape, default=0) < 0 or stream.tell() + math.prod(shape) * dtype.itemsize != len(
        content
    ):
        raise _RefusedError(f"array {info.filename!r} is not as long as its shape {shape} says")
    array = (
        np.frombuffer(content, dtype, math.prod(shape), stream.tell())
        if math.prod(shape)
        else np.zeros(0, dtype)
    )
    if dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
        raise _RefusedError(f"array {info.filename!r} holds values that are neither true nor false")
    return array.reshape(shape, order="F" if by_columns else "C")


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


def _text(arrays, name: str) -> str:
    array = arrays[name]
    if array.shape != () or array.dtype.kind != "U" or not str(array).isprintable():
        raise ValueError(f"`{name}` must be one line of text")
    return str(array)


def _sheaf(arrays, prefix: str = "") -> CellularSheaf:
    labels = None
    if prefix + "vertex_labels" in arrays:
        try:
            text = arrays[prefix + "vertex_labels"].tobytes().decode()
            labels = tuple(_label(item) for item in json.loads(text))
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"`vertex_labels` cannot be read ({error})") from None
        if len(set(labels)) < len(labels) or None in labels:
            raise ValueError("`vertex_labels` must be names that tell the vertices apart")
    names = ("edges", "tail_data", "head_data", "vertex_dims", "edge_dims")
    edges, tail, head, vertex_dims, edge_dims = (arrays[prefix + name] for name in names)
    if vertex_dims.ndim != 1 or edge_dims.ndim != 1:
        raise ValueError("`vertex_dims` and `edge_dims` must be one-dimensional")
    if labels is not None and len(labels) != len(vertex_dims):
        raise ValueError(f"`vertex_labels` has {len(labels)} names for {len(vertex_dims)} vertices")
    sheaf = checked_sheaf(edges, tail, head, vertex_dims, edge_dims, labels)
    _check_size("its maps", sheaf.largest_entry, sheaf.dtype)
    return sheaf


def _check_size(name: str, size: float, dtype) -> None:
    """Refuse entries whose squares overflow; a coarse sheaf may otherwise be beyond the limits for a caller's own maps."""
    if size > 1e3 * range_limits(dtype)[1]:
        raise ValueError(f"{name} have entries up to {size:.3g}, whose squares overflow in {dtype}")


def _label(item):
    if isinstance(item, dict) and list(item) == ["tuple"] and isinstance(item["tuple"], list):
        return tuple(_label(part) for part in item["tuple"])
    if isinstance(item, dict | list):
        raise ValueError("a name is neither a number nor text nor a tuple of them")
    return item


def _partition(arrays, prefix: str = "") -> Partition:
    return Partition(arrays[prefix + "labels"])


def _csr(arrays, prefix: str, shape) -> scipy.sparse.csr_array:
    data = scalar_array("R", arrays[prefix + "data"])
    indices, indptr = (
        integer_array(f"R.{name}", arrays[prefix + name]) for name in ("indices", "indptr")
    )
    if data.ndim != 1 or not np.isfinite(data).all():
        raise ValueError("R must be finite")
    _check_size("the entries of R", float(np.abs(data).max(initial=0)), data.dtype)
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
    return as_matrix(R.indptr, R.indices, R.data, shape[1])


def _coarsening(arrays) -> Coarsening:
    return _level(arrays, _sheaf(arrays, "fine."), _sheaf(arrays, "sheaf."))


def _hierarchy(arrays) -> Hierarchy:
    count = arrays["n_levels"]
    if count.shape != () or count.dtype.kind not in "iu" or not 0 <= count <= len(arrays):
        raise ValueError(
            "`n_levels` must be an integer of at least 0, and no more than there are arrays"
        )
    sheaves = [_sheaf(arrays, "sheaves.0.")]
    levels = []
    for i in range(int(count)):  # a count that is too large runs into a missing array
        sheaves.append(_sheaf(arrays, f"sheaves.{i + 1}."))
        start = f"levels.{i}."
        own = {
            name.removeprefix(start): array
            for name, array in arrays.items()
            if name.startswith(start)
        }
        try:
            levels.append(_level(own, sheaves[i], sheaves[i + 1]))
        except KeyError as error:
            raise KeyError(start + error.args[0]) from None
        except (TypeError, ValueError) as error:
            raise ValueError(f"level {i}: {error}") from None
    return Hierarchy(sheaves[0], tuple(levels), _text(arrays, "stopped_because"))


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
    restored = np.zeros(0, np.int64)
    if "restored_loops" in arrays:
        restored = integer_array("restored_loops", arrays["restored_loops"])
        if (restored[1:] <= restored[:-1]).any() or (
            restored.size and not 0 <= restored[0] <= restored[-1] < partition.n_clusters
        ):
            raise ValueError(
                f"`restored_loops` must lie in 0 .. {partition.n_clusters - 1} and ascend"
            )
    compress = "compress" in arrays and _flag(arrays, "compress")
    rows = None if compress else read_only(integer_array("crossing_rows", arrays["crossing_rows"]))
    modes = _modes(arrays, fine, partition, coarse, R) if "modes.ranks" in arrays else None
    C = Coarsening(
        fine, partition, modes, R, coarse, rows, _flag(arrays, "loops"), read_only(restored)
    )
    _check_pattern(C)
    return C


def _check_pattern(C: Coarsening) -> None:
    """Refuse a coarse sheaf whose edges and rows are not those that the fine graph and the partition make."""
    fine, coarse, clusters = C.fine, C.sheaf, C.clusters
    crossing = ranges(
        fine.edge_offsets[clusters.crossing_edges], fine.edge_dims[clusters.crossing_edges]
    )
    dims = np.diff(offsets(fine.edge_dims[clusters.crossing_edges])[clusters.pair_ptr])
    if C.crossing_rows is None:
        dims = np.minimum(dims, coarse.vertex_dims[clusters.pairs].sum(axis=1))
    elif not np.array_equal(C.crossing_rows, crossing):
        raise ValueError(
            "`crossing_rows` must be the rows of the fine edges that cross, by pair of clusters"
        )
    n_pairs = len(clusters.pairs)
    if not np.array_equal(coarse.edges[:n_pairs], clusters.pairs) or not np.array_equal(
        coarse.edge_dims[:n_pairs], dims
    ):
        raise ValueError(
            "its coarse sheaf does not have the crossing edges of its fine sheaf and partition"
        )
    loops = coarse.edges[n_pairs:]
    ascend = (loops[:, 0] == loops[:, 1]).all() and (loops[1:, 0] > loops[:-1, 0]).all()
    if (
        not ascend
        or (coarse.edge_dims[n_pairs:] > coarse.vertex_dims[loops[:, 0]]).any()
        or (len(loops) and not C.loops)
    ):
        raise ValueError(
            "the loops of its coarse sheaf must ascend and have at most as many rows as their clusters have modes"
        )


def _flag(arrays, name: str) -> bool:
    value = arrays[name]
    if value.shape != () or value.dtype != np.bool_:
        raise ValueError(f"`{name}` must be true or false")
    return bool(value)


def _modes(arrays, fine, partition, coarse, R) -> LocalModes:
    operator = _text(arrays, "modes.local_operator")
    if operator not in LOCAL_OPERATORS:
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
    own_settings = {}
    if operator == "oversampled":
        own_settings = {name: arrays[f"modes.{name}"].item() for name in OVERSAMPLING}
    modes = LocalModes(
        fine, partition, operator, read_only(ranks), read_only(scores), read_only(following), read_only(arrays["modes.tied"].copy()),
        read_only(norms), own, singular, **own_settings,
    )  # fmt: skip
    check_modes(modes, "its modes")
    return modes


READERS: dict[str, Callable] = {
    "sheaf": _sheaf,
    "partition": _partition,
    "coarsening": _coarsening,
    "hierarchy": _hierarchy,
}
