"""Execution of tasks: on the workers of a Dask client, or one by one in this process."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from sheafcoarsen._support import checks, threads
from sheafcoarsen.distributed.location import Place, optional


class Engine:
    """Task executor, with the limits of this machine or of one worker thread of a client."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.shown = threads.bar(0, "", False)  # one step for each finished task
        self.threads: int | None = None  # None: as many threads as the library may use
        self.memory, self.at_once, self.where = checks.physical_memory(), 1, "this machine has"
        if client is not None:
            check_client(client)
            workers = client.scheduler_info(n_workers=-1)["workers"].values()
            memory = [
                worker["memory_limit"] / max(worker["nthreads"], 1)
                for worker in workers
                if worker["memory_limit"]
            ]
            self.memory = float(min(memory, default=np.inf))
            self.where = "a worker has, for each of its threads,"
            self.threads, self.at_once = 1, max(sum(client.nthreads().values()), 1)

    def start(self, task: Callable, job: Any, i: int, *inputs: Any) -> Any:
        """Run task ``i`` here and return its result, or submit it and return its future.

        Inputs may be lists of what earlier calls returned.
        """
        if self.client is None:
            result = task(job, i, *inputs)
            self.shown.update()
            return result
        kind = task.__name__.removesuffix("_task")  # Dask's dashboard groups tasks by this name
        return self.client.submit(task, job, i, *inputs, key=(f"{kind}-{job.out.id}", i), retries=1)

    def results(self, started: list[Any]) -> list[dict[str, Any]]:
        """Return the results of tasks in their order; if one fails, cancel the others."""
        if self.client is None:
            return started
        try:
            for _ in optional("distributed").as_completed(started):
                self.shown.update()
            return self.client.gather(started)
        except BaseException:
            self.client.cancel(started)
            raise

    def check_seen(self, note: Place) -> None:
        """Raise an error if a worker cannot read a record that this process wrote."""
        found = {} if self.client is None else self.client.run(note.record, on_error="return")
        for address, held in found.items():
            if isinstance(held, Exception):
                raise RuntimeError(
                    f"the worker {address} cannot read {note.url}, which this process has "
                    f"written: both stores must be on a file system that all workers share, or in "
                    f"an object store"
                )


def connect(address: str) -> Any:
    """Return a Dask client of the scheduler at an address."""
    return optional("distributed").Client(address, timeout="20s")


def check_client(client: Any) -> None:
    """Raise an error unless a client is connected and its workers have this library version."""
    if not isinstance(client, optional("distributed").Client):
        raise TypeError(
            f"`client` must be a dask.distributed.Client or None, got {type(client).__name__}"
        )
    if client.asynchronous:
        raise ValueError("`client` is asynchronous: pass a synchronous one, Client(address)")
    if client.status != "running":
        raise ValueError(f"`client` is {client.status}: pass a connected client")
    wanted = version("sheafcoarsen")

    def look() -> str:  # local, hence pickled by value: workers may lack this module
        import importlib

        for name in ("zarr", "fsspec", "sheafcoarsen.distributed"):
            importlib.import_module(name)
        return str(importlib.import_module("sheafcoarsen").__version__)

    found = client.run(look, on_error="return")
    for address, there in sorted(found.items()):
        what = f"has version {there} of sheafcoarsen, but this process has {wanted}"
        if isinstance(there, ImportError):
            what = f"lacks sheafcoarsen or its dependencies; it cannot import it: {there}"
        elif isinstance(there, OSError):  # the worker is not running; Dask continues without it
            continue
        elif isinstance(there, Exception):
            raise there
        if there != wanted:
            others = sum(other != wanted for other in found.values()) - 1
            remedy = f"install sheafcoarsen[distributed] {wanted} on all workers"
            raise RuntimeError(f"the worker {address} (and {others} others) {what}: {remedy}")
