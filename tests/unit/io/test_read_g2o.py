import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from sheafcoarsen.io import read_g2o
from tests.support.errors import refuses
from tests.support.helpers import assert_residual
from tests.unit.io.conftest import read_or_refused
from tests.unit.synchronization.conftest import plane

WHOLE = """
VERTEX_SE2 4 1 2 0.5
VERTEX_SE2 2 3 4 -0.5
EDGE_SE2 4 2 1 -1 0.25 4 1 0 8 0 9
"""
INFORMATION_2D = "1 0 0 1 0 1"
INFORMATION_3D = "1 0 0 0 0 0 1 0 0 0 0 1 0 0 0 1 0 0 1 0 1"
POSE_3D = "0 0 0 0 0 0 1"


def words(values) -> str:
    return " ".join(f"{float(value):.17g}" for value in values)


def upper(matrix) -> str:
    return words(matrix[np.triu_indices(len(matrix))])


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_entries_of_a_small_pose_graph(write, order):
    lines = WHOLE.strip().splitlines()
    path = write("\n".join(lines[k] for k in order))
    F, G = read_g2o(path), read_g2o(path, poses=True)
    assert F.equals(G.sheaf)
    assert_residual(F.tail_map(0) - 3 * np.eye(2), 3.0, n=2)  # the root of 9, not of 8 or 4
    assert_residual(F.head_map(0) - 3 * plane(0.25), 3.0, n=2)
    assert G.vertex_labels == F.vertex_labels == (4, 2)
    assert G.translations.tolist() == [[1, -1]]
    assert_residual(G.rotations[0] - plane(0.25), n=2)
    assert G.kappa.tolist() == [9]
    assert_residual(G.tau[0] - 2 / np.trace(np.linalg.inv([[4, 1], [1, 8]])), 5.0, n=2)
    assert G.information.tolist() == [[[4, 1, 0], [1, 8, 0], [0, 0, 9]]]
    assert G.poses[1].tolist() == [[1, 2], [3, 4]]
    assert_residual(G.poses[0][1] - plane(-0.5), n=2)


def test_entries_of_a_small_3d_pose_graph(write):
    turns = Rotation.from_rotvec([[0.3, 0.6, -0.6], [2.0, 0.1, 0.9], [-1.1, 1.7, 0.4]])
    quaternions = turns.as_quat() * [[1], [4], [-1]]
    A = np.random.default_rng(83).standard_normal((3, 6, 6))
    omega = A @ A.swapaxes(1, 2) + np.eye(6)
    omega = (omega + omega.swapaxes(1, 2)) / 2
    lines = [f"VERTEX_SE3:QUAT 1 9 8 7 {words(quaternions[0])}", "VERTEX_SE3:QUAT 0 1 2 3 0 0 0 2"]
    for ends, q, information in zip(("0 1", "1 0", "0 1"), quaternions, omega, strict=True):
        lines.append(f"EDGE_SE3:QUAT {ends} 3 2 1 {words(q)} {upper(information)}")
    path, R = write("\n".join(lines)), turns.as_matrix()
    F, G = read_g2o(path), read_g2o(path, poses=True)
    assert F.equals(G.sheaf)
    for e in range(3):
        block = omega[e, 3:, 3:]
        root, condition = np.sqrt(1.5 / np.trace(np.linalg.inv(block))), np.linalg.cond(block)
        assert_residual(F.tail_map(e) - root * np.eye(3), root, condition, n=3)
        assert_residual(F.head_map(e) - root * R[e], root, condition, n=3)
    assert (G.vertex_labels, G.edges.tolist()) == ((1, 0), [[1, 0], [0, 1], [1, 0]])
    assert G.poses[1].tolist() == [[9, 8, 7], [1, 2, 3]]
    assert_residual(G.poses[0] - np.array([R[0], np.eye(3)]), n=3)
    assert_residual(G.rotations - R, n=3)
    assert G.translations.tolist() == [[3, 2, 1]] * 3
    np.testing.assert_array_equal(G.information, omega)


@pytest.mark.parametrize("scale", [1e-200, 1e-3, -1.0, 1.0, 1e200])
def test_quaternions_of_any_length_and_sign_are_normalized(write, scale):
    q = words(scale * np.array([0.0, 0, 1, 1]))  # a quarter about the third axis
    F = read_g2o(write(f"EDGE_SE3:QUAT 0 1 0 0 0 {q} {INFORMATION_3D}\n"))
    quarter = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    assert_residual(F.head_map(0) / np.sqrt(0.5) - quarter, 1.0, n=3)


