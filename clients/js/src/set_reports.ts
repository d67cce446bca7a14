import { view } from "./bytes";
import { bytesOf, exactChoice, packed, widthOf } from "./choice";
import { check } from "./errors";
import { flipped } from "./frequency";
import type { Built } from "./mechanisms";
import { readSets } from "./sets";
import { type Spec, integer } from "./spec";
import { choose, falling, select, weightsOf } from "./ternary";

const ALL = 1n << 32n;
const MOST_ELEMENTS = 1 << 20;

/** A unary encoding of a whole set (`split_unary.py`): a bit an item, each with its part of the budget. */
export function splitUnary(spec: Spec): Built {
  const { size, most, reads, held } = readSets(spec.domain);
  check(size <= MOST_ELEMENTS, "domain", "at most a million bits per report");
  const one = integer("one", spec.one, 2, ALL - 1n);
  const zero = integer("zero", spec.zero, 1, one - 1n);
  // Of two sets each may hold `most` items that the other does not, or what is left of all items.
  const [often, rest] = [BigInt(most), BigInt(Math.min(most, size - most))];
  const first = one * (ALL - one) >= zero * (ALL - zero) ? [often, rest] : [rest, often];
  const power = (ones: bigint, zeros: bigint) => ones ** first[0]! * zeros ** first[1]!;
  return {
    ratio: [power(one, ALL - zero), power(zero, ALL - one)],
    reads,
    bytes: Math.ceil(size / 8),
    randomize(input, random) {
      const items = new Set(held(input).slice(0, most));
      return flipped(size, 32, random, -size & 7, (at) => (items.has(at) ? one : zero));
    },
  };
}

/** PrivSet (`priv_set.py`): m of d + s elements; those that meet a set in at least t of them are preferred to all others. */
export function privSet(spec: Spec): Built {
  const { size, most, reads, held } = readSets(spec.domain);
  const elements = size + most;
  check(most <= 4096 && elements <= MOST_ELEMENTS, "domain", "fewer items");
  const m = Number(integer("m", spec.m, 1, elements - 1));
  const least = Math.max(0, m - size);
  const t = Number(integer("t", spec.t, Math.max(1, least + 1), Math.min(m, most)));
  const weights = weightsOf(spec);
  const kinds = Array.from({ length: Math.min(most, m) - least + 1 }, (_, at) => least + at);
  // Of all reports, C(s,j) C(D-s,m-j) meet a set in j elements, up to a common factor.
  const reports = (met: number) => choose(most, met) * falling(m, met) * falling(elements - m, most - met);
  const pick = exactChoice(kinds.map((met) => reports(met) * weights[met >= t ? 0 : 1]!));
  const [list, bits] = [m * widthOf(elements), Math.ceil(elements / 8)];
  return {
    ratio: weights,
    reads,
    bytes: Math.min(list, bits),
    randomize(input, random) {
      const block = random(8 * (1 + Math.ceil(elements / 2)));
      const items = held(input).slice(0, most);
      const values = new Array<number>(elements).fill(0);
      for (const item of items) values[item] = 1;
      values.fill(1, size, elements - items.length); // dummies for the items that are lacking
      const met = least + pick(view(block).getBigUint64(0, true), random);
      const signs = select(values, block.subarray(8), [met, 0, m - met, most, size], random);
      if (list > bits) return packed(signs);
      return Uint8Array.from(signs.flatMap((sign, at) => (sign ? [...bytesOf(elements, at)] : [])));
    },
  };
}
