"""Checks of single values: valid ones, invalid ones, and error messages."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from sheafcoarsen._support import (
    MAX_ENTRIES,
    MAX_VERTICES,
    check_matplotlib,
    choice,
    flag,
    memory_for_entries,
    physical_memory,
    random_generator,
    real_number,
    vertex_count,
    whole_number,
)


def refuses(error, message):
    return pytest.raises(error, match=re.escape(message))


def entry_count(*entries, **options):
    with memory_for_entries(*entries, **options):
        pass


@pytest.mark.parametrize("value", [7, np.int32(7), np.uint64(7), np.array(7)[()]])
def test_whole_number_returns_int(value):
    assert type(whole_number("k", value)) is int
    assert whole_number("k", value, at_least=7) == 7


def test_whole_number_checks_the_lower_bound():
    assert whole_number("k", -(10**400)) == -(10**400)
    with refuses(ValueError, "`k` must be at least 1, got 0"):
        whole_number("k", 0, at_least=1)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int8(2)])
def test_real_number_returns_float(value):
    assert type(real_number("t", value)) is float
    assert real_number("t", value) == 2.0


def test_flag_accepts_only_true_and_false():
    assert flag("loops", True) is flag("loops", np.True_) is True
    assert flag("loops", False) is flag("loops", np.False_) is False
    for value in (1, 0, "no", None, []):
        with refuses(TypeError, f"`loops` must be True or False, got {value!r}"):
            flag("loops", value)


def test_invalid_choice_raises_error_that_lists_choices():
    assert choice("method", "balls", ("auto", "balls")) == "balls"
    for value in ("bals", None, ["balls"]):
        with refuses(ValueError, f"`method` must be one of 'auto', 'balls', got {value!r}"):
            choice("method", value, ("auto", "balls"))


def test_random_generator_accepts_valid_seeds_only():
    rng = np.random.default_rng(3)
    assert random_generator("seed", rng) is rng
    assert random_generator("seed", np.int64(3)).random() == np.random.default_rng(3).random()
    assert random_generator("seed", None).random() != random_generator("seed", None).random()
    with refuses(ValueError, "`seed` must be at least 0, got -1"):
        random_generator("seed", -1)
    for value in (True, 1.0, "3", np.random.RandomState(3)):
        with refuses(TypeError, "`seed` must be None, a non-negative integer or a numpy Gen"):
            random_generator("seed", value)


def test_counts_above_the_limit_of_kernels_raise(monkeypatch):
    monkeypatch.setattr("sheafcoarsen._support.checks.physical_memory", lambda: np.inf)
    assert np.iinfo(np.int32).max == MAX_VERTICES  # labels have 32 bits
    vertex_count("n", MAX_VERTICES)
    entry_count("dim", MAX_ENTRIES)
    with refuses(ValueError, f"`n` requires {MAX_VERTICES + 1} vertices, but there may be"):
        vertex_count("n", MAX_VERTICES + 1)
    with refuses(ValueError, "`dim` requires 1.1e+12 map entries (8.8e+03 GB), more than fits"):
        entry_count("dim", MAX_ENTRIES + 1)


MEMINFO = Path("/proc/meminfo")


@pytest.mark.skipif(not MEMINFO.exists(), reason="a file of Linux")
def test_physical_memory_is_that_of_the_machine():
    total = next(line for line in MEMINFO.read_text().splitlines() if line.startswith("MemTotal"))
    assert physical_memory() == pytest.approx(1024 * int(total.split()[1]), rel=0.1)


def test_counts_that_exceed_memory_raise(monkeypatch):
    monkeypatch.setattr("sheafcoarsen._support.checks.physical_memory", lambda: 16e9)
    vertex_count("n", 10**9)
    entry_count("dim", 2 * 10**9)
    entry_count("dim", 4 * 10**9, itemsize=4)
    with refuses(
        ValueError, f"`n` requires {10**9 + 1} vertices, at least 16 GB, which exceeds this"
    ):
        vertex_count("n", 10**9 + 1)
    for itemsize in (8, 16):
        with refuses(ValueError, f"`dim` requires 2e+09 map entries ({2 * itemsize} GB), more"):
            entry_count("dim", 2 * 10**9 + 1, itemsize)


@pytest.mark.parametrize(
    ("entries", "told"),
    [(10**400, "1e+400 map entries (1e+391 GB)"), (1e300, "1e+300 map entries")],
)
def test_error_message_formats_numbers_beyond_doubles(entries, told):
    with refuses(ValueError, told):
        entry_count("dim", entries)


def test_memory_error_becomes_the_same_value_error():
    with memory_for_entries("dim", 10):
        pass
    with (
        refuses(ValueError, "`dim` requires 10 map entries (8e-08 GB), more than fits in memory"),
        memory_for_entries("dim", 10),
    ):
        raise MemoryError


def test_import_errors_of_other_packages_are_not_hidden(monkeypatch):
    class Broken:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "matplotlib":
                raise ModuleNotFoundError("No module named 'kiwisolver'", name="kiwisolver")

    for module in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [Broken(), *sys.meta_path])
    with pytest.raises(ModuleNotFoundError, match="kiwisolver"):
        check_matplotlib()
