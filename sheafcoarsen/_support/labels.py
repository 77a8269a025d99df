"""Encoding of vertex labels as JSON, for files and stores."""

import json
from collections.abc import Hashable, Iterable

import numpy as np


def encode_labels(labels: Iterable[Hashable]) -> np.ndarray:
    """Return labels as the bytes of a JSON list, a tuple as {"tuple": [...]}; or a TypeError."""
    return np.frombuffer(json.dumps([_plain(label) for label in labels]).encode(), np.uint8)


def decode_labels(data: np.ndarray, n_vertices: int) -> tuple[Hashable, ...]:
    """Decode labels from `encode_labels`; a ValueError unless they are distinct names."""
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
