"""Errors as Python prints them."""

import builtins
import re

import pytest


def raises(error: str):
    """Expect an error: its type, a colon, and a part of its message."""
    kind, message = error.split(": ", 1)
    return pytest.raises(getattr(builtins, kind), match=re.escape(message))
