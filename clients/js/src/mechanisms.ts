import { type Bytes, view } from "./bytes";
import { type Domain, readDomain } from "./domain";
import { check } from "./errors";
import { type Ratio, fraction, spentBy, within } from "./exact";
import { bucket, type Hash, mix32, product32 } from "./hash";
import type { Random } from "./random";
import { type Spec, exactly, integer, specId } from "./spec";

/** How to answer, read from a spec and checked: it cannot spend more than it declares. */
export interface Mechanism {
  specId: string;
  domain: Domain;
  /** What one answer spends, in units of 1e-12 epsilon, rounded up; with a memo, what a new permanent answer does. */
  spent: bigint;
  /** Where answers are made twice: the permanent answer to a code, drawn once. */
  remember?(code: bigint, random: Random): Bytes;
  /** The bytes of a report, column after column (`Reports.to_bare`), on a code or, where the mechanism remembers, on its permanent answer. */
  answer(code: bigint | Bytes, random: Random): Bytes;
}

type Parts = Pick<Mechanism, "remember" | "answer"> & { ratio: Ratio };

const TWO_64 = 1n << 64n;
const HASHES: Record<string, Hash> = { mix32, product32 };
const MOST_BITS = 1 << 20;
const FIELDS: Record<string, [fields: string, build: (spec: Spec, size: number) => Parts]> = {
  GRR: ["domain epsilon mechanism other", direct],
  BLH: ["buckets domain epsilon mechanism other", hashed],
  OLH: ["buckets domain epsilon mechanism other", hashed],
  SUE: ["domain epsilon mechanism one width zero", unary],
  OUE: ["domain epsilon mechanism one width zero", unary],
  BasicRappor: ["domain epsilon keep lift mechanism one width zero", permanent],
};

/** Build the mechanism that a spec describes; one that this client does not know, or that overspends, is refused. */
export async function readMechanism(spec: unknown): Promise<Mechanism> {
  const name = (spec as { mechanism?: unknown } | null)?.mechanism;
  const known = typeof name === "string" && Object.hasOwn(FIELDS, name) ? FIELDS[name] : null;
  check(known, "mechanism", `one of ${Object.keys(FIELDS)}`);
  const { hash, ...named } = spec as Spec; // a spec that names no hash function means the first one, and so does its id
  const given = exactly("spec", named, known[0]);
  const hashes = hash === undefined || (known[1] === hashed && typeof hash === "string" && Object.hasOwn(HASHES, hash));
  check(hashes, "hash", `one of ${Object.keys(HASHES)}, where the mechanism hashes`);
  if (hash !== undefined && hash !== "mix32") given.hash = hash;
  const epsilon = given.epsilon as number;
  check(typeof epsilon === "number" && epsilon > 0 && epsilon <= 1000, "epsilon", "a number above 0, at most 1000");
  const domain = readDomain(given.domain);
  const { ratio, ...parts } = known[1](given, domain.size);
  check(within(ratio, ...fraction(epsilon)), "epsilon", "what its integers spend, or more");
  return { specId: await specId(given), domain, spent: spentBy(ratio), ...parts };
}

/** Generalised randomised response (`grr.py`). */
function direct(spec: Spec, size: number): Parts {
  const pick = choice(spec, size);
  return {
    ratio: pick.ratio,
    answer: (code, random) => bytesOf(size, pick.draw(Number(code), random(8), 0)),
  };
}

/** Local hashing (`local_hashing.py`): a random seed, and the bucket that the value falls in under it, or another. */
function hashed(spec: Spec, _: number): Parts {
  const buckets = Number(integer("buckets", spec.buckets, 2, 65536));
  const pick = choice(spec, buckets);
  const hash = HASHES[(spec.hash as string | undefined) ?? "mix32"]!;
  return {
    ratio: pick.ratio,
    answer: (code, random) => {
      const block = random(16);
      const word = (at: number) => view(block).getUint32(at, true);
      const truth = bucket(hash(word(0), word(4), code as bigint), buckets);
      return Uint8Array.of(...block.slice(0, 8), ...bytesOf(buckets, pick.draw(truth, block, 8)));
    },
  };
}

/** The truth, or one of the other options, from 64 bits with exactly the stored shares (`choice.py`). */
function choice(spec: Spec, options: number) {
  const other = integer("other", spec.other, 1, TWO_64 / BigInt(options));
  const keep = TWO_64 - BigInt(options - 1) * other;
  check(keep > other, "other", "less than the share of the truth");
  return {
    ratio: [keep, other] as Ratio,
    draw(truth: number, block: Bytes, at: number): number {
      const drawn = view(block).getBigUint64(at, true);
      if (drawn < keep) return truth;
      const index = Number((drawn - keep) / other);
      return index + Number(index >= truth);
    },
  };
}

/** An integer below a bound, in the fewest bytes that hold every one. */
function bytesOf(below: number, value: number): Bytes {
  const width = below <= 256 ? 1 : below <= 65536 ? 2 : 4;
  return Uint8Array.from({ length: width }, (_, at) => value >>> (8 * at));
}

/** Unary encodings (`unary.py`): a bit a value. */
function unary(spec: Spec, size: number): Parts {
  const flip = flips(spec, size);
  const { one, zero, all } = flip;
  return {
    ratio: odds(one, zero, all),
    // Whole bytes are drawn; the bits that fill the last one stay 0.
    answer: (code, random) => flip.bits(random, -size & 7, (at) => (at === Number(code) ? one : zero)),
  };
}

/**
 * Basic RAPPOR (`basic_rappor.py`) with its memory: a permanent answer for each value, kept, and its bits flipped again
 * in every report. All reports of a value together tell no more than the permanent answer, which is what is spent.
 */
function permanent(spec: Spec, size: number): Parts {
  const flip = flips(spec, size);
  const { one, zero, all } = flip;
  const keep = integer("keep", spec.keep, 1, all - 1n);
  const lift = integer("lift", spec.lift, 1, all - 1n);
  check(keep > lift, "keep", "more than lift");
  return {
    ratio: odds(one, zero, all),
    remember: (code, random) => flip.bits(random, -size & 7, (at) => (at === Number(code) ? one : zero)),
    answer: (kept, random) => flip.bits(random, 0, (at) => (((kept as Bytes)[at >> 3]! >> (at & 7)) & 1 ? keep : lift)),
  };
}

/** The worst ratio, p (1-q) / ((1-p) q), of probabilities in `all`-ths. */
const odds = (p: bigint, q: bigint, all: bigint): Ratio => [p * (all - q), (all - p) * q];

function flips(spec: Spec, size: number) {
  const width = spec.width as number;
  check(width === 16 || width === 32, "width", "16 or 32");
  check(size <= MOST_BITS, "domain", "at most a million bits a report");
  const all = 1n << BigInt(width);
  const one = integer("one", spec.one, 1, all - 1n);
  const zero = integer("zero", spec.zero, 1, all - 1n);
  check(one > zero, "one", "more than zero");
  return {
    all,
    one,
    zero,
    /** Packed bits, the first lowest: 1 where a random integer is below the bit's threshold. */
    bits(random: Random, spare: number, threshold: (at: number) => bigint): Bytes {
      const drawn = view(random(((size + spare) * width) / 8));
      const packed = new Uint8Array(Math.ceil(size / 8));
      for (let at = 0; at < size; at++) {
        const draw = width === 16 ? drawn.getUint16(2 * at, true) : drawn.getUint32(4 * at, true);
        packed[at >> 3]! |= Number(draw < threshold(at)) << (at & 7);
      }
      return packed;
    },
  };
}
