"""Types that signatures of several folders share."""

import os
from typing import TypeAlias

import numpy as np

Seed: TypeAlias = int | np.random.Generator | None
"""What ``numpy.random.default_rng`` is given; None draws anew each time."""

PathLike: TypeAlias = str | os.PathLike[str]
"""A file's name."""
