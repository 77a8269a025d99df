"""The test suite; a package so that ``from tests.support...`` works under plain ``pytest``."""
