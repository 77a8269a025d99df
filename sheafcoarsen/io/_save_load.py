"""Save and load the library's objects in ``.npz`` files, without pickle.

docs/file_format.md describes the file. It is written to a temporary name and then renamed. Input is
untrusted: truncated or foreign files raise a ValueError, and memory is allocated only for what a
file really contains.
"""

from __future__ import annotations

import io
import math
import os
import zipfile

import numpy as np

from sheafcoarsen._support import PathLike, checks, files
from sheafcoarsen.io.schema import KINDS, Arrays, Saved, from_arrays, text_of, to_arrays
from sheafcoarsen.io.text import FileError, reading

VERSION = 2
"""Version of the file format. Files of higher versions are rejected."""


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

    Untrusted files are safe to load: nothing in them is executed, and inconsistent data is an
    error.

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
        The file is truncated, damaged, of another format or from a newer version, or its contents
        are inconsistent.

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
                members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
                names = [name for name in ("format", "version", "kind") if name in members]
                kind = _kind({name: _member(archive, members[name]) for name in names})
                claimed = sum(info.file_size for info in archive.infolist())
                if claimed > os.fstat(stream.fileno()).st_size:
                    raise FileError("its arrays are larger than the file")
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
    if info.file_size > os.fstat(archive.fp.fileno()).st_size:  # type: ignore[union-attr]
        raise FileError("its arrays are larger than the file")
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
