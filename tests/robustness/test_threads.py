"""BLAS at one thread meanwhile, and back to what it was."""

import pytest
import scipy.linalg  # noqa: F401  (loads scipy's own BLAS)
from threadpoolctl import threadpool_info

from sheafcoarsen._support import single_threaded_blas


def blas_threads():
    return [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]


class TestSingleThreadedBlas:
    @pytest.fixture(autouse=True)
    def _several_blas_threads(self):
        """Start from three threads on any machine, so that a limit of one is visible."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(3, user_api="blas"):
            if not blas_threads() or min(blas_threads()) < 2:
                pytest.skip("no BLAS here whose threads can be counted")
            yield

    def test_one_thread_inside_and_as_before_outside(self):
        before = blas_threads()
        with single_threaded_blas():
            assert set(blas_threads()) == {1}
        assert blas_threads() == before

    def test_restored_after_an_error(self):
        before = blas_threads()
        with pytest.raises(ZeroDivisionError), single_threaded_blas():
            raise ZeroDivisionError
        assert blas_threads() == before

    def test_nested_and_overlapping_users(self):
        before = blas_threads()
        first, second = single_threaded_blas(), single_threaded_blas()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)  # the first leaves while the second is inside
        assert set(blas_threads()) == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before
        with single_threaded_blas():  # and it works again
            assert set(blas_threads()) == {1}
        assert blas_threads() == before
