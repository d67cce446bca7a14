import { Refused, check } from "./errors";

/**
 * What a device promised: at most `limit` in any `steps` steps of its own grid, or in a life where `steps` is 0. In units
 * of 1e-12 epsilon and milliseconds. Promises are kept through every version of a collection (`ledger/promise.py`).
 */
export interface Promised {
  /** The question that it is about, or null where it is about the whole collection. */
  question: string | null;
  limit: bigint;
  steps: number;
  interval: number;
  origin: number;
  /** Of the whole: what of it each account may spend. An account that is not named here may spend nothing. */
  parts: Record<string, bigint>;
}

/** A moment: by the wall clock, and how much time has surely passed. */
export interface Moment {
  wall: number;
  trusted: number;
}

/** What an answer cost, and when. */
export interface Debit extends Moment {
  account: string;
  question: string;
  spent: bigint;
}

/** What was promised and what was spent. */
export interface Ledger {
  promises: Promised[];
  /** The debits that a promise may still need. */
  debits: Debit[];
  /** All that was ever spent, by account and by question. */
  totals: Record<string, bigint>;
  /** The latest wall time that anything was answered at. A clock set back does not bring an earlier one. */
  latest: number;
  /** When an account that was lost was begun anew: whatever could have been spent by then counts as spent. */
  recovered: Moment | null;
}

/** The most promises that are kept. */
const MOST_PROMISES = 512;

/** The name in the totals of what a question spent. */
export const ofQuestion = (question: string): string => `question:${question}`;

/**
 * Whether a debit counts toward a promise: until the step has moved on by `steps` *and* trusted time by one interval less.
 * So no such stretch of true time costs more than the limit, whatever is done to the clock.
 */
function counts({ steps, interval, origin }: Promised, at: Moment, now: Moment): boolean {
  const step = Math.floor((now.wall - origin) / interval);
  return !steps || at.wall >= origin + (step - steps + 1) * interval || at.trusted > now.trusted - (steps - 1) * interval;
}

/** Whether keeping a promise keeps another one too. */
function implies(a: Promised, b: Promised): boolean {
  const sameGrid = a.interval === b.interval && a.origin === b.origin;
  const longer = sameGrid ? a.steps >= b.steps : (a.steps - 1) * a.interval >= b.steps * b.interval;
  return a.question === b.question && a.limit <= b.limit && (!a.steps || (!!b.steps && longer));
}

/** The promises that are kept once some more are made: none is taken away, but those that the others imply. */
export function addPromises(kept: Promised[], more: Promised[]): Promised[] {
  for (const next of more) {
    if (kept.some((old) => implies(old, next))) continue;
    const narrower = ({ parts }: Promised) => Object.entries(next.parts).every(([name, part]) => part <= (parts[name] ?? 0n));
    kept = [...kept.filter((old) => !(implies(next, old) && narrower(old))), next];
  }
  check(kept.length <= MOST_PROMISES, "promises", `at most ${MOST_PROMISES} in all versions`);
  return kept;
}

/**
 * The moment that an answer counts as of. Where the clock was set back, but not into an earlier step of the grid in force,
 * that is the latest one used: the time before may be past already on another promise's grid.
 */
const used = (ledger: Ledger, { wall, trusted }: Moment): Moment => ({ wall: Math.max(wall, ledger.latest), trusted });

/** What was spent of a promise by an account, or by its question, and what may be. */
export function spending(ledger: Ledger, promise: Promised, account: string, now: Moment): { spent: bigint; limit: bigint } {
  const { question, steps } = promise;
  const whole = question === null;
  const limit = whole ? (promise.parts[account] ?? 0n) : promise.limit;
  const at = used(ledger, now);
  if (ledger.recovered && counts(promise, ledger.recovered, at)) return { spent: limit, limit };
  const counted = ledger.debits.filter(
    (debit) => (whole ? debit.account === account : debit.question === question) && counts(promise, debit, at),
  );
  const spent = steps
    ? counted.reduce((sum, debit) => sum + debit.spent, 0n)
    : (ledger.totals[whole ? account : ofQuestion(question)] ?? 0n);
  return { spent, limit };
}

/**
 * Take a debit that every promise allows; else refuse it. What is paid for beforehand counts as of a later moment, `until`
 * by the wall clock: no promise gives it back before that and its own stretch of time are past.
 */
export function charge(
  ledger: Ledger,
  account: string,
  question: string,
  cost: bigint,
  now: Moment,
  until = -Infinity,
): Partial<Ledger> {
  if (!cost) return {};
  for (const promise of ledger.promises) {
    if (promise.question !== null && promise.question !== question) continue;
    const { spent, limit } = spending(ledger, promise, account, now);
    if (cost > limit - spent) throw new Refused("budget", `${promise.question ?? account} has spent what was promised`);
  }
  const at = used(ledger, now);
  const dated: Moment = { wall: Math.max(at.wall, until), trusted: now.trusted + Math.max(0, until - now.wall) };
  const debits = [...ledger.debits, { account, question, spent: cost, ...dated }];
  const totals = { ...ledger.totals };
  for (const name of [account, ofQuestion(question)]) totals[name] = (totals[name] ?? 0n) + cost;
  // What no promise will count again is forgotten; what belongs to this moment may be counted by one that is yet to come.
  const needed = (debit: Debit) =>
    debit.wall >= at.wall || ledger.promises.some((promise) => promise.steps && counts(promise, debit, at));
  return { debits: debits.filter(needed), totals };
}
