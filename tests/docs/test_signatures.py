"""Public names of the last version still exist, so that scripts run unchanged.

tests/data/signatures.txt records its public names and parameters, in the format of
`tests.support.signatures`. Each name must have the same parameters, order and defaults; new
optional parameters may follow. Intended removals are listed here, with their reasons.
"""

import inspect
from pathlib import Path

import pytest

import sheafcoarsen as sc
from tests.support.signatures import item_of, parameters_of

RECORD = (Path(__file__).parents[1] / "data" / "signatures.txt").read_text("utf-8").splitlines()

GONE_PARAMETERS = {
    # it changed the type of the result, and the residual is only rounding
    "harmonic_extension": {"*return_residual=False"},
    "nearest_section": {"*return_residual=False"},
    # only the command line needed it
    "report": {"times=None"},
    # times are measured when levels are made, not passed
    "Hierarchy": {"seconds=None"},
}
GONE_NAMES = {"LocalModes.half_edges"}  # only kernels used it
NEW_DEFAULTS = {
    # spectral clustering, still an option, took minutes where other methods take a second
    "HiSP": {"method": "'auto'"},
    # for pose graphs "auto" also tries the joint sheaf of poses and landmarks
    "synchronize": {"method": "'auto'"},
}


def name_of(parameter):
    return parameter.lstrip("/*").partition("=")[0]


def test_the_record_lists_every_name_once():
    names = {line.partition(" | ")[0].removesuffix("()") for line in RECORD}
    assert len(names) == len(RECORD) > 200
    assert {name.partition(".")[0] for name in names} <= set(sc.__all__)


def changes_of(line):
    """Return what the parameters of a recorded name have lost."""
    head, *old = line.split(" | ")
    name = head.removesuffix("()")
    try:
        item = item_of(name)
    except AttributeError:
        return [] if name in GONE_NAMES else ["is gone"]
    if name in GONE_NAMES:
        return ["is still here"]
    if head == name:  # the object is not callable
        return []
    gone, defaults = GONE_PARAMETERS.get(name, set()), NEW_DEFAULTS.get(name, {})
    changes = [f"had no {parameter}" for parameter in gone - set(old)]
    old = [
        f"{parameter.partition('=')[0]}={defaults[name_of(parameter)]}"
        if name_of(parameter) in defaults
        else parameter
        for parameter in old
        if parameter not in gone
    ]
    new = parameters_of(item)
    named = {name_of(parameter): parameter for parameter in new}
    changes += [f"still has {parameter}" for parameter in gone if name_of(parameter) in named]
    places = [parameter for parameter in old if not parameter.startswith("*")]
    if new[: len(places)] != places:
        changes.append(f"{new[: len(places)]} instead of {places}")
    changes += [
        f"{named.get(name_of(parameter))} instead of {parameter}"
        for parameter in old[len(places) :]
        if named.get(name_of(parameter), "").lstrip("*") != parameter.lstrip("*")
    ]
    known = set(map(name_of, old))
    return changes + [
        f"{parameter} is required"
        for parameter in new
        if not (name_of(parameter) in known or "=" in parameter or parameter.startswith("**"))
    ]


def test_recorded_names_keep_their_parameters():
    changes = {line.partition(" | ")[0]: changes_of(line) for line in RECORD}
    assert {name: lost for name, lost in changes.items() if lost} == {}


@pytest.mark.parametrize("name", ["gallery", "plot", "ranks"])
def test_modules_show_only_public_functions(name):
    """Tab completion and a star import give them, and no imported modules."""
    module, scope = getattr(sc, name), {}
    exec(f"from sheafcoarsen.{name} import *", scope)
    assert dir(module) == sorted(module.__all__) == sorted(scope.keys() - {"__builtins__"})
    assert all(inspect.isfunction(getattr(module, item)) for item in dir(module))
