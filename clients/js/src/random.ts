import type { Bytes } from "./bytes";
import { check } from "./errors";

/** A source of random bytes: the browser's, or in a test the given ones. */
export type Random = (size: number) => Bytes;

/** The browser's own cryptographic randomness. There is no other: without it nothing is sent. */
export const systemRandom: Random = (size) => {
  check(typeof globalThis.crypto?.getRandomValues === "function", "randomness", "a browser with crypto.getRandomValues");
  const out = new Uint8Array(size);
  for (let at = 0; at < size; at += 65536) crypto.getRandomValues(out.subarray(at, at + 65536)); // its most a call
  return out;
};
