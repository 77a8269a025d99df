"""Execution of tasks by Dask: on the workers of a client, or sequentially in this process."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np
import tqdm

from sheafcoarsen._support import physical_memory
from sheafcoarsen.distributed.location import Place, optional

Result = dict[str, Any]


class Engine:
    """Task executor, with the limits of this machine or of one worker thread of a client."""

    def __init__(self, client: Any, run: str) -> None:
        self.client, self.run = client, run
        self.threads: int | None = None  # None: as many threads as the library may use
        self.memory, self.at_once, self.where = physical_memory(), 1, "this machine has"
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

    def start(self, function: Callable, job: Any, i: int, *args: Any) -> Any:
        """Return task ``i`` as a delayed call of ``function``; arguments may be earlier tasks."""
        kind = function.__name__.removesuffix("_task")  # Dask's dashboard groups tasks by this name
        task = optional("dask").delayed(function, name=kind, pure=True)
        return task(job, i, *args, dask_key_name=(f"{kind}-{self.run}", i))

    def check_seen(self, note: Place) -> None:
        """Raise an error if a worker cannot read a note that this process wrote."""
        found = {} if self.client is None else self.client.run(note.read_note, on_error="return")
        for address, held in found.items():
            if held is None or isinstance(held, Exception):
                raise RuntimeError(
                    f"the worker {address} cannot read {note.url}, which this process has "
                    f"written: both stores must be on a file system that all workers share, or in "
                    f"an object store"
                )

    def results(self, tasks: list[Any], shown: tqdm.tqdm) -> list[Result]:
        """Run tasks and their dependencies, and return their results."""
        if self.client is None:
            with optional("dask.callbacks").Callback(posttask=lambda *_: shown.update()):
                return list(
                    optional("dask").compute(*tasks, scheduler="synchronous", optimize_graph=False)
                )
        futures = self.client.compute(tasks, retries=1, optimize_graph=False)
        try:
            for _ in optional("distributed").as_completed(futures):
                shown.update()
            return self.client.gather(futures)
        except BaseException:
            self.client.cancel(futures)
            raise


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

        try:
            for name in ("zarr", "fsspec", "sheafcoarsen.distributed"):
                importlib.import_module(name)
        except ImportError as error:
            return f"cannot import it: {error}"
        return str(importlib.import_module("sheafcoarsen").__version__)

    found = client.run(look, on_error="return")
    for address, there in sorted(found.items()):
        if isinstance(there, OSError):  # the worker is not running; Dask continues without it
            continue
        if isinstance(there, Exception):
            raise there
        if there != wanted:
            others = sum(other != wanted for other in found.values()) - 1
            remedy = f"install sheafcoarsen[distributed] {wanted} on all workers"
            what = f"has version {there} of sheafcoarsen, but this process has {wanted}"
            if "cannot" in there:
                what = f"lacks sheafcoarsen or its dependencies; it {there}"
            raise RuntimeError(f"the worker {address} (and {others} others) {what}: {remedy}")
