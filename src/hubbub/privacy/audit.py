"""The exact audit of a mechanism: what one report spends, how that was checked, and a statement in plain language."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal

from hubbub.core.drawing import html_rows
from hubbub.core.errors import InvalidValue
from hubbub.core.plugins import PluginFailed
from hubbub.core.spec import Json
from hubbub.mechanisms import MECHANISMS, randomizers
from hubbub.mechanisms.base import Linkable, Mechanism
from hubbub.privacy.enumeration import Enumeration, domain_of, enumerate_reports, required_fields
from hubbub.privacy.montecarlo import MonteCarlo, sample_epsilon
from hubbub.random.integers import log_upper
from hubbub.random.source import Random

_WEAK = math.log(99)  # from even odds, beyond this one report can make an observer 99% sure


def statement(audit: Audit) -> str:
    """What is guaranteed, to whom, over which reports, what is not covered, and how it was checked."""
    checked = f"How it was checked. {' '.join(_checks(audit))}"
    if not audit.ok:
        return f"{_verdict(audit)}\n\nWhat it claims, and does not keep. {_guarantee(audit.epsilon)}\n\n{checked}"
    return "\n\n".join(
        (
            _verdict(audit),
            f"What is guaranteed. {_guarantee(audit.effective_epsilon)}",
            "To whom. To everyone who sends a report, against anyone who sees it: on the network, at the server, or in "
            "its records. Nobody but the device has to be trusted, and it holds whatever else the observer knows.",
            f"Over what. {_reach(audit)}",
            f"What is not covered. {_uncovered(audit)}",
            checked,
        )
    )


def _verdict(audit: Audit) -> str:
    name = f"{audit.mechanism} (spec {audit.spec_id[:8]})"
    if not audit.ok:
        return f"VIOLATED. {name} declares epsilon {audit.epsilon:g}, and a check below failed: do not use it."
    spent = _up(audit.effective_epsilon)
    same = "as declared" if audit.effective_epsilon >= audit.epsilon * (1 - 1e-3) else "below what it declares"
    return f"{name}: one report spends epsilon {spent}, {same} ({audit.epsilon:g})."


def _guarantee(epsilon: float) -> str:
    times = _up(math.exp(epsilon)) if epsilon < 700 else f"e^{_up(epsilon)}"
    sure, unsure = 100 / (1 + math.exp(-epsilon)), 100 / (1 + math.exp(min(epsilon, 700)))
    text = (
        f"Whatever a report says, it is at most e^{_up(epsilon)} = {times} times more likely under one answer than "
        f"under any other. Someone who held two answers equally likely can, after seeing it, be at most "
        f"{_up(sure)}% sure of either, and the other keeps at least {_down(unsure)}%."
    )
    return (
        text if epsilon <= _WEAK else text + " At an epsilon this large, one report can all but give its answer away."
    )


def _reach(audit: Audit) -> str:
    if audit.lifetime_epsilon is not None:
        return (
            f"One report; and all reports of one answer that does not change, together, spend at most epsilon "
            f"{_up(audit.lifetime_epsilon)} while the device keeps its permanent answer. Reports of different answers "
            "add up, unless the ledger stops them."
        )
    return (
        f"One report. Reports of one person add up, two to epsilon {_up(2 * audit.effective_epsilon)}, ten to "
        f"{_up(10 * audit.effective_epsilon)}, unless the ledger on the device stops them."
    )


def _uncovered(audit: Audit) -> str:
    public = ""
    if audit.public:
        columns = " and ".join(audit.public)
        drawn = "which is drawn without looking at the answer and sent as it is"
        tail = "which may depend on the answer and is sent as it is: nothing protects it, with or without a shuffle"
        public = f"The public part ({columns}), {tail if audit.linkable == 'always' else drawn}. "
    if audit.linkable == "between batches":
        public += "That two reports come from the same device. "
    return (
        public + "That someone answered at all, and when. Network addresses, and anything else sent with the report. "
        "What the statistics say about everyone, a person's own group included."
    )


def _checks(audit: Audit) -> list[str]:
    condition = f", given {' and '.join(audit.public)}" if audit.public else ""
    sentences = [
        "The worst ratio was computed from the stored integers of the specification in exact "
        f"arithmetic{condition}, and its logarithm rounded up: epsilon {_up(audit.effective_epsilon)}."
    ]
    if max(audit.effective_epsilon, audit.lifetime_epsilon or 0.0) > audit.epsilon:
        sentences.append(f"FAILED: that is more than the declared {audit.epsilon:g}.")
    enumerated = audit.enumeration
    if enumerated is None:
        sentences.append("Its reports are too many to enumerate: the ratio rests on the structure of the mechanism.")
    else:
        tried = "all" if enumerated.every_value else "a sample of"
        publics = f", with each of {enumerated.publics} public parts" if audit.public else ""
        sentences.append(
            f"Every possible report ({enumerated.reports:,}) was enumerated under {tried} {enumerated.values:,} answers"
            f"{publics}: the worst ratio found is epsilon {_up(enumerated.epsilon)}, "
            + ("equal to the computed one." if enumerated.ratio == audit.ratio else _unequal(audit))
        )
        if not enumerated.normalised:
            sentences.append("FAILED: the probabilities of some answer's reports do not sum to 1.")
    sampled = audit.montecarlo
    if sampled is not None:
        judged = "consistent" if sampled.epsilon_low <= audit.effective_epsilon else "FAILED: not consistent"
        sentences.append(
            f"From {sampled.samples:,} reports drawn, the sampler spends at least epsilon "
            f"{_down(sampled.epsilon_low)} at confidence {sampled.level:.4g}: {judged} with the computed epsilon."
        )
    return sentences


def _unequal(audit: Audit) -> str:
    return "within the computed one." if audit.exact else "FAILED: not within the computed one."


def _up(number: float) -> str:
    return _rounded(number, ROUND_CEILING)


def _down(number: float) -> str:
    return _rounded(number, ROUND_FLOOR)


def _rounded(number: float, rounding: str) -> str:
    """Four significant digits, rounded so that the sentence stays true; a float's last-place noise is not a digit."""
    if math.isinf(number):
        return "infinity"
    exact = Context(prec=12).create_decimal(Decimal(number))
    return f"{Context(prec=4, rounding=rounding).plus(exact).normalize():,f}"


