"""The cellar: numba kernels that know only arrays.

They trust their input and fill what the caller allocated. numba's options are in ``jit.py``, what
numba has no word for in ``intrinsics.py`` and, for what stays in a register, ``vectors.py``;
``sources.py`` names compiled code after the files that it holds, so that code on disk is never
stale; ``notice.py`` says on the terminal that kernels are being compiled.
"""

from sheafcoarsen._kernels import notice

notice.watch()
