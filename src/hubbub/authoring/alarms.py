"""What the alarms of a collection will find, what they promise, and what an author should know of them."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from hubbub.alarms.forged import ForgedTest
from hubbub.alarms.plan import JUMPS, AlarmPlan, WatchedQuantity, delays_text, guarantee_text
from hubbub.authoring.forecast import DEVICES
from hubbub.collection.safety import Finding
from hubbub.questions.collection import Collection


@dataclass(frozen=True)
class AlarmForecast:
    """One alarm.

    Parameters
    ----------
    alarm, question, watched
        Its name, its question, and how many quantities it watches.
    guarantee, delays
        How often it is wrong, and how fast it is right, in words.
    steps
        In how many steps half of the jumps of 1 and of 4 standard errors are found; None where they may never be.
    errors
        For each number of devices, the standard error of a step, where a formula tells it.
    """

    alarm: str
    question: str
    watched: int
    guarantee: str
    delays: str
    steps: dict[str, int | None]
    errors: dict[int, float | None]
    unit: str

    def to_dict(self) -> dict[str, object]:
        """The forecast as JSON."""
        return {**asdict(self), "errors": {str(n): error for n, error in self.errors.items()}}


def alarm_forecasts(collection: Collection, plan: AlarmPlan) -> list[AlarmForecast]:
    """What each alarm will find at a number of devices."""
    rows = []
    for watches in _by_alarm(collection, plan):
        watch = watches[0]
        question = collection.questions[watch.question]
        forecasts = {n: question.expected_error(n) for n in DEVICES}
        row = AlarmForecast(
            alarm=watch.alarm,
            question=watch.question,
            watched=len(watches),
            guarantee=guarantee_text(watches, collection.step_seconds),
            delays=delays_text(watch),
            steps={f"{jump:g}": watch.delay(jump) for jump in JUMPS},
            errors={n: watch.stderr(error) if error and watch.weights else None for n, error in forecasts.items()},
            unit=question.shape().unit,
        )
        rows.append(row)
    return rows


def alarms_promise(collection: Collection, plan: AlarmPlan) -> str | None:
    """What all alarms together promise; None if there are none."""
    watches = plan.watches(collection)
    return guarantee_text(watches, collection.step_seconds) if watches else None


def alarm_findings(collection: Collection, plan: AlarmPlan) -> Iterator[Finding]:
    """What is worth knowing of a collection's alarms.

    Example:
        >>> from hubbub.authoring.toml import EXAMPLE, load_collection
        >>> plan = AlarmPlan.from_spec({"dark": {"question": "popular", "weights": {"dark": 1}, "above": 1.5}})
        >>> for finding in alarm_findings(load_collection(EXAMPLE), plan):
        ...     print(finding)
        warning: alarms.dark.above: what is watched never exceeds 1, so that the alarm is never raised
    """
    for watches in _by_alarm(collection, plan):
        watch = watches[0]
        where, test = f"alarms.{watch.alarm}", watch.test
        if isinstance(test, ForgedTest):
            continue
        low, high = _range(collection, watch)
        if test.threshold is not None and test.sides == ("above",) and test.threshold >= high:
            text = f"what is watched never exceeds {high:g}, so that the alarm is never raised"
            yield Finding("warning", f"{where}.above", text)
        if test.threshold is not None and test.sides == ("below",) and test.threshold <= low:
            text = f"what is watched is never below {low:g}, so that the alarm is never raised"
            yield Finding("warning", f"{where}.below", text)
        if not test.independent:
            yield Finding(
                "note",
                f"{where}.question",
                "devices make their reports from kept answers, so that the errors of its steps are correlated: each "
                f"step is judged by itself, and a change of less than {test.raises.z:.2g} standard errors may never be "
                "found",
            )


def _by_alarm(collection: Collection, plan: AlarmPlan) -> list[list[WatchedQuantity]]:
    watches = plan.watches(collection)
    return [[watch for watch in watches if watch.alarm == alarm] for alarm in plan.alarms]


def _range(collection: Collection, watch: WatchedQuantity) -> tuple[float, float]:
    """What the watched quantity lies between."""
    shape = collection.questions[watch.question].shape()
    low, high = (0.0, 1.0) if shape.unit == "share" else (shape.low, shape.high)
    if low is None or high is None:
        return -math.inf, math.inf
    ends = [(weight * low, weight * high) for weight in watch.weights]
    return sum(min(pair) for pair in ends), sum(max(pair) for pair in ends)
