import { type Bytes, base64, hex } from "./bytes";
import type { Sealing } from "./collection";
import { type Spec, specId } from "./spec";
import type { Key } from "./store";

/** An answer: its name, its random id, and the bytes to send, once and again the same. */
export interface Entry {
  collection: string;
  version: number;
  question: string;
  run: number;
  step: number;
  round: number;
  part: number;
  id: Bytes;
  /** Null once it was acknowledged. */
  report: Bytes | null;
  /** Whether it only looks like an answer: it is sent without the report. */
  cover: boolean;
  /** The wall time at which its step ends: until then its name is not answered again. */
  until: number;
  /** How long the upload is. */
  size: number;
  /** Where it goes, if not to the collector: to shufflers, each of which gets its piece of the sealed report. */
  addresses?: string[];
  /** What the report is still to be sealed with, and what was asked; it is not sent before that. */
  sealing?: Sealing;
  asked?: Spec;
  /** The state whose enrolment it tells the server of. */
  enrols?: string;
  /** The stream of the state that it was made from: in another one, such as the next horizon, a device enrols anew. */
  stream?: string;
}

/** Where the answer of a name is kept: one, whatever part of the round it is to. */
export const entryKey = ({ question, run, step, round }: Pick<Entry, "question" | "run" | "step" | "round">): Key => [
  "entry",
  question,
  `${run}`,
  `${step}`,
  `${round}`,
];

/** What the layers of a report are bound to: its batch, and what was asked (`collection/shuffle_route.py`). */
export const layerName = async ({ collection, version, question, run, step, round, part }: Entry, asked: Spec) =>
  [collection, version, question, run, step, round, part, await specId(asked)].join(":");

/**
 * The readable upload of one entry, as `wire/upload.py` reads it, padded to the collection's signed size. It names
 * the answer by the signed collection and the clock: no hash of an ask or a mechanism, which could tag a device.
 */
export function frame(entry: Entry, receiver = 0): string {
  const { collection, version, question, run, step, round, part, id, cover, size } = entry;
  const spell = (...entries: unknown[]) => JSON.stringify({ collection, version, entries, pad: "" });
  const report = base64(pieceOf(entry, receiver));
  const text = cover ? spell() : spell({ question, run, step, round, part, id: hex(id), report });
  return `${text.slice(0, -2)}${"0".repeat(size - text.length)}"}`;
}

/** What one of the receivers gets of a sealed report. */
function pieceOf({ report, addresses }: Entry, receiver: number): Bytes {
  const length = report!.length / (addresses?.length ?? 1);
  return report!.slice(receiver * length, (receiver + 1) * length);
}
