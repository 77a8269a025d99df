"""Tables that notebooks show instead of objects."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from tests.unit.html_report.conftest import Page

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


@pytest.fixture(scope="module")
def objects(C):
    x = np.random.default_rng(0).standard_normal((34, 12))
    H = sc.coarsen_levels(C.fine, factor=3, n_levels=2, rank=2)
    Q = sc.spectral_quality(C, 3)
    return {
        "CellularSheaf": (C.fine, ["34", "78", "float64", "vertex labels"]),
        "Partition": (C.partition, ["34", "4"]),
        "LocalModes": (C.modes, ["internal", "1 .. 3", "8 of 34"]),
        "Coarsening": (C, ["34", "fine", "coarse", "internal operator"]),
        "EnergyLedger": (sc.energy_ledger(C, x[:, 0]), ["retained internal", "closure"]),
        "EnergyLedger of many": (sc.energy_ledger(C, x), ["sums over 12 columns"]),
        "HierarchyLedger": (H.ledger(x[:, 0]), ["coarsest energy", "level 1: discarded crossing"]),
        "Hierarchy": (H, ["34", "12", "4", "nonzeros"]),
        "Pooling": (sc.HiSP(2, 4)(C.fine, x[:, :3]), ["34", "4", "3"]),
        "HiSP": (sc.HiSP(2, 4, seed=7), ["n_modes", "2", "7", "principal"]),
        "GlobalSections": (sc.global_sections(C.fine), ["h0", "1", "dense, 34 x 1, float64"]),
        "LaplacianPattern": (sc.LaplacianPattern(C.fine), ["csr", "34", "190"]),
        "Fixed": (sc.ranks.fixed(5), ["5"]),
        "WholeMultiplets": (sc.ranks.budget(9).whole_multiplets(), ["Budget(total=9)"]),
        "SpectralQuality": (Q, ["principal angle", "restricted similarity"]),
        "Certificate": (sc.certificate(C), ["gamma", "mu"]),
        "Verification": (sc.verify(C), ["energy identity", "fact-1"]),
    }


def test_notebook_representations_are_small_tables(objects):
    for name, (obj, words) in objects.items():
        source = obj._repr_html_()
        parsed = Page(source)
        assert len(source) < 6000
        assert set(parsed.tags) <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
        assert parsed.attributes == []  # no colours of its own, so that light and dark themes serve
        assert [word for word in words if word not in parsed.text] == []
        assert name == "Verification" or name.split()[0] in parsed.texts[0]


def test_notebook_tables_show_the_numbers_of_their_objects(objects):
    Q = objects["SpectralQuality"][0]
    texts = Page(Q._repr_html_()).texts
    assert f"{Q.fine[0]:.4g}" in texts
    assert f"{Q.coarse[0]:.4g}" in texts
    E = objects["EnergyLedger"][0]
    assert Page(E._repr_html_()).texts.count(f"{E.fine_energy:.4g}") == 1


def test_notebook_tables_of_large_objects_stay_small():
    v = np.arange(1000)
    G = nx.Graph()
    G.add_edges_from((f"{'long ' * 100}{i}", f"{'long ' * 100}{i + 1}") for i in range(99))
    F = sc.CellularSheaf.constant(G)
    large = sc.CellularSheaf.constant(np.stack([v[:-1], v[1:]], axis=1))
    C = sc.coarsen(large, sc.Partition(v // 5), 1)
    ledger, quality = sc.energy_ledger(C, np.ones((1000, 50))), sc.spectral_quality(C, 40)
    for obj in (F, large, C, C.partition, C.modes, ledger, quality):
        assert len(obj._repr_html_()) < 6000
