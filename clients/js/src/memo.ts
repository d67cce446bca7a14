import { type Bytes, view } from "./bytes";
import { bit, bytesOf, choice, widthOf } from "./choice";
import { check } from "./errors";
import { type Ratio, fraction, within } from "./exact";
import { coded, filters, flipped, flips } from "./frequency";
import type { Built, Remembering, State } from "./mechanisms";
import type { Random } from "./random";
import { type Spec, integer } from "./spec";

/** The permanent answers by key, the key in use, and the number that the device drew when it enrolled. */
interface Memos extends State {
  public: number;
  memos: Record<string, Bytes>;
  last: string | null;
}

interface Layers {
  /** How many things there are to draw when enrolling, and the length of a permanent answer. */
  publics: number;
  length: number;
  enroll(random: Random): number;
  /** Which memo a value needs. */
  key(input: unknown, drawn: number): number;
  /** The permanent answer, made once. */
  remember(key: number, random: Random): Bytes;
  /** A report from it. */
  report(memo: Bytes, drawn: number, random: Random): Bytes;
}

/**
 * Memos (`mechanisms/memoised.py`): all reports of a value together tell no more than its permanent answer, which is what
 * is paid for, once. Where a new one cannot be paid, the last goes on: to fall silent would tell that the value changed.
 */
const memoised = (layers: Layers, spent: bigint): Remembering => {
  const keyOf = ({ public: drawn }: Memos, input: unknown) => `${layers.key(input, drawn)}`;
  return {
    stateKey: () => "",
    enroll: (random) => ({ public: layers.enroll(random), memos: {}, last: null }),
    fits({ public: drawn, memos, last }) {
      const known = Number.isSafeInteger(drawn) && (drawn as number) >= 0 && (drawn as number) < layers.publics;
      const kept = known && typeof memos === "object" && memos !== null;
      const right = (memo: unknown) => memo instanceof Uint8Array && memo.length === layers.length;
      return !!kept && Object.values(memos).every(right) && (last === null || Object.hasOwn(memos, last as string));
    },
    price: (state, _, input) => (Object.hasOwn((state as Memos).memos, keyOf(state as Memos, input)) ? 0n : spent),
    step(before, _, input, random, paid) {
      const state = before as Memos;
      let { memos, last } = state;
      const key = keyOf(state, input);
      if (Object.hasOwn(memos, key)) last = key;
      else if (paid) memos = { ...memos, [(last = key)]: layers.remember(+key, random) };
      const report = last === null ? null : layers.report(memos[last]!, state.public, random);
      return [{ ...state, memos, last }, report];
    },
  };
};

/** Basic RAPPOR (`basic_rappor.py`): a unary encoding, made once a value, whose bits are flipped again in every report. */
export function rappor(spec: Spec): Built {
  const { size, reads, code } = coded(spec.domain);
  const flip = flips(spec, size);
  const keep = integer("keep", spec.keep, 1, flip.all - 1n);
  const lift = integer("lift", spec.lift, 1, flip.all - 1n);
  check(keep > lift, "keep", "more than lift");
  const layers: Layers = {
    publics: 1,
    length: Math.ceil(size / 8),
    enroll: () => 0,
    key: code,
    remember: (key, random) => flip.encode(key, random),
    report: (memo, _, random) => flipped(size, flip.width, random, 0, (at) => (bit(memo, at) ? keep : lift)),
  };
  return { ratio: flip.ratio, reads, bytes: Math.ceil(size / 8), memory: (spent) => memoised(layers, spent) };
}

/**
 * RAPPOR in full (`bloom_rappor.py`): a cohort for life, the Bloom filter of a text flipped once, and its bits flipped again
 * in every report. The memo of a filter is named by its places in ascending order, as digits.
 */
export function bloom(spec: Spec): Built {
  const { bits, hashes, cohorts, draw, places, flip, ratio, reads, bytes } = filters(spec);
  check(bits ** hashes <= 2 ** 53, "hashes", "fewer: the filters are too many to be numbered");
  const keep = integer("keep", spec.keep, 2n ** 31n + 1n, 2n ** 32n - 1n);
  const layers: Layers = {
    publics: cohorts,
    length: Math.ceil(bits / 8),
    enroll: draw,
    key(input, cohort) {
      const set = [...new Set(places(input, cohort))].sort((a, b) => a - b);
      return Array.from({ length: hashes }, (_, k) => set[Math.min(k, set.length - 1)]! * bits ** k).reduce((a, b) => a + b);
    },
    remember: (key, random) => flip(Array.from({ length: hashes }, (_, k) => Math.floor(key / bits ** k) % bits), random),
    report: (memo, cohort, random) => {
      const threshold = (at: number) => (bit(memo, at) ? keep : 2n ** 32n - keep);
      return Uint8Array.of(...bytesOf(cohorts, cohort), ...flipped(bits, 32, random, 0, threshold));
    },
  };
  return { ratio, reads, bytes, memory: (spent) => memoised(layers, spent) };
}

/** LOLOHA (`loloha.py`): a hash function for life, the value's bucket under it randomised once, and again in every report. */
export function longitudinal(spec: Spec): Built {
  const { size, reads, code } = coded(spec.domain);
  const buckets = Number(integer("buckets", spec.buckets, 2, 256));
  check(!(buckets & (buckets - 1)), "buckets", "a power of two");
  const [bits, width] = [Math.log2(buckets), (size - 1).toString(2).length];
  check(width + bits <= 17, "domain", "fewer values: there are 2^16 functions at most");
  const functions = 2 ** (width + bits - 1);
  const [permanent, again] = [choice(spec.other, buckets), choice(spec.swap, buckets, "swap")];
  const report = spec.report_epsilon as number;
  check(typeof report === "number" && report > 0 && report < (spec.epsilon as number), "report_epsilon", "below epsilon");
  // A report is the value's own bucket with p = P K + (g-1) Q S, any other with (1-p)/(g-1).
  const [[truth, other], [kept, swapped], rest] = [permanent.ratio, again.ratio, BigInt(buckets - 1)];
  const own = truth * kept + rest * other * swapped;
  const ratio: Ratio = [own * rest, (1n << 128n) - own];
  check(within(ratio, ...fraction(report)), "report_epsilon", "what one report spends, or more");
  const layers: Layers = {
    publics: functions,
    length: 1,
    enroll: (random) => Number(view(random(8)).getBigUint64(0, true) & BigInt(functions - 1)),
    key: (input, drawn) => toeplitz(drawn, code(input), bits),
    remember: (key, random) => Uint8Array.of(permanent.draw(key, random(8))),
    report: (memo, drawn, random) =>
      Uint8Array.of(...bytesOf(functions, drawn), again.draw(memo[0]!, random(8))),
  };
  return { ratio: permanent.ratio, reads, bytes: widthOf(functions) + 1, memory: (spent) => memoised(layers, spent) };
}

/** Bit j of the bucket is the parity of (function >> j) & value (`loloha.py`). */
function toeplitz(drawn: number, value: number, bits: number): number {
  let bucket = 0;
  for (let j = 0; j < bits; j++) {
    let both = (drawn >> j) & value;
    for (; both; both &= both - 1) bucket ^= 1 << j;
  }
  return bucket;
}
