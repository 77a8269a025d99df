"""Where a coarsening came from: its input, its parameters, and what to type for the same again."""

import datetime
import importlib.metadata
import platform
from dataclasses import dataclass, field

import numpy as np

from sheafcoarsen._support import tables
from sheafcoarsen.coarsening import Coarsening


@dataclass(frozen=True)
class Origin:
    """What a caller knows of a coarsening beyond the coarsening itself."""

    name: str | None = None  # of the input
    parameters: dict[str, object] = field(default_factory=dict)  # all of them, defaults too
    command: str | None = None  # the line that was typed, with all defaults
    times: dict[str, float] = field(default_factory=dict)  # seconds of stages before the report


def oversampling_of(C: Coarsening) -> dict[str, object]:
    """Return rings and target where the local operator has them."""
    if C.modes is None:
        return {}
    found = {name: getattr(C.modes.operator, name, None) for name in ("rings", "target")}
    return {name: value for name, value in found.items() if value is not None}


def parameters_of(C: Coarsening) -> dict[str, object]:
    """Return the parameters of `coarsen` that a coarsening still shows."""
    modes = C.modes
    shown: dict[str, object] = {"clusters": C.partition.n_clusters}
    if modes is None:
        shown["basis"] = "the user's own"
    else:
        shown["rank"] = tables.span(modes.ranks)
        shown["local operator"] = modes.local_operator
        shown |= oversampling_of(C)
    shown["loops"], shown["compress"] = C.loops, C.crossing_rows is None
    return shown


def call_of(C: Coarsening) -> str:
    """Return the call of `coarsen` that makes it of its sheaf F and partition P."""
    modes = C.modes
    options = []
    if modes is None:
        options.append("basis=blocks")
    else:
        one = len(np.unique(modes.ranks)) == 1
        options.append(f"rank={int(modes.ranks[0])}" if one else "rank=ranks")
        options.append(f'local_operator="{modes.local_operator}"')
        options += [f"{name}={value!r}" for name, value in oversampling_of(C).items()]
    options += [f"loops={C.loops}", f"compress={C.crossing_rows is None}"]
    return f"sc.coarsen(F, P, {', '.join(options)})"


def versions() -> str:
    """Return the versions that numbers may depend on."""
    found = [f"sheafcoarsen {importlib.metadata.version('sheafcoarsen')}"]
    found += [f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "scipy", "numba")]
    return ", ".join([*found, f"Python {platform.python_version()}"])


def today() -> str:
    """Return date and time, with the offset from UTC."""
    return datetime.datetime.now().astimezone().isoformat(sep=" ", timespec="minutes")
