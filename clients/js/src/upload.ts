import { type Bytes, base64, hex } from "./bytes";

/** An answer: the ask that it answers, its random id, and the bytes to send, once and again the same. */
export interface Entry {
  collection: string;
  ask: string;
  id: Bytes;
  step: number;
  /** Null once it was acknowledged. */
  report: Bytes | null;
}

/** Readable uploads of some entries, as `collection/wire.py` reads them: each one padded to the same size. */
export function frames(entries: Entry[], size: number): { entries: Entry[]; body: string }[] {
  const made: { entries: Entry[]; body: string }[] = [];
  for (const entry of entries) {
    const last = made.at(-1);
    const together = last && last.entries[0]!.collection === entry.collection && [...last.entries, entry];
    const body = together && frame(together, size);
    if (body && body.length <= size) made[made.length - 1] = { entries: together, body };
    else made.push({ entries: [entry], body: frame([entry], size) });
  }
  return made;
}

function frame(entries: Entry[], size: number): string {
  const spelt = entries.map(({ ask, id, report }) => ({ ask, id: hex(id), report: base64(report!) }));
  const text = JSON.stringify({ collection: entries[0]!.collection, entries: spelt, pad: "" });
  return `${text.slice(0, -2)}${"0".repeat(Math.max(0, size - text.length))}"}`;
}
