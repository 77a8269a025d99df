"""Public names of the last version still exist, so that scripts run unchanged.

tests/data/signatures.txt records its public names and parameters, in the format of
`tests.support.signatures`. Each name must have the same parameters, order and defaults; new
optional parameters may follow. Intended removals are listed here, with their reasons.
"""

from pathlib import Path

import pytest

import sheafcoarsen as sc
from tests.support.signatures import parameters_of

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


def found(name):
    """Return the object with a given name; fields without a default are returned as fields."""
    item = sc
    for part in name.split("."):
        item = getattr(item, "__dataclass_fields__", {}).get(part) or getattr(item, part)
    return item


def name_of(parameter):
    return parameter.lstrip("/*").partition("=")[0]


def is_positional(parameter):
    return not parameter.startswith("*")


def test_the_record_lists_every_name_once():
    names = {line.partition(" | ")[0].removesuffix("()") for line in RECORD}
    assert len(names) == len(RECORD) > 200
    assert {name.partition(".")[0] for name in names} <= set(sc.__all__)


@pytest.mark.parametrize("line", RECORD, ids=lambda line: line.partition(" | ")[0])
def test_recorded_names_keep_their_parameters(line):
    head, *old = line.split(" | ")
    name = head.removesuffix("()")
    if name in GONE_NAMES:
        with pytest.raises(AttributeError):
            found(name)
        return
    item = found(name)
    if head == name:  # the object is not callable
        return
    gone = GONE_PARAMETERS.get(name, set())
    assert gone <= set(old)
    old = [
        parameter.partition("=")[0] + "=" + NEW_DEFAULTS[name][name_of(parameter)]
        if name_of(parameter) in NEW_DEFAULTS.get(name, {})
        else parameter
        for parameter in old
        if parameter not in gone
    ]
    new = parameters_of(item)
    assert not {name_of(parameter) for parameter in gone} & set(map(name_of, new))
    places = [parameter for parameter in old if is_positional(parameter)]
    assert new[: len(places)] == places
    named = {name_of(parameter): parameter for parameter in new}
    for parameter in old[len(places) :]:
        assert named[name_of(parameter)].lstrip("*") == parameter.lstrip("*")
    known = set(map(name_of, old))
    for parameter in new:
        assert name_of(parameter) in known or "=" in parameter or parameter.startswith("**")
