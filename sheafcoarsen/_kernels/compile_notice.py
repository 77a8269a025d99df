"""One line on the terminal while kernels compile for the first time on a machine.

It goes through :mod:`logging` to standard error; ``logging.getLogger("sheafcoarsen")`` silences it
by ``setLevel(logging.ERROR)``, and a handler of one's own takes it elsewhere.
"""

import logging
import threading
import time

from numba.core import event

PATIENCE = 0.5
"""Seconds of compiling that are not worth a word."""

NOTICE = (
    "sheafcoarsen: compiling for this machine, once; the first coarsening takes a quarter of a "
    "minute, other first calls up to half a minute (ahead of time: `sheafcoarsen compile`)"
)

logger = logging.getLogger("sheafcoarsen")


class Notice(event.Listener):
    """Says once per process that this package's kernels are being compiled, and for how long."""

    def __init__(self):
        self.said = False
        self.spent = 0.0
        self.begun = []  # when compilations under way began, the outermost first
        self.lock = threading.Lock()

    def on_start(self, event):
        """Note a compilation, which numba reports only where no compiled code is on disk."""
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
        """Add up what the outermost compilations took."""
        with self.lock:
            if self.begun and _is_ours(event):
                begun = self.begun.pop()
                if not self.begun:
                    self.spent += time.perf_counter() - begun


def _is_ours(event) -> bool:
    return event.data["dispatcher"].py_func.__module__.startswith("sheafcoarsen.")


notice = Notice()


def watch() -> None:
    """Listen to numba from now on."""
    event.register("numba:compile", notice)
