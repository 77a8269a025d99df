"""Parallel loops over ranges of items."""

import contextlib
import importlib.util
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from threading import Thread
from typing import Any

import numba
import numpy as np
import tqdm

from sheafcoarsen._support.blas import is_held, single_threaded_blas

CHUNKS_PER_THREAD = 8
"""Number of ranges per thread.

It is large enough to balance items of unequal cost, and small enough that the overhead of a call,
about 10 us, does not matter.
"""


_limit: ContextVar[int | None] = ContextVar("threads", default=None)


def thread_count() -> int:
    """Return the number of threads that numba is set to use, at most the `thread_limit`."""
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

    thread = Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():  # wakes up, as the system may give the signal to another thread
        thread.join(0.1)
    return result.result()


def _dismiss(pool: ThreadPoolExecutor, waiting: deque) -> None:
    """Wait for the current ranges of all threads; if interrupted, drop the waiting ranges."""
    interrupt = None
    while True:
        try:
            pool.shutdown()
            break
        except KeyboardInterrupt as error:
            waiting.clear()
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
    threads = thread_count() if total[-1] >= serial_below else 1
    n_ranges = min(n_items, threads * CHUNKS_PER_THREAD if threads > 1 or progress else 1)
    # same dtype as `total`, because searchsorted would otherwise convert all of `total`
    targets = (float(total[-1]) * np.arange(1, n_ranges) / n_ranges).astype(total.dtype)
    bounds = np.unique(np.concatenate([[0], np.searchsorted(total, targets), [n_items]]))
    pieces = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    waiting = deque(enumerate(pieces))
    results: list = [None] * len(pieces)
    finished: deque = deque()

    def drain(shown: tqdm.tqdm | None = None) -> None:
        try:
            while True:
                try:
                    k, (lo, hi) = waiting.popleft()
                except IndexError:
                    return
                results[k] = work(lo, hi)
                finished.append(hi - lo)
                if shown is not None:
                    while finished:
                        shown.update(finished.popleft())
        except BaseException:
            waiting.clear()  # the other threads stop after their current range
            raise

    def help_out() -> None:
        with hold():
            drain()

    hold = single_threaded_blas if is_held() else contextlib.nullcontext
    with bar(n_items, description, progress) as shown:
        if threads == 1 or len(pieces) == 1:
            drain(shown)
            return results
        # submit one task fewer than threads, because the calling thread works too
        pool = ThreadPoolExecutor(threads)
        try:
            others = [pool.submit(help_out) for _ in range(min(threads, len(pieces)) - 1)]
            drain(shown)
            for other in others:
                other.result()
        except BaseException:
            waiting.clear()  # `drain` does not clear it if an interrupt comes earlier
            raise
        finally:
            _dismiss(pool, waiting)
        while finished:
            shown.update(finished.popleft())
    return results


def bar(total: int, description: str, show: bool) -> tqdm.tqdm:
    """Return a progress bar over ``total`` steps, disabled unless ``show``."""
    if not show:
        return tqdm.tqdm(total=total, disable=True)
    # the notebook version needs ipywidgets, and warns without them
    if importlib.util.find_spec("ipywidgets") is None:
        return tqdm.tqdm(total=total, desc=description)
    from tqdm import auto  # imported late: it searches for a notebook, which is slow

    return auto.tqdm(total=total, desc=description)
