"""Pages, read as a browser would, and a coarsening whose vertices have hostile names."""

import html.parser

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.html_report import write_report

HOSTILE = (
    "<script>alert(1)</script>",
    "a \"quoted\" & 'single' name",
    "</td></table><img src=x onerror=alert(2)>",
    "\ud800 alone",
)

EMPTY_TAGS = {"meta", "img", "br", "!doctype"}


class Page(html.parser.HTMLParser):
    """Reads a page and refuses tags that do not close in order."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.images, self.texts, self.attributes = [], [], [], [], []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "img":
            self.images.append(dict(attrs))
        if tag not in EMPTY_TAGS:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(self.texts)


KARATE = sc.CellularSheaf.constant(nx.karate_club_graph())


def coarsened(graph=None, rank=(1, 2, 3, 2), **options):
    F = sc.CellularSheaf.constant(nx.karate_club_graph() if graph is None else graph)
    return sc.coarsen(F, sc.select(F, 4), np.array(rank), **options)


@pytest.fixture(scope="module")
def C():
    names = dict(enumerate(HOSTILE))
    return coarsened(nx.relabel_nodes(nx.karate_club_graph(), names))


@pytest.fixture(scope="module")
def page(C, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "karate.html"
    times = {"coarsen <it>": 1.25}
    assert write_report(C, path, "<name>", "type <this>", times).passed
    return Page(path.read_text(encoding="utf-8")), path