@pytest.mark.parametrize(
    "diagonal", [[1, 1, 1], [1e12, 1e12, 1e-5], [1.5e-9, 2.0, 4.4], [1e-150, 1.0, 1e150]]
)
def test_weights_of_ill_conditioned_information_are_accurate(write, diagonal):
    information = np.diag([1, 1, 1, *diagonal]).astype(float)
    F = read_g2o(write(f"EDGE_SE3:QUAT 0 1 {POSE_3D} {upper(information)}\n"))
    weight = 1.5 / (1 / np.array(diagonal)).sum()
    assert_residual(F.tail_map(0)[0, 0] / np.sqrt(weight) - 1, n=3)


def test_unit_weights_ignore_the_information(write):
    text = f"EDGE_SE3:QUAT 0 1 {POSE_3D} " + " ".join(["nan"] * 20 + ["what"])
    F = read_g2o(write(text), weights="unit")
    np.testing.assert_array_equal(F.tail_map(0), np.eye(3))
    indefinite = "EDGE_SE2 0 1 0 0 1 1 0 0 1 0 -4\nEDGE_SE2 1 2 0 0 1 1 0 0 1 0 16\n"
    np.testing.assert_array_equal(read_g2o(write(indefinite), "unit").tail_map(1), np.eye(2))
    G = read_g2o(write("EDGE_SE2 0 1 0 0 0.5 1 0 0 1 0 what\n"), "unit", True)
    assert (G.kappa.tolist(), G.tau.tolist(), G.information, G.poses) == ([1], [1], None, None)


def test_vertices_are_ordered_by_occurrence_and_edges_as_in_the_file(write):
    """Isolated vertices are kept; repeated edges are parallel and self edges are loops."""
    text = """
        VERTEX_SE2 40 0 0 0
        EDGE_SE2 7 40 0 0 0.5 1 0 0 1 0 1
        VERTEX_SE2 3 0 0 0
        VERTEX_SE2 7 1 1 1
        EDGE_SE2 123456789012345678901234567890 7 0 0 0.25 1 0 0 1 0 1
        EDGE_SE2 7 40 0 0 0.1 1 0 0 1 0 1
        EDGE_SE2 40 40 0 0 0.3 1 0 0 1 0 1
    """
    F = read_g2o(write(text))
    assert F.vertex_labels == (40, 7, 3, 123456789012345678901234567890)
    assert all(type(label) is int for label in F.vertex_labels)
    assert F.edges.tolist() == [[1, 0], [3, 1], [1, 0], [0, 0]]
    assert F.vertex_dims.tolist() == [2, 2, 2, 2]
    for e, angle in enumerate([0.5, 0.25, 0.1, 0.3]):
        assert_residual(F.head_map(e) - plane(angle), 1.0, n=2)


@pytest.mark.parametrize(
    ("text", "dim"), [("VERTEX_SE2 4 0 0 0\n", 2), (f"VERTEX_SE3:QUAT 4 {POSE_3D}\n", 3)]
)
@pytest.mark.parametrize("weights", ["information", "unit"])
def test_file_with_only_vertices_is_a_graph(write, text, dim, weights):
    F = read_g2o(write(text), weights)
    assert (F.vertex_dims.tolist(), F.n_edges, F.vertex_labels) == ([dim], 0, (4,))


def test_comments_parameters_fixed_poses_and_blank_lines_are_ignored(write):
    edge = f"EDGE_SE2 0 1 0 0 0.5 {INFORMATION_2D}"
    noise = f"# a map\n\nPARAMS_SE2OFFSET 0 0 0 0\nFIX 0\n\t\n{edge}  # odometry\nFIX 1 2\n   \n"
    expected = read_g2o(write(edge))
    for name in ("noise.g2o", "noise.g2o.gz", "NOISE.G2O.GZ", "noise.txt"):
        for end in ("\n", "\r\n"):
            F = read_g2o(write(noise.replace("\n", end), name.replace("GZ", "gz")))
            np.testing.assert_array_equal(F.head_data, expected.head_data)
            assert F.vertex_labels == (0, 1)


GOOD = f"VERTEX_SE2 0 0 0 0\n\nEDGE_SE2 0 1 0 0 0.5 {INFORMATION_2D}\n"  # three lines
GOOD_3D = f"EDGE_SE3:QUAT 0 1 {POSE_3D} {INFORMATION_3D}\n"

