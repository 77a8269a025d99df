"""Parallel loops over ranges: each item once, results in order, errors raised to the caller."""

import importlib.util
import threading
import time

import numba
import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (loads scipy's own BLAS)
from hypothesis import given
from hypothesis import strategies as st

from sheafcoarsen._support import bar, run_ranges
from sheafcoarsen._support import threads as threads_module
from sheafcoarsen._support.threads import thread_count, thread_limit


@pytest.fixture
def four_threads(monkeypatch):
    monkeypatch.setattr("sheafcoarsen._support.threads.thread_count", lambda: 4)


@given(
    st.lists(st.integers(0, 1000), max_size=60),
    st.sampled_from([1, 3]),
    st.sampled_from([0.0, 500.0, np.inf]),
    st.booleans(),
)
def test_each_item_is_processed_once_and_results_are_ordered(cost, threads, serial_below, progress):
    done = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads_module, "thread_count", lambda: threads)
        results = run_ranges(
            lambda lo, hi: done.extend(range(lo, hi)) or list(range(lo, hi)),
            np.array(cost),
            serial_below=serial_below,
            progress=progress,
        )
    assert sorted(done) == list(range(len(cost)))
    assert [i for piece in results for i in piece] == list(range(len(cost)))
    assert all(piece for piece in results)


def test_ranges_run_in_parallel(four_threads):
    meet = threading.Barrier(2, timeout=20)  # breaks unless two ranges are inside at once

    def work(lo, hi):
        if lo == 0 or hi == 64:
            meet.wait()

    # the first range waits for the last: 32 ranges, 4 at a time, so the others must pass by
    run_ranges(work, np.ones(64))


def test_small_loops_run_in_the_calling_thread(four_threads):
    threads = set()

    def work(lo, hi):
        threads.add(threading.get_ident())
        return lo, hi

    assert run_ranges(work, np.ones(64), serial_below=65.0) == [(0, 64)]
    assert threads == {threading.get_ident()}
    run_ranges(work, np.ones(64), serial_below=64.0)
    assert threads != {threading.get_ident()}


def test_ranges_have_about_equal_cost(four_threads):
    cost = np.concatenate([np.full(100, 100.0), np.ones(5000)])
    pieces = run_ranges(lambda lo, hi: (lo, hi), cost)
    assert 16 <= len(pieces) <= 64  # enough ranges to balance, few enough for a small overhead
    shares = [cost[lo:hi].sum() for lo, hi in pieces]
    assert max(shares) <= cost.sum() / len(pieces) + cost.max()


@given(st.lists(st.integers(0, 1000), max_size=60), st.sampled_from([np.int64, np.float64]))
def test_cumulative_costs_give_the_same_ranges(cost, dtype):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads_module, "thread_count", lambda: 3)
        by_cost = run_ranges(lambda lo, hi: (lo, hi), np.array(cost))
        starts = np.concatenate([[0], np.cumsum(cost)]).astype(dtype)
        by_offsets = run_ranges(lambda lo, hi: (lo, hi), starts, cumulative=True)
    ends = [hi for _, hi in by_offsets]
    assert [lo for lo, _ in by_offsets] == [0, *ends[:-1]][: len(ends)]
    assert ends[-1:] == ([len(cost)] if cost else [])
    if dtype == np.float64:
        assert by_offsets == by_cost


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
        run_ranges(work, np.ones(3200))
    assert len(begun) < 4 * threads_module.CHUNKS_PER_THREAD
    assert sum(run_ranges(lambda lo, hi: hi - lo, np.ones(8))) == 8  # no thread is left


@pytest.mark.parametrize("serial_below", [0.0, np.inf], ids=["threads", "serial"])
def test_error_in_one_range_is_raised_to_the_caller(four_threads, serial_below):
    def work(lo, hi):
        if lo <= 40 < hi:
            raise KeyError("item 40")

    with pytest.raises(KeyError, match="item 40"):
        run_ranges(work, np.ones(64), serial_below=serial_below)


def test_thread_count_follows_numba(monkeypatch):
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 7)
    assert thread_count() == 7
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 0)
    assert thread_count() == 1


def run(show):
    with bar(3, "local modes", show) as progress:
        for _ in range(3):
            progress.update()


def test_progress_bar_is_shown_only_on_request(capsys):
    run(False)
    assert capsys.readouterr() == ("", "")
    run(True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "local modes: 100%" in shown.err
    assert "3/3" in shown.err


def test_progress_bar_is_plain_without_ipywidgets(capsys, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    run(True)
    assert "local modes: 100%" in capsys.readouterr().err


def test_thread_limit_ends_with_its_block(monkeypatch):
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 4)
    with thread_limit(2):
        assert thread_count() == 2
        with thread_limit(None):
            assert thread_count() == 4
        assert thread_count() == 2
    assert thread_count() == 4
