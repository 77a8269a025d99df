"""Pose graphs with known poses, in the plane and in space."""

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import sheafcoarsen as sc
from tests.support.helpers import maps_of


def plane(angles):
    """Return the rotations of the plane by given angles."""
    c, s = np.cos(angles), np.sin(angles)
    return np.stack([c, -s, s, c], axis=-1).reshape(*np.shape(angles), 2, 2)


def random_rotations(count, dim, rng, spread=np.pi):
    """Return rotations by angles up to ``spread`` about random axes."""
    angles = rng.uniform(-spread, spread, count)
    if dim == 2:
        return plane(angles)
    axes = rng.standard_normal((count, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    return Rotation.from_rotvec(angles[:, None] * axes).as_matrix()


def pose_graph(dim, edges, seed=0, noise=0.0, n=None, **options):
    """Return a graph measured from random poses, and the poses, the first at the origin."""
    rng = np.random.default_rng(seed)
    edges = np.asarray(edges).reshape(-1, 2)
    n = int(edges.max()) + 1 if n is None else n
    R = random_rotations(n, dim, rng)
    t = 3 * rng.standard_normal((n, dim))
    R, t = R[0].T @ R, (t - t[0]) @ R[0]
    i, j = edges.T
    turns = R[i].swapaxes(1, 2) @ R[j] @ random_rotations(len(edges), dim, rng, noise)
    errors = noise * rng.standard_normal((len(edges), dim))
    steps = np.einsum("eji,ej->ei", R[i], t[j] - t[i]) + errors
    kappa, tau = rng.uniform(1, 5, (2, len(edges)))
    return sc.PoseGraph(edges, turns, steps, kappa, tau, n_vertices=n, **options), (R, t)


def ring_with_chords(n, chords, seed=0):
    rng = np.random.default_rng(seed)
    ring = np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)
    return np.concatenate([ring, rng.integers(n, size=(chords, 2))])


def sighted(G, poses, marks, seen, noise=0.0, tau=1.0):
    """Return a graph with sightings (pose, landmark) of landmarks at given points."""
    (R, t), (i, k) = poses, np.transpose(seen)
    points = np.einsum("eji,ej->ei", R[i], marks[k] - t[i])
    points += noise * np.random.default_rng(1).standard_normal(points.shape)
    return dataclasses.replace(G, sightings=sc.Sightings(seen, points, tau))


def appended(G, edges, rotations, translations, kappa=1.0, tau=1.0, **options):
    """Return a graph with more measurements, and new weights for all."""
    pairs = (G.edges, edges), (G.rotations, rotations), (G.translations, translations)
    return sc.PoseGraph(*map(np.concatenate, pairs), kappa, tau, **options)


def planted(G, bad, rng, what="both"):
    """Return a graph with random rotations, translations or both on some edges."""
    R, t = G.rotations.copy(), G.translations.copy()
    if what != "translations":
        R[bad] = random_rotations(len(bad), G.dim, rng)
    if what != "rotations":
        t[bad] = 5 * rng.standard_normal((len(bad), G.dim))
    return dataclasses.replace(G, rotations=R, translations=t)


def reflected(F, e):
    """Return a bundle with a reflection in the head map of an edge."""
    tails, heads = maps_of(F)
    heads[e, :, 0] *= -1
    return F.with_maps(tails, heads)


def wrong_first_edge(edges):
    """Return a precise graph in the plane whose first measurement is a quarter turn off."""
    G, _ = pose_graph(2, edges, noise=0.01)
    turns = G.rotations.copy()
    turns[0] = turns[0] @ [[0, -1], [1, 0]]
    return dataclasses.replace(G, rotations=turns, kappa=1e3, tau=1e3)


def rescaled(G, scale=1.0, unit=1.0):
    """Return a graph in another unit of length, with costs multiplied by a scale."""
    seen, by = G.sightings, scale / unit**2
    if seen is not None:
        seen = dataclasses.replace(seen, points=unit * seen.points, tau=by * seen.tau)
    weights = {"kappa": scale * G.kappa, "tau": by * G.tau}
    return dataclasses.replace(G, translations=unit * G.translations, sightings=seen, **weights)


def cost_by_hand(G, R, t):
    """Return the cost of SE-Sync; landmarks follow poses in t."""
    i, j = G.edges.T
    cost = G.kappa @ np.square(R[j] - R[i] @ G.rotations).sum(axis=(1, 2))
    ends, points, tau = G.edges, G.translations, G.tau
    if G.sightings is not None:
        ends = np.concatenate([ends, G.sightings.edges + np.array([0, len(R)])])
        points = np.concatenate([points, G.sightings.points])
        tau = np.append(tau, G.sightings.tau)
    i, j = ends.T
    off = t[j] - t[i] - np.einsum("eij,ej->ei", R[i], points)
    return cost + tau @ np.square(off).sum(axis=1)


@pytest.fixture(params=[2, 3], ids=["SE2", "SE3"])
def dim(request):
    return request.param
