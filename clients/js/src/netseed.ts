import { view } from "./bytes";
import { bit, bounded, exactChoice } from "./choice";
import { check } from "./errors";
import type { Built } from "./mechanisms";
import { type Spec, integer } from "./spec";
import { choose, settle, shapeOf, weightsOf } from "./ternary";

const MOST_TABLE = 2 ** 28;

/** NetSeed (`net_seed.py`): a sign at every position, all of them told by one short seed; some seeds are preferred. */
export function netSeed(spec: Spec): Built {
  const [dimension, sparsity] = shapeOf(spec);
  const [preferred, least] = weightsOf(spec);
  const t = Number(integer("t", spec.t, 1, sparsity));
  const positions = dimension + sparsity;
  const width = Math.max(1, (positions - 1).toString(2).length);
  const powers = (sparsity + 1) >> 1;
  const length = 1 + powers * width;
  check(positions * length <= MOST_TABLE, "dimension", "less: NetSub needs no table of all positions");
  const weigh = (_: unknown, trues: number) => choose(sparsity, trues) * (2 * trues - sparsity >= t ? preferred : least);
  const pick = exactChoice(Array.from({ length: sparsity + 1 }, weigh));
  const octets = Math.ceil(length / 8);
  return {
    ratio: [preferred, least],
    reads: "",
    bytes: octets,
    randomize(input, random) {
      const block = random(8 * (2 + sparsity + Math.ceil(length / 64)));
      const word = (at: number) => view(block).getBigUint64(8 * at, true);
      const held = settle(input, dimension, block.subarray(0, 8), sparsity);
      for (let at = dimension; held.length < sparsity; at++) held.push(2 * at); // stubs for the entries that are lacking
      let left = pick(word(1), random);
      const drawn = block.subarray(8 * (2 + sparsity));
      let seed = 0n;
      for (let at = 0; at < length; at++) seed |= BigInt(bit(drawn, at)) << BigInt(at);
      const equations = held.map((symbol, at): [bigint, number] => {
        const taken = bounded(word(2 + at), sparsity - at, random) < left;
        left -= Number(taken);
        const column = columnOf(symbol >> 1, width, powers);
        // A bit of 1 says -1: what the seed is to say here, and what it says.
        return [column, (symbol & 1) ^ Number(!taken) ^ parity(column & seed)];
      });
      // A uniform seed, moved to where its signs at the entries are the wanted ones: uniform among those seeds.
      seed ^= solve(equations);
      return Uint8Array.from({ length: octets }, (_, at) => Number((seed >> BigInt(8 * at)) & 255n));
    },
  };
}

/** What each bit of a seed adds at a position: (1, x, x^3, x^5, ...) in GF(2^width), 1 + powers width bits (`net_seed.py`). */
function columnOf(x: number, width: number, powers: number): bigint {
  const modulus = irreducible(width);
  const times = (a: number, b: number) => {
    let product = 0;
    for (let at = width - 1; at >= 0; at--) {
      product *= 2;
      if (product >= 2 ** width) product ^= modulus;
      if ((b >> at) & 1) product ^= a;
    }
    return product;
  };
  const square = times(x, x);
  let column = 1n;
  for (let at = 0, power = x; at < powers; at++, power = times(power, square)) column |= BigInt(power) << BigInt(1 + at * width);
  return column;
}

/** The smallest polynomial of a degree, as bits, that no smaller one divides. */
function irreducible(width: number): number {
  if (width === 1) return 2;
  const rest = (polynomial: number, by: number) => {
    while (Math.clz32(polynomial) <= Math.clz32(by)) polynomial ^= by << (Math.clz32(by) - Math.clz32(polynomial));
    return polynomial;
  };
  const divided = (polynomial: number) => {
    for (let by = 2; by < 2 << (width >> 1); by++) if (!rest(polynomial, by)) return true;
    return false;
  };
  let polynomial = 2 ** width + 1;
  while (divided(polynomial)) polynomial += 2;
  return polynomial;
}

/** A seed that each equation, of a row of bits and what it must sum to, holds of. */
function solve(equations: [row: bigint, wanted: number][]): bigint {
  const pivots: bigint[] = [];
  equations.forEach(([row, wanted], k) => {
    check(row, "rows", "independent equations");
    const pivot = row & -row; // taken out of all others
    pivots.push(pivot);
    equations.forEach((other, at) => {
      if (at !== k && other[0] & pivot) equations[at] = [other[0] ^ row, other[1] ^ wanted];
    });
  });
  return pivots.reduce((seed, pivot, k) => (equations[k]![1] ? seed | pivot : seed), 0n);
}

function parity(bits: bigint): number {
  let odd = 0;
  for (; bits; bits &= bits - 1n) odd ^= 1;
  return odd;
}
