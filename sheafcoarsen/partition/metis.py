"""METIS, by the optional pymetis."""

import numpy as np

from sheafcoarsen.partition.links import Links


def part_by_metis(links: Links, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """Return METIS's labels by recursive bisection; parts may be empty or disconnected."""
    try:
        import pymetis
    except ImportError:
        raise ImportError(
            'method "metis" needs the package pymetis: pip install sheafcoarsen[metis]'
        ) from None
    same = (links.weights == 1).all()
    starts = links.starts.astype(np.int32)
    if hasattr(pymetis, "CSRAdjacency"):  # 2025.2 and later, which deprecate the other form
        graph = {"adjacency": pymetis.CSRAdjacency(starts, links.ends)}
    else:
        graph = {"xadj": starts, "adjncy": links.ends}
    _, labels = pymetis.part_graph(
        n_clusters,
        **graph,
        vweights=None if (links.sizes == 1).all() else _small_integers(links.sizes),
        eweights=None if same else _small_integers(links.weights),
        options=pymetis.Options(seed=int(rng.integers(2**31))),
        # k-way takes 3 times as long, and may cut 155 edges of a 12 x 13 grid where this cuts 57,
        # whatever the seed
        recursive=True,
    )
    return np.asarray(labels, dtype=np.int32)


def _small_integers(values: np.ndarray) -> np.ndarray:
    """Scale to integers from 1 whose sum stays in METIS's 31 bits; integers that fit are kept."""
    if values.dtype.kind == "f":
        values = values * (1000 / max(values.max(initial=0), 1e-300))
    room = 2**30 / max(float(values.sum()), 1.0)
    return np.maximum(np.rint(values * min(room, 1.0)), 1).astype(np.int32)
