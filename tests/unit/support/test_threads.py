"""Parallel loops, and the limit of one BLAS thread; tests/robustness has real libraries."""

import importlib.util
import os
import threading
import time
import types

import numba
import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (loads scipy's own BLAS)
from hypothesis import given
from hypothesis import strategies as st

from sheafcoarsen._support import threads
from sheafcoarsen._support.threads import thread_count, thread_limit
from tests.support.strategies import examples


@pytest.fixture
def four_threads(monkeypatch):
    monkeypatch.setattr("sheafcoarsen._support.threads.thread_count", lambda: 4)


@given(
    st.lists(st.integers(0, 1000), max_size=60),
    st.sampled_from([1, 3]),
    st.sampled_from([0.0, 500.0, np.inf]),
    st.booleans(),
    st.sampled_from([None, np.int64, np.float64]),
)
@examples(120)
def test_each_item_is_processed_once_and_results_are_ordered(cost, count, below, progress, sums):
    """Costs are passed one by one or as cumulative sums of some type, for the same ranges."""
    done, given = [], np.array(cost)
    if sums is not None:
        given = np.concatenate([[0], np.cumsum(cost)]).astype(sums)

    def work(lo, hi):
        done.extend(range(lo, hi))
        return lo, hi

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "thread_count", lambda: count)
        options = {"serial_below": below, "progress": progress}
        ranges = threads.run_ranges(work, given, cumulative=sums is not None, **options)
        assert sorted(done) == list(range(len(cost)))
        assert [i for lo, hi in ranges for i in range(lo, hi)] == list(range(len(cost)))
        assert all(lo < hi for lo, hi in ranges)
        if sums != np.int64:  # which rounds the bounds
            assert ranges == threads.run_ranges(work, np.array(cost), **options)


def test_small_loops_run_in_the_calling_thread(four_threads):
    callers = set()

    def work(lo, hi):
        callers.add(threading.get_ident())
        return lo, hi

    assert threads.run_ranges(work, np.ones(64), serial_below=65.0) == [(0, 64)]
    assert callers == {threading.get_ident()}
    threads.run_ranges(work, np.ones(64), serial_below=64.0)
    assert callers != {threading.get_ident()}


def test_ranges_have_about_equal_cost(four_threads):
    cost = np.concatenate([np.full(100, 100.0), np.ones(5000)])
    pieces = threads.run_ranges(lambda lo, hi: (lo, hi), cost)
    assert 16 <= len(pieces) <= 64  # enough ranges to balance, few enough for a small overhead
    shares = [cost[lo:hi].sum() for lo, hi in pieces]
    assert max(shares) <= cost.sum() / len(pieces) + cost.max()


def test_errors_cancel_ranges_that_have_not_begun(four_threads):
    begun, failing = [], threading.Event()

    def work(lo, hi):
        begun.append(lo)
        if lo == 0:
            failing.set()
            raise KeyboardInterrupt
        failing.wait(20)
        time.sleep(0.05)  # the error has been raised

    with pytest.raises(KeyboardInterrupt):
        threads.run_ranges(work, np.ones(3200))
    assert len(begun) < 4 * threads.CHUNKS_PER_THREAD
    assert sum(threads.run_ranges(lambda lo, hi: hi - lo, np.ones(8))) == 8  # no thread is left


@pytest.mark.parametrize("serial_below", [0.0, np.inf], ids=["threads", "serial"])
def test_error_in_one_range_is_raised_to_the_caller(four_threads, serial_below):
    def work(lo, hi):
        if lo <= 40 < hi:
            raise KeyError("item 40")

    with pytest.raises(KeyError, match="item 40"):
        threads.run_ranges(work, np.ones(64), serial_below=serial_below)


def test_thread_count_follows_numba_and_its_limit(monkeypatch):
    for setting, count in ((0, 1), (4, 4)):
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", setting)
        assert thread_count() == count
    with thread_limit(2):
        assert thread_count() == 2
        with thread_limit(None):
            assert thread_count() == 4
        assert thread_count() == 2
    assert thread_count() == 4


