"""A change in a kernel file changes the name of all compiled code that holds code from it."""

import importlib
import re

import pytest

from sheafcoarsen._kernels import cache_key
from sheafcoarsen._kernels.jit import JIT_IS_OFF

SOURCES = cache_key.read_sources()
MODULES = sorted(SOURCES)


def changed(name: str) -> dict[str, str]:
    return SOURCES | {name: SOURCES[name] + "\nANOTHER = 1\n"}


def kernels_of(module: str) -> dict:
    found = vars(importlib.import_module(module)).items()
    return {name: f for name, f in found if hasattr(f, "py_func") and f.__module__ == module}


def called_by(kernel) -> list:
    """What the names in a kernel's code stand for, kernels or constants, in their modules."""
    code, names = kernel.py_func.__code__, kernel.py_func.__globals__
    return [names[name] for name in code.co_names if name in names]


@pytest.mark.parametrize("module", MODULES)
def test_changing_a_module_changes_its_digest(module):
    assert cache_key.digest_of(module, SOURCES) != cache_key.digest_of(module, changed(module))


@pytest.mark.skipif(JIT_IS_OFF, reason="nothing is compiled")
def test_changing_a_module_changes_the_digests_of_its_callers():
    found = 0
    for module in MODULES:
        waiting, seen = list(kernels_of(module).values()), set()
        while waiting:
            kernel = waiting.pop()
            for called in called_by(kernel):
                home = getattr(called, "__module__", None)
                if home in SOURCES and (home, called.__name__) not in seen:
                    seen.add((home, called.__name__))
                    before = cache_key.digest_of(module, SOURCES)
                    assert before != cache_key.digest_of(module, changed(home)), (module, home)
                    found += home != module
                    if hasattr(called, "py_func"):
                        waiting.append(called)
    assert found > 50


def test_changing_an_unrelated_module_keeps_the_digest():
    partition = changed("sheafcoarsen._kernels.partition.balls")
    module = "sheafcoarsen._kernels.operators.blocks"
    assert cache_key.digest_of(module, SOURCES) == cache_key.digest_of(module, partition)


def test_digests_depend_on_jit_options_and_tuple_layouts():
    arrays = "sheafcoarsen._kernels.arrays"
    swapped = SOURCES[arrays].replace(
        "    vertex_dims: np.ndarray\n    vertex_offsets: np.ndarray\n",
        "    vertex_offsets: np.ndarray\n    vertex_dims: np.ndarray\n",
    )
    assert swapped != SOURCES[arrays]
    for module in MODULES:
        before = cache_key.digest_of(module, SOURCES)
        assert before != cache_key.digest_of(module, SOURCES | {arrays: swapped})
        assert before != cache_key.digest_of(module, changed("sheafcoarsen._kernels.jit"))


def test_moving_a_tuple_to_another_module_changes_every_digest():
    """Compiled code on disk names the module of each tuple, and cannot be read without it."""
    old, new = "sheafcoarsen._kernels.arrays", "sheafcoarsen._kernels.sheaf_arrays"
    moved = {new if name == old else name: text for name, text in SOURCES.items()}
    module = "sheafcoarsen._kernels.partition.heap"
    assert old not in cache_key.needed(module, SOURCES)
    assert cache_key.digest_of(module, SOURCES) != cache_key.digest_of(module, moved)


def test_kernel_modules_import_each_other_in_the_form_that_digests_recognize():
    for name, text in SOURCES.items():
        lines = re.findall(r"^[ \t]*(?:from|import)\b.*\bsheafcoarsen\b.*$", text, re.MULTILINE)
        assert len(lines) == len(cache_key.IMPORT.findall(text)), name
        assert not re.search(r"^[ \t]*from \.", text, re.MULTILINE), name


def test_cache_files_are_named_after_their_digests():
    if JIT_IS_OFF:
        pytest.skip("nothing is compiled")
    for module in MODULES:
        for kernel in kernels_of(module).values():
            if kernel.targetoptions.get("forceinline") or kernel.targetoptions.get("inline"):
                continue  # a part of what calls it
            assert kernel.py_func.__qualname__.endswith("-" + cache_key.fingerprint(module))
