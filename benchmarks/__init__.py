"""Benchmarks against named yardsticks; every answer is checked before its time is shown.

``python -m benchmarks.large_sparse`` writes the first table of docs/benchmarks.md, ``python -m
benchmarks.fidelity`` the tables of docs/fidelity.md, ``python -m benchmarks.sections`` compares
``global_sections`` with eigensolvers. Modules, from the bottom up: ``timing``, ``checks``,
``workloads`` and ``sets`` (the sheaves), ``peers`` (the yardsticks), ``report``, ``case``,
``child`` (separate processes), ``stages``. No test asserts a time.
"""
