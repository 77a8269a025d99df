"""Rows of the benchmark, printed as lines, as JSON or as the table of docs/benchmarks.md."""

import argparse
import dataclasses
import importlib.metadata
import json
import os
import platform
import re
import sys
import textwrap
from pathlib import Path

import numba

from benchmarks.peers import blas

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
COLUMNS = ("W1", "W2", "W3")


def parser(doc, sizes=(), default="small"):
    """Return a parser of arguments that shows the docstring of a benchmark and has ``--size``."""
    shown = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=shown)
    if sizes:
        parser.add_argument("--size", choices=sizes, default=default)
    return parser


@dataclasses.dataclass(frozen=True)
class Row:
    """One claim on one workload."""

    claim: str
    against: str  # name of the yardstick, empty if there is none
    workload: str  # name of the workload
    vertices: int
    # ">=": the ratio is theirs / ours (speed-up); "<=": it is ours / theirs
    sense: str = ">="
    floor: float | None = None  # target of the ratio, or of ours if there is no yardstick
    ours: float | None = None
    theirs: float | None = None
    ratio: float | None = None
    unit: str = "s"  # "s" for seconds, "B" for bytes, "" for a number
    note: str = ""

    @property
    def result(self):
        """Text of the ratio, or of ours if there is no yardstick."""
        if self.ratio is not None:
            return f"{self.ratio:.3g}"
        return amount(self.ours, self.unit) if self.ours is not None else "-"

    @property
    def limit(self):
        """Text of the floor, with its sense."""
        if self.floor is None:
            return ""
        return f"{self.sense} {self.floor:g}{'' if self.against else ' ' + self.unit}".rstrip()


def amount(value, unit):
    """Return a number of seconds or bytes as text with a suitable unit."""
    if value is None:
        return "-"
    scales = {
        "s": ((1, "s"), (1e-3, "ms"), (1e-6, "us")),
        "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")),
        "": ((1, ""),),
    }[unit]
    scale, name = next((pair for pair in scales if value >= pair[0]), scales[-1])
    return f"{value / scale:.3g} {name}".rstrip()


def line(row):
    """Return a row of the terminal's table."""
    workload = f"{row.workload} {row.vertices:,}"
    ours, theirs = amount(row.ours, row.unit), amount(row.theirs, row.unit)
    claim = f"{row.claim} / {row.against}" if row.against else row.claim
    figures = f"{ours:>8} {theirs:>8} {row.result:>8}"
    return f"{claim:<78.78} {workload:<13} {figures}  {row.limit:<9} {row.note}".rstrip()


def heading():
    names = ("ours / yardstick", "workload", "ours", "theirs", "ratio", "floor", "")
    return "{:<78} {:<13} {:>8} {:>8} {:>8}  {:<9} {}".format(*names).rstrip()


PACKAGES = ("numpy", "scipy", "numba", "pyamg", "kaminpar")


def machine():
    """Return a description of the machine and the package versions, by name."""
    data = {
        "processors": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count()
    }
    data["architecture"] = platform.machine()
    data["numba threads"] = numba.config.NUMBA_NUM_THREADS
    data["BLAS threads"] = max(
        (pool["num_threads"] for pool in blas.info() if pool["user_api"] == "blas"), default=1
    )
    data["python"] = ".".join(map(str, sys.version_info[:3]))
    for package in PACKAGES:
        try:
            data[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            data[package] = "not installed"
    return data


def machine_line(data):
    threads = (
        f"{data['numba threads']} thread{'s' * (data['numba threads'] != 1)} of the library, "
        f"{data['BLAS threads']} of BLAS by default"
    )
    versions = ", ".join(f"{name} {data[name]}" for name in ("python", *PACKAGES))
    return f"{data['processors']} processors ({data['architecture']}), {threads}; {versions}"


def markdown(rows, data):
    """Return the table: a row per claim, a column per workload."""
    claims = dict.fromkeys((row.claim, row.against) for row in rows)
    sizes = {row.workload: f"{row.vertices:,}" for row in reversed(rows)}
    heads = " | ".join(f"{name}, n = {sizes.get(name, '-')}" for name in COLUMNS)
    lines = [
        f"| ours | yardstick | {heads} | floor |",
        "|---|---|" + "---:|" * len(COLUMNS) + "---|",
    ]
    for claim, against in claims:
        mine = {row.workload: row for row in rows if (row.claim, row.against) == (claim, against)}
        cells = [_cell(mine[name]) if name in mine else "" for name in COLUMNS]
        limits = [mine[name].limit for name in COLUMNS if name in mine]
        if len(set(limits)) > 1:  # show the sense once, then all floors
            limits = [limits[0], *(limit.split()[1] for limit in limits[1:])]
        else:
            limits = limits[:1]
        limit = (
            ", ".join(limits)
            .replace(">=", "\N{GREATER-THAN OR EQUAL TO}")
            .replace("<=", "\N{LESS-THAN OR EQUAL TO}")
        )
        lines.append(f"| {claim} | {against} | {' | '.join(cells)} | {limit} |")
    return "\n".join([*lines, "", textwrap.fill(f"Measured on {machine_line(data)}.", 100)])


def _cell(row):
    if row.ratio is None and row.ours is None:
        return row.note or "-"
    if row.theirs is None:
        return " ".join(filter(None, [row.result, row.note]))
    return (
        f"**{row.result}** ({amount(row.ours, row.unit)} : "
        f"{amount(row.theirs, row.unit)}{', ' * bool(row.note)}{row.note})"
    )


def write_json(path, size, data, rows):
    """Write all rows, and the description of the machine, as JSON."""
    found = {"size": size, "machine": data, "rows": [dataclasses.asdict(row) for row in rows]}
    Path(path).write_text(json.dumps(found, indent=1), encoding="utf-8")


def put_table(name, table):
    """Write a table between the two markers of that name in docs/benchmarks.md."""
    text = PAGE.read_text(encoding="utf-8")
    marker = f"<!-- {name} -->"
    if text.count(marker) != 2:
        raise SystemExit(f"{PAGE.name} must contain {marker} twice, before and after the table")
    table = f"{marker}\n{table}\n{marker}"
    PAGE.write_text(
        re.sub(f"{marker}.*{marker}", lambda _: table, text, flags=re.DOTALL), encoding="utf-8"
    )
