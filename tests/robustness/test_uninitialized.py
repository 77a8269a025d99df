"""Arrays of `numpy.empty` hold what shows, where the suite is run so (`make test-lowest`)."""

import numpy as np
import pytest

from tests.support import poison


@pytest.mark.parametrize("name", ["empty", "empty_like"])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.int32, np.uint8, bool])
def test_poisoned_empty_arrays_contain_extreme_values(name, dtype):
    x = poison.NAMES[name](np.zeros(3, dtype) if name == "empty_like" else 3, dtype=dtype)
    worst = {"f": np.nan, "c": complex(np.nan, np.nan), "b": True}.get(x.dtype.kind)
    wanted = np.full(3, np.iinfo(dtype).max if worst is None else worst, dtype)
    assert x.dtype == dtype
    assert np.array_equal(x, wanted, equal_nan=x.dtype.kind in "fc")
    assert (getattr(np, name) is poison.NAMES[name]) == poison.IS_ON
