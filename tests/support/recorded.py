"""Small objects of every kind that `save` writes, made in the same way by any version.

``python -m tests.support.recorded FOLDER`` writes those of the library that is imported; so were
the files in tests/data recorded, by the version before the folders of the package.
"""

import sys
from pathlib import Path

import networkx as nx
import numpy as np

import sheafcoarsen as sc

DTYPES = {"real": np.float64, "complex": np.complex128}


def fine_sheaf(dtype):
    """Return a sheaf with mixed stalks, a loop, parallel edges and names."""
    G = nx.MultiGraph()
    G.add_nodes_from(["a", 7, ("b", 1), "c", 2.5, "d", "e", "f"])
    names = list(G)
    pairs = [(0, 1), (1, 2), (2, 3), (0, 3), (4, 5), (5, 6), (6, 7), (4, 7), (3, 4), (2, 5), (2, 5)]
    G.add_edges_from((names[u], names[v]) for u, v in [*pairs, (6, 6)])
    dims = [2, 1, 2, 3, 2, 1, 2, 2]
    return sc.CellularSheaf.random(G, dims, 2, seed=20, dtype=dtype)


def partition():
    return sc.Partition([0, 0, 0, 0, 1, 1, 2, 2])


def own_basis(F, P):
    """Return orthonormal blocks of one's own, two columns each."""
    rng = np.random.default_rng(21)
    blocks = []
    for a in range(P.n_clusters):
        height = int(F.vertex_dims[P.cluster(a)].sum())
        block = rng.standard_normal((height, 2)).astype(F.dtype)
        if F.dtype.kind == "c":
            block += 1j * rng.standard_normal((height, 2))
        blocks.append(np.linalg.qr(block)[0])
    return blocks


def made(dtype):
    """Return the objects by name."""
    F, P = fine_sheaf(dtype), partition()
    return {
        "sheaf": F,
        "partition": P,
        "internal": sc.coarsen(F, P, 2),
        "principal": sc.coarsen(F, P, [3, 1, 2], local_operator="principal"),
        "oversampled": sc.coarsen(F, P, 2, local_operator="oversampled", rings=1, target=0.5),
        "basis": sc.coarsen(F, P, basis=own_basis(F, P)),
        "compressed": sc.coarsen(F, P, 2, compress=True),
        "hierarchy": sc.coarsen_levels(F, partitions=[P, sc.Partition([0, 0, 0])], rank=[2, 1]),
    }


def record(folder):
    """Write a file for each."""
    for kind, dtype in DTYPES.items():
        for name, item in made(dtype).items():
            if (kind, name) != ("complex", "partition"):
                sc.save(Path(folder) / f"{name}_{kind}.npz", item)


if __name__ == "__main__":
    record(sys.argv[1])
