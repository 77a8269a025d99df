"""Surfaces in three formats, each read as points and faces.

By hand: meshio 5.3 reads negative numbers of OBJ as other vertices, ends the process where a file
is not as it expects, and never returns for a PLY header that is cut off; trimesh 5.2 reads one in
ten damaged files as a smaller surface, cuts quadrilaterals, repeats vertices at changes of material
and refuses binary PLY with polygons of several sizes; plyfile is under another licence.
"""

from collections.abc import Callable

import numpy as np

from sheafcoarsen._support import PathLike, file_path
from sheafcoarsen.io.off_obj import read_obj, read_off
from sheafcoarsen.io.ply import read_ply
from sheafcoarsen.io.polygons import Polygons
from sheafcoarsen.io.text import reader_of

READERS: dict[str, Callable[[str], Polygons]] = {
    ".off": read_off,
    ".obj": read_obj,
    ".ply": read_ply,
}
"""How each ending is read."""


def read_mesh(path: PathLike) -> tuple[np.ndarray, np.ndarray]:
    r"""Read a surface: its points, and the faces between them.

    The ending decides the format; each may be followed by ``.gz``:

    ``.off``
        Text. Normals, colours and the like behind coordinates and corners (``NOFF``, ``COFF``) are
        passed over.
    ``.obj``
        The lines ``v x y z`` and ``f a b c``, the latter also ``f a/t/n ...`` and with negative
        numbers, which count from the last vertex. All others are passed over.
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
        Vertices count from 0, in order around each face. Where the polygons of a file differ in
        size, they are cut into triangles at their first corners, so that k = 3.

    Raises
    ------
    FileNotFoundError
    ValueError
        ``path:line: ...`` or ``path: ...`` for a file that is cut off, contradicts itself, or holds
        what is no finite number; a face of less than three corners, one that names a vertex twice
        or one that does not exist; another ending.

    See Also
    --------
    sheafcoarsen.gallery.tangent_bundle : the sheaf of the surface's tangent planes.
    sheafcoarsen.plot.surface : the surface as a picture.

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
    mesh = reader_of(path, READERS, "read_mesh")(path)
    return mesh.points, mesh.faces(path)
