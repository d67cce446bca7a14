import { Refused, check } from "./errors";
import { integer, type Spec } from "./spec";

/** Limits in units of 1e-12 epsilon; each debit is charged to every unit that is declared (`privacy/budget.py`). */
export interface Budget {
  event: bigint | null;
  window: bigint | null;
  user: bigint | null;
  /** The length of the window, in steps. */
  width: number;
}

const MOST_UNITS = 10n ** 18n;

export function readBudget(spec: Spec): Budget {
  const limit = (field: string, value: unknown) =>
    value === null ? null : integer(field, value, 1, MOST_UNITS);
  const window = spec.window as Spec | null;
  const budget = {
    event: limit("event", spec.event),
    window: window && limit("window", window.limit),
    user: limit("user", spec.user),
    width: window ? Number(integer("steps", window.steps, 1, 10 ** 9)) : 1,
  };
  check(budget.event || budget.window || budget.user, "budget", "at least one of event, window and user");
  return budget;
}

/** Which step it is by the wall clock, and how much time has surely passed, in milliseconds. */
export interface Now {
  step: number;
  wall: number;
  trusted: number;
}

/** The device's account: all it ever spent, the latest step it answered, when it was last looked at, recent debits. */
export interface Account {
  /** Origin and interval of the steps. */
  steps: string;
  lifetime: bigint;
  latest: number;
  wall: number;
  trusted: number;
  debits: [step: number, spent: bigint, trusted: number][];
}

export const newAccount = (steps: string): Account => ({
  steps,
  lifetime: 0n,
  latest: -1,
  wall: 0,
  trusted: 0,
  debits: [],
});

/** The account under a new version of the collection: where steps are counted anew, all debits are as of now. */
export const recount = (account: Account, steps: string, now: Now): Account =>
  account.steps === steps
    ? account
    : { ...account, steps, latest: -1, debits: account.debits.map(([, spent]) => [now.step, spent, now.trusted]) };

/** What is spent of every unit that is declared, and its limit. */
export type Spending = Partial<Record<"event" | "window" | "user", { spent: bigint; limit: bigint }>>;

/**
 * A debit counts toward the window until the step has moved on by its width *and* trusted time by one interval less: so
 * no such stretch of true time costs more than the limit, whatever is done to the clock (`privacy/spending.py`).
 */
export function spendings(account: Account, now: Now, budget: Budget, interval: number): Spending {
  const current = Math.max(now.step, account.latest);
  const bound = trustedBound(now, budget, interval);
  const sum = (counts: (step: number, trusted: number) => boolean) =>
    account.debits.reduce((total, [step, spent, trusted]) => (counts(step, trusted) ? total + spent : total), 0n);
  return {
    ...(budget.event && { event: { spent: sum((step) => step === current), limit: budget.event } }),
    ...(budget.window && {
      window: { spent: sum((step, trusted) => step > now.step - budget.width || trusted > bound), limit: budget.window },
    }),
    ...(budget.user && { user: { spent: account.lifetime, limit: budget.user } }),
  };
}

/** Refuse a step that is before the latest answered one, or a debit that a unit does not allow; else take it. */
export function charge(account: Account, now: Now, budget: Budget, interval: number, cost: bigint): Account {
  check(now.step >= account.latest, "step", "the clock was set back: a later step was answered");
  for (const [unit, { spent, limit }] of Object.entries(spendings(account, now, budget, interval))) {
    if (cost && cost > limit - spent) throw new Refused(unit, "the budget is spent");
  }
  const bound = trustedBound(now, budget, interval);
  const debits = account.debits.filter(
    // What no unit will need again is forgotten.
    ([step, , trusted]) => step > now.step - budget.width || trusted > bound,
  );
  const same = debits.findIndex(([step]) => step === now.step);
  if (cost) debits.push([now.step, cost + (same < 0 ? 0n : debits.splice(same, 1)[0]![1]), now.trusted]);
  return { ...account, ...now, latest: now.step, lifetime: account.lifetime + cost, debits };
}

/** The trusted time up to which debits may leave the window; -1 while there is none. */
const trustedBound = (now: Now, budget: Budget, interval: number): number =>
  Math.max(-1, now.trusted - (budget.width - 1) * interval);
