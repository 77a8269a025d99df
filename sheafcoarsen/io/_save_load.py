"""Saves and loads the library's objects: one ``.npz`` file, no pickle.

docs/file_format.md describes the file. It is written beside its place and then renamed.
"""

import numpy as np

from sheafcoarsen._support import PathLike, file_path, replacing
from sheafcoarsen.io.npz_archive import read_arrays
from sheafcoarsen.io.schema import KINDS, Saved, reading, to_arrays

VERSION = 2
"""Of the format; higher ones are refused."""


def save(path: PathLike, obj: Saved) -> None:
    """Save a sheaf, partition, coarsening, hierarchy or elimination to one ``.npz`` file.

    The file is written beside ``path`` and renamed, so that a crash leaves an old file whole.

    Parameters
    ----------
    path : str or path-like
        Taken literally; no ending is added.
    obj : CellularSheaf, Partition, Coarsening, Hierarchy or Elimination

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
    kind, arrays = to_arrays(obj)
    header = {
        "format": np.array("sheafcoarsen"),
        "version": np.array(VERSION),
        "kind": np.array(kind),
    }
    with replacing(target) as stream:
        np.savez(stream, **header, **arrays)  # type: ignore[arg-type]


def load(path: PathLike) -> Saved:
    """Load what :func:`save` wrote.

    Files from anywhere may be loaded: nothing in them is executed, and what does not fit together
    is refused.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    CellularSheaf, Partition, Coarsening, Hierarchy or Elimination

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
    kind, arrays = read_arrays(path, VERSION, KINDS)
    with reading(path):
        return KINDS[kind](arrays)
