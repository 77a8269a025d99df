"""The limit of one BLAS thread: interrupts, forks, libraries with a thread count per thread."""

import os
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

from sheafcoarsen._support import run_ranges, single_threaded_blas, threads


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
    shared, own = (
        Library(name == "shared", call if name == interrupted else None)
        for name in ("shared", "own")
    )
    monkeypatch.setattr(threads, "_libraries", lambda: [shared, own])
    with pytest.raises(KeyboardInterrupt), single_threaded_blas():  # noqa: PT012
        assert call == 2  # otherwise the interrupt occurred earlier
        assert (shared.get(), own.get()) == (1, 1)
    assert (shared.get(), own.get()) == (5, 5)
    with single_threaded_blas():
        assert (shared.get(), own.get()) == (1, 1)
    assert (shared.get(), own.get()) == (5, 5)


def test_interrupt_of_one_caller_does_not_release_other_callers(monkeypatch):
    library = Library(True, 2)
    monkeypatch.setattr(threads, "_libraries", lambda: [library])
    with single_threaded_blas():
        with pytest.raises(KeyboardInterrupt), single_threaded_blas():
            raise AssertionError("not reached")
        assert library.get() == 1
    assert library.get() == 5


@pytest.mark.parametrize("shared", [True, False])
def test_shared_thread_counts_are_detected(shared):
    library = Library(shared)
    controller = types.SimpleNamespace(
        get_num_threads=library.get, set_num_threads=library.set, internal_api="mkl"
    )
    assert threads._library(controller).shared == shared
    assert library.get() == 5


def test_decorator_limits_blas_in_each_call(monkeypatch):
    library = Library(True)
    monkeypatch.setattr(threads, "_libraries", lambda: [library])

    @single_threaded_blas()
    def depth(n):
        """Say how deep."""
        assert library.get() == 1
        return 0 if n == 0 else 1 + depth(n - 1)

    assert depth(3) == 3
    assert library.get() == 5
    assert (depth.__name__, depth.__doc__) == ("depth", "Say how deep.")


def test_worker_threads_limit_their_own_thread_count(monkeypatch):
    monkeypatch.setattr("sheafcoarsen._support.threads.thread_count", lambda: 4)
    own = Library(False)
    monkeypatch.setattr(threads, "_libraries", lambda: [own])
    meet = threading.Barrier(2, timeout=20)  # so that a second thread takes part

    def work(lo, hi):
        if lo == 0 or hi == 64:
            meet.wait()
        return own.get()

    with single_threaded_blas():
        assert set(run_ranges(work, np.ones(64))) == {1}
        assert own.get() == 1
    assert own.get() == 5
    assert set(run_ranges(work, np.ones(64))) == {5}


AFTER_A_FORK = """
import os, threading
from sheafcoarsen._support import single_threaded_blas, threads

class Library:
    shared, count = True, 5
    def get(self): return self.count
    def set(self, count): self.count = count

library = Library()
threads._libraries = lambda: [library]
inside, leave = threading.Event(), threading.Event()

def other():
    with single_threaded_blas():
        inside.set()
        leave.wait(20)

thread = threading.Thread(target=other)
thread.start()
inside.wait(20)
child = os.fork()
if child == 0:  # the other thread is not here, and nobody holds
    good = library.count == 5
    with single_threaded_blas():
        good = good and library.count == 1
    os._exit(0 if good and library.count == 5 else 1)
status = os.waitpid(child, 0)[1]
leave.set()
thread.join()
assert status == 0 and library.count == 5
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_releases_the_limits_of_other_threads():
    subprocess.run([sys.executable, "-W", "ignore", "-c", AFTER_A_FORK], check=True, timeout=120)
