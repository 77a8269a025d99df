"""One thread for the dense solver that modes are compared with."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="module", autouse=True)
def _one_thread_for_the_dense_solver():
    # at these sizes several threads only wait for each other
    with threadpool_limits(1, user_api="blas"):
        yield
