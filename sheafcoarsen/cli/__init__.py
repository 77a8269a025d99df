"""Command-line interface.

``commands``
    The commands ``sheafcoarsen coarsen | store | eliminate | synchronize | modes | levels |
    info | verify | compile | demo``. Exit status 0; 1 if a check failed; 2 for an error, with
    one line on standard error; 130 if interrupted.
``parser``
    The options of all commands.
``input_output``
    Input files and standard input; text, JSON and output files.
``compilation``
    Parallel compilation of kernels ahead of their first use, for container images.

>>> from sheafcoarsen.cli import main
>>> main(["info", "no such file.mtx"])
2
"""

from sheafcoarsen.cli.commands import main
from sheafcoarsen.cli.compilation import compile_kernels

__all__ = ["compile_kernels", "main"]
