"""Places for stores, as the unit tests of stores have them."""

from tests.unit.distributed.conftest import memory, url  # noqa: F401