BAD = [
    (GOOD + "VERTEX_XY 7 1 2", 4, "landmarks ('VERTEX_XY') are not poses"),
    (GOOD + "EDGE3 0 1", 4, "unknown tag 'EDGE3'; read_g2o reads VERTEX_SE2, VERTEX2, "),
    (GOOD_3D + "VERTEX_SE2 7 0 0 0", 2, "VERTEX_SE2 in a file that began with SE3"),
    (GOOD + GOOD_3D, 4, "EDGE_SE3:QUAT in a file that began with SE2"),
    (GOOD + "EDGE_SE2 1 2 0 0 0.5x 1 0 0 1 0 1", 4, "a measurement must be a number, got '0.5x'"),
    (GOOD + f"EDGE_SE2 1 b 0 0 0.5 {INFORMATION_2D}", 4, "whole number, got 'b'"),
    (GOOD + f"EDGE_SE2 1 2 0 0 nan {INFORMATION_2D}", 4, "a measurement must be finite, got 'nan'"),
    ("VERTEX_SE2 1 0 0 nan\n" + GOOD, 1, "a pose must be finite, got 'nan'"),
    (GOOD + "EDGE_SE2 1 2 0 0 0.5 1 0 0 1 0 nan", 4, "an information matrix must be finite"),
    (GOOD + "EDGE_SE2 1", 4, "needs 11 numbers (2 vertex ids, 3 of the pose, 6 of"),
    (GOOD + "VERTEX_SE2", 4, "VERTEX_SE2 needs 4 numbers (a vertex id, 3 of the pose), got 0"),
    (GOOD + f"EDGE_SE2 1 2 0 0 0.5 {INFORMATION_2D} 1", 4, "needs 11 numbers"),
    (GOOD_3D + f"EDGE_SE3:QUAT 0 1 1 1 1 0 0 -0 0 {INFORMATION_3D}", 2, "quaternion"),
    (GOOD + "EDGE_SE2 1 2 0 0 0.5 1 0 0 1 0 0", 4, "must be positive definite"),
    (GOOD + "EDGE_SE2 1 2 0 0 0.5 1 0 0 1 0 -1", 4, "weights='unit'"),
    (GOOD + "EDGE_SE2 1 2 0 0 1 1 0 0 1 0 1e305", None, "the largest entry"),
]

TAGS = (
    "VERTEX_SE2, VERTEX2, VERTEX_SE3:QUAT, EDGE_SE2, EDGE2, EDGE_SE3:QUAT, FIX, VERTEX_XY, "
    "VERTEX_TRACKXYZ, EDGE_SE2_XY, LANDMARK2, EDGE_SE3_TRACKXYZ"
)
BAD_GRAPHS = [
    ("VERTEX_SE2 4 0 0 0", 5, "vertex 4 has a VERTEX line already"),
    ("EDGE_SE2 4 6 0 0 0 1 0 0 1 0 1", 5, "vertex 6 has no VERTEX line, but 2 others have one"),
    ("EDGE_SE2 4 2 0 0 0 0 0 0 1 0 1", 5, "matrix of the translation must be positive definite"),
    ("EDGE3 0 1", 5, f"unknown tag 'EDGE3'; read_g2o(..., poses=True) reads {TAGS}"),
    ("VERTEX_XY 4 0 0", 5, "4 is a landmark here and a pose elsewhere"),
    ("VERTEX_XY 7 0 0\nVERTEX_XY 7 0 0", 6, "landmark 7 has a VERTEX line"),
    ("VERTEX_XY 7 0 0\nEDGE_SE2_XY 4 8 0 0 1 0 1", 6, "landmark 8 has no VERTEX line"),
    ("EDGE_SE2_XY 4 8 0 0 1 2 1", 5, "must be positive definite"),
    ("EDGE_SE2_XY 4 8 0 0 1 0", 5, "EDGE_SE2_XY needs 7 numbers"),
]

CASES = [
    *((False, *case) for case in BAD),
    *((True, WHOLE + text, *case) for text, *case in BAD_GRAPHS),
]


@pytest.mark.parametrize(
    ("poses", "text", "line", "message"), CASES, ids=[f"{case[0]} {case[-1]}" for case in CASES]
)
@pytest.mark.parametrize("name", ["graph.g2o", "graph.g2o.gz"])
def test_invalid_lines_raise_error_with_line_number(write, poses, text, line, message, name):
    refuses(read_g2o, write(text, name), line, message, poses=poses)


@pytest.mark.parametrize(
    "block",
    [
        np.diag([1.0, 1.0, 0.0]),
        np.diag([1.0, -1.0, 1.0]),
        np.array([[1, 2, 0], [2, 1, 0], [0, 0, 1.0]]),
        np.ones((3, 3)),
        np.outer([1e-9, 1, 1e9], [1e-9, 1, 1e9]),
    ],
    ids=["zero", "negative", "indefinite", "singular", "singular-scaled"],
)
def test_rotation_information_in_3d_must_be_positive_definite(write, block):
    information = np.eye(6)
    information[3:, 3:] = block
    path = write(GOOD_3D * 2 + f"EDGE_SE3:QUAT 0 1 {POSE_3D} {upper(information)}\n" + GOOD_3D)
    refuses(read_g2o, path, 3, "the information matrix of the rot")
    assert read_g2o(path, weights="unit").n_edges == 4


