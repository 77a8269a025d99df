"""Without the extra the library works, and says what to install where a store is asked for."""

import subprocess
import sys

import numpy as np
import pytest

from sheafcoarsen.distributed.extras import crc32c, optional

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
print(sorted({"zarr", "fsspec", "dask", "distributed"} & set(sys.modules)))
"""


def said(script):
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_without_the_extra_there_is_a_remedy():
    assert 'pip install "sheafcoarsen[distributed]"' in said(WITHOUT)


def test_the_library_loads_nothing_of_it():
    assert said(LOADED) == "[]"


def test_a_package_that_is_broken_is_no_missing_one(monkeypatch, tmp_path):
    (tmp_path / "broken_package.py").write_text("import no_such_package_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_package_at_all"):
        optional("broken_package")


def test_checksums_are_those_of_the_standard():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(np.frombuffer(b"123456789", np.uint8)) == 0xE3069283
    assert crc32c(memoryview(b"0123456789")[1:]) == 0xE3069283
