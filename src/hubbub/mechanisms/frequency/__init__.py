"""Frequency oracles: one file a mechanism."""

from hubbub.mechanisms.frequency.grr import GRR
from hubbub.mechanisms.frequency.local_hashing import BLH, OLH
from hubbub.mechanisms.frequency.unary import OUE, SUE

MECHANISMS = (GRR, SUE, OUE, BLH, OLH)
