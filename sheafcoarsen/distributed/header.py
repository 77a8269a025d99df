"""Attributes of a store, which are checked when they are read."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from sheafcoarsen._support import SCALARS
from sheafcoarsen.distributed.arrays import VERSION
from sheafcoarsen.distributed.location import Place, StoreError, crc32c, failures
from sheafcoarsen.io import SETTINGS
from sheafcoarsen.modes import OPERATORS


@dataclass(frozen=True)
class StoreHeader:
    """Attributes of a store; those that do not apply to its kind keep their defaults."""

    kind: str
    id: str = ""
    version: int = VERSION
    format: str = "sheafcoarsen-store"
    n_vertices: int = 0
    n_clusters: int = 0
    n_edges: int = 0
    dim_c0: int = 0
    dim_c1: int = 0
    n_bytes: int = 0
    largest_entry: float = 0.0
    dtype: str = "<f8"
    parts: list[str] = field(default_factory=list)
    permuted: bool = False
    vertex_labels: bool = False
    source: dict[str, str] = field(default_factory=dict)
    basis: list[str] = field(default_factory=list)
    local_operator: str | None = None
    singular: bool = False
    oversampled: dict[str, Any] | None = None
    loops: bool = False
    compress: bool = False
    run: str | None = None
    report: dict[str, Any] = field(default_factory=dict)
    levels: list[str] = field(default_factory=list)
    stopped_because: str = ""

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes to be written, including their checksum."""
        found = {
            name: value
            for name, value in self.__dict__.items()
            if name in REQUIRED[self.kind] or value != DEFAULTS[name]
        }
        return {**found, "check": attributes_crc(found)}


DEFAULTS = StoreHeader("").__dict__
COMMON = ("format", "version", "kind", "id")
SHEAF = (
    *(*COMMON, "n_vertices", "n_edges", "dim_c0", "dim_c1", "n_bytes", "largest_entry", "dtype"),
    *("parts", "permuted"),
)
REQUIRED = {
    "partition": (*COMMON, "n_vertices", "n_clusters"),
    "sheaf": SHEAF,
    "coarsening": (*SHEAF, "source", "basis", "report", "loops", "compress", "singular"),
    "hierarchy": (*COMMON, "levels", "stopped_because"),
}
"""The required attributes of each kind of store."""

REMEDY = "restore zarr.json from a copy, or write the store again"


def header_of(place: Place) -> StoreHeader:
    """Return the header of a finished store of a supported version."""
    attributes = found_attributes(place)
    if attributes is None and not is_unfinished(place):
        raise StoreError(f"{place.url}: there is no store")
    if attributes is None or attributes.get("format") != StoreHeader.format:
        raise StoreError(
            f"{place.url}: not a store of this library, or one whose writing did not end: repeat "
            f"the call of coarsen that began it, or else remove it and write it again"
        )
    check_attributes(place, attributes, COMMON)
    version = attributes["version"]
    if not 1 <= version <= VERSION:
        raise StoreError(
            f"{place.url}: a store of version {version}, but this library reads versions 1 to "
            f"{VERSION}: update the library, or write the store again"
        )
    required = REQUIRED[attributes["kind"]]
    check_attributes(place, attributes, [n for n in DEFAULTS if n in required or n in attributes])
    if attributes.get("check", attributes_crc(attributes)) != attributes_crc(attributes):
        raise StoreError(
            f"{place.url}: zarr.json is damaged, because the checksum of its attributes is wrong: "
            f"{REMEDY}; if you edited it, remove the attribute `check`"
        )
    return StoreHeader(**{name: attributes[name] for name in DEFAULTS if name in attributes})


def attributes_crc(attributes: dict[str, Any]) -> int:
    """Return the checksum of the attributes that this library writes; ignore other attributes."""
    own = {name: attributes[name] for name in DEFAULTS if name in attributes}
    return crc32c(json.dumps(own, sort_keys=True).encode())


def _one_of(*choices: Any) -> tuple[str, Callable[[Any], bool]]:
    return "one of " + ", ".join(map(str, choices)), lambda value: value in choices


def check_attributes(place: Place, attributes: dict[str, Any], names: Iterable[str]) -> None:
    """Raise an error if attributes are missing or have invalid values."""
    # description and test of an attribute's valid values, by the attribute's name or its type
    table: dict[Any, tuple[str, Callable[[Any], bool]]] = {
        int: ("an integer of at least 0", lambda value: type(value) is int and 0 <= value < 2**63),
        float: (
            "a finite number of at least 0",
            lambda v: type(v) in (int, float) and 0 <= v < inf,
        ),
        str: ("a string", lambda value: isinstance(value, str)),
        bool: ("true or false", lambda value: isinstance(value, bool)),
        list: (
            "a list of different folder names",
            lambda value: (
                isinstance(value, list)
                and all(isinstance(item, str) and re.fullmatch(r"[\w-]+", item) for item in value)
                and len(set(value)) == len(value)
            ),
        ),
        dict: ("an object", lambda value: isinstance(value, dict)),
        "kind": _one_of(*REQUIRED),
        "dtype": _one_of(*(np.dtype(scalar).str for scalar in SCALARS)),
        "source": (
            "an object with the strings `url` and `id`",
            lambda value: (
                isinstance(value, dict)
                and all(isinstance(value.get(name), str) for name in ("url", "id"))
            ),
        ),
        "local_operator": _one_of(None, *OPERATORS),
        "oversampled": (
            f"null or an object with some of {', '.join(SETTINGS)}",
            lambda value: (
                value is None or (isinstance(value, dict) and set(value) <= set(SETTINGS))
            ),
        ),
        "run": ("a string or null", lambda value: value is None or isinstance(value, str)),
    }
    for name in names:
        if name not in attributes:
            raise StoreError(
                f"{place.url}: the attribute `{name}` is missing in zarr.json: {REMEDY}"
            )
        value = attributes[name]
        expected, good = table.get(name) or table[type(DEFAULTS[name])]
        if not good(value):
            raise StoreError(
                f"{place.url}: the attribute `{name}` in zarr.json must be {expected}, "
                f"got {value!r}: {REMEDY}"
            )


def found_attributes(place: Place) -> dict[str, Any] | None:
    """Return the attributes of the group at a location, or None if there is no group."""
    with failures(place, "opened"):
        text = (place / "zarr.json").find()
    if text is None:
        return None
    try:
        group = json.loads(text)
        attributes = group.get("attributes", {})
        if not isinstance(attributes, dict):
            raise ValueError("its attributes are not an object")
        if attributes and (group.get("zarr_format"), group.get("node_type")) != (3, "group"):
            raise ValueError("it does not describe a group of format 3")
    except (ValueError, AttributeError, RecursionError) as error:
        raise StoreError(f"{place.url}: zarr.json is damaged ({error}): {REMEDY}") from None
    return attributes


def is_unfinished(place: Place) -> bool:
    """Return whether a location holds a store without its attributes, which are written last."""
    names = set(place.names())
    return "zarr.json" not in names and bool(names & {"parts", "basis", "labels", "fine", "work"})
