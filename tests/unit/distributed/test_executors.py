"""Execution of tasks in this process; tests/robustness/test_distributed.py tests a cluster."""

import pytest
import tqdm

from sheafcoarsen.distributed.executors import Engine


def test_local_tasks_run_once_and_after_their_dependencies():
    calls = []

    def work_task(job, i, inputs):
        calls.append(i)
        return {"job": job, "i": i, "inputs": [found["i"] for found in inputs]}

    here = Engine(None, "run")
    first = here.start(work_task, "job", 0, [])
    second = here.start(work_task, "job", 1, [first])
    third = here.start(work_task, "job", 2, [first, second])
    assert calls == []
    with tqdm.tqdm(total=3, disable=False) as shown:
        results = here.results([third, first, second], shown)
        assert shown.n == 3
        assert here.results([], shown) == []
    assert calls == [0, 1, 2]
    assert [result["i"] for result in results] == [2, 0, 1]
    assert results[0] == {"job": "job", "i": 2, "inputs": [0, 1]}


def test_objects_that_are_not_clients_raise_type_error():
    assert Engine(None, "run").threads is None
    with pytest.raises(TypeError, match="`client` must be a dask.distributed.Client or None"):
        Engine("tcp://127.0.0.1:8786", "run")