def test_translation_information_does_not_affect_the_connection(write):
    information = np.diag([-1, 0, 1, 2, 2, 2.0])
    information[0, 5] = information[5, 0] = 100
    F = read_g2o(write(f"EDGE_SE3:QUAT 0 1 {POSE_3D} {upper(information)}\n"))
    assert_residual(F.tail_map(0) - np.eye(3), 1.0, n=3)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "FIX 0\n", "PARAMS_X 1 2\n"])
def test_a_file_without_poses_is_not_a_g2o_file(write, text):
    for path in (write(text), write(text, "g.g2o.gz")):
        assert refuses(read_g2o, path, None, "not a g2o file: ").endswith(", EDGE_SE3:QUAT")


@pytest.mark.parametrize("good", [GOOD * 2, GOOD_3D * 3], ids=["SE2", "SE3"])
@given(data=st.data())
def test_damaged_files_load_or_raise_one_line_error(tmp_path_factory, good, data):
    path = tmp_path_factory.mktemp("damaged") / "graph.g2o"
    words = re.split(r"( |\n)", good)
    strange = ["-0", "1e300", "-1e300", "1e-300", "nan", "inf", "0x1", "1_0", "é", "\x00", "#"]
    strange = st.sampled_from([*strange, "", "9" * 20])
    for _ in range(data.draw(st.integers(1, 4))):
        k = data.draw(st.integers(0, len(words) - 1))
        words[k] = data.draw(strange | st.integers(-3, 3).map(str) | st.floats(width=16).map(str))
    path.write_text("".join(words), encoding="utf-8")
    for weights in ("information", "unit"):
        F = read_or_refused(read_g2o, path, weights=weights)
        # every transport is orthogonal: the head's map is the tail's times it
        for e in range(F.n_edges if F else 0):
            tail, head = F.tail_map(e), F.head_map(e)
            assert_residual(tail @ tail.T - head @ head.T, tail, tail, n=3)
            assert tail[0, 0] > 0


SIZES = {
    "tiny_grid3d": (9, 11, 3),
    "small_grid3d": (125, 297, 3),
    "sphere2500": (2500, 4949, 3),
    "torus3d": (5000, 9048, 3),
    "parking_garage": (1661, 6275, 3),
    "intel": (1228, 1483, 2),
    "csail": (1045, 1171, 2),
    "m3500": (3500, 5453, 2),
    "city10000": (10000, 20687, 2),
}


@pytest.mark.real_data
@pytest.mark.parametrize("name", SIZES)
def test_real_pose_graphs_are_read(data_folder, name):
    n, m, d = SIZES[name]
    F = read_g2o(data_folder / f"g2o_{name}.g2o.gz")
    assert (F.n_vertices, F.n_edges) == (n, m)
    assert (F.vertex_dims == d).all()
    assert sorted(F.vertex_labels) == list(range(n))


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["sphere2500", "m3500", "intel", "parking_garage"])
def test_measurements_agree_with_the_poses_of_the_file(data_folder, name):
    """z_ij = inverse(x_i) x_j; swapping tail and head, or R and R^T, would give other values."""
    G = read_g2o(data_folder / f"g2o_{name}.g2o.gz", poses=True)
    X, (tails, heads), names = G.poses[0], G.edges.T, np.array(G.vertex_labels)
    consecutive = names[heads] - names[tails] == 1
    assert consecutive.sum() >= G.n_vertices - 1
    steps, R = X[tails].swapaxes(1, 2) @ X[heads], G.rotations
    errors = (np.abs(steps - U).max(axis=(1, 2)) for U in (R, R.swapaxes(1, 2)))
    ours, wrong = (error[consecutive] for error in errors)
    assert (ours < 2e-3).mean() > 0.5  # the files' rounding; README: agreement to 1e-3 rad
    assert ours.sum() < wrong.sum()


