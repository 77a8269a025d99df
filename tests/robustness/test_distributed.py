"""A run from store to store that is hurt: processes killed, disks full, data lost, two at once.

Whatever happens, nothing looks complete that is not, no finished task is done again, and the end is
the same to the last bit. Everything is on 127.0.0.1.
"""

import contextlib
import glob
import logging
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tqdm

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen.distributed.location import Place
from sheafcoarsen.distributed.tasks import Engine
from tests.unit.distributed.cases import differences, grid_sheaf

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(JIT_IS_OFF, reason="processes of their own, which compile"),
    pytest.mark.skipif(sys.platform == "win32", reason="signals and limits of POSIX"),
    # what Dask's own sockets and threads leave to the garbage collector
    pytest.mark.filterwarnings("ignore"),
]

SIDE, CLUSTERS, SHARDS = 16, 24, 6
PATIENCE = 120.0
"""Seconds until a test gives up waiting for a process; for all of it twice that."""


@pytest.fixture(autouse=True)
def patience():
    """Fail instead of waiting forever if no worker restarts."""

    def ended(*_):
        raise TimeoutError(f"nothing ended within {2 * PATIENCE:.0f} s")

    before = signal.signal(signal.SIGALRM, ended)
    signal.alarm(int(2 * PATIENCE))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def expected():
    F = grid_sheaf(SIDE)
    return sc.coarsen(F, sc.select(F, CLUSTERS), 3, compress=True)


@pytest.fixture(scope="module")
def threads():
    """Return a client of a worker with three threads, for tests that kill no process."""
    with cluster(processes=False, n_workers=1, threads_per_worker=3) as client:
        yield client


@pytest.fixture
def stores(tmp_path):
    """Return the folder of a store of many parts and of the labels to coarsen it by."""
    F = grid_sheaf(SIDE)
    dist.to_store(tmp_path / "src", F, part_bytes=5000)
    np.save(tmp_path / "labels.npy", sc.select(F, CLUSTERS).labels)
    return tmp_path


def coarsen(folder, client=None, n_shards=SHARDS):
    labels = np.load(folder / "labels.npy")
    src = dist.open_store(folder / "src")
    return dist.coarsen(src, folder / "out", labels, 3, n_shards=n_shards, client=client)


def notes(folder):
    """Return the whole notes: of a process killed while it wrote one, a part may stand there."""
    paths = glob.glob(f"{folder}/out/work/notes/*")
    return [path for path in paths if Place(path).find_record() is not None]


CHILD = """
import sys
from pathlib import Path
from tests.robustness.test_distributed import cluster, coarsen
if __name__ == "__main__":
    if sys.argv[2] == "cluster":
        with cluster() as client:
            coarsen(Path(sys.argv[1]), client)
    else:
        coarsen(Path(sys.argv[1]))
"""


@contextlib.contextmanager
def cluster(**options):
    """Start workers in processes of their own, and give a client of them."""
    import dask
    from distributed import Client, LocalCluster

    # where there is other work too, a worker takes long to come back: else it is given up
    names = ("distributed.comm.timeouts.connect", "distributed.deploy.lost-worker-timeout")
    given = {"n_workers": 2, "threads_per_worker": 1, "memory_limit": "2GB", **options}
    if options.get("processes", True):
        given["host"] = "127.0.0.1"
    with (
        dask.config.set(dict.fromkeys(names, f"{PATIENCE}s")),
        LocalCluster(dashboard_address=None, **given) as workers,
        Client(workers) as client,
    ):
        yield client


def child(folder, where="here", before=""):
    """Return a process that coarsens; ``before`` runs first."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", before + CHILD, str(folder), where],
        cwd=Path(__file__).parents[2],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def assert_unfinished(folder):
    with pytest.raises(dist.StoreError):
        dist.open_store(folder / "out")


def assert_same(C, expected):
    assert differences(expected, C.load()) == []


KILLS = """
import os, signal
from pathlib import Path
from sheafcoarsen.distributed.location import Place

def put_record(self, write=Place.put_record, **record):
    kind = self.url.rpartition("/notes/")[2].partition("-")[0]
    if kind in {kinds}:
        try:
            Path({folder!r}, kind).touch(exist_ok=False)
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    write(self, **record)

