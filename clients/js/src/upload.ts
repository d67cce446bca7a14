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

/** The readable upload of one entry, as `collection/wire.py` reads it, padded to whole kilobytes and at least two. */
export function frame({ collection, ask, id, report }: Entry): string {
  const text = JSON.stringify({ collection, entries: [{ ask, id: hex(id), report: base64(report!) }], pad: "" });
  const size = Math.max(2048, Math.ceil(text.length / 1024) * 1024);
  return `${text.slice(0, -2)}${"0".repeat(size - text.length)}"}`;
}
