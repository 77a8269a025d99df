"""Vertex labels as JSON; what is refused of them is in the tests of files and stores."""

import numpy as np

from sheafcoarsen._support import decode_labels, encode_labels


def test_labels_come_back():
    labels = ("a", 3, ("b", (2.5, None)), "", True, np.int64(7), "\u00e9")
    found = decode_labels(encode_labels(labels), 7)
    assert found == labels
    assert [type(label) for label in found] == [str, int, tuple, str, bool, int, str]
