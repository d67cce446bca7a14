"""Randomisers with a planted bug: they draw from another distribution than they state, or leak what they draw."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hubbub import GRR, OLH, OUE, SHE, BasicRappor, Measured, Random
from hubbub.core.hashing import bucket, hash32
from hubbub.core.reports import Reports
from hubbub.mechanisms.base import ColumnSpec
from hubbub.mechanisms.frequency.unary import flip_bits
from hubbub.mechanisms.weights import TWO_64, choose
from tests.checks.planted import found_by

SMALL: dict[str, Any] = {"epsilon": 1.0, "domain": 5}


@found_by("check_sampler", epsilon=1.0, domain=2)
class SwappedRates(GRR):
    """Says the truth as often as it should lie."""

    def _randomize(self, codes, rng):
        return {"value": 1 - super()._randomize(codes, rng)["value"]}


@found_by("check_sampler", epsilon=1.0, domain=5)
@found_by("check_sampler", epsilon=1.0, domain=131)
class SwappedBits(OUE):
    """Takes each bit's threshold for the other's."""

    def _randomize(self, codes, rng):
        return {"bits": flip_bits(codes[:, None], self.size, self.width, self.zero, self.one, rng)}


@found_by("check_sampler", epsilon=1.0, domain=131)
class MirroredBits(OUE):
    """Uses 1-q and 1-p for p and q: the same epsilon, another distribution."""

    def _randomize(self, codes, rng):
        top = 1 << self.width
        return {"bits": flip_bits(codes[:, None], self.size, self.width, top - self.zero, top - self.one, rng)}


@found_by("check_sampler", epsilon=0.5, domain=101)
class ModuloBias(GRR):
    """Picks a false answer by an 8-bit draw modulo the number of options."""

    def _randomize(self, codes, rng):
        draws = rng.uint64(codes.size, 2)
        index = ((draws[:, 1] & np.uint64(0xFF)) % np.uint64(self.size - 1)).astype(np.int64)
        index += index >= codes
        keep = TWO_64 - (self.size - 1) * self.other
        return {"value": np.where(draws[:, 0] < np.uint64(keep), codes, index)}


@found_by("check_sampler", **SMALL)
@found_by("check_sampler", epsilon=0.5, domain=300)
class KeepsTooOften(GRR):
    """The truth comes 30% more often than stated."""

    def _randomize(self, codes, rng):
        keep = 13 * (TWO_64 - (self.size - 1) * self.other) // 10
        return {"value": choose(codes, rng.uint64(codes.size), (TWO_64 - keep) // (self.size - 1), self.size)}


@found_by("check_sampler", epsilon=1.0, domain=2)
@found_by("check_sampler", epsilon=0.5, domain=300)
class KeepsTooRarely(GRR):
    """The truth comes 30% less often than stated."""

    def _randomize(self, codes, rng):
        keep = 7 * (TWO_64 - (self.size - 1) * self.other) // 10
        return {"value": choose(codes, rng.uint64(codes.size), (TWO_64 - keep) // (self.size - 1), self.size)}


@found_by("check_sampler", **SMALL)
@found_by("check_sampler", epsilon=1.0, domain=131)
class LiftsTooOften(OUE):
    """Other values' bits are 1 30% more often than stated."""

    def _randomize(self, codes, rng):
        return {"bits": flip_bits(codes[:, None], self.size, self.width, self.one, 13 * self.zero // 10, rng)}


@found_by("check_sampler", epsilon=1.0, domain=131)
class HoldsTooRarely(OUE):
    """The sender's own bit is 1 30% less often than stated."""

    def _randomize(self, codes, rng):
        return {"bits": flip_bits(codes[:, None], self.size, self.width, 7 * self.one // 10, self.zero, rng)}


@found_by("check_sampler", epsilon=1.0, domain=300)
@found_by("check_sampler", epsilon=2.0, domain=2)
class HashesTooRarely(OLH):
    """The value's own bucket comes 30% less often than stated."""

    def _randomize(self, codes, rng):
        draws = rng.uint64(codes.size, 2)
        truth = bucket(hash32(draws[:, 0], codes), self.buckets)
        keep = 7 * (TWO_64 - (self.buckets - 1) * self.other) // 10
        other = (TWO_64 - keep) // (self.buckets - 1)
        return {"seed": draws[:, 0], "bucket": choose(truth, draws[:, 1], other, self.buckets)}


@found_by("check_sampler", epsilon=2.0, domain=2)
@found_by("check_sampler", epsilon=1.0, domain=5)
class NoisesTooLittle(SHE):
    """The noise has a scale 30% below the stated."""

    def _randomize(self, codes, rng):
        quiet = SHE(epsilon=self.epsilon / 0.7, domain=self.domain, grid=self.grid, clamp=self.clamp)
        return quiet.randomize(codes, rng).private


@found_by("check_batch_is_singles", "check_sampler", **SMALL)
class ReusedNoise(GRR):
    """One draw serves the whole batch."""

    def _randomize(self, codes, rng):
        return {"value": choose(codes, np.repeat(rng.uint64(1), codes.size), self.other, self.size)}


@found_by("check_batch_is_singles", "check_variance", **SMALL)
class ReusedSeed(OLH):
    """One hash function serves the whole batch."""

    def _randomize(self, codes, rng):
        draws = rng.uint64(codes.size, 2)
        draws[:, 0] = draws[:1, 0]
        truth = bucket(hash32(draws[:, 0], codes), self.buckets)
        return {"seed": draws[:, 0], "bucket": choose(truth, draws[:, 1], self.other, self.buckets)}


@found_by("check_draws", **SMALL)
class DrawsMoreForSome(GRR):
    """One value costs more random bytes: its length of time can be seen."""

    def _randomize(self, codes, rng):
        columns = super()._randomize(codes, rng)
        rng.bytes(8 * int(np.sum(codes == self.size - 1)))
        return columns


@found_by("check_public_part", **SMALL)
class LeakyPublicPart(OLH):
    """The parity of the value shows in the seed."""

    def _randomize(self, codes, rng):
        draws = rng.uint64(codes.size, 2)
        seeds = (draws[:, 0] & ~np.uint64(1)) | (codes.astype(np.uint64) & np.uint64(1))
        truth = bucket(hash32(seeds, codes), self.buckets)
        return {"seed": seeds, "bucket": choose(truth, draws[:, 1], self.other, self.buckets)}


@found_by("check_public_part", **SMALL)
class VaryingLeak(LeakyPublicPart):
    """The same leak, in a mechanism whose reports draw blocks that vary."""

    fixed_block = False


@found_by("check_public_part", **SMALL)
class NumbersUnstated(Measured):
    """Sends numbers as they are, and states that its reports cannot be linked."""

    linkable = "never"  # type: ignore[assignment]


@found_by("check_public_part", **SMALL)
class NumbersHidden(NumbersUnstated):
    """The same, with examples that all have the same numbers."""

    def example_values(self, most):
        examples: Any = super().example_values(most)
        return [(value, (0.0,) * self.measures) for value, _ in examples]


@found_by("check_public_part", **SMALL)
class MemoryUnstated(BasicRappor):
    """Devices remember their answers, and it states that their reports cannot be linked."""

    linkable = "never"  # type: ignore[assignment]


@found_by("check_public_part", **SMALL)
class LinksNothing(OLH):
    """States that its reports can always be linked, which they cannot."""

    linkable = "always"


@found_by("check_public_part", **SMALL)
class StatesNothing(GRR):
    """Does not state whether its reports can be linked."""

    linkable = ""  # type: ignore[assignment]


@found_by("check_draws", **SMALL)
class VaryingDraws(DrawsMoreForSome):
    """More bytes for one value, in a mechanism whose reports draw blocks that vary."""

    fixed_block = False


@found_by("check_batch_is_singles", **SMALL)
class VaryingReuse(ReusedNoise):
    """One draw for the whole batch, in a mechanism whose reports draw blocks that vary."""

    fixed_block = False


@found_by("check_bad_values", **SMALL)
class DrawsBeforeLooking(GRR):
    """Draws, and then finds that the values are wrong."""

    def randomize(self, values, rng):
        if isinstance(rng, Random):
            rng.bytes(8)
        return super().randomize(values, rng)


@found_by("check_no_aliasing", **SMALL)
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
