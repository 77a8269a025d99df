"""Where tasks run; a cluster is in tests/robustness/test_distributed.py."""

import pytest
import tqdm

from sheafcoarsen.distributed.executors import Engine


def test_here_tasks_run_once_after_those_that_they_need():
    calls = []

    def work(name, inputs):
        calls.append(name)
        return {"name": name, "inputs": [found["name"] for found in inputs]}

    here = Engine(None, "run")
    first = here.start("work", 0, work, "first", [])
    second = here.start("work", 1, work, "second", [first])
    third = here.start("border", 0, work, "third", [first, second])
    assert calls == []
    with tqdm.tqdm(total=3, disable=False) as shown:
        results = here.results([third, first, second], shown)
        assert shown.n == 3
        assert here.results([], shown) == []
    assert calls == ["first", "second", "third"]
    assert [result["name"] for result in results] == ["third", "first", "second"]
    assert results[0]["inputs"] == ["first", "second"]


def test_what_is_no_client():
    assert Engine(None, "run").threads is None
    with pytest.raises(TypeError, match="`client` must be a dask.distributed.Client or None"):
        Engine("tcp://127.0.0.1:8786", "run")
