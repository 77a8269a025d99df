"""Input files of commands: their options, standard input, and meshes."""

import argparse
import gzip
import os
import re
import sys
from typing import Any

import numpy as np

from sheafcoarsen.cli.stores import is_store
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.hierarchy import Hierarchy
from sheafcoarsen.io import load, read_g2o, read_graph, read_mesh
from sheafcoarsen.partition import Partition
from sheafcoarsen.sheaf import CellularSheaf, component_labels

MESHES = (".off", ".obj", ".ply")

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
"""What each format begins with or contains in its first lines; anything may be an edge list."""


def graph_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of files that hold a graph."""
    parser.add_argument("--dim", type=int, help="stalk dimension for a graph (default 1)")
    parser.add_argument(
        "--vertices",
        type=int,
        metavar="N",
        help="for an edge list with isolated last vertices, or with gaps in its numbering",
    )
    parser.add_argument(
        "--signed",
        action="store_true",
        help="for a graph with negative weights: use the signed Laplacian",
    )


def read(
    args: argparse.Namespace,
) -> CellularSheaf | Partition | Coarsening | Hierarchy | Elimination:
    """Return the object that a file holds."""
    path, dim = args.input, args.dim
    if is_store(path):
        raise ValueError(f"{path}: is not a file; for a store use coarsen --store, info or verify")
    plain = path.lower().removesuffix(".gz")
    if plain.endswith(MESHES):
        raise ValueError(
            f"{path}: is a mesh, not a sheaf; gallery.tangent_bundle(*read_mesh(path)) makes one, "
            f"and save(file, F) a file for this command"
        )
    ours = plain.endswith(".npz") or _is_zip(path)
    if dim is not None and (ours or plain.endswith(".g2o")):
        raise ValueError(f"--dim is the stalk dimension for a graph; {path} has its own")
    if args.vertices is not None and (ours or plain.endswith(".g2o")):
        raise ValueError(f"--vertices is for edge lists; {path} has a number of vertices")
    if args.signed and (ours or plain.endswith(".g2o")):
        raise ValueError(f"--signed is for the weights of a graph; {path} has its own maps")
    if ours:
        return load(path)
    if plain.endswith(".g2o"):
        return read_g2o(path)
    return read_graph(path, 1 if dim is None else dim, args.signed, args.vertices)


def _is_zip(path: str) -> bool:
    """Return whether a file is an .npz, by its first bytes."""
    try:
        with open(path, "rb") as stream:
            return stream.read(4) == b"PK\x03\x04"
    except OSError:
        return False  # the reader reports the error


def read_sheaf(args: argparse.Namespace) -> CellularSheaf:
    """Return the sheaf of a file, the coarse one of a coarsening."""
    obj = read(args)
    if isinstance(obj, Coarsening | Elimination):
        return obj.sheaf
    if isinstance(obj, Hierarchy):
        return obj.sheaves[-1]
    if not isinstance(obj, CellularSheaf):
        raise ValueError(f"{args.input}: holds a partition, not a sheaf")
    return obj


def standard_input(folder: str) -> str:
    """Write standard input to a file whose ending says what it holds, and return its path."""
    data = sys.stdin.buffer.read()
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    head = data[:65536]
    ending = next(end for end, begin in FORMATS.items() if re.search(begin, head, re.MULTILINE))
    path = os.path.join(folder, f"stdin{ending}")
    with open(path, "wb") as stream:
        stream.write(data)
    return path


def is_mesh(path: str) -> bool:
    """Return whether a path ends like a surface mesh."""
    return path.lower().removesuffix(".gz").endswith(MESHES)


def mesh_facts(args: argparse.Namespace) -> dict[str, Any]:
    """Return what is known of a surface mesh as names and values."""
    for option in ("dim", "vertices", "signed"):
        if getattr(args, option) not in (None, False):
            raise ValueError(f"--{option} is for graphs, not for meshes")
    points, faces = read_mesh(args.input)
    sides = np.sort(np.stack([faces, np.roll(faces, -1, axis=1)], axis=2), axis=2).reshape(-1, 2)
    edges, count = np.unique(sides, axis=0, return_counts=True)
    return {
        "kind": "mesh",
        "vertices": len(points),
        "edges": len(edges),
        "faces": len(faces),
        "corners": faces.shape[1],
        "components": len(np.unique(component_labels(len(points), edges))),
        "boundary_edges": int((count == 1).sum()),
        "euler_characteristic": len(points) - len(edges) + len(faces),
    }
