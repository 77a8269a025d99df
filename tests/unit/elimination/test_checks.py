"""Checks of maps for star-mesh, and of the parts of an elimination."""

import dataclasses

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf

STAR = nx.star_graph(4)


def test_the_error_names_the_edge_whose_map_is_not_an_isometry():
    F = CellularSheaf.random(STAR, 2, 2, kind="orthogonal", seed=3)
    tails = F.tail_data.reshape(4, 2, 2).copy()
    tails[2] = np.diag([1.0, 2.0])
    bad = F.with_maps(tails, F.head_data.reshape(4, 2, 2))
    with pytest.raises(
        ValueError, match=r"the tail map A of edge 2 \(0 -> 3\).*use `max_neighbors`"
    ):
        sc.eliminate(bad, max_neighbors=4)
    assert sc.eliminate(bad, keep=[1, 2, 3, 4]).sheaf.n_vertices == 5
    assert sc.eliminate(F, keep=[1, 2, 3, 4], max_neighbors=4).sheaf.n_vertices == 4
    assert sc.eliminate(F, keep=[1, 2, 3, 4], max_neighbors=3).sheaf.n_vertices == 5


def test_head_maps_are_checked_but_loops_are_not():
    edges = [[0, 1], [1, 1]]
    eye, slanted = np.eye(2), np.array([[1.0, 1.0], [0.0, 1.0]])
    F = CellularSheaf(edges, [eye, slanted], [slanted, eye])
    with pytest.raises(ValueError, match=r"the head map A of edge 0 \(0 -> 1\)"):
        sc.eliminate(F, max_neighbors=3)
    sc.eliminate(CellularSheaf(edges, [eye, slanted], [eye, eye]), max_neighbors=3)


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_maps_may_have_different_scales(scale):
    F = CellularSheaf.random(STAR, 3, 3, kind="orthogonal", seed=3)
    F = F.with_maps(scale * F.tail_data, 7 * scale * F.head_data)
    K = sc.eliminate(F, keep=[1, 2, 3, 4], max_neighbors=4)
    assert K.kept.tolist() == [1, 2, 3, 4]
    assert sc.eliminate(F, max_neighbors=4).kept.size == 0


def test_steps_of_another_elimination_raise():
    K = sc.eliminate(CellularSheaf.constant(nx.path_graph(5)), keep=[0])
    other = sc.eliminate(CellularSheaf.constant(nx.path_graph(7)), keep=[0])
    with pytest.raises(ValueError, match="`steps.vertices` must hold vertex indices in 0 .. 4"):
        dataclasses.replace(K, steps=other.steps)
    with pytest.raises(TypeError, match="`steps` must be the steps"):
        dataclasses.replace(K, steps=())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kept": lambda K: K.kept[::-1]}, "kept ones ascending"),
        ({"neighbors": lambda s: s.vertices}, "a step refers to a vertex that was eliminated"),
        ({"starts": lambda s: [0, 2, 1, 3]}, "must be lists of neighbours"),
        ({"starts": lambda s: [0, 1, 2, 2]}, "must be lists of neighbours"),
        ({"starts": lambda s: [1, 1, 2, 3]}, "must be lists of neighbours"),
        ({"blocks": lambda s: s.blocks[1:]}, "`steps.inverses` must have sizes"),
        ({"blocks": lambda s: np.nan * s.blocks}, "`steps` must be finite"),
        ({"inverses": lambda s: np.nan * s.inverses}, "`steps` must be finite"),
    ],
    ids=["order", "itself", "backward", "too few", "no start", "sizes", "blocks", "inverses"],
)
def test_inconsistent_parts_raise(change, message):
    """Each case damages one part of the elimination of a star."""
    K = sc.eliminate(CellularSheaf.constant(nx.star_graph(3)), keep=[0])
    twice = sc.eliminate(CellularSheaf.constant(nx.star_graph(3)), keep=[0, 1])
    ((name, make),) = change.items()
    assert dataclasses.replace(K, steps=K.steps._replace()).kept.tolist() == [0]
    if name == "kept":
        K, parts = twice, {"kept": make(twice)}
    else:
        parts = {"steps": K.steps._replace(**{name: np.array(make(K.steps))})}
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(K, **parts)


@pytest.mark.parametrize(
    ("dtype", "large", "small"),
    [(np.float32, 1e-4, 0), (np.complex64, 1e-4, 0), (float, 1e-10, 4e-16)],
)
def test_isometries_are_checked_to_the_precision_of_the_scalar_type(dtype, large, small):
    F = CellularSheaf.random(STAR, 3, 3, kind="orthogonal", seed=3, dtype=dtype)
    tails = F.tail_data.reshape(4, 3, 3).copy()
    tails[1, 1] *= 1 + small
    K = sc.eliminate(F.with_maps(tails, F.head_data), keep=[1, 2, 3, 4], max_neighbors=4)
    assert K.kept.tolist() == [1, 2, 3, 4]
    tails[1, 1] *= 1 + large
    with pytest.raises(ValueError, match="the tail map A of edge 1"):
        sc.eliminate(F.with_maps(tails, F.head_data), max_neighbors=4)
