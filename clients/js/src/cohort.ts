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

/** A device's place in a collection, and a second one that decides its group: 32 bits of HMAC-SHA-256 each, never sent. */
export async function placesOnCircle(key: CryptoKey, collection: string): Promise<[place: number, second: number]> {
  const drawn = view(new Uint8Array(await crypto.subtle.sign("HMAC", key, utf8(collection))));
  return [drawn.getUint32(0, true), drawn.getUint32(4, true)];
}

/** The devices that a question is asked of: one of several equal groups. */
export interface Group {
  number: number;
  of: number;
}

export function readGroup(spec: unknown): Group {
  const given = exactly("group", spec, "number of");
  const of = Number(integer("of", given.of, 2, 1024));
  return { number: Number(integer("number", given.number, 0, of - 1)), of };
}

/** The number of the group that a second place is in. */
export const groupOf = (second: number, groups: number): number => Math.floor((second * groups) / CIRCLE);
