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


@pytest.mark.parametrize(
    ("compiled", "level"),
    [(compiling("somebody.elses"), logging.WARNING), (OURS, logging.ERROR)],
    ids=["of other libraries", "silenced by the log level"],
)
def test_other_compilations_are_not_announced(compiled, level, clock, caplog):
    watcher = compile_notice.Notice()
    with caplog.at_level(level, logger="sheafcoarsen"):
        for _ in range(3):
            watcher.on_start(compiled)
            clock[0] += 10.0
            watcher.on_end(compiled)
        watcher.on_start(OURS)
    assert caplog.messages == []
