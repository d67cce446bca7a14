"""Randomisers with a planted bug: they draw from another distribution than they state, or leak what they draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hubbub import GRR, OLH, OUE, SHE, BasicRappor, Measured, Random
from hubbub.core.hashing import bucket, hash32
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import ColumnSpec
from hubbub.mechanisms.frequency.unary import flip_bits
from hubbub.mechanisms.weights import TWO_64, choose


class SwappedRates(GRR):
    """Says the truth as often as it should lie."""

    def _randomize(self, codes, rng):
        return {"value": 1 - super()._randomize(codes, rng)["value"]}


class SwappedBits(OUE):
    """Takes each bit's threshold for the other's."""

    def _randomize(self, codes, rng):
        return {"bits": flip_bits(codes[:, None], self.size, self.width, self.zero, self.one, rng)}


class MirroredBits(OUE):
    """Uses 1-q and 1-p for p and q: the same epsilon, another distribution."""

    def _randomize(self, codes, rng):
        top = 1 << self.width
        return {"bits": flip_bits(codes[:, None], self.size, self.width, top - self.zero, top - self.one, rng)}


class ModuloBias(GRR):
    """Picks a false answer by an 8-bit draw modulo the number of options."""

    def _randomize(self, codes, rng):
        draws = rng.uint64(codes.size, 2)
        index = ((draws[:, 1] & np.uint64(0xFF)) % np.uint64(self.size - 1)).astype(np.int64)
        index += index >= codes
        keep = TWO_64 - (self.size - 1) * self.other
        return {"value": np.where(draws[:, 0] < np.uint64(keep), codes, index)}


class KeepsTooOften(GRR):
    """The truth comes 30% more often than stated."""

    def _randomize(self, codes, rng):
        keep = 13 * (TWO_64 - (self.size - 1) * self.other) // 10
        return {"value": choose(codes, rng.uint64(codes.size), (TWO_64 - keep) // (self.size - 1), self.size)}


class KeepsTooRarely(GRR):
    """The truth comes 30% less often than stated."""

    def _randomize(self, codes, rng):
        keep = 7 * (TWO_64 - (self.size - 1) * self.other) // 10
        return {"value": choose(codes, rng.uint64(codes.size), (TWO_64 - keep) // (self.size - 1), self.size)}


class LiftsTooOften(OUE):
    """Other values' bits are 1 30% more often than stated."""

    def _randomize(self, codes, rng):
        return {"bits": flip_bits(codes[:, None], self.size, self.width, self.one, 13 * self.zero // 10, rng)}


class HoldsTooRarely(OUE):
    """The sender's own bit is 1 30% less often than stated."""

    def _randomize(self, codes, rng):
        return {"bits": flip_bits(codes[:, None], self.size, self.width, 7 * self.one // 10, self.zero, rng)}


class HashesTooRarely(OLH):
    """The value's own bucket comes 30% less often than stated."""

    def _randomize(self, codes, rng):
        draws = rng.uint64(codes.size, 2)
        truth = bucket(hash32(draws[:, 0], codes), self.buckets)
        keep = 7 * (TWO_64 - (self.buckets - 1) * self.other) // 10
        other = (TWO_64 - keep) // (self.buckets - 1)
        return {"seed": draws[:, 0], "bucket": choose(truth, draws[:, 1], other, self.buckets)}


class NoisesTooLittle(SHE):
    """The noise has a scale 30% below the stated."""

    def _randomize(self, codes, rng):
        quiet = SHE(epsilon=self.epsilon / 0.7, domain=self.domain, grid=self.grid, clamp=self.clamp)
        return quiet._randomize(codes, rng)


class ReusedNoise(GRR):
    """One draw serves the whole batch."""

    def _randomize(self, codes, rng):
        return {"value": choose(codes, np.repeat(rng.uint64(1), codes.size), self.other, self.size)}


class ReusedSeed(OLH):
    """One hash function serves the whole batch."""

    def _randomize(self, codes, rng):
        draws = rng.uint64(codes.size, 2)
        draws[:, 0] = draws[:1, 0]
        truth = bucket(hash32(draws[:, 0], codes), self.buckets)
        return {"seed": draws[:, 0], "bucket": choose(truth, draws[:, 1], self.other, self.buckets)}


class DrawsMoreForSome(GRR):
    """One value costs more random bytes: its length of time can be seen."""

    def _randomize(self, codes, rng):
        columns = super()._randomize(codes, rng)
        rng.bytes(8 * int(np.sum(codes == self.size - 1)))
        return columns


class LeakyPublicPart(OLH):
    """The parity of the value shows in the seed."""

    def _randomize(self, codes, rng):
        draws = rng.uint64(codes.size, 2)
        seeds = (draws[:, 0] & ~np.uint64(1)) | (codes.astype(np.uint64) & np.uint64(1))
        truth = bucket(hash32(seeds, codes), self.buckets)
        return {"seed": seeds, "bucket": choose(truth, draws[:, 1], self.other, self.buckets)}


class VaryingLeak(LeakyPublicPart):
    """The same leak, in a mechanism whose reports draw blocks that vary."""

    fixed_block = False


class NumbersUnstated(Measured):
    """Sends numbers as they are, and states that its reports cannot be linked."""

    linkable = "never"


class NumbersHidden(NumbersUnstated):
    """The same, with examples that all have the same numbers."""

    def example_values(self, most):
        return [(value, (0.0,) * self.measures) for value, _ in super().example_values(most)]


class MemoryUnstated(BasicRappor):
    """Devices remember their answers, and it states that their reports cannot be linked."""

    linkable = "never"


class LinksNothing(OLH):
    """States that its reports can always be linked, which they cannot."""

    linkable = "always"


class StatesNothing(GRR):
    """Does not state whether its reports can be linked."""

    linkable = ""


class VaryingDraws(DrawsMoreForSome):
    """More bytes for one value, in a mechanism whose reports draw blocks that vary."""

    fixed_block = False


class VaryingReuse(ReusedNoise):
    """One draw for the whole batch, in a mechanism whose reports draw blocks that vary."""

    fixed_block = False


class DrawsBeforeLooking(GRR):
    """Draws, and then finds that the values are wrong."""

    def randomize(self, values, rng):
        if isinstance(rng, Random):
            rng.bytes(8)
        return super().randomize(values, rng)


@dataclass(frozen=True, kw_only=True)
class KeepsTheArray(GRR):
    """Writes its answers over the caller's own array."""

    @property
    def columns(self):
        return (ColumnSpec("private", "value", "i8", below=self.size),)

    def outputs(self, public=None):
        return Reports(self.spec_id, private={"value": np.arange(self.size)})

    def _randomize(self, codes, rng):
        codes[:] = super()._randomize(codes, rng)["value"]
        return {"value": codes}
