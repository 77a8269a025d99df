"""The write lock: only one run writes to a store at a time."""

import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from sheafcoarsen.distributed import write_lock
from sheafcoarsen.distributed.location import Place, place_of


@pytest.fixture
def place(memory):
    return place_of(memory("out")) / "work/lock"


def refused(place, message):
    with pytest.raises(BlockingIOError, match=message):
        write_lock.exclusive(place).__enter__()


HOLD = """
import sys, time
from sheafcoarsen.distributed.write_lock import exclusive
from sheafcoarsen.distributed.location import place_of
with exclusive(place_of(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_process_holds_the_lock_until_it_dies(url):
    place = place_of(url("out")) / "work/lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, place.url], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        refused(place, "out: another run is writing there")
        other.kill()
        other.wait()
        with write_lock.exclusive(place):
            pass


def test_leases_are_held_and_renewed_and_released(place, monkeypatch):
    monkeypatch.setattr(write_lock, "RENEWAL", 0.02)
    with write_lock.exclusive(place):
        refused(place, r"process \d+ on .* last seen 0 s ago")
        begin = place.modified()
        deadline = time.monotonic() + 10
        while place.modified() == begin:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert place.find() is None
    with write_lock.exclusive(place):
        pass


def test_a_lease_that_another_run_took_is_not_taken_back(place, monkeypatch):
    """It was not renewed in time, for example because the process was suspended."""
    monkeypatch.setattr(write_lock, "RENEWAL", 0.01)
    with write_lock.exclusive(place):
        place.put(b"another")
        time.sleep(0.1)
        assert place.get() == b"another"
    assert place.get() == b"another"


@pytest.mark.parametrize("content", [b"it\nanother", b"", b'{"holder": "of another version"}'])
def test_expired_leases_are_ignored(content, place, memory):
    """The age of a lease is measured by the file system's clock, whatever its content is."""
    place.put(content)
    written_ago(place, write_lock.LEASE - 2)
    refused(place, "last seen 8[789] s ago; if it died, its lease expires 90 s")
    assert (place_of(memory("out")) / "work").names() == {"lock"}
    written_ago(place, write_lock.LEASE + 1)
    with write_lock.exclusive(place):
        assert place.get() != content


def written_ago(place, seconds):
    fs, path = place.file_system()
    fs.store[path].modified = datetime.now(UTC) - timedelta(seconds=seconds)


def test_without_modification_times_the_lease_must_be_removed_by_hand(place, monkeypatch):
    place.put(b"it\nanother")

    def modified(*_):
        raise NotImplementedError

    monkeypatch.setattr(type(place.file_system()[0]), "modified", modified)
    refused(place, r"\(it, .*if it died, .* or remove memory://.*work/lock\)")


def test_of_two_simultaneous_leases_the_last_one_wins(url, monkeypatch):
    place = Place(f"file://{url('out')}/work/lock")  # a URL gets a lease instead of a system lock
    monkeypatch.setattr(write_lock.time, "sleep", lambda _: place.put(b"it"))
    with pytest.raises(BlockingIOError, match="another run"), write_lock.exclusive(place):
        pass
    assert place.get() == b"it"
