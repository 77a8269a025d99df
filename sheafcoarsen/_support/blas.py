"""Keeps BLAS to one thread: where our own threads call it, and wherever results depend on it.

Decompositions round differently with the number of threads, and with many small matrices threads
only wait for each other. So whatever calls LAPACK holds BLAS, and results are the same bits from
any thread and with any number of callers.

Two things make this harder than it looks. The thread count of most libraries belongs to the whole
process, so that callers from several threads must share one note of what it was. And threadpoolctl
(from 3.7 on) lets only one thread of the process set it for OpenBLAS, the first that ever tried;
called from another, its ``set_num_threads`` does nothing. So OpenBLAS's own function is called
here, under a lock of our own.
"""

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

Given = ParamSpec("Given")
Result = TypeVar("Result")


class _Library(NamedTuple):
    """A BLAS library that is loaded."""

    get: Callable[[], int]
    set: Callable[[int], Any]
    shared: bool  # one count for the whole process, rather than one for each thread


class _Hold:
    """Who needs one thread, and what the counts were before the first of them came."""

    def __init__(self) -> None:
        self.users: set = set()
        self.before: list[tuple[_Library, int]] | None = None

    def take(self, user: object, libraries: list[_Library]) -> None:
        """Set all counts to one; noted before anything changes, because an interrupt may come."""
        self.users.add(user)
        if self.before is None:
            self.before = [(library, library.get()) for library in libraries]
        for library, _ in self.before:
            library.set(1)

    def give_back(self, user: object) -> None:
        """Restore the counts when nobody needs one thread any more; to repeat it does no harm."""
        self.users.discard(user)
        if not self.users and self.before is not None:
            for library, count in self.before:
                library.set(count)
            self.before = None


class _OfThread(threading.local):
    """A hold of each thread's own."""

    def __init__(self) -> None:
        self.hold = _Hold()


_lock = threading.Lock()

_process = _Hold()  # touched with the lock only

_thread = _OfThread()


class single_threaded_blas:  # noqa: N801 (used like a function)
    """Hold BLAS at one thread while any caller is inside, from whatever threads they come.

    The last one to leave restores the counts, also on errors and interrupts. As a decorator,
    ``@single_threaded_blas()``, it is entered anew by each call.
    """

    def __call__(self, function: Callable[Given, Result]) -> Callable[Given, Result]:
        """Decorate a function; one that warns had better use ``with``, for its stack level."""

        @functools.wraps(function)
        def held(*args: Given.args, **options: Given.kwargs) -> Result:
            with single_threaded_blas():
                return function(*args, **options)

        return held

    def __enter__(self) -> None:
        try:
            libraries = _libraries()
            with _lock:
                _process.take(self, [library for library in libraries if library.shared])
            _thread.hold.take(self, [library for library in libraries if not library.shared])
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        interrupted = None
        while True:
            try:
                _thread.hold.give_back(self)
                with _lock:
                    _process.give_back(self)
                break
            except KeyboardInterrupt as error_within:
                interrupted = error_within
        if interrupted is not None:
            raise interrupted


def is_held() -> bool:
    """Tell whether this thread is inside, so that threads that it starts should be, too."""
    return bool(_thread.hold.users)


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
    """Try whether a count set in one thread is seen in another; libraries and versions differ."""
    before = controller.get_num_threads()
    if before == 1:
        return True  # nothing to hold
    thread = threading.Thread(target=controller.set_num_threads, args=(1,))
    thread.start()
    thread.join()
    shared = controller.get_num_threads() != before
    if shared:
        controller.set_num_threads(before)
    return shared


def _forget() -> None:
    """Start afresh after a fork, in which only one thread goes on: the others will not leave."""
    global _lock, _process
    left, _lock, _process = _process, threading.Lock(), _Hold()
    for library, count in left.before or []:
        library.set(count)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
