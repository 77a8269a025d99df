"""Vertex labels: lookup of the vertices that they name, and encoding as JSON."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support.checks import first_true, integer_array, items

Vertices: TypeAlias = npt.ArrayLike | Sequence[Hashable]
"""Vertices as indices, as names (if the sheaf has names) or as a mask."""


def vertex_indices(name: str, value: Vertices, sheaf: Any, *, once: bool = False) -> np.ndarray:
    """Return indices of vertices given as indices, as names (if there are any) or as a mask.

    Integers are indices, except in an array of objects; so are floats, unless a name is a float.
    """
    n, labels = sheaf.n_vertices, sheaf.vertex_labels
    if hasattr(value, "__array__"):  # of pandas, for instance
        value = np.asarray(value)
    if labels is not None and isinstance(value, str) and value in labels:
        raise TypeError(f"`{name}` must be a sequence, got the name {value!r}: pass [{value!r}]")
    if labels is not None and _are_names(value, labels) and labels != tuple(range(n)):
        found = named_vertices(name, list(value), labels)
    else:
        array = np.asarray(value)
        if array.dtype == bool:
            if array.shape != (n,):
                raise ValueError(f"`{name}`, a mask, must have shape ({n},), got {array.shape}")
            return np.flatnonzero(array)
        hint = "the vertices have no names; F.with_labels(names) sets them"
        if labels is not None:
            hint = f"vertices are named {labels[0]!r} .. {labels[-1]!r}" if n else "no vertices"
        found = integer_array(name, array, names=hint)
        if (i := first_true((found < 0) | (found >= n))) is not None:
            named = f"; {hint}, and F.vertices_of(names) finds their indices" if labels else ""
            raise ValueError(
                f"`{name}[{i}]` = {found[i]} is out of range for {n} vertices (0 .. {n - 1}){named}"
            )
    if once and len(found) and (counts := np.bincount(found)).max() > 1:
        twice = int(counts.argmax())
        i, j = np.flatnonzero(found == twice)[:2].tolist()
        raise ValueError(
            f"`{name}` must not repeat a vertex, got vertex {twice} at indices {i} and {j}"
        )
    return found


def _are_names(value: Any, labels: Sequence[Hashable]) -> TypeGuard[Sequence[Hashable]]:
    """Return whether a value holds names; floats do only if a vertex is named by a float."""
    whole = int | np.integer | np.bool_
    if isinstance(value, np.ndarray):
        if value.ndim != 1 or value.dtype.kind not in "UOf":
            return False
        are_numbers = value.dtype.kind == "f"
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        if all(isinstance(item, whole) for item in value):
            return False
        are_numbers = all(isinstance(item, whole | float | np.floating) for item in value)
    else:
        return False
    return not are_numbers or any(isinstance(label, float) for label in labels)


def named_vertices(name: str, value: Sequence[Hashable], labels: Sequence[Hashable]) -> np.ndarray:
    """Return the vertex index of each name."""
    if isinstance(value, str | bytes):
        raise ValueError(f"`{name}` must be 1-dimensional, got {value!r}: pass a list of names")
    names = items(name, value, "names of vertices")
    where = {label: v for v, label in enumerate(labels)}
    found = np.empty(len(names), np.int64)
    for i, item in enumerate(names):
        try:
            found[i] = where[item]
        except TypeError:
            raise TypeError(f"`{name}[{i}]` must be the name of a vertex, got {item!r}") from None
        except KeyError:
            raise ValueError(f"`{name}[{i}]` = {item!r} is not the name of a vertex") from None
    return found


def vertex_mask(name: str, value: Vertices, sheaf: Any, *, once: bool = False) -> np.ndarray:
    """Return a mask of shape (n,), True at the vertices that `vertex_indices` returns."""
    mask = np.zeros(sheaf.n_vertices, bool)
    mask[vertex_indices(name, value, sheaf, once=once)] = True
    return mask


def encode_labels(labels: Iterable[Hashable]) -> np.ndarray:
    """Encode labels as the bytes of a JSON list, in which a tuple becomes {"tuple": [...]}."""
    return np.frombuffer(json.dumps([_plain(label) for label in labels]).encode(), np.uint8)


def decode_labels(data: np.ndarray, n_vertices: int) -> tuple[Hashable, ...]:
    """Decode the labels of `encode_labels`; raise a ValueError unless they are distinct names."""
    try:
        labels = tuple(map(_label, json.loads(data.tobytes().decode())))
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"`vertex_labels` cannot be read ({error})") from None
    if len(set(labels)) < len(labels) or None in labels:
        raise ValueError("`vertex_labels` must be distinct names")
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
        f"tuples of them can; F.with_labels(None) removes all labels"
    )


def _label(item: object) -> Hashable:
    if isinstance(item, dict) and list(item) == ["tuple"] and isinstance(item["tuple"], list):
        return tuple(map(_label, item["tuple"]))
    if isinstance(item, dict | list):
        raise ValueError("names must be numbers, strings or tuples of them")
    return item
