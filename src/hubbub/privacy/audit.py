"""The exact audit of a mechanism: what one report spends, and how that was checked."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from hubbub.core.errors import InvalidValue
from hubbub.core.exact import log_upper
from hubbub.core.random import Random
from hubbub.core.spec import Json
from hubbub.mechanisms.base import Linkable, Mechanism
from hubbub.privacy.enumeration import Enumeration, enumerate_reports
from hubbub.privacy.montecarlo import MonteCarlo, sample_epsilon
from hubbub.privacy.probes import domain_of
from hubbub.privacy.statement import statement


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

    def to_dict(self) -> dict[str, Json]:
        """The audit as JSON."""
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