def test_landmarks_are_read_with_poses(write):
    text = (
        "VERTEX_XY 70 5 6\nVERTEX_SE2 0 0 0 0\nVERTEX_XY 60 7 8\n"
        "EDGE_SE2_XY 0 60 1 2 2 0 2\nEDGE_SE2_XY 0 70 3 4 1 0 3\n"
    )
    G = read_g2o(write(text), poses=True)
    assert G.sightings.labels == (70, 60)
    assert G.sightings.edges.tolist() == [[0, 1], [0, 0]]
    assert G.sightings.points.tolist() == [[1, 2], [3, 4]]
    assert_residual(G.sightings.tau - [2, 1.5], 2.0, n=2)
    assert G.sightings.places.tolist() == [[5, 6], [7, 8]]


def test_landmark_with_two_kinds_of_ids_raises(write):
    text = "EDGE_SE2 0 1 1 0 0 1 0 0 1 0 1\n{} 0 5 1 2 2 0 2\n{} 1 5 3 4 1 0 3\n"
    tags = "EDGE_SE2_XY", "LANDMARK2"
    for first in (tags, tags[::-1]):
        path = write(text.format(*first))
        refuses(read_g2o, path, 2, "landmark 5 is in LANDMARK2 lines and in EDGE_SE", poses=True)


def test_landmark2_ids_are_separate_from_pose_ids(write):
    """Their ids may equal ids of poses; then landmarks have no labels."""
    text = "EDGE_SE2 0 1 1 0 0 1 0 0 1 0 1\nLANDMARK2 0 1 1 2 2 0 2\nLANDMARK2 1 {} 3 4 1 0 3\n"
    G = read_g2o(write(text.format(5)), poses=True)
    assert (G.n_vertices, G.sightings.labels) == (2, None)
    assert G.sightings.edges.tolist() == [[0, 0], [1, 1]]
    unit = read_g2o(write(text.format(5)), "unit", poses=True)
    assert unit.sightings.tau.tolist() == [1, 1]
    assert read_g2o(write(text.format(1)), poses=True).sightings.edges.tolist() == [[0, 0], [1, 0]]
    apart = text.replace("LANDMARK2 0 1", "LANDMARK2 0 7").format(5)
    assert read_g2o(write(apart), poses=True).sightings.labels == (7, 5)


def test_toro_order_of_information_is_converted(write):
    toro = "VERTEX2 3 0 0 0\nVERTEX2 4 1 0 0.5\nEDGE2 3 4 1 0 0.5 11 12 22 33 13 23\n"
    g2o = "VERTEX_SE2 3 0 0 0\nVERTEX_SE2 4 1 0 0.5\nEDGE_SE2 3 4 1 0 0.5 11 12 13 22 23 33\n"
    G, H = (read_g2o(write(text), poses=True) for text in (toro, g2o))
    wanted = [[11, 12, 13], [12, 22, 23], [13, 23, 33]]
    for one in (G, H):
        assert one.information[0].tolist() == wanted
        assert (one.kappa[0], one.vertex_labels) == (33, (3, 4))
        np.testing.assert_array_equal(one.poses[1], [[0, 0], [1, 0]])


def test_warning_counts_indefinite_information_matrices(write):
    """Kappa and tau are computed from blocks; without ``poses`` only the rotation is checked."""
    path = write(WHOLE + 2 * "EDGE_SE2 4 2 0 0 0 1 0 2 1 0 1\n")
    with pytest.warns(UserWarning, match=r":5: 2 of 3 information matrices are indefinite") as told:
        G = read_g2o(path, poses=True)
    assert len(told) == 1
    assert G.information[1].tolist() == [[1, 0, 2], [0, 1, 0], [2, 0, 1]]
    assert (G.kappa[1], G.tau[1]) == (1, 1)
    one = write(WHOLE + "EDGE_SE2 4 2 0 0 0 1 0 2 1 0 1\n")
    with pytest.warns(UserWarning, match=r":5: 1 of 2 information matrices is indefinite"):
        read_g2o(one, poses=True)
    read_g2o(path)  # warnings are errors


def test_sensor_offsets_raise(write):
    good = "PARAMS_SE3OFFSET 0 0 0 0 0 0 0 1\nEDGE_SE3_TRACKXYZ 0 7 0 1 2 3 1 0 0 1 0 1\n"
    assert read_g2o(write(good), poses=True).sightings.points.tolist() == [[1, 2, 3]]
    for bad in ("0 0 0.5 0 0 0 1", "0 0 0 0 0 0.6 0.8"):
        path = write(f"{good}PARAMS_SE3OFFSET 1 {bad}\n")
        refuses(read_g2o, path, 3, "sensors must be at", poses=True)
    unseen = "VERTEX_TRACKXYZ 7 1 2 3\nPARAMS_SE3OFFSET 1 0 0 nothing 0 0 0 1\n"
    refuses(read_g2o, write(unseen), 2, "an entry of an offset", poses=True)
