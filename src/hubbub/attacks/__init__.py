"""Attacks on the real system, each with what it measured next to the bound that hubbub states. One file each."""

from importlib import import_module

from hubbub.attacks.outcome import Attack

NAMES = (
    "averaging",
    "linkage",
    "cohorts",
    "membership",
    "reconstruction",
    "oracles",
    "streams",
    "means",
    "key_values",
    "distributions",
    "heavy_hitters",
    "detection",
    "sybils",
    "dropouts",
)
"""The attacks: the names of the modules of this package that have an `ATTACK`."""


def attack_named(name: str) -> Attack:
    """The attack of a name."""
    attack: Attack = import_module(f"{__name__}.{name}").ATTACK
    return attack
