"""Parallel loops over ranges of items, and a limit of one thread for BLAS.

Decompositions round differently with the number of threads of BLAS, and for many small matrices
threads only wait for each other. So code that calls LAPACK limits BLAS, and the bits of results do
not depend on the thread or the number of callers. Exceptions are small matrices, as in
synchronization, and layouts of pictures.

There are two difficulties. The thread count of most libraries is global to the process, so callers
from several threads must store its old value together. And threadpoolctl (3.7 and later) can set it
for OpenBLAS only from the first thread of the process that ever did; from others
``set_num_threads`` has no effect. So OpenBLAS's function is called directly here, under a lock.
"""

import contextlib
import functools
import importlib.util
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, NamedTuple

import numba
import numpy as np
import tqdm
from threadpoolctl import ThreadpoolController

CHUNKS_PER_THREAD = 8
"""Number of ranges per thread.

It is large enough to balance items of unequal cost, and small enough that the overhead of a call,
about 10 us, does not matter.
"""


_limit: ContextVar[int | None] = ContextVar("threads", default=None)


def thread_count() -> int:
    """Return numba's setting NUMBA_NUM_THREADS, or the `thread_limit` if that is smaller."""
    count = max(1, int(numba.config.NUMBA_NUM_THREADS))
    limit = _limit.get()
    return count if limit is None else min(count, limit)


@contextlib.contextmanager
def thread_limit(limit: int | None) -> Iterator[None]:
    """Limit the threads that calls from this thread use in the block; None means no limit."""
    token = _limit.set(limit)
    try:
        yield
    finally:
        _limit.reset(token)


def interruptible(work: Callable, *args: Any, **options: Any) -> Any:
    """Return ``work(...)``, computed in another thread so that Ctrl-C takes effect at once."""
    result: Future = Future()

    def run() -> None:
        try:
            result.set_result(work(*args, **options))
        except BaseException as error:
            result.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():  # wakes up, as the system may give the signal to another thread
        thread.join(0.1)
    return result.result()


def _completed(*steps: Callable[[], object]) -> None:
    """Take all steps until none is interrupted, then raise the last interrupt."""
    interrupt = None
    while True:
        try:
            for step in steps:
                step()
            break
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def run_ranges(
    work: Callable[[int, int], Any],
    cost: np.ndarray,
    *,
    cumulative: bool = False,
    serial_below: float = 0.0,
    description: str = "",
    progress: bool = False,
) -> list:
    """Call ``work(lo, hi)`` on ranges that cover all items; return the results in order.

    ``work`` must release the GIL to run in parallel, and write only to entries of its items. Ranges
    have about equal costs; ``cost`` has one number per item, or is their n + 1 cumulative sums if
    ``cumulative``. If the total is below ``serial_below``, the calling thread processes all items.
    """
    n_items = len(cost) - cumulative
    if n_items <= 0:
        return []
    total = cost[1:] if cumulative else np.cumsum(cost, dtype=np.float64)
    threads = thread_count() if n_items > 1 and total[-1] >= serial_below else 1
    if threads == 1 and not progress:
        return [work(0, n_items)]
    n_ranges = min(n_items, threads * CHUNKS_PER_THREAD)
    # same dtype as `total`, because searchsorted would otherwise convert all of `total`
    targets = (float(total[-1]) * np.arange(1, n_ranges) / n_ranges).astype(total.dtype)
    bounds = np.unique(np.concatenate([[0], np.searchsorted(total, targets), [n_items]]))
    pieces = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    waiting = deque(enumerate(pieces))
    results: list = [None] * len(pieces)
    finished: deque = deque()

    # if this thread has limited BLAS, then the threads that it starts must limit it too
    hold = single_threaded_blas if _thread.users else contextlib.nullcontext

    def drain(shown: tqdm.tqdm | None = None) -> None:
        try:
            with hold():
                while True:
                    try:
                        k, (lo, hi) = waiting.popleft()
                    except IndexError:
                        return
                    results[k] = work(lo, hi)
                    finished.append(hi - lo)
                    while shown is not None and finished:
                        shown.update(finished.popleft())
        except BaseException:
            waiting.clear()  # the other threads stop after their current range
            raise

    with bar(n_items, description, progress) as shown:
        # submit one task fewer than threads, because the calling thread works too
        pool = ThreadPoolExecutor(threads)
        try:
            others = [pool.submit(drain) for _ in range(min(threads, len(pieces)) - 1)]
            drain(shown)
            for other in others:
                other.result()
        finally:
            # `waiting` is not empty if an interrupt came before or after `drain`
            _completed(waiting.clear, pool.shutdown)
        while finished:
            shown.update(finished.popleft())
    return results


