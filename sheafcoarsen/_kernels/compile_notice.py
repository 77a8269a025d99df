"""Log message that appears when the first calls of a process compile kernels.

It goes to standard error through :mod:`logging`. ``setLevel(logging.ERROR)`` of
``logging.getLogger("sheafcoarsen")`` silences it, and a handler of that logger redirects it.
"""

import logging
import threading
import time

from numba.core import event

PATIENCE = 0.5
"""Compilation time, in seconds, after which the message is logged."""

NOTICE = (
    "sheafcoarsen: compiling what this call needs, once for all later runs; the first coarsening "
    "takes a quarter of a minute, other first calls up to half a minute (ahead of time: "
    "`sheafcoarsen compile`)"
)

logger = logging.getLogger("sheafcoarsen")


class Notice(event.Listener):
    """Listener that logs one message per process when compiling begins after ``PATIENCE``."""

    def __init__(self):
        self.said = False
        self.spent = 0.0
        self.begun = []  # start times of running compilations, the outermost first
        self.lock = threading.Lock()

    def on_start(self, event):
        """Record the start of a compilation, and log the message once ``PATIENCE`` is used up.

        numba reports a compilation only if the cache has no code.
        """
        if self.said or not _is_ours(event):
            return
        with self.lock:
            now = time.perf_counter()
            waited = self.spent + (now - self.begun[0] if self.begun else 0.0)
            self.begun.append(now)
            if self.said or waited < PATIENCE:
                return
            self.said = True
        logger.warning(NOTICE)

    def on_end(self, event):
        """Add the duration of a compilation to the total if no other compilation encloses it."""
        with self.lock:
            if self.begun and _is_ours(event):
                begun = self.begun.pop()
                if not self.begun:
                    self.spent += time.perf_counter() - begun


def _is_ours(event) -> bool:
    return event.data["dispatcher"].py_func.__module__.startswith("sheafcoarsen.")


notice = Notice()
