"""Where tasks run; a cluster is in tests/robustness/test_distributed.py."""

import pytest
import tqdm

from sheafcoarsen.distributed.engines import Here, Later, engine_of, valued


@pytest.fixture
def shown():
    with tqdm.tqdm(total=3, disable=True) as bar:
        yield bar


def test_here_tasks_run_once_in_their_order(shown):
    calls = []

    def work(name, inputs):
        calls.append(name)
        return {"name": name, "inputs": [found["name"] for found in inputs]}

    here = Here()
    first = here.start("work", 0, work, "first", [])
    second = here.start("work", 1, work, "second", [first])
    third = here.start("work", 2, work, "third", [first, second])
    assert calls == []
    results = here.results([third, first, second], shown)
    assert calls == ["first", "second", "third"]
    assert [result["name"] for result in results] == ["third", "first", "second"]
    assert results[0]["inputs"] == ["first", "second"]


def test_what_is_no_task_stays_as_it_is():
    assert valued([1, [Later(dict, ((),), []), "x"]]) == [1, [{}, "x"]]


def test_what_is_no_client():
    assert engine_of(None, "run").threads is None
    with pytest.raises(TypeError, match="`client` must be a dask.distributed.Client or None"):
        engine_of("tcp://127.0.0.1:8786", "run")
