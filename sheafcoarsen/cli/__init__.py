"""The command line, and what it compiles ahead of time.

``commands``
    What a user types: ``sheafcoarsen coarsen | store | eliminate | synchronize | modes | levels |
    info | verify | compile | demo``. Exit status 0; 1 where a check failed; 2 for bad input, with
    one line on standard error.
``answers``
    Lowest modes, and a hierarchy of levels.
``poses``
    From a file of relative poses to a certified map.
``outputs``
    Files that commands write, and what they say of them.
``stores``
    From store to store, shard by shard.
``compilation``
    Kernels compiled ahead of their first use by processes side by side, for images and clusters.

>>> from sheafcoarsen.cli import main
>>> main(["info", "no such file.mtx"])
2
"""

from sheafcoarsen.cli.commands import main
from sheafcoarsen.cli.compilation import compile_kernels

__all__ = ["compile_kernels", "main"]
