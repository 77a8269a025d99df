"""The recipes of the guides run unchanged, those for PyTorch if it is installed."""

import ast
import builtins
import os
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot

import sheafcoarsen as sc

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
YOURS = {"files", "read", "vertex_dims"}
"""Names that code blocks use and that the reader has to define."""


def names_of(block):
    """Return the names that a code block defines, and the names that it uses."""
    made, used = set(), set()
    for node in ast.walk(ast.parse(block)):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used.add(name)
            case ast.Name(id=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                made.add(name)
            case ast.arg(arg=name):
                made.add(name)
            case ast.alias(name=name, asname=other):
                made.add(other or name.split(".")[0])
    return made, used


@pytest.mark.parametrize("page", sorted(page.name for page in GUIDES.glob("*.md")))
def test_code_blocks_use_only_defined_names(page):
    text = (GUIDES / page).read_text("utf-8")
    known = {*dir(builtins), *YOURS}
    blocks = r"^```(python|pycon|{eval-rst})\n(.*?)^```"
    for kind, block in re.findall(blocks, text, flags=re.M | re.S):
        if kind != "python":
            block = "".join(re.findall(r"^ *(?:>>>|\.\.\.) ?(.*\n)", block, flags=re.M))
        made, used = names_of(block)
        known |= made
        assert used <= known, f"{page}: {sorted(used - known)} in\n{block}"


def run_blocks(page, holding=""):
    """Run the Python blocks of a page that contain a text, and return the names they define."""
    text = (GUIDES / page).read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    names = {"__name__": "recipe"}
    for block in (block for block in blocks if holding in block):
        exec(compile(block, page, "exec"), names)
    return names


@pytest.fixture(autouse=True)
def figures_are_closed():
    """Draw without a window, and close what the recipes draw."""
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


@pytest.mark.skipif("SHEAFCOARSEN_DATA" not in os.environ, reason="SHEAFCOARSEN_DATA is not set")
def test_the_power_grid_recipe_runs(monkeypatch, capsys):
    monkeypatch.chdir(os.environ["SHEAFCOARSEN_DATA"])
    names = run_blocks("power.md")
    out = capsys.readouterr().out
    # the power lost by the solved voltages, summed over all phases
    assert re.search(r"^96\.0 kW lost", out)
    voltages, injections = map(float, re.findall(r"\d\.\de-\d\d", out))
    assert voltages < 1e-3
    assert injections < 2e-2
    G, F = names["G"], names["F"]
    assert G.n_vertices == 68
    whole, volts, K = names["A"], names["volts"], names["K"]
    assert sc.components(whole).max() < sc.components(F).max()
    assert 1.0 < sc.energy(whole, volts) / sc.energy(F, volts) < 1.2
    Y, kept = names["Y"].toarray(), names["kept"]
    inside = np.linalg.lstsq(Y[~kept][:, ~kept], Y[~kept][:, kept], rcond=1e-15)[0]
    i, j = (K.sheaf.vertex_offsets[K.sheaf.vertices_of([bus])[0]] for bus in ("67", "114"))
    reduced = Y[kept][:, kept] - Y[kept][:, ~kept] @ inside
    assert np.round(-reduced[i, j], 3) == 0.737 - 0.920j
    assert np.round(-sc.laplacian(K.sheaf)[i, j], 3) == 0.671
    doubled = names["scaled"](whole, names["between"](whole, ["13", "18"]), 2.0)
    e = np.flatnonzero(names["between"](whole, ["18", "13"]))
    losses = sc.edge_energy(whole, volts)
    losses[e] *= 2
    np.testing.assert_allclose(sc.edge_energy(doubled, volts)[e], losses[e], rtol=1e-9)
    assert "kept energy 1.8 times" in out
    assert float(re.search(r"on 6 zones to (.*)%", out)[1]) < 5
    norms = np.array([np.linalg.norm(G.tail_map(e)) for e in range(G.n_edges)])
    switch, cut = norms > 100, {}
    assert switch.sum() == 7
    for weights in ("sheaf", "graph"):
        cases = [(k, seed) for k in range(4, 16) for seed in range(4)]
        parts = [sc.select(G, k, weights=weights, seed=seed).labels for k, seed in cases]
        cut[weights] = sum(np.ptp(labels[G.edges[switch]], axis=1).any() for labels in parts)
    assert cut == {"sheaf": 0, "graph": 31}


@pytest.mark.skipif("SHEAFCOARSEN_DATA" not in os.environ, reason="SHEAFCOARSEN_DATA is not set")
@pytest.mark.large
def test_the_camera_recipe_minimizes_the_pixel_errors(monkeypatch, capsys):
    monkeypatch.chdir(os.environ["SHEAFCOARSEN_DATA"])
    names = run_blocks("poses.md", holding="read_libmv")
    assert capsys.readouterr().out == "12.81 pixels at first, 1.30 at last\n"
    errors = names["errors"]
    assert errors[-1] < 1.3038044  # the error of the file, whose author had minimized it
    # at the minimum the gradient of the pixel errors is small
    i, k, n = names["i"], names["k"], names["n"]
    guess, by_camera, by_point = names["linearized"](
        *(names[name] for name in ("R", "t", "X", "i", "k", "focal", "center"))
    )
    off = names["pixels"] - guess
    gradient = np.zeros((n, 6)), np.zeros(names["X"].shape)
    scale = np.zeros(n), np.zeros(len(names["X"]))
    for part, size, ends, by in zip(gradient, scale, (i, k), (by_camera, by_point), strict=True):
        np.add.at(part, ends, np.einsum("epd,ep->ed", by, off))
        np.add.at(size, ends, np.linalg.norm(by, axis=(1, 2)) * np.linalg.norm(off, axis=1))
        assert (np.linalg.norm(part, axis=1) < 1e-4 * size).all()


@pytest.mark.large
def test_the_torch_recipe_runs(capsys):
    pytest.importorskip("torch")
    run_blocks("learned_maps.md")
    assert "the energy of what is pooled went from" in capsys.readouterr().out
