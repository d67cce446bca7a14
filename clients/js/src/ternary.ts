import { type Bytes, view } from "./bytes";
import { bytesOf, exactChoice, packed, widthOf } from "./choice";
import { check } from "./errors";
import { expBelow, fraction } from "./exact";
import { mix32 } from "./hash";
import type { Built } from "./mechanisms";
import { toUnits } from "./numeric";
import type { Random } from "./random";
import { type Spec, integer } from "./spec";

/** Keys that are held, with their numbers on a scale from -1 to 1, in order. */
export type Pairs = [key: number, value: number][];

const MOST_WEIGHTS = 2 ** 30; // bits of all group weights together

export function shapeOf(spec: Spec): [dimension: number, sparsity: number] {
  const dimension = Number(integer("dimension", spec.dimension, 1, 2 ** 24));
  return [dimension, Number(integer("sparsity", spec.sparsity, 1, Math.min(dimension, 4096)))];
}

/** The two weights of a set or a seed: preferred, and not. */
export function weightsOf(spec: Spec): [preferred: bigint, least: bigint] {
  const preferred = 1n << integer("bits", spec.bits, 1, 2048);
  return [preferred, integer("least", spec.least, 1, preferred - 1n)];
}

/** The least weight that an epsilon allows, and what the others have: for those that a spec leaves out. */
export function leastOf(epsilon: number): [preferred: bigint, least: bigint] {
  const preferred = 1n << BigInt(65 + Math.floor(epsilon / Math.LN2));
  const power = expBelow(...fraction(epsilon));
  const least = ((preferred << 256n) + power - 1n) / power;
  check(least < preferred, "epsilon", "one that 64-bit weights can tell from 0");
  return [preferred, least];
}

/**
 * The symbols of a vector (`mechanisms/ternary/vectors.py`): 2 i for +1 at position i, 2 i + 1 for -1, in order, at most `sparsity` of
 * them. 64 random bits decide everything, however many entries there are: what is drawn tells nothing of the value.
 */
export function settle(input: unknown, dimension: number, key: Bytes, sparsity: number): number[] {
  const pairs = (Array.isArray(input) ? (input as Pairs) : []).filter(([at]) => at >= 0 && at < dimension);
  const [low, high] = [view(key).getUint32(0, true), view(key).getUint32(4, true)];
  const hash = (place: bigint) => mix32(low, high, place);
  const symbols = pairs.map(([at, value]) => 2 * at + Number(hash(BigInt(at)) >= toUnits(value, -1, 1, 1)));
  if (symbols.length <= sparsity) return symbols;
  const order = (symbol: number) => hash(BigInt(symbol >> 1) | (1n << 32n));
  return [...symbols].sort((a, b) => order(a) - order(b)).slice(0, sparsity).sort((a, b) => a - b);
}

/** ExSub and NetSub (`signed_sets.py`): m of d + s positions with a sign each; some sets are preferred to all others. */
export function signedSets(spec: Spec, name: string): Built {
  const [dimension, sparsity] = shapeOf(spec);
  const net = name === "NetSub";
  const positions = dimension + sparsity;
  const m = Number(integer("m", spec.m, 1, positions - Number(!net)));
  const t = net ? Number(integer("t", spec.t, 1, Math.min(m, sparsity))) : 0;
  const weights = weightsOf(spec);
  const start = groups(dimension, sparsity, m, weights, net ? (a, b) => a - b >= t : (a) => a > 0);
  // As a list of symbols or, where that is shorter, as bits.
  const [list, bits] = [m * widthOf(2 * positions), Math.ceil(positions / 8) * (m === positions ? 1 : 2)];
  const asBits = net && bits < list;
  return {
    ratio: weights,
    reads: "",
    bytes: asBits ? bits : list,
    randomize(input, random) {
      const block = random(8 * (2 + Math.ceil(positions / 2)));
      const held = settle(input, dimension, block.subarray(0, 8), sparsity);
      const values = new Array<number>(positions).fill(0);
      for (const symbol of held) values[symbol >> 1] = 1 - 2 * (symbol & 1);
      values.fill(1, dimension, positions - held.length); // stubs for the entries that are lacking
      const signs = select(values, block.subarray(16), start(view(block).getBigUint64(8, true), random), random);
      if (asBits) {
        const [plus, minus] = [1, -1].map((sign) => packed(signs.map((each) => each === sign)));
        return m === positions ? plus! : Uint8Array.of(...plus!, ...minus!);
      }
      const symbols = signs.flatMap((sign, at) => (sign ? [2 * at + Number(sign < 0)] : []));
      return Uint8Array.from(symbols.flatMap((symbol) => [...bytesOf(2 * positions, symbol)]));
    },
  };
}

