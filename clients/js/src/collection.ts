import { placeOnCircle } from "./cohort";
import { check } from "./errors";
import type { Promised } from "./promises";
import { type Spec, integer, specId } from "./spec";
import { type Terms, checkSafe, readPromises, readTerms } from "./terms";

/** A signed collection (`collection/document.py`), and the device's place in it. */
export interface Collection {
  name: string;
  id: string;
  version: number;
  fields: Record<string, Spec>;
  /** The ids of the fields' domains: a field whose domain changes in a new version is another. */
  domains: Record<string, string>;
  terms: Record<string, Terms>;
  /** What is promised of the whole, and of each question. */
  promises: Promised[];
  minimumArc: number;
  /** Where step 0 begins, and how long a step is: milliseconds. */
  origin: number;
  interval: number;
  place: number;
  /** Whether an upload without a report stands for the answer that is not given. */
  cover: boolean;
  /** The size of every upload: signed, room for the largest of everything that is admitted. */
  uploadBytes: number;
}

export async function readCollection(spec: Spec, name: string, key: CryptoKey): Promise<Collection> {
  check(spec.name === name, "name", "the collection that was asked for");
  check(spec.format === 3 && spec.trust === "local", "format", "3, trust local: all that this client reads");
  const whole = (field: string, low: number, high: number) => Number(integer(field, spec[field], low, high));
  const fields = spec.fields as Record<string, Spec>;
  const domains: Record<string, string> = {};
  for (const field in fields) domains[field] = await specId(fields[field]!);
  const [promises, terms] = [readPromises(spec), readTerms(spec)];
  checkSafe(spec, promises, terms);
  return {
    name,
    id: await specId(spec),
    version: whole("version", 1, 2 ** 31),
    fields,
    domains,
    terms,
    promises: [...promises, ...Object.values(terms).flatMap((question) => question.promises)],
    minimumArc: whole("minimum_arc", 1, 2 ** 32),
    origin: 1000 * whole("origin", 0, 2 ** 40),
    interval: 1000 * whole("step_seconds", 1, 366 * 86400),
    place: await placeOnCircle(key, name),
    cover: !!spec.cover,
    uploadBytes: 2 * whole("frame_bytes", 1, 2 ** 26), // the readable form is never twice as long as the binary one
  };
}

export const opens = (collection: Collection, step: number): number => collection.origin + step * collection.interval;

/** When a round opens and closes: a part of a step, or of a run of a study, which has rounds of its own length. */
export function roundTimes(collection: Collection, terms: Terms, run: number, step: number, round: number): [number, number] {
  const { study, rounds } = terms;
  const begin = study ? study.start + run * study.every : opens(collection, step);
  const length = study ? study.round : collection.interval / rounds;
  return [begin + (round - 1) * length, begin + round * length];
}

export const stepAt = (collection: Collection, wall: number): number =>
  Math.floor((wall - collection.origin) / collection.interval);

export function fieldOf(collection: Collection, field: string): Spec {
  check(Object.hasOwn(collection.fields, field), "field", `one of ${Object.keys(collection.fields)}`);
  return collection.fields[field]!;
}