def bar(total: int, description: str, show: bool) -> tqdm.tqdm:
    """Return a progress bar over ``total`` steps, disabled unless ``show``."""
    # the notebook version needs ipywidgets, and warns without them
    if show and importlib.util.find_spec("ipywidgets") is not None:
        from tqdm import auto  # imported late: it searches for a notebook, which is slow

        return auto.tqdm(total=total, desc=description)
    return tqdm.tqdm(total=total, desc=description, disable=not show)


# ---------------------------------------------------------------- BLAS


class _Library(NamedTuple):
    """A loaded BLAS library."""

    get: Callable[[], int]
    set: Callable[[int], Any]
    shared: bool  # whether all threads of the process share one thread count


class _Hold:
    """Current users of single-threaded BLAS, and the thread counts to restore after the last."""

    shared = True  # of libraries in which all threads share one thread count

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users: set = set()
        self.before: list[tuple[_Library, int]] | None = None

    def take(self, user: object) -> None:
        """Add a user, record the thread counts before the first user, and set them to one."""
        with self.lock:
            self.users.add(user)
            if self.before is None:
                libraries = [library for library in _libraries() if library.shared == self.shared]
                self.before = [(library, library.get()) for library in libraries]
            for library, _ in self.before:
                library.set(1)

    def give_back(self, user: object) -> None:
        """Remove a user, and restore the counts after the last; repeated calls do nothing."""
        with self.lock:
            self.users.discard(user)
            if not self.users and self.before is not None:
                for library, count in self.before:
                    library.set(count)
                self.before = None


class _HoldOfThread(_Hold, threading.local):
    """One `_Hold` per thread, for BLAS libraries in which each thread has its own thread count."""

    shared = False


_process, _thread = _Hold(), _HoldOfThread()


@contextlib.contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread while any caller, in any thread, is inside the block.

    The last caller restores the counts, also after errors and interrupts. As a decorator,
    ``@single_threaded_blas()``, it applies to each call; use ``with`` in functions that warn,
    because a wrapper adds a stack level.
    """
    user = object()

    def leave() -> None:
        _thread.give_back(user)
        _process.give_back(user)

    try:
        _process.take(user)
        _thread.take(user)
        yield
    finally:
        _completed(leave)


@functools.cache
def _libraries() -> list[_Library]:
    return [_library(c) for c in ThreadpoolController().select(user_api="blas").lib_controllers]


def _library(controller: Any) -> _Library:
    """Wrap a threadpoolctl controller; find out whether all threads share its thread count."""
    get, set_count = controller.get_num_threads, controller.set_num_threads
    if controller.internal_api == "openblas" and controller.threading_layer != "openmp":
        names = itertools.product(("", "scipy_"), ("openblas_set_num_threads",), ("", "64_", "_64"))
        for name in map("".join, names):
            if hasattr(controller.dynlib, name):
                return _Library(get, getattr(controller.dynlib, name), shared=True)
    before = get()
    if before == 1:  # setting 1 would show nothing, and a common lock is always safe
        return _Library(get, set_count, shared=True)
    thread = threading.Thread(target=set_count, args=(1,))
    thread.start()
    thread.join()
    shared = get() != before
    if shared:
        set_count(before)
    return _Library(get, set_count, shared)


def _forget() -> None:
    """Restore BLAS thread counts after a fork; the child lacks the threads that would do it."""
    global _process
    left, _process = _process, _Hold()
    for library, count in left.before or []:
        library.set(count)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
