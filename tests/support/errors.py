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


def lines(table: str) -> list[str]:
    """Return the lines of a table; text indented by eight continues the previous line."""
    return re.split(r"\n(?! {8})", table.strip())


def row(line: str) -> tuple[str, str]:
    """Return the bad call and the error of a line ``call -> error``, a ValueError by default."""
    call, _, error = " ".join(line.split()).partition(" -> ")
    return call, error if re.match(r"\w+Error: |$", error) else f"ValueError: {error}"


def rows(table: str) -> list[tuple[str, str]]:
    """Return the bad calls of a table with their errors."""
    return [row(line) for line in lines(table)]
