"""Measure the cost of the first calls on a machine: seconds of compilation with an empty cache.

    python -m benchmarks.first_call                prints the rows of docs/benchmarks.md
    python -m benchmarks.first_call --top 12       also prints the slowest kernels of each call

Each chain of calls runs in a fresh process with an empty ``NUMBA_CACHE_DIR`` and one thread. Only
the processor time of compilations is counted, as numba reports them.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from numba.core import event

REPOSITORY = Path(__file__).parent.parent

CHAINS = (("select + coarsen", "oversampled after it"), ("select + coarsen", "verify after it"))


class Clock(event.Listener):
    """Processor time of compilations, in total, and of each kernel without those that it calls."""

    def __init__(self):
        self.open, self.seconds, self.kernels = [], 0.0, collections.Counter()
        event.register("numba:compile", self)

    def on_start(self, event):
        """Start the clock of a kernel."""
        self.open.append([time.process_time(), 0.0])

    def on_end(self, event):
        """Stop the clock, and subtract its time from that of the calling kernel."""
        begun, inside = self.open.pop()
        seconds = time.process_time() - begun
        name = event.data["dispatcher"].py_func.__qualname__.partition("-")[0]
        self.kernels[name] += seconds - inside
        if self.open:
            self.open[-1][1] += seconds
        else:
            self.seconds += seconds


def calls():
    """Return the calls by name; all of them use the result of the first call."""
    import networkx as nx

    import sheafcoarsen as sc

    F = sc.CellularSheaf.constant(nx.karate_club_graph())
    left = {}

    def first():
        left["P"] = sc.select(F, 6)
        left["C"] = sc.coarsen(F, left["P"], 2)

    return {
        "select + coarsen": first,
        "oversampled after it": lambda: sc.coarsen(F, left["P"], 2, local_operator="oversampled"),
        "verify after it": lambda: sc.verify(left["C"]),
    }


def child(chain):
    """Run a chain of calls, and print the compilation times of each as JSON."""
    clock, results = Clock(), []
    functions = calls()
    for name in chain:
        clock.seconds, clock.kernels = 0.0, collections.Counter()
        functions[name]()
        results.append({"seconds": clock.seconds, "kernels": clock.kernels.most_common()})
    print(json.dumps(results))


def measure(chain):
    """Return the compilation times of a chain of calls in a fresh process with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        one = dict.fromkeys(("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.first_call", "--child", *chain],
            cwd=REPOSITORY,
            env=os.environ | one | {"NUMBA_CACHE_DIR": folder},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    return json.loads(done.stdout)


def main():
    """Measure every chain and print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--top", type=int, default=0, help="number of kernels to show per call")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child)
        return
    rows = {}
    for chain in CHAINS:
        for name, result in zip(chain, measure(chain), strict=True):
            rows.setdefault(name, result)
    for name, result in rows.items():
        print(f"{name}: {result['seconds']:.1f} s of compiling")
        for kernel, seconds in result["kernels"][: args.top]:
            print(f"    {seconds:6.2f}  {kernel}")
    print(
        "| first call, empty cache: "
        + "; ".join(rows)
        + " | "
        + "; ".join(f"{result['seconds']:.0f} s" for result in rows.values())
        + " |"
    )


if __name__ == "__main__":
    main()
