"""Any marginal of a release of a marginals question, and records drawn from the release."""

import math
from collections.abc import Sequence
from typing import Literal

from hubbub.core.errors import InvalidValue
from hubbub.core.estimate import Bias
from hubbub.protocols.marginals.calm import ReconstructionError
from hubbub.protocols.marginals.field_marginals import FieldMarginals
from hubbub.protocols.marginals.synopsis import ReconstructedMarginal
from hubbub.random.source import Random
from hubbub.service.base.api import ApiBody, Numbers

MOST_RECORDS = 100_000
"""How many records one answer has at most."""


class LeftOutBody(ApiBody):
    """The mean sum of squared errors of marginals that were left out and reconstructed, and its standard error."""

    squared: float
    stderr: float | None
    marginals: int


class MarginalBody(ApiBody):
    """The shares of all combinations of values of some fields; the last field varies fastest.

    `interval` is "unknown" for a marginal that no device reported on: it is reconstructed. `least` and `most` are then
    what the reported marginals leave possible, and `left_out` is how far reconstruction was off where that is known.
    """

    question: str
    step: int
    n: int
    bias: Bias
    level: float
    values: dict[str, list[str]]
    labels: list[str]
    value: list[float]
    low: Numbers
    high: Numbers
    interval: Literal["known", "unknown"]
    least: Numbers
    most: Numbers
    reported: list[list[str]]
    left_out: LeftOutBody | None


class RecordsBody(ApiBody):
    """Records of people who do not exist, with the released marginals."""

    question: str
    step: int
    fields: list[str]
    records: list[list[str]]


def marginal_body(
    released: FieldMarginals, fields: Sequence[str], *, question: str, step: int, level: float = 0.95
) -> MarginalBody:
    """The marginal of some fields, with intervals where devices reported on all of them together."""
    places, estimate = released.places(fields), released.marginal(fields)
    ends = [end.tolist() for end in estimate.interval(level)]
    known = not isinstance(estimate, ReconstructedMarginal)
    low, high = ends if known else (None, None)
    least, most = (None, None) if known else ends
    names = released.fields
    return MarginalBody(
        question=question,
        step=step,
        n=estimate.n,
        bias=estimate.bias,
        level=level,
        values={names[place]: list(released.labels[names[place]]) for place in places},
        labels=list(estimate.labels or ()),
        value=estimate.value.tolist(),
        low=low,
        high=high,
        interval="known" if known else "unknown",
        least=least,
        most=most,
        reported=[[names[place] for place in view] for view in released.reported],
        left_out=None if known or released.left_out is None else left_out_body(released.left_out),
    )


def left_out_body(error: ReconstructionError) -> LeftOutBody:
    """How far marginals that were left out and reconstructed were off."""
    stderr = error.stderr if math.isfinite(error.stderr) else None
    return LeftOutBody(squared=error.squared, stderr=stderr, marginals=error.marginals)


def records_body(
    released: FieldMarginals, fields: Sequence[str], n: int, *, question: str, step: int, rng: Random
) -> RecordsBody:
    """Records of people who do not exist, of some fields or, if none is named, of all."""
    if not 1 <= n <= MOST_RECORDS:
        raise InvalidValue("n", n, f"from 1 to {MOST_RECORDS:,} records")
    chosen = list(fields) or released.known_fields
    records = [list(record) for record in released.records(n, rng, chosen)]
    return RecordsBody(question=question, step=step, fields=chosen, records=records)