@dataclass(frozen=True)
class Audit:
    """The result of the audit of one mechanism.

    Parameters
    ----------
    mechanism, spec_id, domain
        The audited mechanism; `domain` is the size of its domain, None where that is open.
    epsilon, effective_epsilon
        The declared epsilon, and what one report spends: the logarithm of `ratio`, rounded up.
    ratio
        The largest ratio of a report's probabilities under two values, from the stored integers.
    lifetime_epsilon
        What all reports of one unchanged value spend together, where the mechanism bounds that; else None.
    public
        The columns that the guarantee is conditional on: they are sent as they are.
    linkable
        As the mechanism states it: "always" where the public columns depend on the value, and are not protected.
    enumeration, montecarlo
        The results of these checks; None where they were not made.
    """

    mechanism: str
    spec_id: str
    domain: int | None
    epsilon: float
    effective_epsilon: float
    ratio: Fraction
    lifetime_epsilon: float | None
    public: tuple[str, ...]
    enumeration: Enumeration | None
    montecarlo: MonteCarlo | None
    linkable: Linkable = "never"

    @property
    def exact(self) -> bool:
        """Whether the epsilon follows exactly from the stored integers, and no enumeration contradicts it."""
        return self.enumeration is None or self.enumeration.within(self.ratio)

    @property
    def how(self) -> Literal["structure", "structure and enumeration"]:
        """What the epsilon rests on."""
        return "structure" if self.enumeration is None else "structure and enumeration"

    @property
    def ok(self) -> bool:
        """Whether every check passed: the mechanism spends no more than it declares."""
        spent = max(self.effective_epsilon, self.lifetime_epsilon or 0.0)
        sampled = 0.0 if self.montecarlo is None else self.montecarlo.epsilon_low
        return self.exact and spent <= self.epsilon and sampled <= self.effective_epsilon

    def statement(self) -> str:
        """The guarantee and its limits in plain language."""
        return statement(self)

    def _repr_html_(self) -> str:
        verdict = "holds" if self.ok else "VIOLATED"
        facts = {"mechanism": self.mechanism, "epsilon, declared": self.epsilon, "spent": self.effective_epsilon}
        rows = [*facts.items(), ("verdict", verdict), ("from", self.how), ("reports can be linked", self.linkable)]
        return html_rows(rows, ("", "audit"), caption=self.statement())

    def to_dict(self) -> dict[str, Json]:
        return {
            "mechanism": self.mechanism,
            "spec_id": self.spec_id,
            "domain": self.domain,
            "epsilon": self.epsilon,
            "effective_epsilon": self.effective_epsilon,
            "exact": self.exact,
            "ok": self.ok,
            "verdict": "holds" if self.ok else "VIOLATED",
            "how": self.how,
            "ratio": str(self.ratio),
            "lifetime_epsilon": self.lifetime_epsilon,
            "public": list(self.public),
            "linkable": self.linkable,
            "enumeration": None if self.enumeration is None else self.enumeration.to_dict(self.ratio),
            "montecarlo": None if self.montecarlo is None else self.montecarlo.to_dict(),
        }


