"""Errors as Python prints them."""

import builtins
import re

import pytest


def raises(error: str):
    """Expect an error: its type, a colon, and a part of its message."""
    kind, message = error.split(": ", 1)
    return pytest.raises(getattr(builtins, kind), match=re.escape(message))


def refuses(read, path, line: int | None, message: str, **options) -> str:
    """Assert that reading a file raises one line ``path:line: message``, and return it."""
    place = str(path) if line is None else f"{path}:{line}"
    with pytest.raises(ValueError, match=f"^{re.escape(place)}: ") as caught:
        read(path, **options)
    assert type(caught.value) is ValueError
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def rows(table: str) -> list[tuple[str, str]]:
    """Return (what is wrong, error) for the lines ``what -> error`` of a table.

    Lines indented by eight continue the previous one; what names no class is a ValueError.
    """
    found = []
    for line in re.split(r"\n(?! {8})", table.strip()):
        wrong, _, error = " ".join(line.split()).partition(" -> ")
        found.append((wrong, error if re.match(r"\w+Error: ", error) else f"ValueError: {error}"))
    return found
