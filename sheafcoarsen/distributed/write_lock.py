"""Exclusive write lock of a store."""

import contextlib
import math
import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator

from sheafcoarsen.distributed.location import Place

LEASE, RENEWAL = 90.0, 20.0
"""LEASE: seconds after which a lease expires. RENEWAL: seconds between renewals of a lease."""


@contextlib.contextmanager
def exclusive(place: Place) -> Iterator[None]:
    """Hold the write lock of a location: a system lock on a local disk, or else a renewed lease."""
    path = place.local_path
    if path is None:
        with _lease(place):
            yield
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "ab") as file:
        try:
            if sys.platform == "win32":
                import msvcrt

                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _refused(path, "") from None
        yield


def _refused(url: str, what: str) -> BlockingIOError:
    return BlockingIOError(
        f"{url.removesuffix('/work/lock')}: another run is writing there{what}: wait until it "
        f"ends, or pass another `out`"
    )


@contextlib.contextmanager
def _lease(place: Place) -> Iterator[None]:
    holder = f"process {os.getpid()} on {socket.gethostname()}"
    mine = f"{holder}\n{uuid.uuid4().hex}".encode()

    def check() -> None:
        held = place.find()
        if held in (None, mine):
            return
        if (age := age_of(place)) < LEASE:
            other = held.decode(errors="replace").partition("\n")[0]
            ends = f"if it died, remove {place.url}"
            if age > -math.inf:
                ends = (
                    f"last seen {max(age, 0):.0f} s ago; if it died, its lease expires "
                    f"{LEASE:.0f} s after that, or remove {place.url}"
                )
            raise _refused(place.url, f" ({other}; {ends})")

    check()
    place.put(mine)
    # another run may have checked at the same moment: the lease that was written last is valid
    if not place.url.startswith("memory://"):  # other processes cannot see memory
        time.sleep(1.0)  # wait until all runs can see the leases of others
    check()
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(RENEWAL):
            with contextlib.suppress(OSError):
                if place.find() in (None, mine):  # else it expired, and another run has begun
                    place.put(mine)

    keeper = threading.Thread(target=renew, daemon=True)
    keeper.start()
    try:
        yield
    finally:
        ended.set()
        keeper.join()
        if place.find() == mine:
            place.remove()


def age_of(place: Place) -> float:
    """Return the age of a file in seconds, by the file system's clock.

    It is inf if the file is missing, and -inf if the file system has no modification times.
    """
    now = Place(f"{place.url}-{uuid.uuid4().hex[:8]}", place.options)
    now.put(b"")
    try:
        fs, path = place.file_system()
        written = fs.modified(now.file_system()[1]) - fs.modified(path)
        return float(written.total_seconds())
    except FileNotFoundError:  # the lease was released in the meantime
        return math.inf
    except NotImplementedError:  # fsspec: the file system has no modification times
        return -math.inf
    finally:
        now.remove()
