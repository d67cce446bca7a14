"""The checks of kinds of questions, which `kind_suite.py` applies.

Each example of a kind is asked of simulated devices, in a collection of its own. The check of the forecast rejects a
right kind once in a million times; all others are exact.
"""

from __future__ import annotations

import json
import math
import reprlib
import tomllib
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import get_args

import numpy as np

from hubbub.authoring.answerable import answer, codes_of, unanswered
from hubbub.authoring.check import check
from hubbub.checks.draws import CountingRandom
from hubbub.checks.failure import FALSE_ALARM, CheckFailed, require
from hubbub.collection.safety import Level
from hubbub.collection.terms import ASKS, Terms
from hubbub.consistency.guide import METHODS, method_named
from hubbub.core.errors import InvalidValue, needs
from hubbub.core.estimate import Estimate
from hubbub.core.event import units_of
from hubbub.core.reports import Floats
from hubbub.core.spec import canonical
from hubbub.ledger.promise import BudgetExceeded, Promise, of_question
from hubbub.mechanisms.stateful import Stateful
from hubbub.protocols.ask import CIRCLE, Ask
from hubbub.protocols.driver import Message, Protocol, Release, Reply
from hubbub.protocols.memory import Memory
from hubbub.questions import Question, read_collection
from hubbub.questions.consistent_shares import SharesQuestion
from hubbub.random.source import Random
from hubbub.simulate.asked_question import DEVICES, NAME, STEPS, AskedQuestion, Transcript
from hubbub.simulate.ledgers import Ledgers

_RUNS = 40
_SINGLE = 64  # values that are answered one by one
_ROUNDING = 1e-9
_NEAR = 1.25  # how far a standard error may be from its forecast, whose assumptions hold only roughly


def check_keys(asked: AskedQuestion) -> None:
    """The question is frozen, and comes back from its JSON and from its keys in TOML."""
    question, spec = asked.question, asked.question.spec()
    toml = "\n".join(f"{key} = {json.dumps(value)}" for key, value in spec.items())
    require(Question.from_spec(json.loads(canonical(spec))) == question, f"{spec} is read back as another question")
    require(Question.make(**tomllib.loads(toml)) == question, f"another question is read from the TOML {toml!r}")
    try:
        question.epsilon = question.epsilon  # type: ignore[misc]
    except FrozenInstanceError:
        return
    raise CheckFailed("the question can be changed: make it a frozen dataclass")


def check_words(asked: AskedQuestion) -> None:
    """There is a title, a sentence of the promise, a summary, and what the forecast assumes."""
    question = asked.in_collection
    require(question.default_title().endswith("?"), "default_title is no question: it does not end with ?")
    require(question.sentence().endswith("."), "sentence, of the promise, does not end with a full stop")
    require(question.summary.startswith(question.kind), f"summary {question.summary!r} does not begin with the kind")
    require(question.made_by(), "made_by names no mechanism")
    require(question.assumes(), "assumes does not say what the forecast is of")
    require(question.influence() != "", "influence is empty: say why it is not known")


def check_labels(asked: AskedQuestion) -> None:
    """Every number of an answer has a name of its own, or none has; and the shape is JSON."""
    question = asked.in_collection
    shape, labels = question.shape(), question.labels()
    require(json.loads(canonical(shape.spec())) == shape.spec(), f"{shape} is not read back from its JSON")
    if labels is not None:
        require(len(labels) == shape.size, f"{len(labels)} labels for {shape.size} numbers")
        require(len(set(labels)) == len(labels), f"a label is there twice: {reprlib.repr(labels)}")


def check_findings(asked: AskedQuestion) -> None:
    """Findings are about keys of the question, and no rule of `hubbub check` calls the example an error."""
    keys = {"", *asked.question.__dataclass_fields__}
    for finding in asked.in_collection.findings():
        require(finding.level in get_args(Level), f"a finding of level {finding.level!r}")
        require(finding.where in keys and finding.text, f"a finding about {finding.where!r}, which is no key")
    errors = [str(finding) for finding in check(asked.collection) if finding.level == "error"]
    require(not errors, "; ".join(errors))


def check_terms(asked: AskedQuestion) -> None:
    """The signed terms are what the question compiles to, and admit every ask, as devices would."""
    question, terms, spec = asked.question, asked.terms, asked.collection.spec()
    require(terms.fields == question.reads(), f"terms read {terms.fields}, the question {question.reads()}")
    require(Terms.from_spec(json.loads(canonical(terms.spec())), NAME) == terms, "terms are not read back from JSON")
    reread = read_collection(json.loads(canonical(spec)))
    require(reread == asked.collection, "the signed document is read back as another collection")
    require(asked.transcript and any(asked.asks), "nothing is asked")  # an ask that is not admitted raises


