"""After Ctrl-C: BLAS threads as before, no thread at work, files whole, and the next call works."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import networkx as nx
import numpy as np
import pytest
import tqdm
from threadpoolctl import threadpool_limits

import sheafcoarsen as sc
from sheafcoarsen._support import threads
from tests.support.helpers import blas_threads


@pytest.fixture(autouse=True)
def interrupts_arrive():
    """Let SIGINT raise: a shell's background jobs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


CHILD = """
    import os, random, signal, sys, threading, time
    import networkx as nx, numpy as np
    import scipy.linalg
    from threadpoolctl import ThreadpoolController
    import sheafcoarsen as sc

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    blas = ThreadpoolController().select(user_api="blas")
    blas.limit(limits=3)  # a number that nobody sets by default
    before = [library.num_threads for library in blas.lib_controllers]
    assert set(before) <= {1, 2, 3} and len(before) > 0

    G = nx.random_regular_graph(4, 100, seed=1)
    F = sc.CellularSheaf.connection(G, np.eye(3)[None].repeat(200, 0))
    P = sc.select(F, 10)
    rank = sc.ranks.budget(70).whole_multiplets()
    wanted = sc.coarsen(F, P, rank)
    done = interrupted = 0
    delays = random.Random(5)
    folder = sys.argv[1]
    # compiles what it needs: an interrupted compilation begins anew
    sc.save(os.path.join(folder, "c.npz"), wanted)
    sc.load(os.path.join(folder, "c.npz"))
    while interrupted < 12:
        try:
            timer = threading.Timer(delays.uniform(0.0, 0.1), os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            # Python itself swallows an interrupt in a finalizer: then the next one
            while timer.is_alive():
                C = sc.coarsen(F, P, rank)
                sc.save(os.path.join(folder, "c.npz"), C)
                done += 1
        except KeyboardInterrupt:
            interrupted += 1
        # numba's way to pass on one that came while it was converting arguments or results
        except SystemError as error:
            while error is not None and not isinstance(error, KeyboardInterrupt):
                error = error.__cause__
            assert error is not None
            interrupted += 1
        assert [library.num_threads for library in blas.lib_controllers] == before, "BLAS threads"
        names = [thread.name for thread in threading.enumerate()]
        assert not [name for name in names if "ThreadPool" in name], "threads at work"
        assert set(os.listdir(folder)) <= {"c.npz"}, "half-written files"
        C = sc.coarsen(F, P, rank)
        assert np.array_equal(C.prolongation.data, wanted.prolongation.data), "the next call"
        if os.path.exists(os.path.join(folder, "c.npz")):
            assert sc.load(os.path.join(folder, "c.npz")).ranks.sum() == wanted.ranks.sum()
    print("interrupted", interrupted, "times; finished", done)
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_interrupts_at_any_time_leave_a_valid_state(threads, tmp_path):
    command = [sys.executable, "-c", textwrap.dedent(CHILD), str(tmp_path)]
    options = {"env": {**os.environ, "NUMBA_NUM_THREADS": str(threads)}, "timeout": 300}
    run = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert run.returncode == 0, run.stderr
    assert "interrupted 12 times" in run.stdout


GRID = sc.gallery.bundle(nx.grid_2d_graph(25, 25), 2, noise=0.05, seed=0)
FREE = sc.gallery.bundle(nx.grid_2d_graph(25, 25), 2, seed=0)
TWICE = GRID.with_maps(2 * GRID.tail_data, 2 * GRID.head_data)
SOLVER = sc.Solver(GRID, method="multigrid")
HALVES = sc.coarsen(GRID, sc.select(GRID, 60), 2)
ONES = np.ones(GRID.dim_c0)


def eigenvalues(method, **options):
    return sc.eigenmodes(GRID, 4, method=method, **options).values


def solved():
    return sc.Solver(GRID, method="multigrid", **SHOWN)(ONES)


def updated():
    SOLVER.update(TWICE)
    SOLVER.update(GRID)
    return SOLVER(ONES)


SHOWN = {"progress": True}
ANSWERS = {  # the keys are the functions that are interrupted
    "solve.eigensolver.lowest_pairs": lambda: eigenvalues("multilevel", **SHOWN),
    "solve.eigensolver.Factors.solve": lambda: eigenvalues("direct"),
    "solve._solver.conjugate_gradients": solved,
    "solve.multigrid.Multigrid._coarsened": solved,
    "solve._solver.laplacian": updated,
    "solve._solver.Solver._precondition": lambda: SOLVER.as_preconditioner() @ ONES,
    "solve._leverages.solve_in_range": lambda: sc.leverages(GRID, method="sketch", eps=0.5),
    "solve._least_squares.conjugate_gradients": lambda: (
        sc.least_squares(GRID, np.ones(GRID.dim_c1), **SHOWN).x
    ),
    "quality.smallest_singular_values.singular_pairs": lambda: (
        sc.spectral_quality(HALVES, 4, **SHOWN).coarse
    ),
    "sections._global_sections.reduce_level": lambda: sc.global_sections(FREE).basis,
}


@pytest.mark.large
@pytest.mark.parametrize(("inside", "ask"), ANSWERS.items(), ids=ANSWERS)
def test_interrupted_solves_leave_no_side_effects(inside, ask, monkeypatch):
    """BLAS threads are restored, no thread or bar remains, and the next result is the same."""
    wanted = ask()

    def interrupted(*given, **options):
        assert set(blas_threads()) == {1}
        signal.raise_signal(signal.SIGINT)

    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        with monkeypatch.context() as patch:
            patch.setattr(f"sheafcoarsen.{inside}", interrupted)
            with pytest.raises(KeyboardInterrupt):
                ask()
        assert blas_threads() == before
        assert not [t.name for t in threading.enumerate() if "ThreadPool" in t.name]
        assert not [shown for shown in getattr(tqdm.tqdm, "_instances", ()) if not shown.disable]
        again = ask()
        assert blas_threads() == before
    assert np.abs(again - wanted).max() <= 1e-10 * np.abs(wanted).max() > 0


class InterruptedBar:
    """A progress bar in whose first step the user presses Ctrl-C."""

    def __init__(self, total, description, show):
        self.description = description

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def update(self, count):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")
def test_interrupt_between_two_ranges(count, monkeypatch):
    F = sc.CellularSheaf.constant(nx.random_regular_graph(4, 200, seed=2))
    P = sc.select(F, 40)
    before = blas_threads()
    wanted = sc.coarsen(F, P, 3)
    monkeypatch.setattr("sheafcoarsen._support.threads.thread_count", lambda: count)
    monkeypatch.setattr("sheafcoarsen.modes.problems.SERIAL_BELOW", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(threads, "bar", InterruptedBar)
        with pytest.raises(KeyboardInterrupt):
            # one thread has several ranges only if it shows progress
            sc.coarsen(F, P, 3, progress=count == 1)
    assert blas_threads() == before
    np.testing.assert_array_equal(sc.coarsen(F, P, 3).prolongation.data, wanted.prolongation.data)


@pytest.mark.parametrize("what", ["save", "report", "write_g2o"])
def test_interrupt_while_writing_keeps_the_old_file(what, tmp_path, monkeypatch):
    C = sc.coarsen(sc.CellularSheaf.constant(nx.path_graph(6)), sc.Partition([0, 0, 0, 1, 1, 1]), 2)
    path = tmp_path / "out"
    path.write_bytes(b"precious")
    with monkeypatch.context() as patch:
        patch.setattr(
            "sheafcoarsen._support.files.os.fsync", lambda _: signal.raise_signal(signal.SIGINT)
        )
        G = sc.PoseGraph([[0, 1]], [np.eye(2)], [[1.0, 0.0]])
        arguments = {"save": (path, C), "report": (C, path), "write_g2o": (path, G)}[what]
        with pytest.raises(KeyboardInterrupt):
            getattr(sc, what)(*arguments)
    assert (os.listdir(tmp_path), path.read_bytes()) == (["out"], b"precious")


def test_keyboard_interrupt_is_not_converted(tmp_path, monkeypatch):
    """Zipfile raises an error about the file that an interrupt left open."""

    def fails(stream, **arrays):
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            raise ValueError("can't close the file")

    monkeypatch.setattr("sheafcoarsen.io._save_load.np.savez", fails)
    with pytest.raises(KeyboardInterrupt):
        sc.save(tmp_path / "out", sc.Partition([0]))
    assert os.listdir(tmp_path) == []


def test_error_after_a_handled_interrupt_is_raised(tmp_path, monkeypatch):
    def fails(stream, **arrays):
        raise OSError("no space left")

    monkeypatch.setattr("sheafcoarsen.io._save_load.np.savez", fails)
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        with pytest.raises(OSError, match="no space left"):
            sc.save(tmp_path / "out", sc.Partition([0]))


@pytest.mark.large
def test_factorization_does_not_delay_an_interrupt(monkeypatch):
    """SuperLU does not react to interrupts, so it runs in a separate thread."""
    from sheafcoarsen.operators import factorization

    real, begun, go_on = factorization.splu, threading.Event(), threading.Event()

    def slow(*args, **options):
        begun.set()
        assert go_on.wait(60)
        return real(*args, **options)

    def press():
        begun.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    wanted = sc.eigenmodes(GRID, 4, method="direct").values
    with monkeypatch.context() as patch:
        patch.setattr(factorization, "splu", slow)
        threading.Thread(target=press).start()
        with pytest.raises(KeyboardInterrupt):
            sc.eigenmodes(GRID, 4, method="direct")
        assert not go_on.is_set()
        go_on.set()
    np.testing.assert_array_equal(sc.eigenmodes(GRID, 4, method="direct").values, wanted)
