"""Hypothesis profiles, compilation, worst residuals per statement, real data, places for stores."""

import hashlib
import os
import uuid
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from tests.support import poison

pytest.register_assert_rewrite("tests.support.helpers")

if poison.IS_ON:  # before anything of the package is imported
    vars(np).update(poison.NAMES)

COMMON = {
    "deadline": None,  # the first example of a test may compile a kernel
    "suppress_health_check": [HealthCheck.too_slow],
    "print_blob": True,
}
# the same examples on every run and machine, so that red means broken; the deep run looks for new
# ones
settings.register_profile("default", max_examples=40, derandomize=True, **COMMON)
settings.register_profile("deep", max_examples=800, **COMMON)
settings.register_profile("nojit", max_examples=10, derandomize=True, **COMMON)


def _profile() -> str:
    if os.environ.get("SHEAFCOARSEN_DEEP", "0") not in ("", "0"):
        return "deep"
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return "nojit"  # kernels run as plain Python
    return "default"


settings.load_profile(_profile())


# ---------------------------------------------------------------- compilation


def _compile_in_one_process(folder: Path) -> None:
    """Let only one of several test processes compile a kernel; the others load it from the cache.

    Kernels call each other without cycles, so waiting for a callee cannot block.
    """
    import fcntl

    folder.mkdir(exist_ok=True)
    compile_now = Dispatcher.compile

    def compile_once(dispatcher, signature):
        kernel = dispatcher.py_func
        name = f"{kernel.__module__}.{kernel.__qualname__}{signature}"
        path = folder / hashlib.sha256(name.encode()).hexdigest()
        with global_compiler_lock, open(path, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return compile_now(dispatcher, signature)

    Dispatcher.compile = compile_once


# ---------------------------------------------------------------- worst residuals per statement


def pytest_addoption(parser):
    """Add the option that keeps the table of residuals."""
    parser.addoption(
        "--residuals",
        metavar="FILE",
        help="write the worst residual of every statement to a markdown table "
        "(or set SHEAFCOARSEN_RESIDUALS)",
    )


def pytest_configure(config):
    """Register the marker that says which statement a test is about; share compiled kernels."""
    if hasattr(config, "workerinput") and os.name == "posix":  # one of several processes
        _compile_in_one_process(Path(config.option.basetemp).parent / "compiling")
    config.addinivalue_line(
        "markers",
        "statement(label): the statement of the paper, or the fact, that the test is about",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Record the residuals of a test under the label of its statement."""
    from tests.support.helpers import recording

    marker = item.get_closest_marker("statement")
    with recording(marker.args[0] if marker else None):
        return (yield)


def pytest_sessionfinish(session):
    """Hand the residuals of one of several processes to the one that reports."""
    from tests.support.helpers import WORST

    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["residuals"] = [[label, *row] for label, row in WORST.items()]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take the residuals of a process that has ended."""
    from tests.support.helpers import WORST

    for label, ratio, count in getattr(node, "workeroutput", {}).get("residuals", ()):
        worst, known = WORST.get(label, (0.0, 0))
        WORST[label] = max(worst, ratio), known + count


def pytest_terminal_summary(terminalreporter, config):
    """Print the table, and write it where a file is named."""
    from tests.support.helpers import LIMIT, WORST, residual_table

    if not WORST:
        return
    lines = residual_table()
    terminalreporter.section(f"worst residuals, in units of rounding; the limit is {LIMIT:g}")
    for line in lines:
        terminalreporter.line(line)
    path = config.getoption("--residuals") or os.environ.get("SHEAFCOARSEN_RESIDUALS", "")
    if path:
        Path(path).expanduser().write_text("\n".join(lines) + "\n", encoding="utf-8")


# ---------------------------------------------------------------- real data


def _data_variable() -> str:
    return os.environ.get("SHEAFCOARSEN_DATA", "")


def pytest_collection_modifyitems(items):
    """Skip tests of real data where no folder is named; a folder that is named must be there."""
    if _data_variable():
        return
    skip = pytest.mark.skip(
        reason="real data is not part of the repository: SHEAFCOARSEN_DATA names no folder"
    )
    for item in items:
        if item.get_closest_marker("real_data"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of real data; for tests marked ``real_data``."""
    if not _data_variable():
        pytest.fail("a test that uses `data_folder` must be marked `real_data`")
    folder = Path(_data_variable()).expanduser()
    if not folder.is_dir():
        pytest.fail(f"SHEAFCOARSEN_DATA={str(folder)!r} is not a folder")
    return folder


# ---------------------------------------------------------------- places for stores


@pytest.fixture
def url(tmp_path):
    """Return a function that maps names to paths on the disk."""
    return lambda name: str(tmp_path / name)


@pytest.fixture
def memory():
    """Return a function that maps names to URLs in memory that no other test uses."""
    mine = uuid.uuid4().hex
    return lambda name: f"memory://{mine}/{name}"