def check_costs(asked: AskedQuestion) -> None:
    """No device is ever asked for more than the terms, the promises and `cost` allow."""
    question, terms, cost = asked.in_collection, asked.terms, asked.in_collection.cost()
    require(cost.each == terms.limit, f"cost is {cost.each} units at once, and the limit of the terms {terms.limit}")
    most = max(question.limits().values())
    require(most >= question.epsilon, f"limits() has no epsilon of {question.epsilon}")
    require(cost.each <= units_of(most), f"cost is {cost.each} units at once, above the stated epsilon {most}")
    alone = terms.account != ASKS
    require(
        alone == cost.memo, "what depends on values, and only that, has an account of its own: `account` of the terms"
    )
    steps: dict[int, list[Ask]] = {}
    for asks in asked.rounds:
        steps.setdefault(asks[0].step, []).extend(ask for ask in asks if not isinstance(ask.mechanism, Stateful))
    for step, asks in steps.items():
        for place in {ask.cohort.start for ask in asks}:
            spent = sum(ask.event().spent for ask in asks if ask.cohort.holds(np.array([place]))[0])
            require(spent <= terms.limit, f"a device is asked for {spent} units in step {step}, above {terms.limit}")
    grid = (question.setting.step_seconds, question.setting.origin)
    limits = [Promise(cost.worst(n), n, *grid, scope=of_question(NAME)) for n in (1, STEPS)]
    values = [asked.values[device % len(asked.values)] for device in range(DEVICES)]
    try:
        asked.simulate(values, ledgers=Ledgers(len(values), [*limits, *terms.promises], strict=True))
    except BudgetExceeded as error:
        raise CheckFailed(f"a device spends more than cost or a promise allows: {error}") from error


def check_every_value(asked: AskedQuestion) -> None:
    """Every value that a device can have recorded, and none, has an answer to every ask."""
    for ask in asked.asks:
        value = unanswered(asked.collection, asked.terms, ask)
        require(value is None, f"{type(ask.mechanism).__name__} does not take what {ask.view} gives of {value}")


