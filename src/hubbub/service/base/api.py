"""What the routes take and answer. One class builds a body, reads it, and describes it in the OpenAPI document."""

from typing import Annotated, Any, Literal, dataclass_transform

import msgspec
from msgspec import UNSET, Meta, UnsetType

from hubbub.authoring.coalitions import Coalition
from hubbub.core.estimate import Bias
from hubbub.questions.shape import Shape
from hubbub.service.base.limits import Reason

Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Level = Annotated[float, Meta(gt=0, lt=1)]
Hex = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
Numbers = list[float | None] | None
Pair = Annotated[list[float], Meta(min_length=2, max_length=2)]
Step = Annotated[int, Meta(ge=0, lt=1 << 62)]
Moment = Annotated[str, Meta(min_length=10, max_length=40)]

encode = msgspec.json.Encoder(enc_hook=dict).encode
"""The JSON of a body. The hook is for mappings that are no `dict`."""


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class ApiBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON object that a route takes or answers."""


# -- for devices and shufflers --------------------------------------------------------------------------------


class ProblemBody(msgspec.Struct, omit_defaults=True):
    """An error (RFC 9457): a stable type, a title, and the detail of this error."""

    type: str
    title: str
    status: int
    detail: str = ""
    problem: str = ""
    instead: str = ""
    line: int | None = None
    column: int | None = None


class SealedBody(ApiBody):
    """Signed canonical JSON."""

    payload: str
    key: str
    signature: str


class ServedCollection(ApiBody):
    """A collection that is served."""

    name: str
    version: int
    title: str
    collection_id: Hex


class CollectionsBody(ApiBody):
    """The collections that are served."""

    collections: list[ServedCollection]


class RejectedReport(ApiBody):
    """A report that was rejected, and why."""

    id: Hex
    reason: Reason


class ReceiptBody(ApiBody):
    """The outcome of each report."""

    accepted: Natural
    duplicates: Natural
    rejected: list[RejectedReport]


class ShuffledReceipt(ApiBody):
    """The content of a shuffled batch."""

    batch: str
    accepted: Natural
    fakes: Natural
    unreadable: Natural
    repeated: Natural


# -- results --------------------------------------------------------------------------------------------------


class LostReports(ApiBody):
    """The missing reports of a stream of changes, and the bias that they cause."""

    due: Natural
    came: Natural
    bias: list[float | None]
    present: Natural
    """On the level where they are fewest: how many devices at least missed no step of the horizon so far."""


class RatioParts(ApiBody):
    """The two sums of each ratio, with the variance of the numerator, the covariance, and the variance of the
    denominator.
    """

    above: list[float]
    below: list[float]
    moments: list[list[float]]
    pair: Pair
    weights: Pair
    bounds: Pair


class NoiseParts(ApiBody):
    """The second moments of the errors of shares: see `hubbub.core.noise.Noise`."""

    floor: float
    slope: float
    pair_floor: float
    pair_slope: float
    sampling: float
    square: float
    pairs: bool


class ConsistentBody(ApiBody):
    """Shares that are possible together, computed from an estimate by `method`.

    The interval of each is that of the estimate, cut to 0 and 1 and extended to include the consistent share: it
    covers the truth at least as often as the estimate's.
    """

    method: str
    bias: Bias
    value: Numbers
    low: Numbers
    high: Numbers


class ForgedBody(ApiBody):
    """Intervals that hold the truth as often as the others even if up to a part of all devices is forged.

    `devices` is that part, and `reports` the part of the reports that they send: more where honest devices take turns.
    """

    devices: float
    reports: float
    low: Numbers
    high: Numbers


class EstimateBody(ApiBody, kw_only=True):
    """An estimate with intervals. Unknown numbers are null.

    `centre`, for values smoothed over time or found by a search: the unbiased estimate that the intervals are around.
    `cut`: what that estimate had to exceed for a value to be released. `ratio`: only for numbers by group. `noise`:
    variances and covariances of shares (of `centre`, where that is given), where they depend on the shares alone.
    `consistent`: where the question has a `consistency`, or the request names one. `forged`: where it is known how far
    forged reports can move the numbers.
    """

    n: int
    bias: Bias
    kind: Literal["share", "quantity"]
    labels: list[str]
    value: Numbers
    variance: Numbers
    low: Numbers
    high: Numbers
    interval: Literal["known", "unknown"]
    withheld: str | None
    centre: Numbers | UnsetType = UNSET
    cut: float | UnsetType | None = UNSET
    ratio: RatioParts | UnsetType = UNSET
    noise: NoiseParts | UnsetType = UNSET
    consistent: ConsistentBody | UnsetType = UNSET
    forged: ForgedBody | UnsetType = UNSET


class ReleaseBody(EstimateBody, kw_only=True):
    """A release: its main estimate, and all estimates by name."""

    question: str
    step: int
    time: float
    published: bool
    spent: float | None
    population: float | None
    level: float
    stopped: str | None
    number: Natural
    version: Positive
    estimates: dict[str, EstimateBody]
    lost: LostReports | UnsetType = UNSET


class ReleasesBody(ApiBody):
    """Releases, oldest first, through the `versions` that do not change the question.

    `earlier`: the versions by which other releases are found.
    """

    question: str
    shape: Shape
    versions: list[Positive]
    earlier: list[Positive]
    releases: list[ReleaseBody]


class CandidatesBody(ApiBody):
    """The shares of the candidates, with intervals."""

    question: str
    first: int
    last: int
    n: int
    bias: Bias
    labels: list[str]
    value: Numbers
    variance: Numbers
    low: Numbers
    high: Numbers
    level: float
    withheld: str | None


class DifferenceBody(ApiBody):
    """Group `of` minus group `minus`, for every number of a group, with intervals."""

    question: str
    step: int
    by: str
    of: str
    minus: str
    n: int
    level: float
    withheld: str | None
    labels: list[str]
    value: Numbers
    low: Numbers
    high: Numbers


class QueryBody(ApiBody):
    """An SQL query, the steps that it is of, the level of intervals, and whether to explain.

    The first and the last step are numbers, dates or times. If neither is given, WHERE may name steps; else it is the
    latest with reports. Public tables that the query joins come with it, as lists of values by name and column.
    """

    sql: Annotated[str, Meta(pattern=r"\S")]
    first: Step | Moment | None = msgspec.field(default=None, name="from")
    last: Step | Moment | None = msgspec.field(default=None, name="to")
    level: Level = 0.95
    explain: bool = False
    tables: dict[str, dict[str, list[bool | int | float | str | None]]] = msgspec.field(default_factory=dict)


class QueryColumn(ApiBody):
    """A column of an answer: a group, or an estimate and how it was made."""

    name: str
    estimate: bool
    how: str


class QueryAnswerBody(ApiBody):
    """The answer to an SQL query: groups, and estimates with intervals."""

    question: str
    columns: list[QueryColumn]
    rows: list[list[Any]]
    level: float
    n: int
    bias: str
    notes: list[str]
    explain: str


# -- how the collection goes ----------------------------------------------------------------------------------


class OpenAskBody(ApiBody):
    """An open ask, and the number of reports to it so far."""

    question: str
    step: int
    reports: int
    closes: float


class CountsBody(ApiBody):
    """The number of reports with each outcome, and the open asks."""

    outcomes: dict[str, int]
    open: list[OpenAskBody]


class ShuffledBatchBody(ApiBody):
    """A shuffled batch. `checks`: the collector's own reports; `lost_checks`: those of them that did not arrive."""

    step: int
    round: int
    part: int
    people: int
    fakes: int
    unreadable: int
    repeated: int
    checks: int
    lost_checks: int


