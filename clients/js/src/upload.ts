import { type Bytes, base64, hex } from "./bytes";
import type { Key } from "./store";

/** An answer: its name, its random id, and the bytes to send, once and again the same. */
export interface Entry {
  collection: string;
  version: number;
  question: string;
  step: number;
  round: number;
  id: Bytes;
  /** Null once it was acknowledged. */
  report: Bytes | null;
  /** Whether it only looks like an answer: it is sent without the report. */
  cover: boolean;
  /** The wall time at which its step ends: until then its name is not answered again. */
  until: number;
}

/** Where the answer of a name is kept. */
export const entryKey = ({ question, step, round }: Pick<Entry, "question" | "step" | "round">): Key => [
  "entry",
  question,
  `${step}`,
  `${round}`,
];

/**
 * The readable upload of one entry, as `collection/wire.py` reads it, padded to whole kilobytes and at least two. It names
 * the answer by the signed collection and the clock: no hash of an ask or a mechanism, which could tag a device.
 */
export function frame({ collection, version, question, step, round, id, report, cover }: Entry): string {
  const spell = (...entries: unknown[]) => JSON.stringify({ collection, version, entries, pad: "" });
  const whole = spell({ question, run: 0, step, round, part: 0, id: hex(id), report: base64(report!) });
  const size = Math.max(2048, Math.ceil(whole.length / 1024) * 1024);
  const text = cover ? spell() : whole;
  return `${text.slice(0, -2)}${"0".repeat(size - text.length)}"}`;
}
