"""Compiled kernels on disk: a second process loads them.

A folder that cannot be written to is no error.
"""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sheafcoarsen._kernels.compile_notice import NOTICE
from sheafcoarsen._kernels.jit import JIT_IS_OFF, fingerprint, read_sources

pytestmark = pytest.mark.skipif(JIT_IS_OFF, reason="nothing is compiled")

PROGRAM = """
import sheafcoarsen as sc
F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]])
print(sc.laplacian(F).toarray().tolist())
"""
ANSWER = (
    "[[1.0, -1.0, 0.0, 0.0], [-1.0, 2.0, -1.0, 0.0], [0.0, -1.0, 2.0, -1.0], [0.0, 0.0, -1.0, "
    "1.0]]\n"
)


FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
"""No file can have more than 1000 bytes, as on a disk that is nearly full."""


def run(folder, notice="", before="") -> str:
    """Run the program and return its output; standard error contains at most the notice."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", before + PROGRAM],
        env=environment,
        text=True,
        capture_output=True,
        check=True,
    )
    assert done.stderr in ("", notice)
    return done.stdout


def test_second_process_compiles_nothing_unless_the_cache_is_unreadable(tmp_path):
    assert run(tmp_path, NOTICE + "\n") == ANSWER
    compiled = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb[ci]")}
    assert compiled
    # so that code of another version is never loaded
    assert all(fingerprint() in path.name for path in compiled)
    assert run(tmp_path) == ANSWER
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb[ci]")} == compiled
    for path in tmp_path.rglob("*.nbi"):  # which then cannot be read
        path.unlink()
        path.mkdir()
    assert run(tmp_path, NOTICE + "\n") == ANSWER


def test_cached_arguments_of_a_class_that_has_moved_do_not_raise(tmp_path):
    assert run(tmp_path, NOTICE + "\n") == ANSWER
    moved = 0
    for path in tmp_path.rglob("*.nb[ci]"):
        data = path.read_bytes()
        moved += b"_kernels.arrays" in data
        path.write_bytes(data.replace(b"_kernels.arrays", b"_kernels.array_"))
    assert moved
    assert run(tmp_path, NOTICE + "\n") == ANSWER


def test_unwritable_cache_does_not_raise(tmp_path):
    blocked = tmp_path / "a file"
    blocked.touch()
    assert run(blocked / "folder", NOTICE + "\n") == ANSWER
    assert list(Path(tmp_path).rglob("*.nb[ci]")) == []


def test_no_kernel_flag_allows_fused_multiply_add():
    """Numba compiles complex multiplication once for all kernels, with the flags of the first.

    Fused with a sum, L would no longer be Hermitian.
    """
    found = 0
    for module in read_sources():
        for kernel in vars(importlib.import_module(module)).values():
            if hasattr(kernel, "targetoptions"):
                flags = kernel.targetoptions.get("fastmath", False)
                assert flags is False or set(flags) <= {"reassoc"}
                found += 1
    assert found > 50


def test_full_disk_of_the_cache_does_not_raise(tmp_path):
    assert run(tmp_path, NOTICE + "\n", FULL) == ANSWER
    assert not list(tmp_path.rglob("*.nbc"))
