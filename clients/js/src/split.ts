import { UNITS_PER_EPSILON, fraction } from "./exact";
import type { Budget } from "./ledger";

/** What a question asks of its field (`collection/question.py`), as far as a device needs to know. */
export interface Question {
  kind: string;
  field: string;
  /** What one report may spend; of a stream, what any `w` steps may. */
  epsilon: number;
  /** Of a memo, what all reports of one value may tell together. */
  permanent?: number;
  w?: number;
}

export type Kind = "asks" | "memos";

export const kindOfAsk = (question: Question): Kind => (question.kind === "memo" ? "memos" : "asks");

/**
 * Two accounts of one budget (`client/split.py`): what new values cost a memo must not show in when the other questions
 * fall silent. The others get what they need of a step and a window, and their part of a life; memos the rest, but at
 * least one new value for each of their questions.
 */
export function splitBudget(budget: Budget, questions: Question[]): Record<Kind, Budget> {
  const units = (epsilon: number) => {
    const [over, under] = fraction(epsilon);
    return (over * UNITS_PER_EPSILON) / under;
  };
  const total = (costs: bigint[]) => costs.reduce((sum, cost) => sum + cost, 0n);
  const others = questions.filter((question) => kindOfAsk(question) === "asks");
  const fresh = total(questions.filter((question) => kindOfAsk(question) === "memos").map((memo) => units(memo.permanent!)));
  const needed = (steps: number) =>
    total(others.map(({ epsilon, w }) => units(epsilon) * BigInt(Math.ceil(steps / (w ?? 1)))));
  const reserve = (limit: bigint, need: bigint) => (fresh ? least(limit, fresh > limit - need ? fresh : limit - need) : 0n);
  const memos: Budget = {
    ...budget,
    event: budget.event && reserve(budget.event, needed(1)),
    window: budget.window && reserve(budget.window, needed(budget.width)),
    user: budget.user && reserve(budget.user, (budget.user * BigInt(others.length)) / BigInt(questions.length)),
  };
  const rest = (unit: "event" | "window" | "user") => budget[unit] && budget[unit] - memos[unit]!;
  return { memos, asks: { ...budget, event: rest("event"), window: rest("window"), user: rest("user") } };
}

export const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);
