"""The first compilation of kernels is announced in one line."""

import logging
from types import SimpleNamespace

import pytest

from sheafcoarsen._kernels import compile_notice


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


def test_compilation_by_other_libraries_is_not_announced(clock, caplog):
    watcher = compile_notice.Notice()
    for _ in range(3):
        watcher.on_start(compiling("somebody.elses"))
        clock[0] += 10.0
        watcher.on_end(compiling("somebody.elses"))
    watcher.on_start(OURS)
    assert caplog.messages == []


def test_log_level_silences_the_announcement(clock, caplog):
    watcher = compile_notice.Notice()
    with caplog.at_level(logging.ERROR, logger="sheafcoarsen"):
        watcher.on_start(OURS)
        clock[0] += 10.0
        watcher.on_start(OURS)
    assert caplog.messages == []
