"""Frequency oracles: one file a mechanism."""

from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.frequency.basic_rappor import BasicRappor
from hubbub.mechanisms.frequency.flh import FLH
from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.hadamard import Hadamard
from hubbub.mechanisms.frequency.local_hashing import BLH, OLH
from hubbub.mechanisms.frequency.rappor import Rappor
from hubbub.mechanisms.frequency.she import SHE
from hubbub.mechanisms.frequency.subset import SubsetSelection
from hubbub.mechanisms.frequency.the import THE
from hubbub.mechanisms.frequency.unary import OUE, SUE

MECHANISMS: tuple[type[Mechanism], ...] = (
    GRR,
    SHE,
    THE,
    SUE,
    OUE,
    BLH,
    OLH,
    BasicRappor,
    Rappor,
    Hadamard,
    SubsetSelection,
    FLH,
)
