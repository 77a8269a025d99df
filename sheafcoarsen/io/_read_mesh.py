"""Readers of surface meshes in three formats; they return points and faces.

No library is used: meshio 5.3 misreads negative indices of OBJ, ends the process on malformed
files, and does not return for a truncated PLY header; trimesh 5.2 reads one in ten damaged files as
a smaller surface, splits quadrilaterals, repeats vertices at changes of material and rejects binary
PLY with polygons of several sizes; plyfile has another licence.
"""

import numpy as np

from sheafcoarsen._support import PathLike, file_path
from sheafcoarsen.io.off_obj import read_obj, read_off
from sheafcoarsen.io.ply import read_ply
from sheafcoarsen.io.text import reader_of


def read_mesh(path: PathLike) -> tuple[np.ndarray, np.ndarray]:
    r"""Read the points and faces of a surface mesh.

    The format follows from the file extension, which may be followed by ``.gz``:

    ``.off``
        Text. Additional columns such as normals and colours (``NOFF``, ``COFF``) are
        ignored.
    ``.obj``
        The lines ``v x y z`` and ``f a b c``, also ``f a/t/n ...``; negative indices count
        from the last vertex. All other lines are ignored.
    ``.ply``
        Text or binary: x, y, z of the element "vertex" and the list "vertex_indices" (or
        "vertex_index") of "face".

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    points : ndarray, shape (n, 3)
        In the order of the file, float64.
    faces : ndarray of int, shape (f, k)
        Vertices of each face in order, numbered from 0. If the faces of a file differ in size,
        they are split into triangles at their first corners, so k = 3.

    Raises
    ------
    FileNotFoundError
    ValueError
        ``path:line: ...`` or ``path: ...`` for a file that is truncated or inconsistent, or has
        values that are not finite numbers; for a face with less than three corners, with a
        repeated vertex or one that does not exist; for an unknown file extension.

    See Also
    --------
    sheafcoarsen.gallery.tangent_bundle : the sheaf of the surface's tangent planes.
    sheafcoarsen.plot.surface : a figure of the surface.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import sheafcoarsen as sc
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "square.off"
    ...     _ = path.write_text("OFF\n4 1 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n4 0 1 2 3\n")
    ...     points, faces = sc.read_mesh(path)
    >>> points.shape, faces.tolist()
    ((4, 3), [[0, 1, 2, 3]])
    """
    path = file_path(path)
    readers = {".off": read_off, ".obj": read_obj, ".ply": read_ply}
    return reader_of(path, readers, "read_mesh")(path)
