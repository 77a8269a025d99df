"""Measure runs from store to store: processor time, planning, two workers, memory.

    python -m benchmarks.distributed [--size smoke|small|medium|large] [--only NAME] [--folder DIR]

Stores are written to a temporary folder in --folder, or in that of the system; ``--size large``
needs 20 GB and takes 15 minutes. Workers are processes on this machine with one thread each. Their
peak memory is read from the operating system; every result is verified on random cochains.
"""

import contextlib
import ctypes
import gc
import shutil
import tempfile
import threading
import time
import tracemalloc
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from benchmarks import report, workloads
from benchmarks.case import RANK, SIZE
from benchmarks.child import status
from benchmarks.report import Row
from benchmarks.timing import paired
from sheafcoarsen.distributed._estimate import Request, planned
from sheafcoarsen.distributed.location import place_of


class Size(NamedTuple):
    """Vertices of W1, side of the grid that exceeds memory, memory limit of a worker, rounds."""

    vertices: int
    side: int
    limit: str
    rounds: int


SIZES = {
    "smoke": Size(2000, 12, "500MB", 1),
    "small": Size(100_000, 55, "500MB", 3),
    "medium": Size(1_000_000, 110, "500MB", 3),
    "large": Size(1_000_000, 198, "500MB", 2),
}
DIM = 4
"""Dimension of the stalks on the grid, with 256 bytes of maps per edge."""


def grid_pieces(side, planes=2):
    """Yield pieces of a 3-D grid with general maps near the identity, some planes at a time."""
    index = np.arange(side**3, dtype=np.int32).reshape(side, side, side)
    for x in range(0, side, planes):
        rng = np.random.default_rng(x)
        here, above = index[x : x + planes], index[x + 1 : x + planes + 1]
        pairs = (
            (here[:, :, :-1], here[:, :, 1:]),
            (here[:, :-1], here[:, 1:]),
            (index[x : x + len(above)], above),
        )
        edges = np.concatenate([np.stack([u.ravel(), v.ravel()], axis=1) for u, v in pairs])
        edges = edges[np.argsort(edges[:, 0], kind="stable")]
        maps = []
        for _ in range(2):
            values = rng.random((len(edges), DIM * DIM)) - 0.5
            values[:, :: DIM + 1] += 1
            maps.append(values.reshape(-1))
        yield edges, DIM, *maps


@contextlib.contextmanager
def workers(count, limit):
    """Start workers with one thread each, let them load the library, and yield a client."""
    import dask
    from distributed import Client, LocalCluster

    def warm():
        G = sc.CellularSheaf.random(np.array([[0, 1], [1, 2], [2, 3]]), 2, 3, seed=0)
        src = dist.to_store("memory://warm", G)
        dist.coarsen(src, "memory://warmer", [0, 0, 1, 1], 1)

    settings = {"distributed.nanny.pre-spawn-environ.NUMBA_NUM_THREADS": 1}
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            memory_limit=limit,
            host="127.0.0.1",
            dashboard_address=":0",
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(warm)
        yield client


class Peaks:
    """Peak resident memory of each worker and of this process, from the operating system.

    A process's record ends with the process, so it is read often to catch workers that are killed.
    """

    def __init__(self, client):
        self.client, self.found, self.ended = client, {}, threading.Event()
        self.pids = set(client.run(lambda: __import__("os").getpid()).values())
        self.parents = {psutil.Process(pid).ppid() for pid in self.pids}
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def look(self):
        """Read the peaks once, including those of workers that replaced killed ones."""
        for parent in self.parents:
            for process in psutil.Process(parent).children(recursive=True):
                with contextlib.suppress(psutil.Error, OSError, StopIteration):
                    if "spawn_main" in " ".join(process.cmdline()):
                        peak = max(process.memory_info().rss, high_water(process.pid))
                        self.found[process.pid] = max(self.found.get(process.pid, 0), peak)

    def watch(self):
        """Read the peaks repeatedly until ``ended`` is set."""
        while not self.ended.wait(0.05):
            self.look()

    def __enter__(self):
        gc.collect()
        libc = ctypes.CDLL(None)
        if hasattr(libc, "malloc_trim"):  # memory freed before would hide the peak
            libc.malloc_trim(0)
        with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as stream:
            stream.write("5")  # reset the recorded peak of this process
        self.before = psutil.Process().memory_info().rss
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.look()
        self.ended.set()
        self.thread.join()
        with contextlib.suppress(OSError, StopIteration):
            self.driver = status("VmHWM") - self.before


