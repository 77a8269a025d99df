"""Public names as lines of text, to compare what one version offers with what another one did.

``python -m tests.support.signatures`` prints those of the library that is imported; so was
tests/data/signatures.txt recorded.
"""

import inspect

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


def item_of(name: str):
    """Return the object with a public name; a field of a class is returned as its description."""
    item = sc
    for part in name.split("."):
        item = getattr(item, "__dataclass_fields__", {}).get(part) or getattr(item, part)
    return item


def _is_own(item) -> bool:
    return getattr(item, "__module__", "").startswith("sheafcoarsen")


def _contents(item) -> list[str]:
    """Return the names in a module, or the fields, properties and methods of a class."""
    if inspect.ismodule(item):
        defined = [
            k for k, v in vars(item).items() if callable(v) and v.__module__ == item.__name__
        ]
        names = [*item.__all__, *defined]
    elif inspect.isclass(item):
        names = list(getattr(item, "__dataclass_fields__", {}))
        names += [key for base in item.__mro__[::-1] if _is_own(base) for key in vars(base)]
    else:
        return []
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


def public_names():
    """Yield all names that a user may write."""
    for name in sc.__all__:
        yield name
        for key in _contents(getattr(sc, name)):
            yield f"{name}.{key}"
            if inspect.ismodule(getattr(sc, name)):
                yield from (f"{name}.{key}.{k}" for k in _contents(item_of(f"{name}.{key}")))


def lines() -> list[str]:
    """Return one line for each public name, its parameters between bars."""
    found = set()
    for name in public_names():
        item = item_of(name)
        is_warning = inspect.isclass(item) and issubclass(item, Warning)
        plain = is_warning or not callable(item)
        found.add(name if plain else " | ".join([f"{name}()", *parameters_of(item)]))
    return sorted(found)


if __name__ == "__main__":
    print("\n".join(lines()))
