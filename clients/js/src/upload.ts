import { type Bytes, base64, hex } from "./bytes";

/** An answer: the ask that it answers, its random id, and the bytes to send, once and again the same. */
export interface Entry {
  collection: string;
  ask: string;
  id: Bytes;
  step: number;
  /** Null once it was acknowledged. */
  report: Bytes | null;
  /** Whether it only looks like an answer: it is sent without the report. */
  cover: boolean;
}

/** The readable upload of one entry, as `collection/wire.py` reads it, padded to whole kilobytes and at least two. */
export function frame({ collection, ask, id, report, cover }: Entry): string {
  const spell = (...entries: unknown[]) => JSON.stringify({ collection, entries, pad: "" });
  const whole = spell({ ask, id: hex(id), report: base64(report!) });
  const size = Math.max(2048, Math.ceil(whole.length / 1024) * 1024);
  const text = cover ? spell() : whole;
  return `${text.slice(0, -2)}${"0".repeat(size - text.length)}"}`;
}
