"""A graph in a file, and pages without pictures."""

import networkx as nx
import pytest


@pytest.fixture
def graph_file(tmp_path):
    path = tmp_path / "karate.edges"
    nx.write_edgelist(nx.karate_club_graph(), path, data=False)
    return str(path)


@pytest.fixture
def without_drawing(monkeypatch):
    """Put blank pictures in the page, where words are looked at: drawing takes most of the time."""
    monkeypatch.setattr("sheafcoarsen.html_report._report.drawn", lambda *_, **__: "data:,")
