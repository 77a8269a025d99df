"""Limit BLAS to one thread, for reproducible results and during parallel loops.

Decompositions round differently with the number of threads, and for many small matrices threads
only wait for each other. So all code that calls LAPACK limits BLAS, and the bits of results do not
depend on the thread or the number of callers.

There are two difficulties. The thread count of most libraries is global to the process, so callers
from several threads must store its old value together. And threadpoolctl (3.7 and later) can set it
for OpenBLAS only from the first thread of the process that ever did; from others
``set_num_threads`` has no effect. So OpenBLAS's function is called directly here, under a lock.
"""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from threadpoolctl import ThreadpoolController


class _Library(NamedTuple):
    """A loaded BLAS library."""

    get: Callable[[], int]
    set: Callable[[int], Any]
    shared: bool  # whether all threads of the process share one thread count


class _Hold:
    """Current users of single-threaded BLAS, and the thread counts to restore after the last."""

    def __init__(self) -> None:
        self.users: set = set()
        self.before: list[tuple[_Library, int]] | None = None

    def take(self, user: object, libraries: list[_Library]) -> None:
        """Add a user, record the thread counts before the first user, and set them to one."""
        self.users.add(user)
        if self.before is None:
            self.before = [(library, library.get()) for library in libraries]
        for library, _ in self.before:
            library.set(1)

    def give_back(self, user: object) -> None:
        """Remove a user, and restore the counts after the last; repeated calls do nothing."""
        self.users.discard(user)
        if not self.users and self.before is not None:
            for library, count in self.before:
                library.set(count)
            self.before = None


class _HoldOfThread(_Hold, threading.local):
    """One `_Hold` per thread, for BLAS libraries in which each thread has its own thread count."""


_lock = threading.Lock()

_process = _Hold()  # accessed only while `_lock` is held

_thread = _HoldOfThread()


@contextlib.contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread while any caller, in any thread, is inside the block.

    The last caller restores the counts, also after errors and interrupts. As a decorator,
    ``@single_threaded_blas()``, it applies to each call; use ``with`` in functions that warn,
    because a wrapper adds a stack level.
    """
    user = object()
    try:
        libraries = _libraries()
        with _lock:
            _process.take(user, [library for library in libraries if library.shared])
        _thread.take(user, [library for library in libraries if not library.shared])
        yield
    finally:
        interrupted = None
        while True:
            try:
                _thread.give_back(user)
                with _lock:
                    _process.give_back(user)
                break
            except KeyboardInterrupt as error:
                interrupted = error
        if interrupted is not None:
            raise interrupted


def is_held() -> bool:
    """Return whether this thread has limited BLAS; the threads that it starts must limit it too."""
    return bool(_thread.users)


@functools.cache
def _libraries() -> list[_Library]:
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return [_library(controller) for controller in found]


def _library(controller: Any) -> _Library:
    if controller.internal_api == "openblas" and controller.threading_layer != "openmp":
        for prefix in ("", "scipy_"):
            for suffix in ("", "64_", "_64"):
                name = f"{prefix}openblas_set_num_threads{suffix}"
                if hasattr(controller.dynlib, name):
                    setter = getattr(controller.dynlib, name)
                    return _Library(controller.get_num_threads, setter, shared=True)
    shared = _is_shared(controller)
    return _Library(controller.get_num_threads, controller.set_num_threads, shared)


def _is_shared(controller: Any) -> bool:
    """Return whether threads share one thread count, which depends on the library's version."""
    before = controller.get_num_threads()
    if before == 1:
        return True  # setting 1 shows nothing, and to share a lock is always right
    thread = threading.Thread(target=controller.set_num_threads, args=(1,))
    thread.start()
    thread.join()
    shared = controller.get_num_threads() != before
    if shared:
        controller.set_num_threads(before)
    return shared


def _forget() -> None:
    """Restore the counts after a fork, since threads of the parent do not exist in the child."""
    global _lock, _process
    left, _lock, _process = _process, threading.Lock(), _Hold()
    for library, count in left.before or []:
        library.set(count)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
