"""A shuffler's turn with a batch: what comes in and what goes out, without a network, a clock or a file."""

from __future__ import annotations

from hubbub.collection.shuffle_route import LAYER_BYTES, ShuffleRoute, layer_name
from hubbub.collection.shuffled_batch import ShuffledBatch
from hubbub.core.random import Random
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.ask import Ask
from hubbub.shuffle.onion import shuffle_onions
from hubbub.shuffle.uniform_reports import uniform_reports
from hubbub.shuffler.keys import ShufflerKeys


def take_turn(came: ShuffledBatch, ask: Ask, route: ShuffleRoute, keys: ShufflerKeys, rng: Random) -> ShuffledBatch:
    """The batch that a shuffler hands on: a layer less, with its fakes, in another order, stated and signed.

    A batch with too few reports of people is refused (`InvalidValue`), and nothing of it goes on. Reports that cannot
    be opened, or have another size than all others, are left out and counted; of equal ones the first is kept.

    Parameters
    ----------
    came
        The reports as they came, with the statements of the shufflers before this one.
    ask
        What the reports answer: its mechanism says how large they are, and what fakes look like.
    route
        Who shuffles, as it is signed.
    keys
        This shuffler's own.
    rng
        Draws fakes and order: a secure one, but in tests.
    """
    place, mechanism = len(came.statements), ask.mechanism
    size = mechanism.report_bytes + LAYER_BYTES * (len(route.shufflers) + 1 - place)
    onions = [onion for onion in came.onions if len(onion) == size]
    fakes = _single(uniform_reports(mechanism, route.fakes, rng).to_bare(), mechanism) if route.fakes else []
    turn = shuffle_onions(
        onions,
        keys.encryption,
        layer_name(came.name, ask),
        place=place,
        rest=route.route[place + 1 :],
        fakes=fakes,
        least=route.least + came.fakes,
        rng=rng,
    )
    unreadable = turn.unreadable + len(came.onions) - len(onions)
    return came.stated(
        turn.inside, keys.signing.private, unreadable=unreadable, repeated=turn.repeated, fakes=route.fakes
    )


def _single(bare: bytes, mechanism: ReportFormat) -> list[bytes]:
    """The reports of a batch, one by one: bare batches have one column after the other."""
    reports = mechanism.read_bare(bare)
    return [reports[at : at + 1].to_bare() for at in range(len(reports))]
