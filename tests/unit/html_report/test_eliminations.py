"""The page about an elimination: its verdict in words, its picture, from the prompt too."""

import dataclasses

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.cli import main
from tests.unit.html_report.test_page import Page

pytest.importorskip("matplotlib")

KARATE = sc.CellularSheaf.constant(nx.karate_club_graph())


def page_of(K, tmp_path, **options):
    passed = sc.report(K, tmp_path / "page.html", **options).passed
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    Page(text)
    return text, passed


def test_what_went_and_what_is_left(tmp_path):
    text, passed = page_of(sc.eliminate(KARATE), tmp_path, name="a <club>")
    assert passed
    assert "<h1>a &lt;club&gt;: 34 → 22 vertices</h1>" in text
    assert "12 of 34 vertices are solved for" in text
    assert "the Laplacian of the others has 71% of the nonzeros" in text
    assert "all checks passed" in text
    for wanted in ("11 in chains", "fact-9", "data:image/svg+xml;base64,", "max_neighbors=2"):
        assert wanted in text
    assert "sections live on" not in text


def test_how_far_rounding_goes(tmp_path):
    n, one = 40, np.ones((39, 1, 1))
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    K = sc.eliminate(sc.CellularSheaf(edges, 2 * one, one), keep=[0])
    text, _ = page_of(K, tmp_path)
    assert f"up to {K.growth:.3g} times" in text
    text, _ = page_of(sc.eliminate(sc.CellularSheaf.constant(edges)), tmp_path)
    assert "nothing is left to solve" in text
    assert "some sections live on eliminated vertices alone" in text


def test_a_check_that_fails_is_said(tmp_path):
    K = sc.eliminate(KARATE)
    blocks = K.steps.blocks.copy()
    blocks[3] += 0.5
    wrong = dataclasses.replace(K, steps=K.steps._replace(blocks=blocks))
    text, passed = page_of(wrong, tmp_path)
    assert not passed
    assert "a check FAILED" in text
    assert '<p class="failed">Verification:' in text


def test_from_the_prompt(tmp_path, capsys):
    sc.save(tmp_path / "net.npz", KARATE)
    page = tmp_path / "net.html"
    (tmp_path / "keep.txt").write_text("0 33")
    words = ["eliminate", str(tmp_path / "net.npz"), "--keep", str(tmp_path / "keep.txt")]
    assert main([*words, "--report", str(page)]) == 0
    assert f"report  {page}" in capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    assert "sheafcoarsen eliminate" in text
    assert "--max-neighbors 2" in text
    assert "--keep" in text
    assert "net.npz: 34 → 22 vertices" in text
    assert main([*words, "--report", "page.txt"]) == 2