/** Signs still to be said of each kind, entries and zeros still to come. */
export type Counters = [trues: number, reverses: number, falses: number, entries: number, zeros: number];

/** The state that selection starts from, from 64 random bits: an exact choice among groups of sets, by no value. */
export function groups(
  dimension: number,
  sparsity: number,
  m: number,
  [preferred, least]: [bigint, bigint],
  prefers: (trues: number, reverses: number) => boolean,
): (bits: bigint, random: Random) => Counters {
  const positions = dimension + sparsity;
  const [first, last] = [Math.max(0, m - dimension), Math.min(sparsity, m)];
  const size = (((last + 1) * (last + 2) - first * (first + 1)) * sparsity * Math.ceil(Math.log2(positions + 1))) / 2;
  check(size <= MOST_WEIGHTS, "sparsity", "less: the groups of sets are many");
  const [kinds, weights]: [[number, number][], bigint[]] = [[], []];
  for (let held = first; held <= last; held++) {
    // Of all sets, C(s,j) C(D-s,m-j) 2^(m-j) share `held` positions with the vector, up to a common factor.
    const sets = (falling(m, held) * falling(positions - m, sparsity - held)) << BigInt(sparsity - held);
    for (let trues = 0; trues <= held; trues++) {
      const ways = (choose(sparsity, trues) * choose(sparsity - trues, held - trues)) * sets;
      kinds.push([trues, held - trues]);
      weights.push(ways * (prefers(trues, held - trues) ? preferred : least));
    }
  }
  const pick = exactChoice(weights);
  return (bits, random) => {
    const [trues, reverses] = kinds[pick(bits, random)]!;
    return [trues, reverses, m - trues - reverses, sparsity, dimension];
  };
}

/** n (n-1) ... (n-k+1). */
export function falling(n: number, k: number): bigint {
  let product = 1n;
  for (let i = 0; i < k; i++) product *= BigInt(n - i);
  return product;
}

export const choose = (n: number, k: number): bigint => falling(n, k) / falling(k, k);

/**
 * Say a sign, or nothing (0), for every value, from 32 random bits each (`selection.py`); `counters` are counted down. An
 * entry is said with the chance of what is still to be said over what is still to come: compare first, then count down.
 */
export function select(values: number[], words: Bytes, counters: Counters, random: Random): number[] {
  return values.map((value, at) => {
    const [trues, reverses, falses, entries, zeros] = counters;
    const zero = !value || !entries;
    const [plus, minus] = zero ? [falses, falses] : value > 0 ? [trues, reverses] : [reverses, trues];
    const sign = decide(view(words).getUint32(4 * at, true), plus, minus, zero ? 2 * zeros : entries, random);
    counters[zero ? 4 : 3]--;
    if (sign) counters[zero ? 2 : sign === value ? 0 : 1]--;
    return sign;
  });
}

/** The sign that 32 random bits lead to; where they cannot decide, once in 2^31 times, more are drawn. */
function decide(word: number, ...[plus, minus, total, random]: [number, number, number, Random]): number {
  const all = BigInt(total);
  for (let bits = BigInt(word), drawn = 32n; ; drawn += 32n) {
    const [low, first, second] = [bits * all, BigInt(plus) << drawn, BigInt(plus + minus) << drawn];
    if (low >= second) return 0;
    if (low + all <= first) return 1;
    if (low >= first && low + all <= second) return -1;
    bits = (bits << 32n) | BigInt(view(random(4)).getUint32(0, true));
  }
}
