import { sha256, utf8, view } from "./bytes";

/** One pass of the keyed mixing hash, in 32-bit words (`core/hashing.py`). */
function mix(lowSeed: number, highSeed: number, word: number): number {
  let x = lowSeed ^ Math.imul(word, 0x9e3779b9);
  x = (Math.imul(x ^ (x >>> 16), 0x21f0aaad) + highSeed) | 0;
  x = Math.imul(x ^ (x >>> 15), 0xd35a2d97);
  return x ^ (x >>> 15);
}

/** The hash of a value of up to 64 bits under a seed of two words: wide values take two passes, the upper word first. */
export function hash32(lowSeed: number, highSeed: number, value: bigint): number {
  const high = Number(value >> 32n);
  const seed = high ? mix(lowSeed, highSeed, high) : lowSeed;
  return mix(seed, highSeed, Number(value & 0xffffffffn)) >>> 0;
}

/** Which of 2 to 65536 buckets a hash falls in: at most 48 bits, exact in a double. */
export const bucket = (hash: number, buckets: number): number => Math.floor((hash * buckets) / 2 ** 32);

/** A stable 64-bit code for a string, never 0..2^32-1. */
export async function fingerprint(text: string): Promise<bigint> {
  return view(await sha256(utf8(text.normalize("NFC")))).getBigUint64(0, true) | (1n << 32n);
}
