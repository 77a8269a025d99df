"""Public names as lines of text, to compare what one version offers with what another one did.

``python -m tests.support.signatures`` prints those of the library that is imported; so was
tests/data/signatures.txt recorded.
"""

import dataclasses
import inspect
from functools import cached_property

import sheafcoarsen as sc

PREFIXES = {
    inspect.Parameter.POSITIONAL_ONLY: "/",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "",
    inspect.Parameter.VAR_POSITIONAL: "*args ",
    inspect.Parameter.KEYWORD_ONLY: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


def parameters_of(item) -> list[str]:
    """Return the parameters of a function or class: kind, name and default, no annotations."""
    found = []
    for parameter in inspect.signature(item).parameters.values():
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        found.append(PREFIXES[parameter.kind] + parameter.name + default)
    return found


def _members(place: str, owner: type):
    """Yield (name, parameters or None) for fields, properties and methods of a class."""
    for field in dataclasses.fields(owner) if dataclasses.is_dataclass(owner) else ():
        if not field.name.startswith("_"):
            yield f"{place}.{field.name}", None
    own = [parent for parent in owner.__mro__ if parent.__module__.startswith("sheafcoarsen")]
    for key, value in {k: v for parent in own[::-1] for k, v in vars(parent).items()}.items():
        if key.startswith("_"):
            continue
        if isinstance(value, property | cached_property) or inspect.isdatadescriptor(value):
            yield f"{place}.{key}", None
        elif callable(value) or isinstance(value, classmethod | staticmethod):
            yield f"{place}.{key}", parameters_of(getattr(owner, key))


def _is_warning(item) -> bool:
    return inspect.isclass(item) and issubclass(item, Warning)


def public_names():
    """Yield (name, parameters or None where it is no callable) for all that a user may write."""
    for name in sc.__all__:
        item = getattr(sc, name)
        places = [(name, item)]
        if inspect.ismodule(item):
            shown = getattr(item, "__all__", None) or [
                key
                for key, value in vars(item).items()
                if not key.startswith("_") and callable(value) and value.__module__ == item.__name__
            ]
            places = [(f"{name}.{key}", getattr(item, key)) for key in shown]
        for place, owner in places:
            if not callable(owner) or _is_warning(owner):
                yield place, None
                continue
            yield place, parameters_of(owner)
            if inspect.isclass(owner):
                yield from _members(place, owner)


def lines() -> list[str]:
    """Return one line for each public name, its parameters between bars."""
    found = {}
    for name, parameters in public_names():
        found.setdefault(
            name, name if parameters is None else " | ".join([f"{name}()", *parameters])
        )
    return sorted(found.values())


if __name__ == "__main__":
    print("\n".join(lines()))
