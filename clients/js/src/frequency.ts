import { type Bytes, view } from "./bytes";
import { bounded, bytesOf, choice, packed, widthOf } from "./choice";
import { kindOf, readDomain } from "./domain";
import { check } from "./errors";
import type { Ratio } from "./exact";
import { EMPTY_TEXT, type Text } from "./fields";
import { bucket, product32, spreadSeed } from "./hash";
import type { Built } from "./mechanisms";
import type { Random } from "./random";
import { type Json, type Spec, exactly, integer, wholeNumber } from "./spec";

const MOST_BITS = 1 << 20;

/** The domain of an oracle: what it reads, and the code of whatever is seen. Silence would tell something, so all has a code. */
export function coded(spec: Json | undefined) {
  const { size, encode } = readDomain(spec);
  const reads = kindOf(spec) === "ordinal" ? `${size}` : ""; // the codes of a view are no names, and no numbers of a range
  return { size, reads, code: (input: unknown): number => Number(encode(input) ?? size - 1) };
}

/** The codes of an open domain (`core/domain/texts.py`), as a prefix or a view of several fields gives them. */
function bitStrings(spec: Json | undefined) {
  const bits = integer("bits", exactly("domain", spec, "bits kind").bits, 1, 64);
  const most = 1n << bits;
  const whole = (input: unknown) => (Number.isSafeInteger(input) ? BigInt(input as number) : input);
  const code = (input: unknown) => (typeof input === "bigint" && input >= 0n && input < most ? input : most - 1n);
  return { reads: `${bits} bits`, code: (input: unknown): bigint => code(whole(input)) };
}

/** Generalised randomised response (`grr.py`). */
export function direct(spec: Spec): Built {
  const { size, reads, code } = coded(spec.domain);
  const pick = choice(spec.other, size);
  return {
    ratio: pick.ratio,
    reads,
    bytes: widthOf(size),
    randomize: (input, random) => bytesOf(size, pick.draw(code(input), random(8))),
  };
}

/**
 * Local hashing (`local_hashing.py`): a random seed, and the bucket that the value falls in under it, or another. A seed of SOLH
 * leaves room for the bucket in 64 bits.
 */
export function hashed(spec: Spec, name: string): Built {
  const { reads, code } = kindOf(spec.domain) === "bitstrings" ? bitStrings(spec.domain) : coded(spec.domain);
  const buckets = Number(integer("buckets", spec.buckets, 2, 65536));
  const pick = choice(spec.other, buckets);
  const taken = name === "SOLH" ? BigInt(Math.log2(buckets)) : 0n;
  check(name !== "SOLH" || 1n << taken === BigInt(buckets), "buckets", "a power of two");
  return {
    ratio: pick.ratio,
    reads,
    bytes: 8 + widthOf(buckets),
    randomize(input, random) {
      const block = random(16);
      view(block).setBigUint64(0, view(block).getBigUint64(0, true) >> taken, true);
      const word = (at: number) => view(block).getUint32(at, true);
      const truth = bucket(product32(word(0), word(4), BigInt(code(input))), buckets);
      return Uint8Array.of(...block.slice(0, 8), ...bytesOf(buckets, pick.draw(truth, block, 8)));
    },
  };
}

/** Unary encodings (`unary.py`): one bit per value. */
export function unary(spec: Spec): Built {
  const { size, reads, code } = coded(spec.domain);
  const flip = flips(spec, size);
  return {
    ratio: flip.ratio,
    reads,
    bytes: Math.ceil(size / 8),
    randomize: (input, random) => flip.encode(code(input), random),
  };
}

/** RAPPOR (`rappor.py`): a Bloom filter of a text under the hash functions of a cohort, its bits flipped. */
export function text(spec: Spec): Built {
  const { cohorts, draw, places, flip, ...built } = filters(spec);
  return {
    ...built,
    randomize(input, random) {
      const cohort = draw(random);
      return Uint8Array.of(...bytesOf(cohorts, cohort), ...flip(places(input, cohort), random));
    },
  };
}

/** The Bloom filters of texts under the hash functions of cohorts, and how their bits are flipped. */
export function filters(spec: Spec) {
  exactly("domain", spec.domain, "kind longest");
  const whole = (field: string, low: number, high: number) => wholeNumber(spec, field, low, high);
  const [bits, cohorts] = [whole("bits", 2, 65536), whole("cohorts", 1, 65536)];
  const hashes = whole("hashes", 1, Math.min(bits, 16));
  const zero = integer("zero", spec.zero, 1, 2 ** 31 - 1);
  const one = (1n << 32n) - zero;
  const power = 2n * BigInt(hashes);
  const ratio: Ratio = [one ** power, zero ** power];
  return {
    ...{ bits, hashes, cohorts, ratio },
    reads: "",
    bytes: widthOf(cohorts) + Math.ceil(bits / 8),
    /** A cohort, drawn at random. */
    draw: (random: Random): number => bounded(view(random(8)).getBigUint64(0, true), cohorts, random),
    /** The bits that a text sets in a cohort. */
    places(input: unknown, cohort: number): number[] {
      const { print } = (input as Text | undefined)?.print ? (input as Text) : EMPTY_TEXT;
      return Array.from({ length: hashes }, (_, k) => bucket(product32(...spreadSeed(cohort * hashes + k), print), bits));
    },
    /** The filter with these bits, flipped. */
    flip: (set: number[], random: Random): Bytes =>
      flipped(bits, 32, random, -bits & 7, (at) => (set.includes(at) ? one : zero)),
  };
}

/** The worst ratio, p (1-q) / ((1-p) q), of probabilities in `all`-ths. */
const odds = (p: bigint, q: bigint, all: bigint): Ratio => [p * (all - q), (all - p) * q];

/** The flips of a unary encoding, as its spec has them. */
export function flips(spec: Spec, size: number) {
  const width = spec.width as number;
  check(width === 16 || width === 32, "width", "16 or 32");
  check(size <= MOST_BITS, "domain", "at most a million bits per report");
  const all = 1n << BigInt(width);
  const one = integer("one", spec.one, 1, all - 1n);
  const zero = integer("zero", spec.zero, 1, all - 1n);
  check(one > zero, "one", "more than zero");
  return {
    all,
    width,
    ratio: odds(one, zero, all),
    /** The bits of a value. Whole bytes are drawn; the bits that fill the last one stay 0. */
    encode: (code: number, random: Random) => flipped(size, width, random, -size & 7, (at) => (at === code ? one : zero)),
  };
}

/** Packed bits: 1 where a random integer is below the bit's threshold. */
export function flipped(size: number, width: number, random: Random, spare: number, threshold: (at: number) => bigint): Bytes {
  const drawn = view(random(((size + spare) * width) / 8));
  const draw = (at: number) => (width === 16 ? drawn.getUint16(2 * at, true) : drawn.getUint32(4 * at, true));
  return packed(Array.from({ length: size }, (_, at) => draw(at) < threshold(at)));
}
