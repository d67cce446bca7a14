"""One shuffler's work on a batch as a pure function, without a network, a clock or a file."""

from __future__ import annotations

from hubbub.collection.shuffle_route import LAYER_BYTES, ShuffleRoute, layer_name
from hubbub.collection.shuffled_batch import ShuffledBatch
from hubbub.core.random import Random
from hubbub.mechanisms.base import ReportFormat
from hubbub.protocols.ask import Ask
from hubbub.shuffle.onion import shuffle_onions
from hubbub.shuffle.uniform_reports import uniform_reports
from hubbub.shuffler.keys import ShufflerKeys


def take_turn(incoming: ShuffledBatch, ask: Ask, route: ShuffleRoute, keys: ShufflerKeys, rng: Random) -> ShuffledBatch:
    """The batch that a shuffler hands on: one layer less, with its fakes, permuted, with its signed statement.

    A batch with too few reports of people is refused (`InvalidValue`). Reports that cannot be opened, have a wrong
    size, or are repeated, are left out and counted.

    Parameters
    ----------
    incoming
        The reports, with the statements of the previous shufflers.
    ask
        The ask that the reports answer. Its mechanism determines their size, and the fakes.
    route
        The signed list of shufflers.
    keys
        The keys of this shuffler.
    rng
        Draws fakes and the permutation. Secure, except in tests.
    """
    place, mechanism = len(incoming.statements), ask.mechanism
    size = mechanism.report_bytes + LAYER_BYTES * (len(route.shufflers) + 1 - place)
    onions = [onion for onion in incoming.onions if len(onion) == size]
    fakes = _single(uniform_reports(mechanism, route.fakes, rng).to_bare(), mechanism) if route.fakes else []
    turn = shuffle_onions(
        onions,
        keys.encryption,
        layer_name(incoming.name, ask),
        place=place,
        rest=route.route[place + 1 :],
        fakes=fakes,
        least=route.least + incoming.fakes,
        rng=rng,
    )
    unreadable = turn.unreadable + len(incoming.onions) - len(onions)
    return incoming.stated(
        turn.inside, keys.signing.private, unreadable=unreadable, repeated=turn.repeated, fakes=route.fakes
    )


def _single(bare: bytes, mechanism: ReportFormat) -> list[bytes]:
    """The reports of a batch, one by one: bare batches have one column after the other."""
    reports = mechanism.read_bare(bare)
    return [reports[at : at + 1].to_bare() for at in range(len(reports))]
