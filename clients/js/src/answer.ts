import type { Ask } from "./ask";
import type { Book, Watch } from "./book";
import type { Bytes } from "./bytes";
import { type Collection, fieldOf, opens, stepAt } from "./collection";
import { type Refused, check } from "./errors";
import { type Code, missing } from "./fields";
import { charge } from "./promises";
import { systemRandom } from "./random";
import type { Access, Key } from "./store";
import { type Entry, entryKey } from "./upload";

/**
 * Answer an ask, its name once: the debit and the randomised bytes are kept in one transaction, before anything is sent.
 * Where it is not this device's turn, or the budget is spent, cover may stand for it; what was refused is returned.
 */
export async function answer(kept: Access, collection: Collection, ask: Ask, watch: Watch): Promise<unknown> {
  if (await kept.get(entryKey(ask))) return;
  let book = watch.open((await kept.get<Book>(["book"]))!);
  const { wall } = book;
  const step = stepAt(collection, wall);
  check(book.version === collection.version, "version", "the one in force");
  check(ask.step === step && step >= 0, "step", "the one that the device is in");
  check(step >= stepAt(collection, book.latest), "step", "the clock was set back: a later step was answered");
  const { mechanism, terms } = ask;
  const pay = (cost: bigint) => {
    book = { ...book, ...charge(book, terms.account, ask.question, cost, book) };
  };
  const code = mechanism.domain.encode(ask.view(await frozen(kept, collection, ask, wall)));
  // Whatever is seen has a symbol: silence would tell something.
  const symbol = code ?? BigInt(mechanism.domain.size - 1);
  const { remember } = mechanism;
  let cover = !ask.asked;
  let refused: unknown;
  let seen: bigint | Bytes = remember?.(0n, systemRandom) ?? 0n; // cover is as long as an answer
  try {
    if (!cover) seen = remember ? await permanent(kept, ask, symbol, pay) : (pay(mechanism.spent), symbol);
  } catch (error) {
    if (!collection.cover || (error as Refused).field !== "budget") throw error;
    cover = !!(refused = error);
  }
  for (const old of await kept.all<Entry>(["entry"])) {
    if (!old.report && old.until <= wall) kept.drop(entryKey(old));
  }
  kept.put(entryKey(ask), {
    collection: collection.name,
    version: collection.version,
    question: ask.question,
    step,
    round: ask.round,
    id: systemRandom(16),
    report: mechanism.answer(seen, systemRandom),
    cover,
    until: opens(collection, step + 1),
  } satisfies Entry);
  const latest = Math.max(wall, book.latest);
  kept.put(["book"], { ...book, latest, answers: book.answers + 1, page: watch.page } satisfies Book);
  return refused;
}

/** A value of a field: its code, and when it was recorded. */
export interface Recorded {
  wall: number;
  code: Code;
}

/** Where a field's values are kept. */
export const valueKey = (kind: string, { domains }: Collection, field: string): Key => [kind, field, domains[field]!];

/** What all asks of a step see: what was recorded in it before the first of them, or what was last recorded. */
async function frozen(kept: Access, collection: Collection, { terms, step }: Ask, wall: number): Promise<Code> {
  const { field } = terms;
  const key = valueKey(terms.frozen, collection, field);
  const within = (at?: Recorded) => at && stepAt(collection, at.wall) === step;
  const before = await kept.get<Recorded>(key);
  if (within(before)) return before!.code;
  const recorded = await kept.get<Recorded>(valueKey("value", collection, field));
  const known = recorded && (terms.frozen === "last" || within(recorded));
  const code = known ? recorded.code : missing(fieldOf(collection, field));
  kept.put(key, { wall, code } satisfies Recorded);
  return code;
}

/** The permanent answer to a code: a new one is paid for, for life, and kept; repeats cost nothing. */
async function permanent(kept: Access, ask: Ask, code: bigint, pay: (cost: bigint) => void): Promise<Bytes> {
  const last: Key = ["memo", ask.terms.account]; // by field: two fields must not share their noise
  const key: Key = [...last, `${code}`];
  let memo = await kept.get<Bytes>(key);
  if (!memo) {
    const before = await kept.get<Bytes>(last);
    try {
      pay(ask.mechanism.spent);
      memo = ask.mechanism.remember!(code, systemRandom);
      kept.put(key, memo);
    } catch (error) {
      // The budget is gone: to fall silent now would tell that the value changed.
      if (!before) throw error;
      memo = before;
    }
  }
  kept.put(last, memo);
  return memo;
}