@pytest.mark.parametrize("ipywidgets", [True, False])
def test_progress_bars_are_shown_only_on_request(ipywidgets, four_threads, capsys, monkeypatch):
    """Without ipywidgets they are plain."""
    if not ipywidgets:
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for progress in (False, True):
        threads.run_ranges(lambda lo, hi: None, np.ones(9), description="a loop", progress=progress)
        out, shown = capsys.readouterr()
        assert out == ""
        assert [text in shown for text in ("a loop: 100%", "9/9")] == [progress, progress]
        assert bool(shown) == progress


class Library:
    """Fake BLAS library with one thread count for the process, or one per thread."""

    def __init__(self, shared, interrupted_at=None):
        self.own = types.SimpleNamespace() if shared else threading.local()
        self.shared, self.calls, self.interrupted_at = shared, 0, interrupted_at

    def get(self):
        return getattr(self.own, "count", 5)

    def set(self, count):
        self.calls += 1
        if self.calls == self.interrupted_at:
            raise KeyboardInterrupt
        self.own.count = count


@pytest.mark.parametrize("interrupted", ["shared", "own"])
@pytest.mark.parametrize("call", [1, 2])
def test_interrupts_restore_thread_counts(monkeypatch, interrupted, call):
    """The interrupt may occur while the block is entered or left."""
    at = {"shared": None, "own": None, interrupted: call}
    shared, own = Library(True, at["shared"]), Library(False, at["own"])
    monkeypatch.setattr(threads, "_libraries", lambda: [shared, own])
    with pytest.raises(KeyboardInterrupt), threads.single_threaded_blas():  # noqa: PT012
        assert call == 2  # otherwise the interrupt occurred earlier
        assert (shared.get(), own.get()) == (1, 1)
    assert (shared.get(), own.get()) == (5, 5)
    with threads.single_threaded_blas():
        assert (shared.get(), own.get()) == (1, 1)
    assert (shared.get(), own.get()) == (5, 5)


def test_interrupt_of_one_caller_does_not_release_other_callers(monkeypatch):
    library = Library(True, 2)
    monkeypatch.setattr(threads, "_libraries", lambda: [library])
    with threads.single_threaded_blas():
        with pytest.raises(KeyboardInterrupt), threads.single_threaded_blas():
            raise AssertionError("not reached")
        assert library.get() == 1
    assert library.get() == 5


@pytest.mark.parametrize("shared", [True, False])
def test_shared_thread_counts_are_detected(shared):
    library = Library(shared)
    controller = types.SimpleNamespace(internal_api="mkl")
    controller.get_num_threads, controller.set_num_threads = library.get, library.set
    assert (threads._library(controller).shared, library.get()) == (shared, 5)


def test_worker_threads_limit_their_own_thread_count(four_threads, monkeypatch):
    own = Library(False)
    monkeypatch.setattr(threads, "_libraries", lambda: [own])
    meet = threading.Barrier(2, timeout=20)  # so that a second thread takes part

    def work(lo, hi):
        if lo == 0 or hi == 64:
            meet.wait()
        return own.get()

    with threads.single_threaded_blas():
        assert set(threads.run_ranges(work, np.ones(64))) == {1}
        assert own.get() == 1
    assert own.get() == 5
    assert set(threads.run_ranges(work, np.ones(64))) == {5}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_fork_releases_the_limits_of_other_threads(monkeypatch):
    library, inside, leave = Library(True), threading.Event(), threading.Event()
    monkeypatch.setattr(threads, "_libraries", lambda: [library])

    def other():
        with threads.single_threaded_blas():
            inside.set()
            leave.wait(20)

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(20)
    child = os.fork()
    if child == 0:  # the other thread is not here, and nobody holds
        found = [library.get()]
        try:
            with threads.single_threaded_blas():
                found.append(library.get())
        finally:
            os._exit(0 if [*found, library.get()] == [5, 1, 5] else 1)
    status = os.waitpid(child, 0)[1]
    leave.set()
    thread.join()
    assert (status, library.get()) == (0, 5)