def check_same_for_all(asked: AskedQuestion) -> None:
    """Whether a report is sent, its size, and how many random bytes are drawn do not depend on the value."""
    values, most = asked.values[:: max(1, len(asked.values) // _SINGLE)], asked.terms.report_bytes
    for ask in asked.asks:
        seen: dict[tuple[int, ...], object] = {}
        for value in values:
            looking, whole = CountingRandom(seed=asked.seed), CountingRandom(seed=asked.seed)
            ask.view.look([value], looking)
            reports = answer(ask, [value], whole)
            drawn = whole.drawn if getattr(ask.mechanism, "fixed_block", True) else 0
            size = len(reports.to_bare()) if len(reports) else 0
            require(size <= most, f"a report has {size} bytes, and the terms say at most {most}")
            seen.setdefault((len(reports), size, looking.drawn, drawn), value)
        differing = "; ".join(f"{value!r}: {measured}" for measured, value in seen.items())
        require(
            len(seen) == 1, f"reports, bytes sent, bytes drawn by the view, and in all, differ by value: {differing}"
        )


def check_releases(asked: AskedQuestion) -> None:
    """Releases have the shape and labels of the question, and what it says of its steps."""
    question = asked.in_collection
    shape, labels = question.shape(), question.labels()
    require(asked.releases, "nothing is released")
    for release in asked.releases:
        estimate = release.estimate
        size = len(estimate)
        fits = size <= shape.size if shape.form == "ranking" else size == shape.size
        require(fits, f"a release has {size} numbers, and the shape says {shape.size}")
        require(labels is None or estimate.labels == labels, f"a release is labelled {reprlib.repr(estimate.labels)}")
        shares = shape.unit == "share"
        require(shares == (estimate.kind == "share"), f"the shape is in {shape.unit}, and a release in {estimate.kind}")
        if question.unbiased_steps():
            own = release.own
            require(own is not None and own.bias == "none", "unbiased_steps, but a step has no unbiased estimate")
    everyone = all(sum(ask.cohort.length for ask in asks) == CIRCLE for asks in asked.rounds)
    require(everyone or not shape.everyone, "the shape says that everyone is asked, but some rounds ask only a part")


def check_consistency(asked: AskedQuestion) -> None:
    """Consistent shares have the form and the range that their method promises, and intervals that hold the raw one's.

    Of a question that can tell any, every method is tried. If the true shares are said to add up to 1, so do the
    estimates, as far as their errors show.
    """
    for name in ("auto", *METHODS, "base-cut:2"):
        try:
            question = asked.in_collection.told_by(name)
        except InvalidValue:
            continue
        require(question.terms() == asked.terms, f"with consistency {name!r} devices are asked otherwise")
        for release in asked.releases:
            for part, estimate in release.estimates.items():
                consistent = question.consistent(part, estimate)
                if consistent is not None:
                    _check_consistent(question, part, estimate, *consistent)


def _check_consistent(question: Question, part: str, estimate: Estimate, name: str, consistent: Estimate) -> None:
    method, subject = method_named(name), f"consistent shares of {part!r} by {name}"
    require(consistent.value.shape == estimate.value.shape, f"{subject}: {len(consistent)} of {len(estimate)} shares")
    require(consistent.labels == estimate.labels, f"{subject} are labelled {reprlib.repr(consistent.labels)}")
    raw, ends = estimate.interval(), consistent.interval()
    wide = (ends[0] <= np.fmin(raw[0], consistent.value)) & (ends[1] >= np.fmax(raw[1], consistent.value))
    require(bool((wide | np.isnan(consistent.value)).all()), f"{subject}: an interval lacks the share, or the raw one")
    size = question.row_size(part, len(estimate)) if isinstance(question, SharesQuestion) else len(estimate)
    for row in (slice(start, start + size) for start in range(0, len(estimate), size)):
        shares, before = consistent.value[row], estimate.value[row]
        if not np.isfinite(before).all():
            continue
        if method.non_negative:
            require(bool((shares >= 0).all()), f"{subject}: one is {shares.min():.3g}")
        total = float(shares.sum())
        if method.sums_to_one != "no":
            fits = abs(total - 1) < _ROUNDING or (method.sums_to_one == "almost" and 0 < total < 1)
            require(fits, f"{subject} add up to {total:.6g}")
            # Without covariances this is the largest possible error of a sum.
            raw_row = Estimate(before, estimate.variance[row], estimate.n, noise=estimate.noise)
            low, high = raw_row.linear(np.ones(size)).interval(1 - FALSE_ALARM)
            near = low[0] - _ROUNDING <= 1 <= high[0] + _ROUNDING
            require(near, f"{subject}: before, they add up to {before.sum():.3g}, and their errors do not explain it")
        ordered = np.diff(shares[np.argsort(before, kind="stable")]) >= -_ROUNDING
        require(bool(ordered.all()), f"{subject} are in another order than the estimates")


def check_restart(asked: AskedQuestion) -> None:
    """A server that starts again repeats what it asked and released, and continues a stream from its stored memory."""
    require(asked.question.arithmetic >= 1, "arithmetic is a whole number of at least 1")
    memory, transcript = Memory(), asked.transcript
    ends = [place for place, (message, _) in enumerate(transcript, 1) if isinstance(message, Release)]
    half = ends[1] if len(ends) > 2 and asked.terms.study is None else len(transcript)
    _require_same(asked.collection.protocol(NAME, memory), transcript[:half], "asked again")
    if half < len(transcript):
        stored = Memory(json.loads(json.dumps(memory.state())))
        _require_same(asked.collection.protocol(NAME, stored), transcript[half:], "continued from its memory")


def check_forecast(asked: AskedQuestion) -> None:
    """The forecast is the standard error of repeated simulations in which all values are equally common."""
    with needs("analytics"):
        from scipy.stats import chi2

    expected = asked.in_collection.expected_error(DEVICES)
    if expected is None:
        return
    runs = [_released(asked.simulate(_typical(asked, run), run)) for run in range(_RUNS)]
    squares = float(np.nanmean(np.nanvar(np.array(runs), axis=0, ddof=1)))
    freedom = _RUNS * (STEPS if asked.in_collection.independent_steps() else 1) - STEPS
    low, high = (float(chi2.ppf(tail, freedom)) / freedom for tail in (FALSE_ALARM / 2, 1 - FALSE_ALARM / 2))
    measured = math.sqrt(squares)
    within = math.sqrt(low) / _NEAR <= measured / expected <= math.sqrt(high) * _NEAR
    require(within, f"the standard error is {measured:.3g} in {_RUNS} runs, and the forecast says {expected:.3g}")


def _typical(asked: AskedQuestion, run: int) -> list[object]:
    """What devices recorded if all values of a field are equally common, and fields independent."""
    rng, fields = Random(seed=asked.seed).child("typical", run), asked.terms.fields
    codes = {field: codes_of(asked.fields[field]) for field in fields}
    columns = {name: [own[k % len(own)] for k in rng.permutation(DEVICES)] for name, own in codes.items()}
    if len(fields) == 1:
        return columns[fields[0]]
    return [dict(zip(fields, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _released(transcript: Transcript) -> list[Floats]:
    estimates = [message.own or message.estimate for message, _ in transcript if isinstance(message, Release)]
    return [np.where(np.isfinite(estimate.variance), estimate.value, np.nan) for estimate in estimates]


def _require_same(protocol: Protocol, transcript: Transcript, when: str) -> None:
    reply: Reply = None
    for message, answered in transcript:
        repeated = protocol.send(reply)
        require(_plain(repeated) == _plain(message), f"{when}, it says something else: {reprlib.repr(repeated)}")
        reply = answered


def _plain(message: Message) -> object:
    """A message in a form that can be compared; NaN is equal to itself."""
    if not isinstance(message, Release):
        return message
    numbers = [(part.labels, part.value.tobytes(), part.variance.tobytes()) for part in message.estimates.values()]
    return message.step, message.published, numbers


KindCheck = Callable[[AskedQuestion], None]
KIND_CHECKS: tuple[KindCheck, ...] = (
    check_keys,
    check_words,
    check_labels,
    check_findings,
    check_terms,
    check_costs,
    check_every_value,
    check_same_for_all,
    check_releases,
    check_consistency,
    check_restart,
    check_forecast,
)
"""Every check of a kind; only the last, `check_forecast`, is statistical."""
