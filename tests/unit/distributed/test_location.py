"""Locations of stores, with their blobs and records."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sheafcoarsen.distributed.location import StoreError, checksum, optional, place_of


def test_relative_paths_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert place_of("here").url == place_of(Path("here")).url == os.path.join(tmp_path, "here")
    assert place_of("file:///somewhere").local_path == "/somewhere"
    assert place_of("s3://bucket/name").url == "s3://bucket/name"
    assert place_of("s3://bucket/name").local_path is None
    assert (place_of("s3://bucket/name/") / "below").url == "s3://bucket/name/below"


@pytest.mark.parametrize("bad", [3, None, b"path"])
def test_invalid_locations_raise(bad):
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


@pytest.mark.parametrize("kind", ["url", "memory"])
def test_blobs_can_be_written_read_and_removed(kind, request):
    place = place_of(request.getfixturevalue(kind)("folder"))
    assert place.names() == set()
    (place / "a/b").put(b"0123456789")
    assert (place / "a/b").get() == b"0123456789"
    assert (place / "a").slices(["b", "b"], [0, 4], [2, 9]) == [b"01", b"45678"]
    assert place.names() == {"a"}
    with pytest.raises(StoreError, match="c is missing"):
        (place / "a/c").get()
    with pytest.raises(StoreError, match="missing"):
        (place / "a").slices(["c"], [0], [2])
    place.remove()
    place.remove()
    assert place.names() == set()


def test_notes_of_earlier_versions_are_records(memory):
    """They are a JSON object without a line break, whatever the bytes of their checksum."""
    note = place_of(memory("claim.json"))
    seen = set()
    for n in range(500):
        content = json.dumps({"run": "x", "n": n}).encode()
        note.put(content, checksum(content, note.name))
        seen.add(b"\n" in note.get())
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
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_packages_of_the_extra_are_imported_late():
    """So is tqdm.auto, since importing it warns without ipywidgets."""
    assert 'pip install "sheafcoarsen[distributed]"' in said(WITHOUT)
    assert said(LOADED) == "[]"


def test_a_broken_package_is_not_reported_as_missing(monkeypatch, tmp_path):
    (tmp_path / "broken_package.py").write_text("import no_such_package_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_package_at_all"):
        optional("broken_package")
