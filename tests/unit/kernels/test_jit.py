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


KERNELS = [
    kernel
    for module in SOURCES
    for kernel in vars(importlib.import_module(module)).values()
    if hasattr(kernel, "targetoptions")
]


@pytest.mark.skipif(jit.JIT_IS_OFF, reason="nothing is compiled")
def test_kernels_are_named_after_the_digest_and_do_not_fuse_multiply_and_add():
    """Numba compiles complex multiplication once for all kernels, with the flags of the first.

    Fused with a sum, L would no longer be Hermitian.
    """
    assert len(KERNELS) > 50
    for kernel in KERNELS:
        options = kernel.targetoptions
        if not options.get("forceinline") and not options.get("inline"):
            assert kernel.py_func.__qualname__.endswith("-" + jit.fingerprint())
        flags = options.get("fastmath", False)
        assert flags is False or set(flags) <= {"reassoc"}
