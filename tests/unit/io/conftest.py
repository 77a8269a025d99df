"""Files for the tests of readers."""

import gzip

import pytest


@pytest.fixture
def write(tmp_path):
    def write(text, name):
        path = tmp_path / name
        content = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write