def high_water(pid):
    """Return the peak resident memory of a process, or 0 if the system does not record it."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as stream:
        for line in stream:
            if line.startswith("VmHWM"):
                return 1024 * int(line.split()[1])
    return 0


def clustered(src, size):
    """Return clusters of a stored sheaf with about ``size`` vertices each."""
    return sc.select(src.topology()[0], max(src.n_vertices // size, 2))


# ---------------------------------------------------------------- measurements


def processor_time(size, folder):
    """Compare the processor time of a run from store to store with one in memory."""
    F = workloads.build("W1", size.vertices)
    P = sc.select(F, max(F.n_vertices // SIZE, 2))
    src = dist.to_store(folder / "src", F)

    def from_store():
        shutil.rmtree(folder / "out", ignore_errors=True)
        return dist.coarsen(src, folder / "out", P, RANK, compress=False)

    def in_memory():
        return sc.coarsen(F, P, RANK)

    times = paired({"store": from_store, "memory": in_memory}, size.rounds, clock=time.process_time)
    one, other = times.answers["memory"], from_store().load()
    assert np.array_equal(one.sheaf.tail_data, other.sheaf.tail_data)
    assert np.array_equal(one.prolongation.data, other.prolongation.data)
    ours, theirs = times.median("store"), times.median("memory")
    ratio = times.ratio("store", "memory")
    yield row("processor time, store to store", "in memory", F, "<=", 1.6, ours, theirs, ratio)


def planning(size, folder):
    """Measure time and memory per edge of making and writing the plan."""
    F = workloads.build("W1", size.vertices)
    src = dist.to_store(folder / "src", F)
    asked = Request(src, sc.select(F, max(F.n_vertices // SIZE, 2)), RANK)

    def plan():
        shutil.rmtree(folder / "plan", ignore_errors=True)
        return planned(asked, 5e8)[0].write(place_of(folder / "plan"))

    times = paired({"plan": plan}, size.rounds, clock=time.process_time)
    per_edge = times.median("plan") / F.n_edges
    yield row("the plan, an edge", "", F, "<=", 2e-7, per_edge)
    tracemalloc.start()
    plan()
    peak = tracemalloc.get_traced_memory()[1] / F.n_edges
    tracemalloc.stop()
    yield row("memory to plan, an edge", "", F, "<=", 60, peak, unit="B")


def two_workers(size, folder):
    """Compare the wall times of one and two workers; nothing else may run at the same time."""
    F = workloads.build("W1", size.vertices)
    P = sc.select(F, max(F.n_vertices // SIZE, 2))
    src = dist.to_store(folder / "src", F)
    with contextlib.ExitStack() as stack:
        clients = {n: stack.enter_context(workers(n, "2GB")) for n in (1, 2)}

        def run(n):
            shutil.rmtree(folder / "out", ignore_errors=True)
            return dist.coarsen(src, folder / "out", P, RANK, client=clients[n]).report

        times = paired({str(n): lambda n=n: run(n) for n in clients}, size.rounds, budget=100)
    ours, theirs = times.median("2"), times.median("1")
    note = f"{src.n_bytes / 1e9:.2g} GB"
    ratio = times.ratio("1", "2")
    yield row("two workers", "one worker", F, ">=", 1.5, ours, theirs, ratio, note=note)


def memory(size, folder):
    """Measure the memory of a run whose sheaf is larger than the memory of all workers."""
    dims = np.full(size.side**3, DIM)
    src = dist.write_store(folder / "src", dims, grid_pieces(size.side), part_bytes=16e6)
    P = clustered(src, 30)
    with workers(2, size.limit) as client, Peaks(client) as peaks:
        start = time.perf_counter()
        C = dist.coarsen(src, folder / "out", P, DIM, client=client, progress=True)
        seconds = time.perf_counter() - start
    E = C.report["estimate"]
    peak, limit = max(peaks.found.values()), dask_bytes(size.limit)
    killed = len(peaks.found) - 2
    note = f"{src.n_bytes / 1e9:.3g} GB of maps in {seconds:.0f} s; {killed} workers killed"
    yield row("peak of a worker", "its limit", src, "<=", 1, peak, limit, note=note, unit="B")
    yield row("peak of a worker", "the estimate", src, "<=", 1, peak, E["task_bytes"], unit="B")
    driver = getattr(peaks, "driver", None)
    if driver is not None:
        yield row(
            "peak of the driver",
            "the estimate",
            src,
            "<=",
            1.5,
            driver,
            E["driver_bytes"],
            unit="B",
        )
    assert C.verify(probes=1).passed


def dask_bytes(text):
    from dask.utils import parse_bytes

    return parse_bytes(text)


def row(claim, against, F, sense, floor, ours, theirs=None, ratio=None, **more):
    if ratio is None and theirs is not None:
        ratio = ours / theirs
    return Row(
        claim,
        against,
        "W1" if isinstance(F, sc.CellularSheaf) else "grid",
        F.n_vertices,
        sense=sense,
        floor=floor,
        ours=ours,
        theirs=theirs,
        ratio=ratio,
        **more,
    )


MEASURES = {"cpu": processor_time, "plan": planning, "workers": two_workers, "memory": memory}


def main():
    """Run the requested measurements and print their rows."""
    parser = report.parser(__doc__, SIZES)
    parser.add_argument("--only", choices=MEASURES, action="append")
    parser.add_argument("--folder", metavar="DIR")
    args = parser.parse_args()
    warnings.simplefilter("ignore", sc.TiedModesWarning)
    print(report.machine_line(report.machine()), report.heading(), sep="\n\n", flush=True)
    for name in args.only or MEASURES:
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            for found in MEASURES[name](SIZES[args.size], Path(folder)):
                print(report.line(found), flush=True)


if __name__ == "__main__":
    main()
