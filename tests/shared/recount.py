"""A recount of what a device told an adversarial server, by what was sent and by the signed documents alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hubbub.protocols.ask import CIRCLE
from tests.shared.signed_history import BY_ID, BY_SIZE, HORIZON, WHOLE_VIEW, Adversary


@dataclass(frozen=True)
class Paid:
    """What a report told for the first time: when, by true time and the latest wall time, of what, and how much.

    `ahead` is how much later it counts as told: what a study may tell is paid for as of the end of its run.
    """

    event: int
    time: int
    wall: int
    question: str
    spent: int
    ahead: int = 0


def judge(adversary: Adversary, told: dict[str, Any]) -> list[str]:
    """What is wrong with what a device told: nothing, if it kept every promise that it ever made."""
    wrong = []
    paid, names, latest = [], set(), -(10**18)
    memos: dict[tuple[str, int], list[int]] = {}
    runs: dict[str, tuple[int, int, int, float]] = {}
    streams: dict[str, tuple[Any, ...]] = {}
    kept = {answer["id"]: answer["report"] for answer in told["answers"]}
    for report_id, report in told["heard"]:
        if kept.get(report_id) != report:
            wrong.append(f"{report_id} was sent otherwise than it was kept")
    for answer in told["answers"]:
        event, question = answer["event"], answer["question"]
        time, wall = adversary.times[event]
        if answer.get("cover"):
            continue  # which tells nothing, and pays nothing: its time is not one that was used
        latest = max(latest, wall)
        document = adversary.documents[told["in_force"][event]]
        terms, known = document["terms"][question], BY_SIZE[len(answer["report"]) // 2]
        study, run, number = terms["study"], answer["run"], answer["round"]
        if answer["version"] != document["version"]:
            wrong.append(f"event {event}: an answer to version {answer['version']}, which was not in force")
        if known.id not in terms["mechanisms"] or not 1 <= number <= terms["rounds"]:
            wrong.append(f"event {event}: {question} was answered otherwise than it promised")
        grid = 1000 * document["step_seconds"]
        step = 0 if study else (wall - 1000 * document["origin"]) // grid
        if answer["step"] != step:
            wrong.append(f"event {event}: {question} was answered for step {answer['step']}")
        begin = 1000 * (study["start"] + run * study["every"]) if study else 1000 * document["origin"] + step * grid
        each = 1000 * study["round_seconds"] if study else grid / terms["rounds"]
        if not begin + (number - 1) * each <= wall < begin + number * each:
            wrong.append(f"event {event}: {question} was answered out of round {number}")
        name = (answer["version"], question, run, step, number)
        if name in names:
            wrong.append(f"event {event}: {name} was answered twice")
        names.add(name)
        if not _asked_apart(adversary, answer, terms):
            wrong.append(f"event {event}: {name} was asked in parts that are not apart")
        spent, ahead = known.spent, 0
        if terms["state"] == "BasicRappor":
            bits, seen = int(answer["report"], 16), memos.setdefault((terms["account"], known.size), [])
            # Two permanent answers agree in all but 12 of 96 bits with probability below 1e-8.
            if any((bits ^ other).bit_count() <= 12 for other in seen):
                spent = 0
            else:
                seen.append(bits)
        elif terms["state"]:
            stream = (step // HORIZON, known.size, grid, document["origin"])
            spent = 0 if streams.get(question) == stream else known.spent
            streams[question] = stream
        elif study:
            last, left, before, ends = runs.get(question, (-1, 0, 0, 0))
            if run < last or (run == last and number <= before):
                wrong.append(f"event {event}: {question} went back to run {run}, round {number}")
            if run != last:
                ends = begin + terms["rounds"] * each
                left, spent, ahead = terms["limit"], terms["limit"], int(ends - 1 - latest)
            else:
                spent = 0
            runs[question] = (run, left - known.spent, number, ends)
            if wall >= ends:
                wrong.append(f"event {event}: {question} was answered after what was paid for run {run} had ended")
            if left < known.spent:
                wrong.append(f"event {event}: {question} told more in a run than was signed")
        if spent:
            paid.append(Paid(event, time, latest, question, spent, max(0, ahead)))
    wrong.extend(_broken(adversary, told["in_force"], paid))
    return wrong


def _asked_apart(adversary: Adversary, answer: dict[str, Any], terms: dict[str, Any]) -> bool:
    """Whether some document asked for it, in parts that no two of which could ask one device."""
    name = (answer["version"], answer["question"], answer["run"])
    rounds = [(*name, step, answer["round"]) for step in (answer["step"], None)]
    for since, asks in (asked for each in rounds for asked in adversary.asked.get(each, [])):
        parts = [ask["part"] for ask in asks]
        arcs = sorted((ask["ask"]["cohort"]["start"], ask["ask"]["cohort"]["length"]) for ask in asks)
        ends = [start for start, _ in arcs[1:]] + [arcs[0][0] + CIRCLE]
        # What is over is not among the parts that a device looks at; what it does not admit spoils all of them.
        wall = adversary.times[answer["event"]][1]
        over = any(ask["closes"] * 1000 <= wall for ask in asks)
        right = not any(_strange(ask, terms) for ask in asks)
        apart = all(start + length <= end for (start, length), end in zip(arcs, ends, strict=True))
        fits = right and apart and len(set(parts)) == len(parts) <= terms["parts"]
        if since <= answer["event"] and answer["part"] in parts and (fits or over):
            return True
    return False


def _strange(ask: dict[str, Any], terms: dict[str, Any]) -> bool:
    inner = ask["ask"]
    known = [BY_ID[each] for each in terms["mechanisms"] if BY_ID[each].spec == inner["mechanism"]]
    right = known and known[0].spent <= terms["limit"] and inner["view"] == WHOLE_VIEW and ask["part"] < terms["parts"]
    return not right or inner["cohort"]["length"] < CIRCLE // 10


def _broken(adversary: Adversary, in_force: list[str], paid: list[Paid]) -> Iterator[str]:
    """The promises of every version that was in force, counted from then on, each on its own grid and in true time."""
    for document_id in set(in_force) - {""}:
        since, document = in_force.index(document_id), adversary.documents[document_id]
        promised = [(None, promise) for promise in document["promises"]]
        promised += [(name, promise) for name, terms in document["terms"].items() for promise in terms["promises"]]
        for question, promise in promised:
            limit, steps = promise["limit"], promise["steps"]
            grid, origin = 1000 * promise["interval"], 1000 * promise["origin"]
            mine = [debit for debit in paid if debit.event >= since and question in (None, debit.question)]
            for at, last in enumerate(mine):
                before = mine[: at + 1]
                if steps:
                    first = (last.wall - origin) // grid - steps + 1
                    by_step = sum(
                        debit.spent for debit in before if (debit.wall + debit.ahead - origin) // grid >= first
                    )
                    edge = last.time - (steps - 1) * grid
                    by_time = sum(debit.spent for debit in before if debit.time + debit.ahead > edge)
                    spent = max(by_step, by_time)
                else:
                    spent = sum(debit.spent for debit in before)
                if spent > limit:
                    scope = f"{question or 'the whole'} of version {document['version']}"
                    yield f"event {last.event}: {spent} of what {scope} promised, {promise}"
