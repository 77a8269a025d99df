"""The structure of the package: its modules, what they export, and its layers."""

import ast
import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest

import sheafcoarsen as sc

ROOT = Path(sc.__file__).parent
TESTS = Path(__file__).parents[1]
REPOSITORY = TESTS.parent
SETTINGS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
PROJECT = SETTINGS["project"]
WORKFLOW = (REPOSITORY / ".github" / "workflows" / "ci.yml").read_text("utf-8")
CHECK = (REPOSITORY / ".ci" / "run").read_text("utf-8")
MODULES = sorted(ROOT.rglob("*.py"))
FOLDERS = sorted(path.parent for path in MODULES if path.name == "__init__.py")
KERNELS = ROOT / "_kernels"
PACKAGES = [folder for folder in FOLDERS if folder != ROOT and not folder.is_relative_to(KERNELS)]
MODULES_OF_PAIRS = {"_g2o", "_networkx", "_save_load"}
MOST_LINES = 500
MOST_ENTRIES = 25
MOST_LAYERS = 14


def name_of(path):
    """Return the name under which a file or folder of the package is imported."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_defined_in(name, path):
    value = getattr(sc, name)
    return not inspect.ismodule(value) and Path(inspect.getfile(inspect.unwrap(value))) == path


def test_the_package_has_few_top_level_entries():
    unseen = ("__pycache__", ".", "py.typed")
    entries = [path for path in ROOT.iterdir() if not path.name.startswith(unseen)]
    assert len(entries) <= MOST_ENTRIES


def test_no_module_has_more_than_500_lines():
    lengths = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}


def test_public_functions_live_in_modules_of_their_name():
    """`solve/_eigenmodes.py` holds `eigenmodes`; several in one module share one of their names."""
    elsewhere = []
    for name in sc.__all__:
        function = getattr(sc, name)
        if inspect.isroutine(function):
            path = Path(inspect.getfile(inspect.unwrap(function)))
            shared = {f"_{other}".lower() for other in sc.__all__ if is_defined_in(other, path)}
            if path.stem not in shared | MODULES_OF_PAIRS:
                elsewhere.append(f"{name}: {path.relative_to(ROOT)}")
    assert elsewhere == []


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_every_package_has_a_docstring(folder):
    assert importlib.import_module(name_of(folder)).__doc__.partition("\n")[0].endswith(".")


@pytest.mark.parametrize("folder", PACKAGES, ids=name_of)
def test_dunder_all_lists_what_a_package_imports(folder):
    module = importlib.import_module(name_of(folder))
    names = module.__all__
    assert len(set(names)) == len(names)
    tree = ast.parse((folder / "__init__.py").read_text("utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    bound = {alias.asname or alias.name for node in imports for alias in node.names}
    bound |= {node.targets[0].id for node in tree.body if isinstance(node, ast.Assign)}
    assert bound == {*names, "__all__"}


def imports_of(path):
    """Yield (line, module, name or None) for all that a file imports from the package."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == ROOT.name:
                    yield node.lineno, alias.name, None
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            if node.module.split(".")[0] == ROOT.name:
                for alias in node.names:
                    yield node.lineno, node.module, alias.name


def is_exported(module, name):
    """Return whether a package exports what another one imports from it.

    Kernels are imported from modules and packages directly in `_kernels`, not from deeper ones.
    """
    path = ROOT.parent.joinpath(*module.split("."))
    if path.is_relative_to(KERNELS):
        return KERNELS in (path, path.parent)
    if path.is_dir():
        shown = getattr(importlib.import_module(module), "__all__", ())
        return name is None or name in shown or (path / name / "__init__.py").exists()
    return path.parent not in PACKAGES


def test_other_packages_import_exported_names_only():
    refused = []
    for path in MODULES:
        for line, module, name in imports_of(path):
            target = ROOT.parent.joinpath(*module.split("."))
            package = target if target.is_dir() else target.parent
            if not path.is_relative_to(package) and not is_exported(module, name):
                refused.append(f"{path.relative_to(ROOT)}:{line}: {module} {name}")
    assert refused == []


def layers_of_the_linter():
    """Return the layers of import-linter, each a set of names, top to bottom."""
    contracts = SETTINGS["tool"]["importlinter"]["contracts"]
    [layers] = [contract for contract in contracts if contract["type"] == "layers"]
    assert layers["containers"] == [ROOT.name]
    assert layers["exhaustive"]
    return [set(re.split(r"\s*:\s*", layer)) for layer in layers["layers"]]


def test_the_documented_layers_are_those_of_the_linter():
    text = (REPOSITORY / "docs" / "architecture.md").read_text("utf-8")
    table = text.partition("| layer |")[2]
    rows = []
    for line in table.splitlines()[2:]:
        if not line.startswith("|"):
            break
        found = re.findall(r"`(\w+)(/|\.py)`", line)
        rows.append({name for name, _ in found})
        for name, kind in found:
            assert (ROOT / (name + kind)).exists()
    assert rows == layers_of_the_linter()
    assert len(rows) <= MOST_LAYERS


def test_the_citation_matches_the_released_project():
    citation = (REPOSITORY / "CITATION.cff").read_text("utf-8")
    said = dict(re.findall(r"^([a-z-]+): (.+)$", citation, flags=re.MULTILINE))
    wanted = {name: PROJECT[name] for name in ("version", "license")} | {"title": PROJECT["name"]}
    assert wanted.items() <= said.items()
    [author] = PROJECT["authors"]
    assert f"authors:\n  - name: {author['name']}\n" in citation
    keywords = citation.partition("keywords:\n")[2].partition("references:")[0]
    assert keywords.split("\n")[:-1] == [f"  - {keyword}" for keyword in PROJECT["keywords"]]


def test_the_recipe_has_the_version_and_requirements_of_the_package():
    recipe = (REPOSITORY / "recipe" / "meta.yaml").read_text("utf-8")
    assert re.findall(r"^  version: (.+)$", recipe, re.MULTILINE) == [PROJECT["version"]]
    needed = recipe.partition("  run:\n")[2].partition("  run_constrained:")[0]
    found = [line.removeprefix("    - ").replace(" ", "") for line in needed.splitlines()]
    assert found == [f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]]
    assert recipe.count("sheafcoarsen.cli:main") == 1


def test_hosted_checks_run_the_oldest_and_the_newest_python():
    run = re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", WORKFLOW)[1])
    named = re.findall(r":: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert (run[0], run[-1]) == (named[0], named[-1]) == ("3.11", "3.14")
    assert set(run) <= set(named)


def test_hosted_checks_run_the_steps_of_the_local_check():
    """Every step of ``.ci/run`` is a target of the Makefile that the workflow calls too."""
    targets = r"(?<!nice )\bmake ([a-z-]+(?: SIZE=\w+)?)$"
    steps = re.findall(targets, CHECK, re.MULTILINE)
    assert len(steps) >= 7
    assert set(steps) <= set(re.findall(targets, WORKFLOW, re.MULTILINE))
    makefile = (REPOSITORY / "Makefile").read_text("utf-8")
    tasks = re.findall(r"nice make ([a-z-]+)", CHECK)
    assert f"target: [{', '.join(tasks)}]" in WORKFLOW
    for target in [*(step.split()[0] for step in steps), *tasks]:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
