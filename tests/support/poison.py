"""Arrays of ``numpy.empty`` with entries that show where they are read before they are written."""

import functools
import os

import numpy as np

IS_ON = os.environ.get("SHEAFCOARSEN_POISON", "0") not in ("", "0")


def poisoned(make):
    """Return ``numpy.empty`` or ``empty_like`` with NaN, the largest integer or True everywhere."""

    @functools.wraps(make)
    def filled(*args, **options):
        out = make(*args, **options)
        kind = out.dtype.kind
        if kind in "iu":
            out[...] = np.iinfo(out.dtype).max
        elif kind in "fcb":
            out[...] = {"f": np.nan, "c": complex(np.nan, np.nan), "b": True}[kind]
        return out

    return filled


NAMES = {make.__name__: poisoned(make) for make in (np.empty, np.empty_like)}
