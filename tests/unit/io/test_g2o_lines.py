"""Lines of g2o files, sorted by kind."""

import re

import pytest

from sheafcoarsen.io.g2o_lines import SE2, SE3, G2oLines

TEXT = """
VERTEX_SE2 4 0 0 0
# a tree
VERTEX_XY 9 1 2
EDGE_SE2 4 5 1 2 3 1 0 0 1 0 1
EDGE_SE2_XY 5 9 7 8 1 0 1
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "lines.g2o"
    path.write_text(TEXT)
    return path


def test_words_are_collected_by_kind(path):
    lines = G2oLines(str(path), landmarks=True)
    assert lines.group is SE2
    assert lines.ids.integers() == [4, 4, 5, 5]
    assert (lines.placed, lines.ends, lines.seen_from) == ([0], [1], [3])
    assert lines.measured.numbers().tolist() == [1, 2, 3]
    assert lines.landmark_ids.integers() == lines.sighted_ids.integers() == [9]
    assert lines.landmark_places.numbers().tolist() == [1, 2]
    assert lines.sighted.numbers().tolist() == [7, 8]
    assert lines.sighting_information.numbers().tolist() == [1, 0, 1]


def test_landmarks_raise_unless_requested(path):
    message = ":4: landmarks ('VERTEX_XY') are not poses; read_g2o(..., poses=True) reads them"
    with pytest.raises(ValueError, match=re.escape(message)):
        G2oLines(str(path), landmarks=False)


def test_sensor_offsets_raise(tmp_path):
    path = tmp_path / "sensor.g2o"
    good = "PARAMS_SE3OFFSET 0 0 0 0 0 0 0 1\nEDGE_SE3_TRACKXYZ 0 7 0 1 2 3 1 0 0 1 0 1\n"
    path.write_text(good)
    lines = G2oLines(str(path), landmarks=True)
    lines.check_offsets()
    assert lines.group is SE3
    for bad in ("0 0 0.5 0 0 0 1", "0 0 0 0 0 0.6 0.8"):
        path.write_text(f"{good}PARAMS_SE3OFFSET 1 {bad}\n")
        with pytest.raises(ValueError, match=re.escape(f"{path}:3: sensors must be at")):
            G2oLines(str(path), landmarks=True).check_offsets()
