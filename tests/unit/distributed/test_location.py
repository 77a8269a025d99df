"""Locations of stores, notes of earlier versions, and exclusive locks."""

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sheafcoarsen.distributed import write_lock
from sheafcoarsen.distributed.location import Place, checksum, place_of


def test_relative_paths_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert place_of("here").url == place_of(Path("here")).url == os.path.join(tmp_path, "here")
    assert place_of("file:///somewhere").local_path == "/somewhere"
    assert place_of("s3://bucket/name").url == "s3://bucket/name"
    assert place_of("s3://bucket/name").local_path is None
    assert (place_of("s3://bucket/name/") / "below").url == "s3://bucket/name/below"


def test_invalid_locations_raise():
    for bad in (3, None, b"path"):
        with pytest.raises(TypeError, match="`url` must be a path or a URL"):
            place_of(bad)
    with pytest.raises(ValueError, match="empty"):
        place_of("")
    with pytest.raises(ValueError, match="`out` = 'foo://x': fsspec has no protocol 'foo'"):
        place_of("foo://x", name="out")


@pytest.mark.parametrize("error", [OSError(28, "no space left"), OSError("no space left")])
def test_errors_of_a_file_system_name_the_location(memory, monkeypatch, error):
    place = place_of(memory("folder"))

    def full(*arguments, **options):
        raise error

    monkeypatch.setattr(place.file_system()[0], "open", full)
    with pytest.raises(OSError, match=f"{place.url}/a cannot be written: no space left") as caught:
        (place / "a").put(b"0")
    assert caught.value.errno == error.errno


def test_notes_of_earlier_versions_are_records(memory):
    """They are a JSON object without a line break, whatever the bytes of their checksum."""
    note = place_of(memory("claim.json"))
    seen = set()
    for n in range(500):
        content = json.dumps({"run": "x", "n": n}).encode()
        note.put(content, checksum(content, "claim.json"))
        seen.add(b"\n" in note.find())
        assert note.record() == note.find_record() == {"run": "x", "n": n}
    assert seen == {False, True}


WITHOUT = """
import sys
for name in ("zarr", "fsspec", "dask", "distributed", "google_crc32c"):
    sys.modules[name] = None
import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
assert sc.CellularSheaf.constant([[0, 1]]).n_edges == 1
try:
    dist.to_store("somewhere", sc.CellularSheaf.constant([[0, 1]]))
except ImportError as error:
    print(error)
"""

LOADED = """
import sys
import sheafcoarsen, sheafcoarsen.distributed
print(sorted({"zarr", "fsspec", "dask", "distributed", "tqdm.auto"} & set(sys.modules)))
"""


def said(script):
    return subprocess.check_output([sys.executable, "-c", script], text=True).strip()


def test_packages_of_the_extra_are_imported_late():
    """So is tqdm.auto, since importing it warns without ipywidgets."""
    assert 'pip install "sheafcoarsen[distributed]"' in said(WITHOUT)
    assert said(LOADED) == "[]"


@pytest.fixture
def place(memory):
    return place_of(memory("out")) / "work/lock"


def refused(place, message):
    with pytest.raises(BlockingIOError, match=message):
        write_lock.exclusive(place).__enter__()


def test_a_lock_on_a_local_disk_is_held_and_released(url):
    """tests/robustness/test_distributed.py resumes runs whose process, and so the lock, died."""
    place = place_of(url("out")) / "work/lock"
    for _ in range(2):
        with write_lock.exclusive(place):
            refused(place, "out: another run is writing there")


def test_leases_are_held_and_renewed_and_released(place, monkeypatch):
    monkeypatch.setattr(write_lock, "RENEWAL", 0.02)
    with write_lock.exclusive(place):
        refused(place, r"process \d+ on .* last seen 0 s ago")
        fs, path = place.file_system()
        begin = fs.modified(path)
        deadline = time.monotonic() + 10
        while fs.modified(path) == begin:
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
        assert place.find() == b"another"
    assert place.find() == b"another"


@pytest.mark.parametrize("content", [b"it\nanother", b"", b'{"holder": "of another version"}'])
def test_expired_leases_are_ignored(content, place, memory):
    """The age of a lease is measured by the file system's clock, whatever its content is."""
    place.put(content)
    written_ago(place, write_lock.LEASE - 2)
    refused(place, "last seen 8[789] s ago; if it died, its lease expires 90 s")
    assert (place_of(memory("out")) / "work").names() == {"lock"}
    written_ago(place, write_lock.LEASE + 1)
    with write_lock.exclusive(place):
        assert place.find() != content


def written_ago(place, seconds):
    fs, path = place.file_system()
    fs.store[path].modified = datetime.now(UTC) - timedelta(seconds=seconds)


def test_without_modification_times_the_lease_must_be_removed_by_hand(place, monkeypatch):
    place.put(b"it\nanother")

    def modified(*_):
        raise NotImplementedError

    monkeypatch.setattr(type(place.file_system()[0]), "modified", modified)
    refused(place, r"\(it; if it died, remove memory://.*work/lock\)")


def test_of_two_simultaneous_leases_the_last_one_wins(url, monkeypatch):
    place = Place(f"file://{url('out')}/work/lock")  # a URL gets a lease instead of a system lock
    monkeypatch.setattr(write_lock.time, "sleep", lambda _: place.put(b"it"))
    with pytest.raises(BlockingIOError, match="another run"), write_lock.exclusive(place):
        pass
    assert place.find() == b"it"
