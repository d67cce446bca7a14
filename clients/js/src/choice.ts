import { type Bytes, view } from "./bytes";
import { check } from "./errors";
import type { Ratio } from "./exact";
import type { Random } from "./random";
import { integer } from "./spec";

export const TWO_64 = 1n << 64n;

/** An integer below a bound, in the fewest bytes that hold every one, lowest first. */
export function bytesOf(below: number, value: number): Bytes {
  return Uint8Array.from({ length: widthOf(below) }, (_, at) => value >>> (8 * at));
}

export const widthOf = (below: number): number => (below <= 256 ? 1 : below <= 65536 ? 2 : 4);

/** Bits, eight to a byte, the first lowest. */
export function packed(bits: ArrayLike<unknown>): Bytes {
  const bytes = new Uint8Array(Math.ceil(bits.length / 8));
  for (let at = 0; at < bits.length; at++) if (bits[at]) bytes[at >> 3]! |= 1 << (at & 7);
  return bytes;
}

export const bit = (bytes: Bytes, at: number): number => (bytes[at >> 3]! >> (at & 7)) & 1;

/** The truth, or one of the other options, from 64 bits with exactly the stored shares (`weights.py`). */
export function choice(share: unknown, options: number, field = "other") {
  const other = integer(field, share, 1, TWO_64 / BigInt(options));
  const keep = TWO_64 - BigInt(options - 1) * other;
  check(keep > other, field, "less than the share of the truth");
  return {
    ratio: [keep, other] as Ratio,
    draw(truth: number, block: Bytes, at = 0): number {
      const drawn = view(block).getBigUint64(at, true);
      if (drawn < keep) return truth;
      const index = Number((drawn - keep) / other);
      return index + Number(index >= truth);
    },
  };
}

/**
 * An index with probability weight/total, for integer weights of any size (`random/integers.py`): 64 random bits, and more
 * only where they cannot decide.
 */
export function exactChoice(weights: bigint[]): (bits: bigint, random: Random) => number {
  let total = 0n;
  const borders = weights.map((weight) => (total += weight));
  return (bits, random) => {
    for (let drawn = 64n; ; drawn += 64n, bits = (bits << 64n) | view(random(8)).getBigUint64(0, true)) {
      // How many borders surely are at or below the point, and how many may be, given the bits so far.
      const upTo = (point: bigint) => borders.findIndex((border) => border << drawn > point);
      const below = upTo(bits * total);
      if (below === upTo((bits + 1n) * total - 1n)) return below;
    }
  };
}

/** A 64-bit word as an integer below a bound, without bias: a word past the last whole multiple is drawn again. */
export function bounded(word: bigint, bound: number, random: Random): number {
  const last = TWO_64 - (TWO_64 % BigInt(bound)) - 1n;
  while (word > last) word = view(random(8)).getBigUint64(0, true);
  return Number(word % BigInt(bound));
}
