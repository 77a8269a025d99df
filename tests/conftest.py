"""Hypothesis profiles, and the folder of real data."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.helpers")

COMMON = {
    "deadline": None,  # the first example of a test may compile a kernel
    "suppress_health_check": [HealthCheck.too_slow],
    "print_blob": True,
}
settings.register_profile("default", max_examples=40, **COMMON)
settings.register_profile("deep", max_examples=800, **COMMON)
settings.register_profile("nojit", max_examples=10, **COMMON)


def _profile() -> str:
    if os.environ.get("SHEAFCOARSEN_DEEP", "0") not in ("", "0"):
        return "deep"
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "nojit"  # kernels run as plain Python
    return "default"


settings.load_profile(_profile())


def _data_variable() -> str:
    return os.environ.get("SHEAFCOARSEN_DATA", "")


def pytest_collection_modifyitems(items):
    """Skip tests of real data where no folder is named; a folder that is named must be there."""
    if _data_variable():
        return
    skip = pytest.mark.skip(reason="real data is not part of the repository: SHEAFCOARSEN_DATA names no folder")
    for item in items:
        if item.get_closest_marker("real_data"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of real data; for tests marked ``real_data``."""
    if not _data_variable():
        pytest.fail("a test that uses `data_folder` must be marked `real_data`")
    folder = Path(_data_variable()).expanduser()
    if not folder.is_dir():
        pytest.fail(f"SHEAFCOARSEN_DATA={str(folder)!r} is not a folder")
    return folder
