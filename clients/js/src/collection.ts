import { placeOnCircle } from "./cohort";
import { check } from "./errors";
import { type Budget, readBudget } from "./ledger";
import { type Spec, integer, specId } from "./spec";
import type { Question } from "./split";

/** A signed collection (`collection/spec.py`), and the device's place in it. */
export interface Collection {
  id: string;
  version: number;
  fields: Record<string, Spec>;
  /** The ids of the fields' domains: a field whose domain changes in a new version is another. */
  domains: Record<string, string>;
  questions: Record<string, Question>;
  budget: Budget;
  minimumArc: number;
  /** Where step 0 begins, and how long a step is: milliseconds. */
  origin: number;
  interval: number;
  place: number;
  /** Whether an upload without a report stands for the answer that is not given. */
  cover: boolean;
}

export async function readCollection(spec: Spec, name: string, key: CryptoKey): Promise<Collection> {
  check(spec.name === name, "name", "the collection that was asked for");
  check(spec.format === 1 && spec.trust === "local", "format", "1, trust local: all that this client reads");
  const whole = (field: string, low: number, high: number) => Number(integer(field, spec[field], low, high));
  const id = await specId(spec);
  const fields = spec.fields as Record<string, Spec>;
  const domains: Record<string, string> = {};
  for (const field in fields) domains[field] = await specId(fields[field]!);
  return {
    id,
    version: whole("version", 1, 2 ** 31),
    fields,
    domains,
    questions: spec.questions as unknown as Record<string, Question>,
    budget: readBudget(spec.budget as Spec),
    minimumArc: whole("minimum_arc", 1, 2 ** 32),
    origin: 1000 * whole("origin", 0, 2 ** 40),
    interval: 1000 * whole("step_seconds", 1, 366 * 86400),
    place: await placeOnCircle(key, id),
    cover: !!spec.cover,
  };
}

export const opens = (collection: Collection, step: number): number => collection.origin + step * collection.interval;

export const stepAt = (collection: Collection, wall: number): number =>
  Math.floor((wall - collection.origin) / collection.interval);

export function fieldOf(collection: Collection, field: string): Spec {
  check(Object.hasOwn(collection.fields, field), "field", `one of ${Object.keys(collection.fields)}`);
  return collection.fields[field]!;
}
