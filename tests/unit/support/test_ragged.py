import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sheafcoarsen._support import offsets, ranges, read_only

LENGTHS = st.lists(st.integers(0, 5), max_size=8)


@given(LENGTHS)
def test_offsets_are_where_blocks_begin_and_end(lengths):
    out = offsets(lengths)
    assert out.dtype == np.int64
    assert out.tolist() == [sum(lengths[:k]) for k in range(len(lengths) + 1)]


def test_offsets_do_not_wrap_around_with_small_integers():
    assert offsets(np.full(300, 100, dtype=np.int8))[-1] == 30_000


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=8))
def test_ranges_are_aranges_one_after_the_other(blocks):
    starts, lengths = [s for s, _ in blocks], [k for _, k in blocks]
    out = ranges(starts, lengths)
    assert out.dtype == np.int64
    assert out.tolist() == [i for s, k in blocks for i in range(s, s + k)]


def test_read_only_freezes_the_array_itself():
    array = np.arange(3)
    assert read_only(array) is array
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
