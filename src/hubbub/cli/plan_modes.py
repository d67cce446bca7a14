"""What `hubbub plan` can plan, and which of its options go together."""

from __future__ import annotations

from typing import NamedTuple

from hubbub.core.errors import InvalidValue


class PlanMode(NamedTuple):
    """One thing that `hubbub plan` can do: the option that asks for it, and the options that go with it."""

    option: str
    needs: tuple[str, ...]
    takes: tuple[str, ...]


_MODES = (
    PlanMode("--central-epsilon", ("--domain", "--n"), ("--epsilon", "--delta", "--collusion-epsilon", "--fakes")),
    PlanMode("--column", ("--query", "--n", "--epsilon"), ("--unbiased",)),
    PlanMode("file", (), ("--forged",)),
    PlanMode("--sets", ("--domain", "--n", "--epsilon"), ("--held", "--forged")),
    PlanMode("--sparsity", ("--domain", "--n", "--epsilon"), ("--of",)),
    PlanMode("--of", ("--n", "--epsilon"), ()),
    PlanMode("--domain", (), ("--n", "--epsilon", "--stderr", "--most-bytes", "--forged", "--most-shift", "--plot")),
)
"""The first mode whose option is given is the one that is asked for."""
_BELONGS_TO = {
    "--delta": "--central-epsilon",
    "--collusion-epsilon": "--central-epsilon",
    "--fakes": "--central-epsilon",
    "--query": "--column",
    "--unbiased": "--column",
    "--held": "--sets",
}


def chosen_mode(given: dict[str, object]) -> str:
    """The option that says what is planned, from all options that are given, by name.

    Refuses options that do not go together, and asks for those that are missing.
    """
    from hubbub.questions.keys import NOTHING
    from hubbub.questions.words import listed

    for name, option in _BELONGS_TO.items():
        if name in given and option not in given:
            raise InvalidValue(name, given[name], f"only together with {option}")
    mode = next((mode for mode in _MODES if mode.option in given), None)
    if mode is None:
        raise InvalidValue("--domain", NOTHING, "how many values there are, or a collection's file")
    value = str(given["file"]) if mode.option == "file" else given[mode.option]
    if any(name not in given for name in mode.needs):
        raise InvalidValue(mode.option, value, f"only together with {listed(list(mode.needs))}")
    surplus = [name for name in given if name not in (mode.option, *mode.needs, *mode.takes)]
    if surplus:
        options = listed([*mode.needs, *mode.takes, "--json"])
        raise InvalidValue(surplus[0], given[surplus[0]], f"nothing: with {mode.option} go only {options}")
    return mode.option
