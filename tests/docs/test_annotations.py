"""Every argument and result of a public function has a type annotation."""

import inspect
from functools import cached_property

import pytest

import sheafcoarsen as sc


def methods(owner):
    """Yield the names and functions of a class's methods and properties from this library."""
    found = {}
    for base in reversed(inspect.getmro(owner)):
        if base.__module__.startswith("sheafcoarsen"):
            found.update(vars(base))
    for key, value in found.items():
        if key.startswith("_") and key not in ("__init__", "__call__"):
            continue
        if isinstance(value, classmethod | staticmethod):
            value = value.__func__
        elif isinstance(value, property):
            value = value.fget
        elif isinstance(value, cached_property):
            value = value.func
        if inspect.isfunction(value) and value.__module__.startswith("sheafcoarsen"):
            yield key, value


def public_functions():
    """Return all public functions and methods, by name."""
    found = {}
    for name in sc.__all__:
        item = getattr(sc, name)
        owners = {name: item}
        if inspect.ismodule(item):
            owners = {f"{name}.{key}": getattr(item, key) for key in dir(item)}
        for place, owner in owners.items():
            if inspect.isclass(owner):
                found.update({f"{place}.{key}": value for key, value in methods(owner)})
            else:
                found[place] = owner
    return found


FUNCTIONS = public_functions()


def test_public_functions_are_collected():
    assert {"coarsen", "gallery.cycle", "CellularSheaf.random", "Partition.__init__"} <= set(
        FUNCTIONS
    )
    assert len(FUNCTIONS) > 100


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_and_results_have_type_annotations(name):
    signature = inspect.signature(FUNCTIONS[name])
    missing = [
        parameter
        for parameter, value in signature.parameters.items()
        if value.annotation is value.empty and parameter not in ("self", "cls")
    ]
    if signature.return_annotation is signature.empty:
        missing.append("the result")
    assert not missing
