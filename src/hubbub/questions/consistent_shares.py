"""The key `consistency`: by which method a question's releases also tell consistent shares, next to the raw ones."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

from hubbub.collection.safety import Finding
from hubbub.consistency.guide import METHODS, Purpose, consistent_rows, guideline, method_named
from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Estimate
from hubbub.questions.base import Question

AUTO, RAW_ONLY = "auto", "none"


@dataclass(frozen=True, kw_only=True)
class SharesQuestion(Question):
    """A question whose releases are shares, and can be told consistently: at least 0, and adding up to 1.

    What is released, stored and watched by alarms is always the raw estimate. The consistent one is computed from it
    whenever it is told, so another method is no other question.

    Parameters
    ----------
    consistency
        "none"; "auto" for the method that serves what pages and API show of the question; or a method of
        `hubbub.consistency.METHODS`, also "base-cut:K".

    Example:
        >>> from hubbub import Ordinal
        >>> from hubbub.questions import Setting
        >>> question = Question.make("histogram", field="age", epsilon=1.0, consistency="auto")
        >>> question.bound(Setting("ages", {"age": Ordinal(9)}, 3600)).consistency_method()
        'power-ns'
    """

    consistency: str = RAW_ONLY

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.consistency not in (AUTO, RAW_ONLY):
            method_named(self.consistency, "consistency", others=(AUTO, RAW_ONLY))

    def check_consistency(self) -> None:
        self.consistency_method()

    # -- what is known of its shares --------------------------------------------------------------------------

    def sums_to_one(self) -> bool:
        """Whether everyone has exactly one of the values, so that the true shares add up to 1."""
        return True

    def knows_noise(self) -> bool:
        """Whether releases say what the noise of the values is: not if values are smoothed over time, or are ratios."""
        return True

    def read_as(self) -> Purpose:
        """What is mostly read off: ranges of values that have an order, else each value on its own."""
        return "set" if self.sums_to_one() and self.shape().form == "distribution" else "single"

    def row_size(self, name: str, size: int) -> int:
        """How many of the shares of a released estimate, one after the other, are of the same people: here all."""
        return size

    # -- what is told -----------------------------------------------------------------------------------------

    def consistency_method(self) -> str | None:
        """The name of the method; None where only raw estimates are told. Refuses a method that cannot be used here."""
        if self.consistency == RAW_ONLY:
            return None
        whole, noise = self.sums_to_one(), self.knows_noise()
        if self.shape().unit != "share":
            raise InvalidValue("consistency", self.consistency, f'"{RAW_ONLY}": the answers are no shares')
        if self.consistency == AUTO:
            return guideline(self.read_as(), whole=whole, noise=noise)
        method = method_named(self.consistency, "consistency", others=(AUTO, RAW_ONLY))
        if (method.sums_to_one != "no" and not whole) or (method.needs_noise and not noise):
            why = "these shares need not add up to 1" if not whole else "the noise of these shares is not known"
            fitting = (
                name
                for name, other in METHODS.items()
                if (whole or other.sums_to_one == "no") and (noise or not other.needs_noise)
            )
            raise InvalidValue("consistency", self.consistency, f"one of {', '.join(fitting)}, base-cut:K: {why}")
        return self.consistency

    def consistent(self, name: str, estimate: Estimate) -> tuple[str, Estimate] | None:
        method = self.consistency_method()
        if method is None or estimate.kind != "share" or not estimate.n or not len(estimate):
            return None
        return method, consistent_rows(estimate, method_named(method), self.row_size(name, len(estimate)))

    def told_by(self, consistency: str) -> Self:
        other = replace(self, consistency=consistency).bound(self.setting)
        other.check_consistency()
        return other

    def findings(self) -> Iterator[Finding]:
        yield from super().findings()
        name = self.consistency_method()
        if name is not None:
            method = method_named(name)
            text = f"releases tell consistent shares next to the estimates, by {method.title}: {method.does}"
            yield Finding("note", "consistency", text)
