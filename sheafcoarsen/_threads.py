"""Runs ranges of items side by side, and keeps BLAS to one thread meanwhile."""

import contextlib
import functools
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
from threadpoolctl import ThreadpoolController

from sheafcoarsen._progress import bar

CHUNKS_PER_THREAD = 8
"""Ranges handed out per thread: enough to even out unequal clusters, few enough that a hand-over (about 10 us) is lost in them."""


def thread_count() -> int:
    """Return how many threads to use: ``NUMBA_NUM_THREADS`` where set, else the processors this process may use."""
    return max(1, int(numba.config.NUMBA_NUM_THREADS))


def run_ranges(
    work, cost, *, cumulative: bool = False, serial_below: float = 0.0, description: str = "", progress: bool = False
) -> list:
    """Call ``work(lo, hi)`` on consecutive ranges that cover all items and return the results in order.

    Parameters
    ----------
    work : callable
        Takes a range of items; must release the GIL to run side by side. What it writes belongs to its items alone, so
        that the result does not depend on the number of threads.
    cost : ndarray, shape (n_items,)
        Relative cost of each item; ranges get about equal shares.
    cumulative : bool
        Whether ``cost`` has shape (n_items + 1,) and holds offsets instead, the cost of item i being cost[i + 1] - cost[i].
    serial_below : float
        Total cost below which everything runs in the calling thread.
    """
    n_items = len(cost) - cumulative
    if n_items <= 0:
        return []
    total = cost[1:] if cumulative else np.cumsum(cost, dtype=np.float64)
    threads = thread_count() if total[-1] >= serial_below else 1
    n_ranges = min(n_items, threads * CHUNKS_PER_THREAD if threads > 1 or progress else 1)
    targets = (float(total[-1]) * np.arange(1, n_ranges) / n_ranges).astype(total.dtype)  # else all of total is cast
    bounds = np.unique(np.concatenate([[0], np.searchsorted(total, targets), [n_items]]))
    pieces = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    waiting = deque(enumerate(pieces))
    results: list = [None] * len(pieces)
    finished: deque = deque()

    def drain(shown=None):
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
            waiting.clear()  # the others stop after the range they are in
            raise

    with bar(n_items, description, progress) as shown:
        if threads == 1 or len(pieces) == 1:
            drain(shown)
            return results
        with ThreadPoolExecutor(threads) as pool:  # starts as many threads as there are tasks; this one works too
            others = [pool.submit(drain) for _ in range(min(threads, len(pieces)) - 1)]
            drain(shown)
            for other in others:
                other.result()
        while finished:
            shown.update(finished.popleft())
    return results


@functools.cache
def _blas_controller() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


_blas_lock = threading.Lock()
_blas_users = 0
_blas_limit = None


@contextlib.contextmanager
def single_threaded_blas():
    """Hold BLAS at one thread for as long as any caller is inside; restore it when the last one leaves, also on errors."""
    global _blas_users, _blas_limit
    with _blas_lock:
        if _blas_users == 0:
            _blas_limit = _blas_controller().limit(limits=1)
        _blas_users += 1
    try:
        yield
    finally:
        with _blas_lock:
            _blas_users -= 1
            if _blas_users == 0 and _blas_limit is not None:
                _blas_limit.restore_original_limits()
                _blas_limit = None
