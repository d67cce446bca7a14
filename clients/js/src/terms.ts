import { check } from "./errors";
import { UNITS_PER_EPSILON } from "./exact";
import { type Promised } from "./promises";
import { type Json, type Spec, canonical, exactly, integer } from "./spec";

/** A question as a device knows it (`collection/terms.py`): signed, so that nothing is derived here. */
export interface Terms {
  field: string;
  /** What an answer is about: what was recorded in the step, or what was last recorded. */
  frozen: "step" | "last";
  /** The canonical spelling of the one view. */
  view: string;
  /** The ids of the mechanisms that an ask may name. */
  mechanisms: string[];
  /** How often it may be asked in a step. */
  rounds: number;
  /** What its answers are charged to. */
  account: string;
  memo: boolean;
  promises: Promised[];
}

const LARGEST_EPSILON = 8n * UNITS_PER_EPSILON;
const SMALLEST_BATCH = 20;

const list = (field: string, value: unknown): Json[] => {
  check(Array.isArray(value), field, "a list");
  return value;
};

function readPromise(given: Spec, question: string | null): Promised {
  const whole = (field: string, low: number, high: number) => Number(integer(field, given[field], low, high));
  const steps = whole("steps", 0, 1e9);
  const some = steps ? 1 : 0;
  const [interval, origin] = [1000 * whole("interval", some, some * 2 ** 40), 1000 * whole("origin", 0, some * 2 ** 40)];
  check(Number.isSafeInteger(steps * interval), "steps", "a stretch of time that can be counted");
  return { question, limit: limitOf(given.limit), steps, interval, origin, parts: {} };
}

const limitOf = (value: unknown) => integer("limit", value, 0, 10n ** 24n);

/** What is promised of the whole collection: the parts of the accounts are never more than all of it. */
export function readPromises(spec: Spec): Promised[] {
  return list("promises", spec.promises).map((given) => {
    const promise = readPromise(exactly("promise", given, "interval limit origin parts steps"), null);
    let left = promise.limit;
    for (const [account, part] of Object.entries((given as Spec).parts as Spec)) {
      left -= promise.parts[account] = limitOf(part);
    }
    check(left >= 0n, "parts", "no more than the limit together");
    return promise;
  });
}

export function readTerms(spec: Spec): Record<string, Terms> {
  const found: Record<string, Terms> = {};
  for (const [name, given] of Object.entries(spec.terms as Spec)) {
    const { field, frozen, view, mechanisms, rounds, account, state, promises } = exactly(
      "terms",
      given,
      "account field frozen mechanisms promises rounds state view",
    );
    const ids = list("mechanisms", mechanisms) as string[];
    const memo = state === "memo";
    // What memos cost depends on values: charged to the others' account, it would show in their silence.
    check(account === (memo ? `memo:${field}:${ids}` : "asks"), "account", "the question's own");
    check(Object.hasOwn(spec.fields as Spec, field as string), "field", "one of the collection's");
    check(frozen === "step" || frozen === "last", "frozen", "step or last");
    found[name] = {
      field: field as string,
      frozen,
      view: canonical(view!),
      mechanisms: ids,
      rounds: Number(integer("rounds", rounds, 1, 2)),
      account: account as string,
      memo,
      promises: list("promises", promises).map((promise) =>
        readPromise(exactly("promise", promise, "interval limit origin steps"), name),
      ),
    };
  }
  return found;
}

/** Whether one step may tell so much: at most epsilon 8, unless the author gave a reason. */
export const safeCost = (spec: Spec, cost: bigint): boolean =>
  cost <= LARGEST_EPSILON || Object.hasOwn(spec.overrides as Spec, "epsilon_above_8");

/** The rules that a device does not leave to the author. */
export function checkSafe(spec: Spec, promises: Promised[], terms: Record<string, Terms>): void {
  const onGrid = ({ interval, origin }: Promised) => interval === 1000 * +spec.step_seconds! && origin === 1000 * +spec.origin!;
  const batch = integer("minimum_batch", spec.minimum_batch, 1, 2 ** 32);
  const small = Object.hasOwn(spec.overrides as Spec, "minimum_batch_below_20");
  check(small || batch >= SMALLEST_BATCH, "minimum_batch", `at least ${SMALLEST_BATCH}, or a reason`);
  check(promises.length, "promises", "at least one of the whole");
  for (const { promises: own, account } of Object.values(terms)) {
    for (const mine of own.filter(({ steps }) => steps)) {
      check(safeCost(spec, mine.limit), "epsilon", "at most 8, or a reason");
      const fits = (whole: Promised) => !onGrid(whole) || mine.limit <= (whole.parts[account] ?? 0n);
      check(!onGrid(mine) || promises.every(fits), "promises", `room for what ${mine.question} may cost`);
    }
  }
}
