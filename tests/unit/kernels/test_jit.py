"""A change in any kernel file changes the name of all compiled code."""

import importlib

import pytest

from sheafcoarsen._kernels import jit

SOURCES = jit.read_sources()


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


@pytest.mark.skipif(jit.JIT_IS_OFF, reason="nothing is compiled")
def test_cache_files_are_named_after_the_digest():
    kernels = 0
    for module in SOURCES:
        for kernel in vars(importlib.import_module(module)).values():
            options = getattr(kernel, "targetoptions", {"inline": True})
            if not options.get("forceinline") and not options.get("inline"):
                assert kernel.py_func.__qualname__.endswith("-" + jit.fingerprint())
                kernels += 1
    assert kernels > 50
