"""Locations for stores, on this machine's disk and in memory."""

import uuid

import pytest


@pytest.fixture
def url(tmp_path):
    """Return a function that maps names to paths on the disk."""
    return lambda name: str(tmp_path / name)


@pytest.fixture
def memory():
    """Return a function that maps names to URLs in memory that no other test uses."""
    mine = uuid.uuid4().hex
    return lambda name: f"memory://{mine}/{name}"
