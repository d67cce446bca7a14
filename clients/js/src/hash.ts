import { sha256, utf8, view } from "./bytes";

/** One pass of the keyed mixing hash, in 32-bit words (`core/hashing.py`). */
function mix(lowSeed: number, highSeed: number, word: number): number {
  let x = lowSeed ^ Math.imul(word, 0x9e3779b9);
  x = (Math.imul(x ^ (x >>> 16), 0x21f0aaad) + highSeed) | 0;
  x = Math.imul(x ^ (x >>> 15), 0xd35a2d97);
  return x ^ (x >>> 15);
}

/** 32 bits that look random, of a seed of two words and a value of up to 64 bits. It is no hash for reports. */
export function mix32(lowSeed: number, highSeed: number, value: bigint): number {
  const high = Number(value >> 32n);
  const seed = high ? mix(lowSeed, highSeed, high) : lowSeed;
  return mix(seed, highSeed, Number(value & 0xffffffffn)) >>> 0;
}

/** The hash of a value of up to 64 bits under a seed: the product of the seed's two words, each plus one of the value's: no two values have the same two (`core/hashing.py`). */
export function product32(lowSeed: number, highSeed: number, value: bigint): number {
  const upper = mix(0, 0, Number(value >> 32n));
  const first = mix(0, 0, Number(value & 0xffffffffn) ^ upper);
  const second = ((first << 16) | (first >>> 16)) + upper;
  return Math.imul((lowSeed + first) | 0, (highSeed + second) | 0) >>> 0;
}

/** The words of the seed of a function of a public list, from its number: they look random. */
export const spreadSeed = (number: number): [low: number, high: number] => [
  mix32(0x68756262, 0, BigInt(number)),
  mix32(0x75620000, 0, BigInt(number)),
];

/** Which of 2 to 65536 buckets a hash falls in: at most 48 bits, exact in a double. */
export const bucket = (hash: number, buckets: number): number => Math.floor((hash * buckets) / 2 ** 32);

/** A stable 64-bit code for a string, never 0..2^32-1. */
export async function fingerprint(text: string): Promise<bigint> {
  return view(await sha256(utf8(text.normalize("NFC")))).getBigUint64(0, true) | (1n << 32n);
}
