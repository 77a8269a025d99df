"""While kernels compile for the first time one line says so."""

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


def test_one_line_once_and_not_for_what_is_short(clock, caplog):
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


def test_what_others_compile_is_not_ours_to_announce(clock, caplog):
    watcher = compile_notice.Notice()
    for _ in range(3):
        watcher.on_start(compiling("somebody.elses"))
        clock[0] += 10.0
        watcher.on_end(compiling("somebody.elses"))
    watcher.on_start(OURS)
    assert caplog.messages == []


def test_a_level_silences_it(clock, caplog):
    watcher = compile_notice.Notice()
    with caplog.at_level(logging.ERROR, logger="sheafcoarsen"):
        watcher.on_start(OURS)
        clock[0] += 10.0
        watcher.on_start(OURS)
    assert caplog.messages == []
