"""One run at a time."""

import subprocess
import sys
import time

import pytest

from sheafcoarsen.distributed import lock
from sheafcoarsen.distributed.place import Place, place_of

HOLD = """
import sys, time
from sheafcoarsen.distributed.lock import exclusive
from sheafcoarsen.distributed.place import place_of
with exclusive(place_of(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_another_process_holds_it_until_it_dies(url):
    place = place_of(url("out")) / "work/lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, place.url], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(BlockingIOError, match="out: another run is writing there"):
            lock.exclusive(place).__enter__()
        other.kill()
        other.wait()
        with lock.exclusive(place):
            pass


def test_a_lease_is_held_and_given_back(memory):
    place = place_of(memory("out")) / "work/lock"
    with (
        lock.exclusive(place),
        pytest.raises(BlockingIOError, match=r"process \d+ on .* last seen 0 s ago"),
    ):
        lock.exclusive(place).__enter__()
    assert not place.exists()
    with lock.exclusive(place):
        pass


def test_a_lease_that_nobody_renewed_is_void(memory):
    place = place_of(memory("out")) / "work/lock"
    place.note({"owner": "another", "holder": "it", "time": time.time() - lock.LEASE - 1})
    with lock.exclusive(place):
        assert place.read_note()["owner"] != "another"


def test_a_lease_is_renewed(memory, monkeypatch):
    monkeypatch.setattr(lock, "RENEWAL", 0.02)
    place = place_of(memory("out")) / "work/lock"
    with lock.exclusive(place):
        begin = place.read_note()["time"]
        deadline = time.monotonic() + 10
        while place.read_note()["time"] == begin:
            assert time.monotonic() < deadline
            time.sleep(0.02)


def test_of_two_at_the_same_moment_the_last_has_it(url, monkeypatch):
    place = Place(f"file://{url('out')}/work/lock")  # as an address, which gets a lease
    monkeypatch.setattr(
        lock.time,
        "sleep",
        lambda _: place.note({"owner": "another", "holder": "it", "time": time.time()}),
    )
    with pytest.raises(BlockingIOError, match="another run"), lock.exclusive(place):
        pass
    assert place.read_note()["owner"] == "another"
