"""Measurements in a separate process, each of which prints one line of JSON.

    python -m benchmarks.child start                    seconds to import, to coarsen a small sheaf
    python -m benchmarks.child threads W1 10000 ROUNDS  seconds for modes, for the set-up
    python -m benchmarks.child memory W1 10000 [L]      peak memory above the input, bytes returned

``benchmarks.stages`` starts these processes.
"""

import ctypes
import gc
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent


def run(*arguments, threads=None):
    """Run this module in a new process, and return the JSON that it prints."""
    environment = dict(os.environ)
    if threads is not None:
        environment["NUMBA_NUM_THREADS"] = str(threads)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.child", *map(str, arguments)],
        cwd=REPOSITORY,
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout)


def start():
    begin = time.perf_counter()
    import sheafcoarsen as sc

    imported = time.perf_counter() - begin
    from benchmarks import checks, workloads

    F = workloads.build("W1", 600)
    warnings.simplefilter("ignore", sc.TiedModesWarning)
    begin = time.perf_counter()
    P = sc.select(F, 15)
    C = sc.coarsen(F, P, 6)
    coarsened = time.perf_counter() - begin
    checks.same_coarse(
        "coarse L", sc.laplacian(C.sheaf), C.galerkin(), sc.laplacian(F), C.clusters.dims.max()
    )
    return {"import": imported, "coarsen": coarsened}


def threads(name, n, rounds):
    from benchmarks.case import Case
    from benchmarks.timing import paired

    case = Case(name, int(n))
    times = paired({"modes": case.local_modes, "whole": case.whole}, int(rounds))
    case.check_whole(times.answers["whole"])
    return {key: times.median(key) for key in times.seconds}


def memory(name, n, what=""):
    from benchmarks.case import Case

    if sys.platform != "linux":
        return {"peak": None}
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):  # return freed arrays, else the peak depends on earlier ones
        libc.mallopt(-3, 1 << 17)  # M_MMAP_THRESHOLD
    Case(name, 2000).whole()  # load the kernels before measuring
    case = Case(name, int(n))
    gc.collect()
    if hasattr(libc, "malloc_trim"):  # memory freed after building the input would hide the peak
        libc.malloc_trim(0)
    known = buffers(case.F)
    try:
        with open("/proc/self/clear_refs", "w") as stream:
            stream.write("5")  # reset the recorded peak
        before = status("VmRSS")
        result = case.whole() if what else case.coarsened()
        peak = status("VmHWM") - before
    except OSError:
        return {"peak": None}
    new = {address: size for address, size in buffers(result).items() if address not in known}
    return {"peak": peak, "returned": sum(new.values())}


def status(key):
    with open("/proc/self/status") as stream:
        return next(1024 * int(line.split()[1]) for line in stream if line.startswith(key))


def buffers(*items):
    """Return the addresses and sizes of all array buffers that are reachable from given objects."""
    import numpy as np
    import scipy.sparse

    found, seen, queue = {}, set(), list(items)
    while queue:
        item = queue.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, np.ndarray):
            while isinstance(item.base, np.ndarray):
                item = item.base
            found[item.ctypes.data] = item.nbytes
        elif scipy.sparse.issparse(item):
            queue += [item.data, item.indices, item.indptr]
        elif isinstance(item, tuple):
            queue += item
        elif type(item).__module__.startswith("sheafcoarsen"):
            queue += vars(item).values()
    return found


if __name__ == "__main__":
    mode, *arguments = sys.argv[1:]
    print(json.dumps({"start": start, "threads": threads, "memory": memory}[mode](*arguments)))
