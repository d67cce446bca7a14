import { utf8 } from "./bytes";
import type { Text } from "./fields";

const ALL = (1n << 64n) - 1n;

/** A permutation of 64-bit words (`core/domain/texts.py`). */
function mix(word: bigint): bigint {
  word = ((word ^ (word >> 32n)) * 0x9e3779b97f4a7c15n) & ALL;
  word = ((word ^ (word >> 29n)) * 0xd35a2d9721f0aaadn) & ALL;
  return word ^ (word >> 32n);
}

/**
 * A value as a string of a given number of bits: a text as the UTF-8 bytes of its NFC form, then zero bytes; a number as it is. What
 * cannot be written so, because it is too long, holds a zero byte or is neither, is a string of ones: silence would tell something.
 */
function written(code: unknown, of: number): bigint {
  if (typeof code === "number" && of <= 64) {
    const ones = (1n << BigInt(of)) - 1n;
    return Number.isSafeInteger(code) && code >= 0 && BigInt(code) <= ones ? BigInt(code) : ones;
  }
  const longest = of >> 3;
  const text = (code as Text | undefined)?.text;
  const whole = typeof text === "string" && !/\p{Cs}/u.test(text);
  const bytes = whole ? utf8(text.normalize("NFC")) : [0];
  const fits = bytes.length <= longest && !bytes.includes(0);
  const string = Array.from({ length: longest }, (_, at) => (fits ? (bytes[at] ?? 0) : 255));
  return string.reduce((all, byte) => (all << 8n) | BigInt(byte), 0n) << BigInt(of & 7);
}

/** The code of the first bits of a value that has `of`: these bits up to 64, a fingerprint of them beyond. */
export function prefixCode(code: unknown, bits: number, of: number): bigint {
  const prefix = written(code, of) >> BigInt(of - bits);
  if (bits <= 64) return prefix;
  const words = Math.ceil(bits / 64);
  const aligned = prefix << BigInt(64 * words - bits);
  let fingerprint = 0n;
  for (let at = 1; at <= words; at++) {
    const word = (aligned >> BigInt(64 * (words - at))) & ALL;
    fingerprint = at === 1 ? word : (mix(fingerprint) + word) & ALL;
  }
  return fingerprint;
}
