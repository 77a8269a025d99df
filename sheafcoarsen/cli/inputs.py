"""Input files of commands, standard input, and meshes."""

import argparse
import gzip
import os
import re
import sys
import warnings
import zlib
from collections.abc import Iterable

import sheafcoarsen as sc
from sheafcoarsen.gallery import tangent_bundle
from sheafcoarsen.io import Level, Saved

FORMATS = {
    ".npz": rb"\APK\x03\x04",
    ".mtx": rb"\A%%MatrixMarket",
    ".g2o": rb"^(?:EDGE|VERTEX)(?:_SE|[23]\b)",
    ".graphml": rb"\A\s*<",
    ".gml": rb"^\s*graph\s*\[",
    ".off": rb"\A\w*OFF\b",
    ".ply": rb"\Aply\s",
    ".obj": rb"^v(?:\s+[-+.\deE]+){3}",
    ".txt": b"",
}
"""Pattern of the first bytes of a file, by extension. Any other content is an edge list."""


def refuse_options(args: argparse.Namespace, options: Iterable[str], message: str) -> None:
    """Raise an error with a message for the first of some options that was passed."""
    for option in options:
        value = getattr(args, option)
        if value is not None and value is not False:
            raise ValueError(f"--{option.replace('_', '-')} {message}")


def is_store(path: str) -> bool:
    """Return whether a path is a URL or a folder, and therefore denotes a store."""
    return "://" in path or os.path.isdir(path)


def read(args: argparse.Namespace, poses: bool = False) -> Saved | sc.PoseGraph:
    """Return the object that a file holds; for a pose graph, its sheaf unless ``poses`` is set."""
    path, dim = args.input, args.dim
    if is_store(path):
        raise ValueError(f"{path} is not a file: for a store, use coarsen --store, info or verify")
    plain = path.lower().removesuffix(".gz")
    try:
        with (open if plain == path.lower() else gzip.open)(path, "rb") as stream:
            head = bytes(stream.read(64))
    except (OSError, EOFError, zlib.error):
        head = b""  # the reader reports the error
    ours = plain.endswith(".npz") or head.startswith(b"PK\x03\x04")
    toro = plain.endswith(".graph") and re.match(FORMATS[".g2o"], head)
    is_g2o = toro or plain.endswith(".g2o")
    if ours or is_g2o or is_mesh(path):
        for option, own in (
            ("dim", "stalk dimension"),
            ("vertices", "number of vertices"),
            ("signed", "maps"),
        ):
            message = f"is for graphs, but {path} has its own {own}: omit it"
            refuse_options(args, (option,), message)
    if ours:
        return sc.load(path)
    if is_g2o:
        try:
            G = sc.read_g2o(path, poses=True)
        except ValueError:
            return sc.read_g2o(path)  # raises again, unless only translations or poses are invalid
        if not poses and G.sightings is not None:
            warnings.warn(
                f"{path}: only the rotations between poses are used; `synchronize` takes landmarks",
                stacklevel=2,
            )
        return G if poses else G.sheaf
    if is_mesh(path):
        points, faces = sc.read_mesh(path)
        return tangent_bundle(points, faces, weights="cotan" if faces.shape[1] == 3 else "uniform")
    return sc.read_graph(path, 1 if dim is None else dim, args.signed, args.vertices)


def read_sheaf(args: argparse.Namespace) -> sc.CellularSheaf:
    """Return the sheaf that a file holds.

    Of a coarsening, elimination or sparsification it is the result, of a hierarchy the coarsest.
    """
    obj = read(args)
    if isinstance(obj, Level):
        return obj.sheaf
    if isinstance(obj, sc.Hierarchy):
        return obj.sheaves[-1]
    if not isinstance(obj, sc.CellularSheaf):
        raise ValueError(f"{args.input} holds a partition, not a sheaf")
    return obj


def standard_input(folder: str) -> str:
    """Write standard input to a file with the extension of its format, and return the path."""
    data = sys.stdin.buffer.read()
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"standard input: a damaged gzip file: {error}") from None
    head = data[:65536]
    ending = next(end for end, begin in FORMATS.items() if re.search(begin, head, re.MULTILINE))
    path = os.path.join(folder, f"standard input{ending}")
    with open(path, "wb") as stream:
        stream.write(data)
    return path


def is_mesh(path: str) -> bool:
    """Return whether a path has the file extension of a surface mesh."""
    return path.lower().removesuffix(".gz").endswith((".off", ".obj", ".ply"))
