"""Coarsening and verification of sheaves from real data."""

import gzip
import json
import os

import numpy as np
import pytest
import scipy.sparse.linalg

import sheafcoarsen as sc
from tests.support.helpers import assert_closes, assert_residual, assert_verified, eps_of, size

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def feeder(path):
    """Return the sheaf of a power feeder, whose stalks are the phases of a bus.

    Maps select phases and apply a square root of the conductance of a line.
    """
    with gzip.open(path, "rt") as stream:
        data = json.load(stream)
    number = {name: i for i, name in enumerate(data["buses"])}
    phases = [bus["nodes"] for bus in data["buses"].values()]
    edges, tails, heads = [], [], []
    for line in data["lines"]:
        u, v = number[line["from"]], number[line["to"]]
        conductance = np.linalg.inv(np.array(line["r"]) + 1j * np.array(line["x"])).real
        values, vectors = np.linalg.eigh((conductance + conductance.T) / 2)
        root = (vectors * np.sqrt(values)) @ vectors.T
        edges.append((u, v))
        for maps, end, nodes in ((tails, u, line["from_nodes"]), (heads, v, line["to_nodes"])):
            choice = np.array([[float(node == phase) for phase in phases[end]] for node in nodes])
            maps.append(root @ choice)
    voltages = [bus["v"] for bus in data["buses"].values()]
    x = np.concatenate([np.array(v, float) @ np.array([1, 1j]) for v in voltages])
    return sc.CellularSheaf(edges, tails, heads, vertex_dims=[len(p) for p in phases]), x


@pytest.mark.real_data
def test_coarsening_of_the_ieee8500_feeder_passes_verification(data_folder):
    F, voltages = feeder(data_folder / "feeder_ieee8500.json.gz")
    assert (F.n_vertices, F.n_edges) == (4876, 3698)
    np.testing.assert_array_equal(np.bincount(F.vertex_dims), [0, 1870, 2357, 649])
    np.testing.assert_array_equal(np.bincount(F.edge_dims), [0, 1879, 1180, 639])
    P, eps = sc.select(F, 1500), eps_of(F.dtype)
    for operator in ("internal", "principal"):
        C = sc.coarsen(F, P, 2, local_operator=operator)
        assert_verified(C)
        E = sc.energy_ledger(C, voltages)  # a complex cochain on a real sheaf
        bound, n = size(sc.coboundary(F).data) * size(voltages), int(C.clusters.dims.max())
        assert 0 < E.fine_energy <= bound**2
        assert_closes(list(E.lines.values()), E.fine_energy, bound, n=n, eps=eps)
    assert_verified(sc.coarsen(C.sheaf, sc.select(C.sheaf, 1300), 3))


@pytest.mark.real_data
def test_poses_have_much_less_energy_than_with_transposed_transports(data_folder):
    """Transports in files follow the orientation convention of the library."""
    path = data_folder / "g2o_m3500.g2o.gz"
    F = sc.read_g2o(path, weights="unit")
    angles = {}
    with gzip.open(path, "rt") as stream:
        for line in stream:
            words = line.split()
            if words and words[0] == "VERTEX_SE2":
                angles[int(words[1])] = float(words[4])
    theta = np.array([angles[v] for v in F.vertex_labels])
    # where z_ij = R_i^T R_j, x_v = R_v^T c is a section: x_i - z_ij x_j = R_i^T (c - R_j R_j^T c)
    x, y = (np.stack([np.cos(t), -np.sin(t)], axis=1).reshape(-1) for t in (theta, -theta))
    assert sc.energy(F, x) < 0.05 * sc.energy(F, y)


@pytest.mark.real_data
def test_levels_of_a_pose_graph_are_exact(data_folder):
    F = sc.read_g2o(data_folder / "g2o_city10000.g2o.gz")
    H = sc.coarsen_levels(F, rank=4, min_vertices=99)
    assert [G.n_vertices for G in H.sheaves] == [10000, 1000, 100, 10]
    for C in H:
        assert_verified(C)
    assert_levels_are_exact(H)


@pytest.mark.real_data
def test_levels_of_a_graph_with_hubs_are_exact(data_folder):
    F = sc.read_graph(data_folder / "nodes_tolokers_edges.txt.gz")
    assert np.bincount(F.edges.reshape(-1)).max() == 2138
    H = sc.coarsen_levels(F, rank=4)
    assert [G.n_vertices for G in H.sheaves] == [11758, 1176, 118, 12]
    # a compressed edge has at most as many rows as its ends have coordinates
    for C in H:
        assert C.sheaf.edge_dims[: C.n_crossing_edges].max() <= 8
    assert_verified(H[2])  # verifying the other levels takes 15 seconds
    assert_levels_are_exact(H)


def assert_levels_are_exact(H):
    """Assert that the last Laplacian is the Galerkin operator and that the ledger closes."""
    F, R = H.fine, H.prolongation()
    n = sum(int(C.clusters.dims.max()) for C in H) + int(np.bincount(F.edges.reshape(-1)).max())
    L = sc.laplacian(F)
    error = sc.laplacian(H.sheaves[-1]) - R.conj().T @ (L @ R)
    norms = scipy.sparse.linalg.norm(R, axis=0)  # every column has norm 1
    assert_residual(norms - 1, n=n)
    delta = sc.coboundary(F)
    assert_residual(error.toarray(), delta.data, delta.data, n=n)
    x = np.random.default_rng(3).standard_normal(F.dim_c0)
    E = H.ledger(x)
    bound = size(delta.data) * size(x)
    assert_closes(list(E.lines.values()), E.fine_energy, bound, n=n, eps=eps_of(F.dtype))
    assert E.coarsest_energy > 0


def test_no_real_data_test_is_skipped_if_the_folder_is_set(request):
    marked = [item for item in request.session.items if item.get_closest_marker("real_data")]
    skipped = [item.nodeid for item in marked if item.get_closest_marker("skip")]
    if os.environ.get("SHEAFCOARSEN_DATA"):
        assert not skipped
    else:
        assert len(skipped) == len(marked)
