import { type Bytes, concat, view } from "./bytes";
import { TWO_64 } from "./choice";
import { check } from "./errors";
import { coded } from "./frequency";
import { wrap } from "./onion";
import { type Random, systemRandom } from "./random";
import { type Json, type Spec, exactly } from "./spec";

/**
 * A report as shares for an oblivious shuffle (`shuffle/device_shares.py`): a number below 2^64 that all shares add up to. The
 * last share is encrypted to the server (DGK), and each is sealed to its shuffler.
 */
export interface HomomorphicKey {
  modulus: string;
  g: string;
  h: string;
}

const NOISE_BYTES = 32;
const SHARE_BYTES = 8;

export function readHomomorphicKey(spec: Json | undefined): HomomorphicKey {
  const key = exactly("homomorphic_key", spec, "g h modulus subgroup_bits");
  for (const name of ["modulus", "g", "h"]) check(/^[0-9a-f]{1,2048}$/.test(`${key[name]}`), name, "hexadecimal digits");
  check(numberOf(`${key.modulus}`) >> 2047n, "modulus", "at least 2048 bits");
  return key as unknown as HomomorphicKey;
}

const numberOf = (digits: string): bigint => BigInt(`0x${digits}`);

/** Whether reports of a mechanism are numbers below 2^64, every one of which is a report (`shuffle/report_numbers.py`). */
export const hasNumbers = ({ mechanism }: Spec): boolean => mechanism === "GRR" || mechanism === "SOLH";

/** A report of SOLH or GRR as 8 bytes, lowest first. One of GRR is any number with the right remainder. */
export function numberBytes(spec: Spec, report: Bytes, random: Random): Bytes {
  const number = new Uint8Array(SHARE_BYTES);
  const last = (at: number) => report.slice(at).reduceRight((whole, byte) => whole * 256n + BigInt(byte), 0n);
  let whole: bigint;
  if (spec.mechanism === "SOLH") {
    const bits = BigInt(Math.log2(Number(spec.buckets)));
    whole = (view(report).getBigUint64(0, true) << bits) | last(8);
  } else {
    const size = BigInt(coded(spec.domain).size);
    const quotients = TWO_64 / size;
    const most = TWO_64 - (TWO_64 % quotients);
    let drawn = most;
    while (drawn >= most) drawn = view(random(8)).getBigUint64(0, true);
    whole = (drawn % quotients) * size + last(0);
  }
  view(number).setBigUint64(0, whole, true);
  return number;
}

/** The shares of a report's number, each sealed to its shuffler, one after the other and all of one size. */
export async function sealedShares(number: Bytes, key: HomomorphicKey, shufflers: Bytes[], batch: string): Promise<Bytes> {
  const modulus = numberOf(key.modulus);
  const size = Math.ceil(modulus.toString(2).length / 8);
  let rest = view(number).getBigUint64(0, true);
  const sealed: Bytes[] = [];
  for (const [place, shuffler] of shufflers.entries()) {
    const share = new Uint8Array(size);
    if (place < shufflers.length - 1) {
      share.set(systemRandom(SHARE_BYTES));
      rest = BigInt.asUintN(64, rest - view(share).getBigUint64(0, true));
    } else {
      const noise = systemRandom(NOISE_BYTES).reduce((whole, byte) => whole * 256n + BigInt(byte), 0n);
      let cipher = (power(numberOf(key.g), rest, modulus) * power(numberOf(key.h), noise, modulus)) % modulus;
      for (let at = size - 1; at >= 0; at--, cipher >>= 8n) share[at] = Number(cipher & 255n);
    }
    sealed.push(await wrap(share, [shuffler], batch, place));
  }
  return concat(...sealed);
}

/** base^exponent modulo a number. */
function power(base: bigint, exponent: bigint, modulus: bigint): bigint {
  let result = 1n;
  for (let square = base; exponent; exponent >>= 1n, square = (square * square) % modulus) {
    if (exponent & 1n) result = (result * square) % modulus;
  }
  return result;
}
