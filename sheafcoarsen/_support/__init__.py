"""Functions that all layers use: checks of arguments, norms, ragged arrays, threads, files.

Every public function converts and checks its arguments once, with these functions; internal
functions and kernels do not check. Messages give the argument in backticks, the expected and the
actual value, and a remedy:

>>> from sheafcoarsen._support import checks, ragged
>>> checks.whole_number("dim", 2.5)
Traceback (most recent call last):
TypeError: `dim` must be an integer, got 2.5

Ragged data (stalks, maps, clusters) is a flat array with the offsets of its blocks:

>>> starts = ragged.offsets([2, 0, 3])
>>> starts
array([0, 2, 2, 5])
>>> ragged.range_of_blocks(starts, [0, 2])
array([0, 1, 2, 3, 4])

Other packages import the modules and write ``checks.whole_number``; types of arguments are imported
by name.
"""

from sheafcoarsen._kernels.dense import EPS
from sheafcoarsen._support import (
    checks,
    files,
    labels,
    linalg,
    ragged,
    surfaces,
    tables,
    threads,
    warned,
)
from sheafcoarsen._support.checks import CochainLike, PathLike, Seed
from sheafcoarsen._support.labels import Vertices
from sheafcoarsen._support.ragged import ReadOnly

__all__ = [
    "EPS",
    "CochainLike",
    "PathLike",
    "ReadOnly",
    "Seed",
    "Vertices",
    "checks",
    "files",
    "labels",
    "linalg",
    "ragged",
    "surfaces",
    "tables",
    "threads",
    "warned",
]
