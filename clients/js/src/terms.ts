import { type Group, readGroup } from "./cohort";
import { check } from "./errors";
import { UNITS_PER_EPSILON } from "./exact";
import type { Promised } from "./promises";
import { type Json, type Spec, exactly, integer, wholeNumber } from "./spec";

/** What a device knows of a question (`collection/terms.py`). All of it is signed; no kind of question is known here. */
export interface Terms {
  /** The fields that it reads. They are frozen together. */
  fields: string[];
  /** Which value an answer is about: the one recorded in the step, the last one recorded, or the one when the study began. */
  frozen: "step" | "last" | "study";
  /** Patterns of the views that an ask may name. */
  views: Json[];
  /** The ids of the mechanisms that an ask may name, and names with the epsilons that they may declare. */
  mechanisms: string[];
  families: { mechanism: string; units: bigint[] }[];
  /** How often it may be asked in a step or in a run of a study, and in how many parts at a time. */
  rounds: number;
  parts: number;
  /** What its answers are charged to. */
  account: string;
  /** The mechanism whose state the device keeps; empty where every report is fresh. */
  state: string;
  /** The most that a step, or a run of a study, may cost. */
  limit: bigint;
  promises: Promised[];
  /** The largest report. */
  reportBytes: number;
  /** When a study's runs begin and how long its rounds are, in milliseconds; `every` is 0 where there is one run. */
  study: { start: number; round: number; every: number } | null;
  /** Which of several equal groups of devices it is asked of; cohorts are arcs of the group's circle. */
  group: Group;
}

const LARGEST_EPSILON = 8n * UNITS_PER_EPSILON;
const SMALLEST_BATCH = 20;
const SMALLEST_ARC = 100;
const MEMOS = ["BasicRappor", "BloomRappor", "Loloha"];

const list = (field: string, value: unknown): Json[] => {
  check(Array.isArray(value), field, "a list");
  return value;
};

const nonEmpty = (field: string, value: unknown): Json[] => {
  const items = list(field, value);
  check(items.length, field, "at least one");
  return items;
};

const unitsOf = (field: string, value: unknown, low = 0) => integer(field, value, low, 10n ** 24n);

function readPromise(spec: Spec, question: string | null): Promised {
  const steps = wholeNumber(spec, "steps", 0, 1e9);
  const grid = steps ? 1 : 0;
  const [interval, origin] = [1000 * wholeNumber(spec, "interval", grid, grid * 2 ** 40), 1000 * wholeNumber(spec, "origin", 0, grid * 2 ** 40)];
  check(Number.isSafeInteger(steps * interval), "steps", "a stretch of time that can be counted");
  return { question, limit: unitsOf("limit", spec.limit), steps, interval, origin, parts: {} };
}

/** The promises of the whole collection. The parts of the accounts are at most the limit together. */
export function readPromises(spec: Spec): Promised[] {
  return list("promises", spec.promises).map((promiseSpec) => {
    const promise = readPromise(exactly("promise", promiseSpec, "interval limit origin parts steps"), null);
    let left = promise.limit;
    for (const [account, part] of Object.entries((promiseSpec as Spec).parts as Spec)) {
      left -= promise.parts[account] = unitsOf("limit", part);
    }
    check(left >= 0n, "parts", "no more than the limit together");
    return promise;
  });
}

function readStudy(spec: Json | undefined, rounds: number): Terms["study"] {
  if (spec === null) return null;
  const schedule = exactly("study", spec, "every round_seconds start");
  const seconds = (field: string, low: number) => 1000 * wholeNumber(schedule, field, low, 2 ** 40);
  const study = { start: seconds("start", 0), round: seconds("round_seconds", 1), every: seconds("every", 0) };
  check(!study.every || study.every >= rounds * study.round, "every", "0, or at least the length of a run");
  return study;
}

/** A pattern of views, whose bounds must be bounds: `matches` compares with them. */
function readPattern(pattern: Json): Json {
  if (pattern === null || typeof pattern !== "object") return pattern;
  const names = Array.isArray(pattern) ? "" : Object.keys(pattern).sort().join(" ");
  if (names === "from to") {
    const { from, to } = pattern as Spec;
    const range = typeof from === "number" && typeof to === "number" && from <= to;
    check(range, "views", "a range from a number to one that is not smaller");
  }
  if (names === "most" || names === "each most") wholeNumber(pattern as Spec, "most", 0, 2 ** 24);
  if (names === "hex") wholeNumber(pattern as Spec, "hex", 1, 2 ** 24);
  for (const part of Object.values(pattern)) readPattern(part);
  return pattern;
}

