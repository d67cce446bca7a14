"""The rivals of SaO2, in the form of their papers, on the same streams and under the same promise."""

from __future__ import annotations

from hubbub.core.errors import InvalidValue
from hubbub.protocols.sao2.plan import Sao2
from hubbub.reproduce.sao2_exsub.split import Split

__all__ = ["RIVALS", "rival"]

RIVALS = {
    "EFMRTT": "EFMRTT",
    "DDRM": "DDRM",
    "PCKV-GRR": "PCKVGRR",
    "PCKV-AGRR": "PCKVAGRR",
    "PCKV-UE": "PCKVUE",
    "Collision": "Collision",
    "naive": "",
}
"""Their names, and the mechanisms that tell the changes of a level; the naive one tells values, and has no tree."""


def rival(name: str, *, epsilon: float, dimension: int, steps: int, changes: int, fanout: int = 2) -> Sao2 | Split:
    """A rival's plan: every level is told by an equal part of the people, and answers are read by digits.

    They know nothing of categories either: any `changes` entries of a level's residues may differ from 0. (Any of
    these mechanisms in *our* form is `Sao2(mechanism=...)`.) Collision sees whole vectors only, and answers at the end.

    Example:
        >>> rival("DDRM", epsilon=1.0, dimension=16, steps=32, changes=8).portions.round(2).tolist()
        [0.17, 0.17, 0.17, 0.17, 0.17, 0.17]
        >>> rival("naive", epsilon=1.0, dimension=16, steps=32, changes=8).mechanism.epsilon
        0.03125
    """
    if name not in RIVALS:
        raise InvalidValue("name", name, f"one of {', '.join(RIVALS)}")
    if name == "naive":
        return Split(epsilon=epsilon, dimension=dimension, steps=steps, changes=changes)
    return Sao2(
        epsilon=epsilon,
        dimension=dimension,
        steps=steps,
        changes=changes,
        fanout=fanout,
        mechanism=RIVALS[name],
        choice="uniform",
        pooled=False,
    )
