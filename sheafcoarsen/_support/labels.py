"""Vertex labels: what they stand for in arguments, and as JSON in files and in stores."""

import json
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support.arrays import integer_array

Vertices: TypeAlias = npt.ArrayLike | Sequence[Hashable]
"""Indices of vertices, their names where the sheaf has some, or a mask."""


class Named(Protocol):
    """What vertices are looked up in: a sheaf, of which this floor knows no more."""

    @property
    def vertex_labels(self) -> tuple | None:
        """The names of its vertices."""

    @property
    def n_vertices(self) -> int:
        """The number of its vertices."""


def vertex_indices(
    name: str,
    value: Vertices,
    sheaf: Named,
    *,
    once: bool = False,
    names_only: bool = False,
) -> np.ndarray:
    """Return indices of vertices given by indices, by names where the sheaf has some, or a mask.

    An integer that is the name of one vertex and the index of another is refused, unless
    ``names_only``: then a sheaf with names takes nothing else. ``once`` refuses repeated vertices.
    """
    n, labels = sheaf.n_vertices, sheaf.vertex_labels
    given: Any = (
        value if isinstance(value, Sequence) else np.asarray(value)
    )  # of tuples, a list stays
    if _is_mask(given):
        if np.shape(given) != (n,):
            raise ValueError(f"`{name}`, a mask, must have shape ({n},), got {np.shape(given)}")
        return np.flatnonzero(given)
    several = not isinstance(given, str | bytes) and getattr(given, "ndim", 1) > 0
    if labels is not None and several and labels != tuple(range(n)):
        where = {label: v for v, label in enumerate(labels)}
        limit = 0 if names_only else n
        numbers = [_index(f"`{name}[{i}]`", item, where, limit) for i, item in enumerate(given)]
        found = np.array(numbers, np.int64)
    else:
        hint = "this sheaf has no names, F.with_labels(names) gives it some"
        found = integer_array(name, given, names=hint if labels is None else "pass a list of names")
        beyond = np.flatnonzero((found < 0) | (found >= n))
        if beyond.size:
            i = int(beyond[0])
            raise ValueError(
                f"`{name}[{i}]` = {found[i]} is out of range for {n} vertices (0 .. {n - 1})"
            )
    if once and len(found) and (counts := np.bincount(found)).max() > 1:
        twice = int(counts.argmax())
        i, j = np.flatnonzero(found == twice)[:2].tolist()
        raise ValueError(
            f"`{name}` must name every vertex once, got vertex {twice} at index {i} and again at "
            f"{j}"
        )
    return found


def _is_mask(given: Sequence | np.ndarray) -> bool:
    if isinstance(given, np.ndarray):
        return given.dtype == bool
    return len(given) > 0 and all(isinstance(item, bool | np.bool_) for item in given)


def _index(what: str, item: Any, where: dict[Hashable, int], limit: int) -> int:
    """Return the vertex that an item names, or is the index of where that is below ``limit``."""
    try:
        named = where.get(item)
    except TypeError:
        raise TypeError(f"{what} must be the name of a vertex, got {item!r}") from None
    number = isinstance(item, int | float | np.integer | np.floating)
    index = int(item) if number and 0 <= item < limit and item % 1 == 0 else named
    if index is None:
        or_index = f", and no index in 0 .. {limit - 1}" if limit else ""
        raise ValueError(f"{what} = {item!r} is not the name of a vertex{or_index}")
    if named not in (None, index):
        raise ValueError(
            f"{what} = {item!r} is the name of vertex {named} and the index of another: "
            f"F.vertices_of([{item!r}]) is the index of what has the name, a mask leaves no doubt"
        )
    return index


def vertex_mask(
    name: str,
    value: Vertices,
    sheaf: Named,
    *,
    once: bool = False,
) -> np.ndarray:
    """Return a mask of shape (n,) of the vertices that `vertex_indices` finds."""
    mask = np.zeros(sheaf.n_vertices, bool)
    mask[vertex_indices(name, value, sheaf, once=once)] = True
    return mask


def encode_labels(labels: Iterable[Hashable]) -> np.ndarray:
    """Return labels as the bytes of a JSON list, a tuple as {"tuple": [...]}; or a TypeError."""
    return np.frombuffer(json.dumps([_plain(label) for label in labels]).encode(), np.uint8)


def decode_labels(data: np.ndarray, n_vertices: int) -> tuple[Hashable, ...]:
    """Return the labels that `encode_labels` wrote; a ValueError unless they are distinct names."""
    try:
        labels = tuple(map(_label, json.loads(data.tobytes().decode())))
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"`vertex_labels` cannot be read ({error})") from None
    if len(set(labels)) < len(labels) or None in labels:
        raise ValueError("`vertex_labels` must be names that tell the vertices apart")
    if len(labels) != n_vertices:
        raise ValueError(f"`vertex_labels` has {len(labels)} names for {n_vertices} vertices")
    return labels


def _plain(label: object) -> object:
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return {"tuple": [_plain(item) for item in label]}
    if label is None or isinstance(label, bool | int | float | str):
        return label
    raise TypeError(
        f"vertex label {label!r} cannot be saved: only numbers, strings, booleans, None and "
        f"tuples of them can; F.with_labels(None) leaves them out"
    )


def _label(item: object) -> Hashable:
    if isinstance(item, dict) and list(item) == ["tuple"] and isinstance(item["tuple"], list):
        return tuple(map(_label, item["tuple"]))
    if isinstance(item, dict | list):
        raise ValueError("a name is neither a number nor text nor a tuple of them")
    return item
