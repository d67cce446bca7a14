import { Refused, check } from "./errors";
import { type Spec, integer } from "./spec";

/** Limits in units of 1e-12 epsilon; each debit is charged to every unit that is declared (`privacy/budget.py`). */
export interface Budget {
  event: bigint | null;
  window: bigint | null;
  user: bigint | null;
  /** The length of the window, in steps. */
  width: number;
}

export function readBudget(spec: Spec): Budget {
  const limit = (field: string, value: unknown) => (value === null ? null : integer(field, value, 1, 10n ** 18n));
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
  trusted: number;
  /** The length of a step. */
  interval: number;
}

/** All that was ever spent, the latest step that was answered (-1: none), and recent debits. */
export interface Account {
  lifetime: bigint;
  latest: number;
  debits: [step: number, spent: bigint, trusted: number][];
}

export const newAccount = (): Account => ({ lifetime: 0n, latest: -1, debits: [] });

type Unit = "event" | "window" | "user";

/** What is spent of every unit that is declared, and its limit. */
export type Spending = Partial<Record<Unit, { spent: bigint; limit: bigint }>>;

/**
 * A debit counts toward the window until the step has moved on by its width *and* trusted time by one interval less: so
 * no such stretch of true time costs more than the limit, whatever is done to the clock (`privacy/spending.py`).
 */
export function spendings(account: Account, now: Now, budget: Budget): Spending {
  const sum = (debits: Account["debits"]) => debits.reduce((total, [, spent]) => total + spent, 0n);
  const current = Math.max(now.step, account.latest);
  const found: Spending = {};
  const add = (unit: Unit, spent: bigint) => {
    const limit = budget[unit];
    if (limit !== null) found[unit] = { spent, limit };
  };
  add("event", sum(account.debits.filter(([step]) => step === current)));
  add("window", sum(counted(account, now, budget)));
  add("user", account.lifetime);
  return found;
}

const counted = ({ debits }: Account, now: Now, { width }: Budget): Account["debits"] =>
  debits.filter(
    ([step, , trusted]) =>
      step > now.step - width || trusted > Math.max(-1, now.trusted - (width - 1) * now.interval),
  );

/** Refuse a step that is before the latest answered one, or a debit that a unit does not allow; else take it. */
export function charge(account: Account, now: Now, budget: Budget, cost: bigint): Account {
  check(now.step >= account.latest, "step", "the clock was set back: a later step was answered");
  for (const [unit, { spent, limit }] of Object.entries(spendings(account, now, budget))) {
    if (cost > limit - spent && cost) throw new Refused(unit, "the budget is spent");
  }
  const debits = counted(account, now, budget); // what no unit will need again is forgotten
  const same = debits.findIndex(([step]) => step === now.step);
  if (cost) debits.push([now.step, cost + (same < 0 ? 0n : debits.splice(same, 1)[0]![1]), now.trusted]);
  return { latest: now.step, lifetime: account.lifetime + cost, debits };
}

/** The account where steps are counted anew: its debits are as of now. */
export const recount = (account: Account, now: Now): Account => ({
  ...account,
  latest: -1,
  debits: account.debits.map(([, spent]) => [now.step, spent, now.trusted]),
});