def audit(mechanism: Mechanism, *, montecarlo: int = 0, rng: Random | None = None, level: float = 0.999) -> Audit:
    """Recompute what one report spends, in exact arithmetic, and check it.

    The ratio follows from the structure of the mechanism and its stored integers. Where the reports are few enough, all
    of them are enumerated for every pair of values. Neither check runs the sampler: a Monte-Carlo run does.

    Parameters
    ----------
    mechanism
        The mechanism to audit.
    montecarlo
        How many reports to draw for a lower bound on what the sampler spends; 0 for none.
    rng
        Where the public parts and the samples come from; left out, a fixed stream, so that anyone finds the same.
    level
        The confidence of the bound: a sound sampler is called violated with probability at most 1 - level.

    Example:
        >>> from hubbub import GRR
        >>> audit(GRR(epsilon=1.0, domain=4), montecarlo=20_000).ok
        True
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidValue("mechanism", mechanism, "a mechanism, such as hubbub.GRR(epsilon=1.0, domain=4)")
    stream = Random(seed="hubbub audit") if rng is None else rng
    domain = domain_of(mechanism)
    ratio = mechanism.ratio()
    if not isinstance(ratio, Fraction):
        raise InvalidValue("ratio", ratio, "an exact Fraction")
    return Audit(
        mechanism=type(mechanism).__name__,
        spec_id=mechanism.spec_id,
        domain=None if domain is None else domain.size,
        epsilon=mechanism.epsilon,
        effective_epsilon=log_upper(ratio),
        ratio=ratio,
        lifetime_epsilon=getattr(mechanism, "permanent_epsilon", None),
        public=tuple(column.name for column in mechanism.columns if column.part == "public"),
        enumeration=enumerate_reports(mechanism, stream),
        montecarlo=sample_epsilon(mechanism, montecarlo, stream, level) if montecarlo else None,
        linkable=mechanism.linkable,
    )


@dataclass(frozen=True)
class RefusedSetting:
    """A setting that a mechanism's constructor does not accept, and its reason."""

    mechanism: str
    epsilon: float
    domain: int | None
    reason: str


class Audits(list[Audit]):
    """A list of audits, the settings that were refused, and the mechanisms of other packages that failed, and why."""

    refused: tuple[RefusedSetting, ...] = ()
    broken: Mapping[str, str] = MappingProxyType({})


def audit_all(
    epsilons: Sequence[float] = (0.1, 0.5, 1, 2, 4, 8),
    domains: Sequence[int] = (2, 3, 16, 1024),
    progress: Callable[[int, int], object] | None = None,
) -> Audits:
    """Audit every registered mechanism at every epsilon and domain.

    A mechanism that takes no size as its domain is built from the required fields of its own examples, at every
    epsilon. Settings that a constructor refuses are in `refused`, with its reason. A mechanism of another package that
    fails is in `broken`, and all others are audited.

    `epsilons`, `domains`: the settings. `progress`: called after each setting with how many are done, and of how many.
    """
    audits = Audits()
    refused: list[RefusedSetting] = []
    broken = MECHANISMS.broken()
    settings = []
    for name, kind in randomizers().items():
        try:
            settings += [(kind, *setting) for setting in _settings(kind, epsilons, domains)]
        except PluginFailed as error:
            broken[name] = str(error)
    for done, (kind, epsilon, size, options) in enumerate(settings, start=1):
        try:
            mechanism = kind(epsilon=epsilon, **options)
        except InvalidValue as error:
            refused.append(RefusedSetting(kind.__name__, epsilon, size, str(error)))
        except PluginFailed as error:
            broken[kind.__name__] = str(error)
        else:
            try:
                audits.append(audit(mechanism))
            except PluginFailed as error:
                broken[kind.__name__] = str(error)
        if progress is not None:
            progress(done, len(settings))
    audits.refused, audits.broken = tuple(refused), broken
    return audits


def _settings(
    kind: type[Mechanism], epsilons: Sequence[float], domains: Sequence[int]
) -> Iterator[tuple[float, int | None, dict[str, Any]]]:
    examples = list(kind.examples())
    if any((domain := domain_of(example)) is not None and domain.size is not None for example in examples):
        yield from ((epsilon, size, {"domain": size}) for epsilon in epsilons for size in domains)
        return
    for example in examples:
        options = {name: getattr(example, name) for name in required_fields(kind)}
        yield from ((epsilon, None, options) for epsilon in epsilons)
