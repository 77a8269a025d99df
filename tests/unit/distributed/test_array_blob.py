"""Arrays as one blob."""

import numpy as np
import pytest

from sheafcoarsen.distributed.array_blob import get_arrays, pack, put_arrays, unpack
from sheafcoarsen.distributed.location import StoreError, place_of

ARRAYS = {
    "constant": np.full(1000, 7, np.int32),
    "rows": np.arange(6).reshape(3, 2),
    "none": np.zeros(0, np.int64),
    "one": np.array(True),
    "numbers": np.array([1.5, np.inf]),
    "every other": np.arange(10)[::2],
}


def test_arrays_come_back(memory):
    place = place_of(memory("blob"))
    put_arrays(place, ARRAYS)
    found = get_arrays(place)
    assert set(found) == set(ARRAYS)
    for name, values in ARRAYS.items():
        assert found[name].dtype == values.dtype
        assert found[name].shape == values.shape
        assert np.array_equal(found[name], values)


def test_a_constant_takes_the_room_of_one_entry():
    assert len(pack("blob", {"x": np.full(10**6, 3)})) < 200


def test_a_blob_that_is_cut_or_altered_is_refused():
    blob = pack("a/here", ARRAYS)
    assert set(unpack("b/here", blob)) == set(ARRAYS)
    for damaged in (blob[:-1], blob[:5], b"", blob[:40] + bytes([blob[40] ^ 4]) + blob[41:]):
        with pytest.raises(StoreError, match="here is damaged"):
            unpack("a/here", damaged)
    with pytest.raises(StoreError, match="there is damaged"):
        unpack("a/there", blob)