export function readTerms(spec: Spec): Record<string, Terms> {
  const terms: Record<string, Terms> = {};
  const after = "limit mechanisms parts promises report_bytes rounds state study views";
  for (const [name, value] of Object.entries(spec.terms as Spec)) {
    const divided = Object.hasOwn((value ?? {}) as Spec, "group");
    const question = exactly("terms", value, `account families fields frozen ${divided ? "group " : ""}${after}`);
    const { account, frozen, state } = question as Record<string, string>;
    const fields = nonEmpty("fields", question.fields) as string[];
    const mechanisms = list("mechanisms", question.mechanisms) as string[];
    // What memos cost depends on values: charged to the others' account, it would show in their silence.
    const own = `memo:${fields}:${mechanisms}`;
    check(account === "asks" ? !MEMOS.includes(state!) : account === own && state, "account", "the question's own");
    for (const field of fields) check(Object.hasOwn(spec.fields as Spec, field), "fields", "the collection's");
    const rounds = wholeNumber(question, "rounds", 1, 1024);
    const study = readStudy(question.study, rounds);
    check(study ? frozen === "study" && !state : frozen === "step" || frozen === "last", "frozen", "step, last, or study for studies");
    terms[name] = {
      fields,
      frozen,
      views: nonEmpty("views", question.views).map((view) => readPattern(view)),
      mechanisms,
      families: list("families", question.families).map((family) => {
        const { mechanism, units } = exactly("families", family, "mechanism units");
        return { mechanism: mechanism as string, units: list("units", units).map((count) => unitsOf("units", count, 1)) };
      }),
      rounds,
      parts: wholeNumber(question, "parts", 1, 1024),
      account: account!,
      state: state!,
      limit: unitsOf("limit", question.limit, 1),
      promises: nonEmpty("promises", question.promises).map((promise) =>
        readPromise(exactly("promise", promise, "interval limit origin steps"), name),
      ),
      reportBytes: wholeNumber(question, "report_bytes", 1, 2 ** 24),
      study,
      group: divided ? readGroup(question.group) : { number: 0, of: 1 },
    } as Terms;
  }
  return terms;
}

/** How many of the planned devices the shortest arc has; null where no size is stated. */
export function smallestArc(spec: Spec): number | null {
  if (!Object.hasOwn(spec, "planned_devices")) return null;
  const planned = integer("planned_devices", spec.planned_devices, 1, 2 ** 40);
  return Number((planned * integer("minimum_arc", spec.minimum_arc, 1, 2 ** 32) + 2n ** 31n) >> 32n);
}

/** The rules that a device does not leave to the author (`collection/safety.py`). */
export function checkSafe(spec: Spec, promises: Promised[], terms: Record<string, Terms>): void {
  const reason = (name: string) => Object.hasOwn(spec.overrides as Spec, name);
  const batch = integer("minimum_batch", spec.minimum_batch, 1, 2 ** 32);
  check(reason("minimum_batch_below_20") || batch >= SMALLEST_BATCH, "minimum_batch", `at least ${SMALLEST_BATCH}, or a reason`);
  const least = spec.trust !== "local" ? integer("least", (spec.shuffle as Spec).least, 2, 2 ** 40) : SMALLEST_BATCH;
  check(reason("minimum_batch_below_20") || least >= SMALLEST_BATCH, "least", `at least ${SMALLEST_BATCH}, or a reason`);
  const people = smallestArc(spec);
  check(reason("arc_below_100") || people === null || people >= SMALLEST_ARC, "minimum_arc", `at least ${SMALLEST_ARC} devices, or a reason`);
  check(promises.length, "promises", "at least one of the whole");
  for (const [name, { promises: own, account, limit, state, views }] of Object.entries(terms)) {
    const plain = views.some((view) => (view as Spec).kind === "withnumbers");
    const linked = (state && !["ChangeStream", "NetStream"].includes(state)) || plain;
    check(spec.trust === "local" || !linked, "state", `none: reports of ${name} could be linked, which undoes the shuffle`);
    const large = (most: bigint) => most > LARGEST_EPSILON;
    const exceeds = large(limit) || own.some((promise) => promise.steps && large(promise.limit));
    check(!exceeds || reason("epsilon_above_8"), "epsilon", "at most 8, or a reason");
    check(!plain || reason("sent_as_it_is"), "views", "none that sends numbers as they are, or a reason");
    const again = own.some((promise) => !promise.steps && promise.limit > limit);
    check(!again || promises.some(({ steps }) => !steps), "promises", `one for life: ${name} costs again for every new value`);
    const room = promises.every(({ parts }) => (parts[account] ?? 0n) >= limit);
    check(room, "promises", `room for what ${name} may cost, which else is never answered`);
  }
}
