"""Where tasks run: here, one after the other, or on the workers of a Dask client."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple, Protocol

import tqdm

from sheafcoarsen._support import physical_memory
from sheafcoarsen.distributed.extras import distributed

Result = dict[str, Any]


class Engine(Protocol):
    """What a run needs of it."""

    threads: int | None  # that a task may use; None: all that the library may
    memory: float  # bytes that a task may take
    at_once: int  # how many tasks run side by side
    where: str  # who has so much, in a message

    def start(self, kind: str, i: int, function: Callable, *args: Any) -> Any:
        """Begin a task, or note it; what is among ``args`` may be what this returned earlier."""

    def results(self, tasks: list[Any], shown: tqdm.tqdm) -> list[Result]:
        """Wait for tasks and return what they return."""


class Later(NamedTuple):
    """A task of this process that has not run, or has."""

    function: Callable
    args: tuple
    result: list[Result]

    def value(self) -> Result:
        """Return what it returns, once it has run."""
        if not self.result:
            self.result.append(self.function(*(valued(item) for item in self.args)))
        return self.result[0]


def valued(item: Any) -> Any:
    """Return what a task returned in its place, in lists too."""
    if isinstance(item, Later):
        return item.value()
    return [valued(entry) for entry in item] if isinstance(item, list) else item


class Here:
    """Runs tasks in this process, one after the other, each with all of the library's threads."""

    threads: int | None = None
    at_once = 1
    where = "this machine has"

    def __init__(self) -> None:
        self.memory = physical_memory()

    def start(self, kind: str, i: int, function: Callable, *args: Any) -> Later:
        """Note a task."""
        return Later(function, args, [])

    def results(self, tasks: list[Later], shown: tqdm.tqdm) -> list[Result]:
        """Run tasks in their order."""
        found = []
        for task in tasks:
            found.append(task.value())
            shown.update()
        return found


class OnDask:
    """Runs tasks on the workers of a client; each takes one thread, as Dask counts them."""

    threads: int | None = 1
    where = "a worker has, for each of its threads,"

    def __init__(self, client: Any, run: str) -> None:
        self.client, self.run = client, run
        check_client(client)
        check_workers(client)
        self.memory = least_memory(client)
        self.at_once = max(sum(client.nthreads().values()), 1)

    def start(self, kind: str, i: int, function: Callable, *args: Any) -> Any:
        """Submit a task; its key lets Dask's dashboard group it with its kind."""
        key = (f"{kind}-{self.run}", i)
        return self.client.submit(function, *args, key=key, pure=True, retries=1)

    def results(self, tasks: list[Any], shown: tqdm.tqdm) -> list[Result]:
        """Wait for tasks, in whatever order they end."""
        try:
            for _ in distributed().as_completed(tasks):
                shown.update()
            return self.client.gather(tasks)
        except BaseException:
            self.client.cancel(tasks)
            raise


def engine_of(client: Any, run: str) -> Engine:
    """Return the engine that a caller means: a Dask client, or None for this process."""
    return Here() if client is None else OnDask(client, run)


def connect(address: str) -> Any:
    """Return a client of the scheduler at an address, for people who have no Dask at hand."""
    return distributed().Client(address, timeout="20s")


def check_client(client: Any) -> None:
    """Refuse what is not a client that can be waited for.

    Raises
    ------
    TypeError, ValueError
    """
    if not isinstance(client, distributed().Client):
        raise TypeError(
            f"`client` must be a dask.distributed.Client or None, got {type(client).__name__}"
        )
    if client.asynchronous:
        raise ValueError("`client` is asynchronous: give one that is not, Client(address)")
    if client.status != "running":
        raise ValueError(f"`client` is {client.status}: give one that is connected")


def check_workers(client: Any) -> None:
    """Refuse workers that lack the library, or have another version of it.

    Raises
    ------
    RuntimeError
    """
    wanted = version("sheafcoarsen")

    def look() -> str:  # goes to the workers as it is, since they may lack this module
        import importlib

        try:
            for name in ("zarr", "fsspec", "sheafcoarsen.distributed"):
                importlib.import_module(name)
        except ImportError as error:
            return f"cannot import it: {error}"
        return str(importlib.import_module("sheafcoarsen").__version__)

    found = client.run(look, on_error="return")
    for address, there in sorted(found.items()):
        if isinstance(there, OSError):  # it died, or is not there yet: Dask will do without it
            continue
        if isinstance(there, Exception):
            raise there
        if there != wanted:
            others = sum(other != wanted for other in found.values()) - 1
            remedy = f"install sheafcoarsen[distributed] {wanted} on all workers"
            what = f"has version {there} of sheafcoarsen, this process {wanted}"
            if "cannot" in there:
                what = f"lacks sheafcoarsen, or what it needs; it {there}"
            raise RuntimeError(f"the worker {address} (and {others} others) {what}: {remedy}")


def least_memory(client: Any) -> float:
    """Return the bytes that a task may take on the smallest worker, as a share of its threads."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    shares = [
        worker["memory_limit"] / max(worker["nthreads"], 1)
        for worker in workers
        if worker["memory_limit"]
    ]
    return float(min(shares, default=float("inf")))