class ShuffledQuestion(ApiBody):
    """The latest batches of a question, and what each coalition can learn from the smallest and the latest one."""

    smallest: list[Coalition]
    latest: list[Coalition]
    batches: list[ShuffledBatchBody]


class ShuffledBody(ApiBody):
    """The route of the reports, and the latest batches of each question."""

    route: dict[str, Any] | None
    questions: dict[str, ShuffledQuestion]


class SpotChecksBody(ApiBody):
    """How many spot checks to make, for which ask."""

    answer: str
    count: Annotated[int, Meta(ge=1, le=1000)]


class SpotCheckUploads(ApiBody):
    """The uploads, in base64: of each report one for every shuffler that devices send to, in their order."""

    uploads: list[bytes]


class WebhookBody(ApiBody):
    """How many events of a collection a webhook has taken, how many wait, and why the last delivery failed."""

    webhook: str
    taken: Natural
    waiting: Natural
    failing: str | None


class AliveBody(ApiBody):
    """The process answers."""

    alive: bool


class ClockBody(ApiBody):
    """The state of the clock, with both times if they differ, or differed within a day."""

    state: Literal["sure", "in doubt", "moved"]
    ahead_seconds: int | UnsetType = UNSET
    going_by: str | UnsetType = UNSET
    wall: str | UnsetType = UNSET
    seconds_left: int | UnsetType = UNSET


class ProcessBody(ApiBody):
    """What a process is where several use one store: "leader" or "ingest"; the leader's epoch; seconds behind it."""

    role: str
    epoch: Natural
    lag: float


class ReadyBody(ApiBody):
    """Whether reports are taken; if not, which parts are not ready, and why."""

    ready: bool
    not_ready: dict[str, str]
    clock: ClockBody | UnsetType = UNSET
    process: ProcessBody | UnsetType = UNSET
