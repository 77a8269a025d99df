"""``sheafcoarsen compile``: kernels compiled ahead, in processes of their own."""

import warnings

import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen._kernels import modes as kernels
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen.cli import compilation


def test_jobs_run_without_warnings():
    compilation.compile_one(lambda scalar: warnings.warn("an example", stacklevel=2), "float64")


def test_every_job_runs_and_the_kernels_of_all_rules_and_of_verify_are_compiled(monkeypatch):
    called = []

    def watch(owner, name):
        real = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args: called.append(name) or real(*args))

    rules = {"kernel_dims", "local_spectra", "oversampled_spectra", "singular_modes"}
    for name in rules:
        watch(kernels, name)
    watch(sc, "verify")
    for jobs, expected in ((compilation.USUAL, {"verify"}), (compilation.RARE, rules)):
        called.clear()
        for job in jobs:
            compilation.compile_one(job, "float64")
        assert expected <= set(called)


def cheap_job(scalar):
    sc.CellularSheaf(np.array([[0, 1]]), *np.ones((2, 1, 1, 1), np.dtype(scalar)))


@pytest.mark.skipif(JIT_IS_OFF, reason="nothing is compiled")
def test_other_processes_compile_kernels_into_the_cache(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compilation, "USUAL", (cheap_job,))
    compilation.compile_kernels(progress=True)
    assert list(tmp_path.rglob("*.nbc"))
    assert "100%" in capfd.readouterr().err
