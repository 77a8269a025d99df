"""Compiled kernels: their cache on disk, its names, and the notice of the first compilation."""

import importlib
import logging
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from sheafcoarsen._kernels import compile_notice, jit

SOURCES = jit.read_sources()
compiled = pytest.mark.skipif(jit.JIT_IS_OFF, reason="nothing is compiled")


PROGRAM = """
import sheafcoarsen as sc
F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]])
print(sc.laplacian(F).toarray().tolist())
"""
ANSWER = (
    "[[1.0, -1.0, 0.0, 0.0], [-1.0, 2.0, -1.0, 0.0], [0.0, -1.0, 2.0, -1.0], [0.0, 0.0, -1.0, "
    "1.0]]\n"
)
NOTICE = compile_notice.NOTICE + "\n"
FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))"
"""No file can have more than 1000 bytes, as on a disk that is nearly full."""


def run(folder, notice="", before=""):
    """Run the program, which prints the answer and on standard error at most the notice."""
    command = [sys.executable, "-c", before + PROGRAM]
    options = {"env": os.environ | {"NUMBA_CACHE_DIR": str(folder)}, "text": True}
    done = subprocess.run(command, capture_output=True, check=True, **options)
    assert done.stdout == ANSWER
    assert done.stderr in ("", notice)


@compiled
def test_second_process_compiles_nothing_unless_the_cache_is_unreadable(tmp_path):
    run(tmp_path, NOTICE)
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb[ci]")}
    assert written
    # so that code of another version is never loaded
    assert all(jit.fingerprint() in path.name for path in written)
    run(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb[ci]")} == written
    for path in tmp_path.rglob("*.nbi"):  # which then cannot be read
        path.unlink()
        path.mkdir()
    run(tmp_path, NOTICE)


@compiled
def test_cached_arguments_of_a_class_that_has_moved_do_not_raise(tmp_path):
    run(tmp_path, NOTICE)
    moved = 0
    for path in tmp_path.rglob("*.nb[ci]"):
        data = path.read_bytes()
        moved += b"_kernels.arrays" in data
        path.write_bytes(data.replace(b"_kernels.arrays", b"_kernels.array_"))
    assert moved
    run(tmp_path, NOTICE)


@compiled
def test_a_folder_that_cannot_be_written_to_or_is_full_does_not_raise(tmp_path):
    blocked = tmp_path / "a file"
    blocked.touch()
    for folder, before in ((blocked / "folder", ""), (tmp_path / "full", FULL)):
        run(folder, NOTICE, before)
    assert list(Path(tmp_path).rglob("*.nbc")) == []


@pytest.mark.parametrize("module", sorted(SOURCES))
def test_changing_a_module_changes_the_digest(module):
    changed = SOURCES | {module: SOURCES[module] + "\nANOTHER = 1\n"}
    assert jit.digest_of(changed) != jit.fingerprint()


def test_moving_a_module_changes_the_digest():
    """Compiled code on disk names the module of each tuple, and cannot be read without it."""
    old = "sheafcoarsen._kernels.arrays"
    moved = {name + "s" * (name == old): SOURCES[name] for name in SOURCES}
    assert set(moved) != set(SOURCES)
    assert jit.digest_of(moved) != jit.fingerprint()


KERNELS = [
    kernel
    for module in SOURCES
    for kernel in vars(importlib.import_module(module)).values()
    if hasattr(kernel, "targetoptions")
]


@compiled
def test_kernels_are_named_after_the_digest_and_do_not_fuse_multiply_and_add():
    """Products of complex numbers that are fused with a sum would make L not Hermitian."""
    assert len(KERNELS) > 50
    for kernel in KERNELS:
        options = kernel.targetoptions
        if not options.get("forceinline") and not options.get("inline"):
            assert kernel.py_func.__qualname__.endswith("-" + jit.fingerprint())
        flags = options.get("fastmath", False)
        assert flags is False or set(flags) <= {"reassoc"}


def compiling(module):
    function = SimpleNamespace(__module__=module)
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=function)})


OURS = compiling("sheafcoarsen._kernels.arrays")


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(compile_notice.time, "perf_counter", lambda: now[0])
    return now


def test_compilation_is_announced_once_if_it_is_long(clock, caplog):
    watcher = compile_notice.Notice()
    watcher.on_start(OURS)
    clock[0] = compile_notice.PATIENCE / 2
    watcher.on_end(OURS)
    clock[0] = 100.0  # time in which nothing is compiled does not count
    watcher.on_start(OURS)
    assert caplog.messages == []
    clock[0] += compile_notice.PATIENCE
    for _ in range(2):  # a kernel that the first one calls
        watcher.on_start(OURS)
        watcher.on_end(OURS)
    watcher.on_end(OURS)
    assert caplog.messages == [compile_notice.NOTICE]


@pytest.mark.parametrize(
    ("dispatched", "level"),
    [(compiling("somebody.elses"), logging.WARNING), (OURS, logging.ERROR)],
    ids=["of other libraries", "silenced by the log level"],
)
def test_other_compilations_are_not_announced(dispatched, level, clock, caplog):
    watcher = compile_notice.Notice()
    with caplog.at_level(level, logger="sheafcoarsen"):
        for _ in range(3):
            watcher.on_start(dispatched)
            clock[0] += 10.0
            watcher.on_end(dispatched)
        watcher.on_start(OURS)
    assert caplog.messages == []
