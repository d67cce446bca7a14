import { unhex } from "./bytes";
import { placesOnCircle } from "./cohort";
import { check } from "./errors";
import type { Promised } from "./promises";
import { type HomomorphicKey, readHomomorphicKey } from "./shares";
import { type Json, type Spec, exactly, specId, wholeNumber } from "./spec";
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
  /** The device's place on the circle, and the one that decides its group. */
  places: [number, number];
  /** Whether an upload without a report stands for the answer that is not given. */
  cover: boolean;
  /** Where reports go that are shuffled, and the keys of their layers; null where they go to the collector. */
  shuffle: Route | null;
  /** The size of every upload: signed, room for the largest of everything that is admitted. */
  uploadBytes: number;
}

/** Where devices send, and what reports are sealed with. */
export interface Route {
  /** The first shuffler's address, or those of all, which get a share each. */
  addresses: string[];
  sealing: Sealing;
}

/** The public keys of layers, in their order; or those of shares, with the key of the share that is encrypted to the server. */
export interface Sealing {
  keys: string[];
  homomorphic: HomomorphicKey | null;
}

/** Who shuffles (`collection/shuffle_route.py`). A browser that cannot seal reports takes no part, and says so. */
async function readRoute(spec: Spec): Promise<Route | null> {
  const { trust } = spec;
  check(trust === "local" || trust === "shuffle" || trust === "oblivious", "trust", "local, shuffle or oblivious");
  check((trust !== "local") === Object.hasOwn(spec, "shuffle"), "shuffle", "who shuffles, where reports are shuffled");
  if (trust === "local") return null;
  const shares = trust === "oblivious";
  const shuffle = exactly("shuffle", spec.shuffle, `collector_key delta fakes ${shares ? "homomorphic_key " : ""}least shufflers`);
  const shufflers = (shuffle.shufflers as Json[]).map((shuffler) => exactly("shufflers", shuffler, "encryption_key signing_key url"));
  const [fewest, most] = shares ? [3, 7] : [1, 8];
  check(shufflers.length >= fewest! && shufflers.length <= most!, "shufflers", `${fewest} to ${most}`);
  const homomorphic = shares ? readHomomorphicKey(shuffle.homomorphic_key) : null;
  const own = shufflers.map((shuffler) => shuffler.encryption_key as string);
  const keys = shares ? own : [...own, shuffle.collector_key as string];
  for (const key of keys) check(unhex(key, 32), "encryption_key", "64 hexadecimal digits");
  const urls = shufflers.slice(0, shares ? shufflers.length : 1).map((shuffler) => shuffler.url as string);
  for (const url of urls) check(/^https?:\/\//.test(url), "url", "an http or https address");
  try {
    await crypto.subtle.generateKey("X25519", false, ["deriveBits"]);
  } catch {
    check(false, "browser", "one with X25519: this one cannot encrypt reports to shufflers, and sends none");
  }
  check([shuffle.least, shuffle.fakes, shuffle.delta].every(Number.isFinite), "shuffle", "numbers");
  return { addresses: urls.map((url) => `${url.replace(/\/$/, "")}/v1/reports`), sealing: { keys, homomorphic } };
}

export async function readCollection(spec: Spec, name: string, key: CryptoKey): Promise<Collection> {
  check(spec.name === name, "name", "the collection that was asked for");
  check(spec.format === 1, "format", "1: all that this client reads");
  const shuffle = await readRoute(spec);
  const whole = (field: string, low: number, high: number) => wholeNumber(spec, field, low, high);
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
    places: await placesOnCircle(key, name),
    cover: !!spec.cover,
    shuffle,
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
