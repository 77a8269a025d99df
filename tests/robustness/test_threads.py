"""Concurrent callers: the same bits, no slowdown, and restored BLAS thread counts."""

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import networkx as nx
import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (loads scipy's own BLAS)
from threadpoolctl import threadpool_info

import sheafcoarsen as sc
from sheafcoarsen._support import single_threaded_blas
from tests.support.kernels import JIT_IS_OFF


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

    def test_blas_has_one_thread_only_inside_the_block(self):
        before = blas_threads()
        with single_threaded_blas():
            assert set(blas_threads()) == {1}
        assert blas_threads() == before

    def test_thread_counts_are_restored_after_errors(self):
        before = blas_threads()
        with pytest.raises(ZeroDivisionError), single_threaded_blas():
            raise ZeroDivisionError
        assert blas_threads() == before

    def test_blocks_may_be_nested_and_overlap(self):
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

    def test_last_thread_to_leave_restores_the_count(self):
        """The thread count is global to the process, so the last thread to leave restores it."""
        before = blas_threads()
        inside, leave = threading.Event(), threading.Event()

        def other():
            with single_threaded_blas():
                inside.set()
                assert leave.wait(20)

        with ThreadPoolExecutor(1) as pool:
            with single_threaded_blas():
                task = pool.submit(other)
                assert inside.wait(20)
            assert set(blas_threads()) == {1}
            leave.set()
            task.result()
        assert blas_threads() == before

    def test_block_in_another_thread_limits_blas(self):
        before = blas_threads()

        def other():
            with single_threaded_blas():
                return blas_threads()

        with ThreadPoolExecutor(1) as pool:
            assert set(pool.submit(other).result()) == {1}
        assert blas_threads() == before

    def test_many_threads_entering_and_leaving(self):
        before = blas_threads()

        def job(i):
            for _ in range(50):
                with single_threaded_blas():
                    if set(blas_threads()) != {1}:
                        return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(job, range(8)))
        assert blas_threads() == before

    @pytest.mark.parametrize("pool", [ThreadPoolExecutor, ThreadPool], ids=["futures", "joblib"])
    def test_concurrent_callers_get_the_same_bits(self, pool):
        """With several BLAS threads the bases of local kernels would differ."""
        before = blas_threads()
        F = sc.gallery.bundle(nx.grid_2d_graph(12, 12), 3, seed=5)
        P = sc.Partition(np.arange(144) // 48)

        def job(_=None):
            C = sc.coarsen(F, P, sc.ranks.kernel())
            return C.prolongation.data.tobytes(), C.sheaf.tail_data.tobytes()

        alone = job()
        with pool(4) as workers:
            found = list(workers.map(job, range(8)))
        assert found == [alone] * 8
        assert job() == alone
        assert blas_threads() == before

    def test_concurrent_callers_do_not_slow_each_other_down(self):
        """If BLAS threads of the callers wait for each other, calls take 30 times as long."""
        F = sc.gallery.bundle(nx.grid_2d_graph(20, 20), 2, 0.1, seed=5)
        P = sc.select(F, 20)

        def job(_=None):
            sc.coarsen(F, P, 2, local_operator="oversampled", target=1.0)

        def seconds(work):
            begin = time.perf_counter()
            work()
            return time.perf_counter() - begin

        job()
        alone = min(seconds(job) for _ in range(5))
        with ThreadPoolExecutor(4) as workers:
            together = min(seconds(lambda: list(workers.map(job, range(8)))) for _ in range(3)) / 8
        assert together < 10 * alone

    @pytest.mark.skipif(JIT_IS_OFF, reason="plain Python has one thread")
    @pytest.mark.parametrize("kind", ["hubs", "components", "trees"])
    def test_sections_do_not_depend_on_the_number_of_threads(self, kind, monkeypatch):
        """Ranges of clusters then have other maximum dimensions, and BLAS other blocks."""
        rng = np.random.default_rng(1)
        if kind == "hubs":
            graph = nx.barabasi_albert_graph(400, 2, seed=1)
            dims, heights = rng.integers(1, 6, 400), rng.integers(1, 4, graph.number_of_edges())
            F = sc.CellularSheaf.random(graph, dims, heights, seed=1)
        elif kind == "components":
            F = sc.CellularSheaf.constant(nx.gnm_random_graph(1500, 1700, seed=1), dim=2)
        else:
            trees = [nx.random_labeled_tree(500, seed=seed) for seed in range(10)]
            F = sc.CellularSheaf.random(nx.disjoint_union_all(trees), 3, 3, seed=1)
        x, found = rng.standard_normal((F.dim_c0, 3)), []
        for threads in (1, 2, 3):
            monkeypatch.setattr("sheafcoarsen._support.threads.thread_count", lambda n=threads: n)
            with single_threaded_blas() if threads == 1 else contextlib.nullcontext():
                S, y = sc.global_sections(F), sc.nearest_section(F, x)
            items = (S.toarray(), S.largest_zero, S.smallest_nonzero, S.residual, y)
            found.append([np.asarray(item).tobytes() for item in items])
        assert found[0] == found[1] == found[2]

    def test_dense_decompositions_do_not_depend_on_the_number_of_threads(self):
        """Dense code limits BLAS itself, so other callers make no difference."""
        F = sc.gallery.bundle(nx.grid_2d_graph(16, 16), 3, 0.1, seed=5)
        C = sc.coarsen(F, sc.Partition(np.arange(256) // 16), 3)
        one = sc.gallery.bundle(nx.grid_2d_graph(16, 16), 3, seed=5)
        found = []
        for inside in (True, False):
            with single_threaded_blas() if inside else contextlib.nullcontext():
                quality, sections = sc.spectral_quality(C, 4), sc.global_sections(one)
            items = (*vars(quality).values(), sections.residual, sections.basis)
            found.append([np.asarray(item).tobytes() for item in items])
        assert found[0] == found[1]
