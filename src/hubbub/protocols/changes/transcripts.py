"""All transcripts of a stream of changes and their exact probabilities, for the contract suite."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from hubbub.core.reports import Ints, Reports
from hubbub.mechanisms.stateful import Transcript
from hubbub.mechanisms.ternary.signed_sets import SignedSets
from hubbub.protocols.changes.stream import ChangeStream, sign_codes


def change_transcripts(stream: ChangeStream, level: int, values: Sequence[object]) -> dict[Transcript, Fraction] | None:
    """The probability of everything that a device of a level can report while it has these values, one for each step.

    A transcript is a report of the level's mechanism without its stubs, cut into nodes, as far as the nodes have ended.
    Returns None if there are too many reports to list, or more values than steps in a horizon.
    """
    view, mechanism = stream.views[level], stream.mechanisms[level]
    outputs = _all_reports(mechanism)
    if outputs is None or len(values) > stream.steps:
        return None
    reports_of_level, signs = outputs
    ended = len(values) // view.span
    at_nodes = np.asarray(values)[view.span - 1 :: view.span][:ended]
    rest = np.repeat(at_nodes[-1:] if ended else np.asarray(values)[-1:], view.nodes - ended, axis=0)
    vector = view.residues(np.concatenate([at_nodes, rest])[None])
    chances: dict[Transcript, Fraction] = {}
    for row, chance in enumerate(mechanism.prob(reports_of_level, vector)[:, 0]):
        nodes = signs[row].reshape(view.nodes, stream.dimension)
        reports = stream.make_reports(np.full(ended, level), False, sign_codes(nodes[:ended].astype(np.int8)))
        transcript = tuple(
            b"" if step % view.span else reports[step // view.span - 1 : step // view.span].to_bare()
            for step in range(1, len(values) + 1)
        )
        chances[transcript] = chances.get(transcript, Fraction(0)) + chance
    return chances


@lru_cache(maxsize=16)
def _all_reports(mechanism: SignedSets) -> tuple[Reports, Ints] | None:
    """All reports that a mechanism can make, and the sign that each has for every entry; None if they are too many."""
    reports = mechanism.outputs()
    if reports is None:
        return None
    counts = [mechanism.accumulate(reports[row : row + 1]).counts for row in range(len(reports))]
    return reports, np.array([plus - minus for plus, minus in counts])
