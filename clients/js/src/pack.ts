import { type Bytes, utf8 } from "./bytes";

export type Packed = number | string | Bytes | Packed[];

/** Msgpack of what a report is made of: counts, short names, byte strings and lists of at most 15. */
export function pack(value: Packed): number[] {
  if (typeof value === "number") return value < 128 ? [value] : head(value, 0xcc, 0xcd, 0xce);
  if (Array.isArray(value)) return [0x90 | value.length, ...value.flatMap(pack)];
  if (typeof value !== "string") return [...head(value.length, 0xc4, 0xc5, 0xc6), ...value];
  const text = utf8(value);
  return [...(text.length < 32 ? [0xa0 | text.length] : [0xd9, text.length]), ...text];
}

/** A size in the fewest of 1, 2 or 4 bytes, largest first, after the tag of that width. */
function head(size: number, ...tags: [number, number, number]): number[] {
  if (size < 256) return [tags[0], size];
  if (size < 65536) return [tags[1], size >> 8, size & 255];
  return [tags[2], size >>> 24, (size >> 16) & 255, (size >> 8) & 255, size & 255];
}

export type Column = [part: "public" | "private", name: string, type: string, shape: number[], data: Bytes];

/** The bytes of one report, as `Reports.to_bytes()` writes them. */
export const packReport = (specId: string, columns: Column[]): Bytes =>
  Uint8Array.from(pack(["reports", specId, 1, columns]));
