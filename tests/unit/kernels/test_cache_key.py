"""A change in any kernel file changes the name of all compiled code."""

import importlib

import pytest

from sheafcoarsen._kernels import cache_key
from sheafcoarsen._kernels.jit import JIT_IS_OFF

SOURCES = cache_key.read_sources()


@pytest.mark.parametrize("module", sorted(SOURCES))
def test_changing_a_module_changes_the_digest(module):
    changed = SOURCES | {module: SOURCES[module] + "\nANOTHER = 1\n"}
    assert cache_key.digest_of(changed) != cache_key.fingerprint()


def test_moving_a_module_changes_the_digest():
    """Compiled code on disk names the module of each tuple, and cannot be read without it."""
    old = "sheafcoarsen._kernels.arrays"
    moved = {name + "s" * (name == old): SOURCES[name] for name in SOURCES}
    assert set(moved) != set(SOURCES)
    assert cache_key.digest_of(moved) != cache_key.fingerprint()


@pytest.mark.skipif(JIT_IS_OFF, reason="nothing is compiled")
def test_cache_files_are_named_after_the_digest():
    kernels = 0
    for module in SOURCES:
        for kernel in vars(importlib.import_module(module)).values():
            options = getattr(kernel, "targetoptions", {"inline": True})
            if not options.get("forceinline") and not options.get("inline"):
                assert kernel.py_func.__qualname__.endswith("-" + cache_key.fingerprint())
                kernels += 1
    assert kernels > 50
