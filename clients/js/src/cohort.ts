import { type Bytes, utf8, view } from "./bytes";
import { exactly, integer } from "./spec";

export const CIRCLE = 2 ** 32;

/** A cohort: the places start, start + 1, ..., start + length - 1, round the circle. */
export interface Arc {
  start: number;
  length: number;
}

export function readArc(spec: unknown): Arc {
  const given = exactly("cohort", spec, "length start");
  return {
    start: Number(integer("start", given.start, 0, CIRCLE - 1)),
    length: Number(integer("length", given.length, 0, CIRCLE)),
  };
}

export const holds = (arc: Arc, place: number): boolean => (place - arc.start + CIRCLE) % CIRCLE < arc.length;

/** The key of a device, from at least 16 random bytes: it can be used and kept, and never be read again. */
export const deviceKey = (bytes: Bytes): Promise<CryptoKey> =>
  crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);

/** A device's place in a collection: 32 bits of HMAC-SHA-256, never sent. */
export async function placeOnCircle(key: CryptoKey, collection: string): Promise<number> {
  return view(new Uint8Array(await crypto.subtle.sign("HMAC", key, utf8(collection)))).getUint32(0, true);
}
