"""What is said of how a coarsening was made."""

import importlib.metadata
import re

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.html_report.origin import call_of, parameters_of, today, versions

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")

F = sc.CellularSheaf.constant(nx.karate_club_graph())
P = sc.select(F, 4)


@pytest.mark.parametrize(
    "options",
    [
        {"rank": 2},
        {"rank": 3, "local_operator": "principal", "loops": False},
        {"rank": 2, "compress": True},
        {"rank": 2, "local_operator": "oversampled", "rings": 2, "target": 0.5},
    ],
)
def test_the_call_makes_the_same_again(options):
    C = sc.coarsen(F, P, **options)
    again = eval(call_of(C), {"sc": sc, "F": F, "P": P})
    assert again.sheaf.equals(C.sheaf)
    shown = parameters_of(C)
    assert shown["clusters"] == 4
    assert shown["rank"] == str(options["rank"])
    assert shown["local operator"] == options.get("local_operator", "internal")
    assert shown["loops"] == options.get("loops", True)
    assert shown["compress"] == options.get("compress", False)
    assert shown.get("rings") == options.get("rings")


def test_what_is_the_users_own_has_a_name():
    C = sc.coarsen(F, P, np.array([1, 2, 3, 2]))
    assert "rank=ranks" in call_of(C)
    assert parameters_of(C)["rank"] == "1 .. 3"
    own = sc.coarsen(F, P, basis=[C.block(a) for a in range(4)])
    assert "basis=blocks" in call_of(own)
    assert parameters_of(own)["basis"] == "the user's own"


def test_date_and_versions():
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d[+-]\d\d:\d\d", today())
    for name in ("sheafcoarsen", "numpy", "numba"):
        assert f"{name} {importlib.metadata.version(name)}" in versions()
