"""Policy as code: what an organisation allows its collections, and the clauses that a collection breaks."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from hubbub.authoring.guarantees import Guarantees, guarantees_of
from hubbub.authoring.toml import TomlTable
from hubbub.collection.safety import Finding
from hubbub.collection.time import seconds_of
from hubbub.core.errors import InvalidValue
from hubbub.questions.collection import Collection
from hubbub.questions.words import listed, rounded_up

EPSILONS = ("report", "step", "window", "year", "life")
EXAMPLE = """
[most]                  # epsilon of one collection
report = 2.0
step = 4.0
window = 10.0           # of the window that the collection declares
year = 100.0
life = 500.0

[person]                # epsilon of one person, over all collections that are checked together
year = 200.0
life = 1000.0

[central]               # of a year of shuffled batches
year = 5.0
delta = 1e-6

[least]
batch = 100             # reports that a statistic rests on

[longest]
retention = "90d"

[allowed]
trusts = ["local", "shuffle", "oblivious"]
kinds = ["histogram", "mean"]
mechanisms = ["OLH", "GRR", "SubsetSelection", "Hybrid"]
"""
"""A policy with every clause; each may be left out."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What is allowed; what is None is not limited."""

    most: Mapping[str, float] = {}
    person: Mapping[str, float] = {}
    central_year: float | None = None
    central_delta: float | None = None
    least_batch: int | None = None
    longest_days: float | None = None
    allowed: Mapping[str, tuple[str, ...]] = {}


def load_policy(source: str | Path) -> Policy:
    """Read a policy, from a path or from text (which has more than one line)."""
    text = source if isinstance(source, str) and "\n" in source else Path(source).read_text(encoding="utf-8")
    try:
        file = TomlTable(tomllib.loads(text), "policy")
    except tomllib.TOMLDecodeError as error:
        raise InvalidValue("policy", "text that is not TOML", f"a policy in TOML ({error})") from None
    central, least, longest = (file.table(name, optional=True) for name in ("central", "least", "longest"))
    allowed = file.table("allowed", optional=True)
    retention = longest.take("retention", str, None)
    policy = Policy(
        most=_epsilons(file.table("most", optional=True), EPSILONS),
        person=_epsilons(file.table("person", optional=True), ("year", "life")),
        central_year=_positive(central, "year"),
        central_delta=_positive(central, "delta"),
        least_batch=least.take("batch", int, None),
        longest_days=None if retention is None else seconds_of(longest.at("retention"), retention) / 86400,
        allowed={key: _names(allowed, key) for key in ("trusts", "kinds", "mechanisms") if key in allowed},
    )
    for table in (central, least, longest, allowed, file):
        table.finish()
    return policy


def _epsilons(table: TomlTable, keys: Sequence[str]) -> dict[str, float]:
    limits = {key: _positive(table, key) for key in keys}
    table.finish()
    return {key: limit for key, limit in limits.items() if limit is not None}


def _positive(table: TomlTable, key: str) -> float | None:
    limit: float | None = table.take(key, float, None)
    if limit is not None and not 0 <= limit < float("inf"):
        raise InvalidValue(table.at(key), limit, "a number of at least 0")
    return limit


def _names(table: TomlTable, key: str) -> tuple[str, ...]:
    names = table.take(key, list)
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidValue(table.at(key), names, "a list of at least one name")
    return tuple(names)


def breaches(policy: Policy, collection: Collection) -> Iterator[Finding]:
    """An error for each clause that a collection breaks."""
    numbers = guarantees_of(collection)
    for key, most in policy.most.items():
        yield from _above(f"most.{key}", getattr(numbers, key), most, key, declared=key != "window")
    yield from _central(policy, numbers)
    if policy.least_batch is not None and numbers.least_batch < policy.least_batch:
        text = f"a statistic may rest on {numbers.least_batch:,} reports, the policy asks for {policy.least_batch:,}"
        yield Finding("error", "policy.least.batch", text)
    if policy.longest_days is not None and numbers.retention_days > policy.longest_days:
        text = f"reports are kept for {numbers.retention_days:,} days, the policy allows {policy.longest_days:g}"
        yield Finding("error", "policy.longest.retention", text)
    used: dict[str, list[tuple[str, str]]] = {
        "trusts": [("trust", numbers.trust)],
        "kinds": [(name, question.kind) for name, question in numbers.questions.items()],
        "mechanisms": [(name, use) for name, question in numbers.questions.items() for use in question.mechanisms],
    }
    for key, names in policy.allowed.items():
        for where, name in used[key]:
            if name not in names:
                text = f"{where} uses {name}, the policy allows {listed([*names])}"
                yield Finding("error", f"policy.allowed.{key}", text)


def _central(policy: Policy, numbers: Guarantees) -> Iterator[Finding]:
    if numbers.central_year is None:
        return
    if policy.central_year is not None:
        yield from _above("central.year", numbers.central_year, policy.central_year, "year of shuffled batches")
    if policy.central_delta is not None and numbers.delta > policy.central_delta:
        text = f"the delta of a year is {numbers.delta:g}, the policy allows {policy.central_delta:g}"
        yield Finding("error", "policy.central.delta", text)


def _above(clause: str, spent: float | None, most: float, of: str, *, declared: bool = True) -> Iterator[Finding]:
    if spent is None and declared:
        text = f"there is no limit of a {of}, the policy allows epsilon {rounded_up(most)}"
        yield Finding("error", f"policy.{clause}", text)
    elif spent is not None and spent > most:
        text = f"a {of} can cost a device epsilon {rounded_up(spent)}, the policy allows {rounded_up(most)}"
        yield Finding("error", f"policy.{clause}", text)


def breaches_together(policy: Policy, collections: Sequence[Collection]) -> list[Finding]:
    """An error for each clause about one person that all collections together break."""
    rows = [(collection.name, guarantees_of(collection)) for collection in collections]
    found: list[Finding] = []
    for key, most in policy.person.items():
        spent = {name: getattr(numbers, key) for name, numbers in rows}
        without = [name for name, epsilon in spent.items() if epsilon is None]
        if without:
            text = f"{listed(without)} has no limit of a {key}, the policy allows a person epsilon {rounded_up(most)}"
            found.append(Finding("error", f"policy.person.{key}", text))
        elif sum(spent.values()) > most:
            parts = ", ".join(f"{name} {rounded_up(epsilon)}" for name, epsilon in spent.items())
            text = (
                f"a {key} of all collections together can cost a person epsilon {rounded_up(sum(spent.values()))} "
                f"({parts}), the policy allows {rounded_up(most)}"
            )
            found.append(Finding("error", f"policy.person.{key}", text))
    return found
