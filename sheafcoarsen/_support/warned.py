"""Warnings that name the caller's line, and that a caller inside the package can collect.

``warnings.catch_warnings`` alters the filters of the process: two threads that use it at the same
time may silence all later warnings. So functions of the package that call others collect warnings
here, in a context variable of their thread.
"""

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from contextvars import ContextVar

# files of the package, and of context managers used as decorators
_INSIDE = os.path.join(os.path.dirname(os.path.dirname(__file__)), ""), contextlib.__file__
_collected: ContextVar[list[Warning] | None] = ContextVar("collected", default=None)


def warn(message: str, category: type[Warning]) -> None:
    """Issue a warning at the line that called the package, or append it to those collected."""
    collected = _collected.get()
    if collected is not None:
        collected.append(category(message))
        return
    frame, depth = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame, depth = frame.f_back, depth + 1
    warnings.warn(message, category, stacklevel=depth)


@contextlib.contextmanager
def collected() -> Iterator[list[Warning]]:
    """Collect the warnings of a block instead of issuing them."""
    said: list[Warning] = []
    token = _collected.set(said)
    try:
        yield said
    finally:
        _collected.reset(token)
