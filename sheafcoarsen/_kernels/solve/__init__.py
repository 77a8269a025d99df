"""Loops of :mod:`sheafcoarsen.solve`."""

from sheafcoarsen._kernels.solve.frames import carry_frames

__all__ = ["carry_frames"]