Place.put_record = put_record
"""

STAGES = ("split", "shard", "border")


def killing(folder):
    """Return what workers run first: in each stage the first to have all but the note is killed."""
    folder.mkdir()
    return KILLS.format(kinds=STAGES, folder=str(folder))


def test_run_completes_if_workers_are_killed(stores, expected):
    """Workers are killed while maps are split, in the shards, and at the borders."""
    killed = stores / "killed"
    with cluster(preload=killing(killed)) as client:
        C = coarsen(stores, client)
    assert {path.name for path in killed.iterdir()} == set(STAGES)
    assert_same(C, expected)
    assert not (stores / "out/work").exists()


def test_run_on_an_object_store_completes_if_workers_are_killed(tmp_path):
    """All stores are in buckets, as on a cluster without a shared file system."""
    import s3fs
    from moto import server as moto

    F = grid_sheaf(12)
    P = sc.select(F, 9)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line for every request
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        address = "http://{}:{}".format(*server.get_host_and_port())
        options = {"key": "any", "secret": "any", "endpoint_url": address}
        s3fs.S3FileSystem(**options).mkdir("bucket")
        src = dist.to_store("s3://bucket/src", F, part_bytes=10_000, **options)
        killed = tmp_path / "killed"
        with cluster(preload=killing(killed)) as client:
            C = dist.coarsen(src, "s3://bucket/out", P, 3, n_shards=2, client=client)
        assert {path.name for path in killed.iterdir()} == set(STAGES)
        assert_same(C, sc.coarsen(F, P, 3, compress=True))
        assert (C.sheaf.place / "work").names() == set()
        (src.place / "parts/000001/head/c/0").remove()
        with pytest.raises(dist.StoreError, match="parts/000001/head/c/0 is missing"):
            dist.open_store(src.url, **options).load()
    finally:
        server.stop()


@pytest.mark.parametrize("where", ["here", "cluster"])
def test_killed_run_resumes(where, stores, expected):
    """It is killed repeatedly, and no finished task is repeated."""
    points = (2, 8, 14) if where == "here" else (10,)
    for count in points:
        with child(stores, where) as process:
            wait_for(lambda count=count: len(notes(stores)) >= count or process.poll() is not None)
            os.killpg(process.pid, signal.SIGKILL)
        assert_unfinished(stores)
    found = {path: os.stat(path).st_mtime_ns for path in notes(stores)}
    C = coarsen(stores, n_shards=None)
    assert C.report["tasks_found"] == len(found) >= points[-1]
    assert C.report["tasks_done"] > 0
    assert_same(C, expected)


def test_two_simultaneous_runs(stores, expected):
    with child(stores) as first:
        wait_for(lambda: notes(stores))
        os.kill(first.pid, signal.SIGSTOP)
        try:
            with pytest.raises(BlockingIOError, match="another run is writing there"):
                coarsen(stores)
        finally:
            os.kill(first.pid, signal.SIGCONT)
        assert first.wait(PATIENCE) == 0
    assert_same(coarsen(stores), expected)


LIMITED = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))
"""


@pytest.mark.parametrize("limit", [200, 3000])
def test_full_disk_raises(limit, stores, expected):
    """A limit on the file size simulates it: some write fails in the middle."""
    with child(stores, before=LIMITED.format(limit=limit)) as process:
        last = process.stdout.read().strip().splitlines()[-1]
    assert process.returncode != 0
    assert "OSError: [Errno 27]" in last
    assert str(stores / "out") in last
    assert_unfinished(stores)
    assert_same(coarsen(stores), expected)


def test_error_of_a_worker_names_the_missing_chunk(threads, stores, expected):
    path = stores / "src/parts/000003/head/c/0"
    held = path.read_bytes()
    path.unlink()
    with pytest.raises(dist.StoreError, match="parts/000003/head/c/0 is missing"):
        coarsen(stores, threads)
    assert_unfinished(stores)
    path.write_bytes(held)
    assert_same(coarsen(stores, threads), expected)


def test_task_that_fails_once_is_retried(threads):
    calls = []

    def flaky_task(job, i, limit):
        calls.append(limit)
        if len(calls) < limit:
            raise OSError("no answer")
        return {"calls": len(calls)}

    engine, job = Engine(threads), SimpleNamespace(out=SimpleNamespace(id="flaky"))
    with tqdm.tqdm(total=1, disable=False) as engine.shown:
        assert (engine.threads, engine.at_once) == (1, 3)
        assert engine.results([engine.start(flaky_task, job, 0, 2)]) == [{"calls": 2}]
        assert engine.shown.n == 1
        calls.clear()
        with pytest.raises(OSError, match="no answer"):
            engine.results([engine.start(flaky_task, job, 1, 3)])


def test_one_client_writes_two_stores_at_once_by_the_same_request(threads, stores, expected):
    """Dask runs tasks of the same key only once."""
    src, labels = dist.open_store(stores / "src"), np.load(stores / "labels.npy")

    def made(name):
        return dist.coarsen(src, stores / name, labels, 3, n_shards=SHARDS, client=threads)

    with ThreadPoolExecutor(2) as pool:
        for C in pool.map(made, ["one", "two"]):
            assert_same(C, expected)


def test_workers_without_the_library_raise(stores):
    hide = "import sys\nsys.modules['sheafcoarsen'] = None\n"
    with (
        cluster(n_workers=1, preload=hide) as client,
        pytest.raises(RuntimeError, match=r"lacks sheafcoarsen.*install sheafcoarsen\[dist"),
    ):
        coarsen(stores, client)
    assert not (stores / "out").exists()


def test_workers_without_access_to_the_store_raise(stores):
    labels = np.load(stores / "labels.npy")
    with (
        cluster(n_workers=1) as client,
        pytest.raises(RuntimeError, match=r"cannot read memory://.*both stores must be on a file"),
    ):
        dist.coarsen(dist.open_store(stores / "src"), "memory://unseen", labels, 3, client=client)


def test_shard_that_exceeds_worker_memory_raises_before_the_run(stores):
    with (
        cluster(processes=False, n_workers=1, threads_per_worker=2, memory_limit="400MB") as client,
        pytest.raises(MemoryError, match="but a worker has, for each of its threads, 200 MB"),
    ):
        coarsen(stores, client)
    assert notes(stores) == []
    assert not list(stores.glob("out/work/plan/*"))


def test_closed_client_raises(threads, stores):
    client = type(threads)(threads.cluster)
    client.close()
    with pytest.raises(ValueError, match="`client` is closed"):
        coarsen(stores, client)
