import type { Ask } from "./ask";
import { type Book, type Watch } from "./book";
import type { Bytes } from "./bytes";
import { type Collection, fieldOf } from "./collection";
import { type Refused, check } from "./errors";
import { type Code, missing } from "./fields";
import { charge } from "./ledger";
import { systemRandom } from "./random";
import type { Access, Key } from "./store";
import type { Entry } from "./upload";

/**
 * Answer an ask, once: the debit and the randomised bytes are kept in one transaction, before anything is sent. Where it
 * is not this device's turn, or the budget is spent, cover may stand for it; what was refused is returned.
 */
export async function answer(kept: Access, collection: Collection, ask: Ask, watch: Watch): Promise<unknown> {
  if (await kept.get(["entry", ask.id])) return;
  const { book, now, budget } = watch.open(collection, await kept.get<Book>(["book"]));
  check(ask.step === now.step && now.step >= 0, "step", "the one that the device is in");
  const pay = (cost: bigint) =>
    kept.put(["book"], { ...book, [ask.kind]: charge(book[ask.kind], now, budget(ask.kind), cost) });
  const { mechanism } = ask;
  const code = mechanism.domain.encode(ask.view(await frozen(kept, collection, ask)));
  // Whatever is seen has a symbol: silence would tell something.
  const symbol = code ?? BigInt(mechanism.domain.size - 1);
  const { remember } = mechanism;
  let cover = !ask.asked;
  let refused: unknown;
  let seen: bigint | Bytes = remember?.(0n, systemRandom) ?? 0n; // cover is as long as an answer
  try {
    if (!cover) seen = remember ? await permanent(kept, ask, symbol, pay) : (pay(mechanism.spent), symbol);
  } catch (error) {
    if (!collection.cover || (error as Refused).field === "step") throw error;
    cover = !!(refused = error);
  }
  const report = mechanism.answer(seen, systemRandom);
  const entry: Entry = { collection: collection.id, ask: ask.id, id: systemRandom(16), step: now.step, report, cover };
  for (const old of await kept.all<Entry>(["entry"])) {
    if (!old.report && old.step < now.step) kept.drop(["entry", old.ask]);
  }
  kept.put(["entry", ask.id], entry);
  return refused;
}

/** A value of a field: its code, and the step that it was recorded in. */
export interface Recorded {
  step: number;
  code: Code;
}

/** Where a field's values are kept. */
export const valueKey = (kind: string, { domains }: Collection, field: string): Key => [kind, field, domains[field]!];

/** What all asks of a step see: what was recorded in it before the first of them; of a memo, what was last recorded. */
async function frozen(kept: Access, collection: Collection, { kind, field, step }: Ask): Promise<Code> {
  const key = valueKey(kind, collection, field);
  const before = await kept.get<Recorded>(key);
  if (before?.step === step) return before.code;
  const recorded = await kept.get<Recorded>(valueKey("value", collection, field));
  const known = recorded && (kind === "memos" || recorded.step === step);
  const code = known ? recorded.code : missing(fieldOf(collection, field));
  kept.put(key, { step, code } satisfies Recorded);
  return code;
}

/** The permanent answer to a code: a new one is paid for, for life, and kept; repeats cost nothing. */
async function permanent(kept: Access, ask: Ask, code: bigint, pay: (cost: bigint) => void): Promise<Bytes> {
  const { specId, spent, remember } = ask.mechanism;
  const last: Key = ["memo", ask.question, specId]; // by question: two fields must not share their noise
  const key: Key = [...last, `${code}`];
  let memo = await kept.get<Bytes>(key);
  if (memo) pay(0n);
  else {
    const before = await kept.get<Bytes>(last);
    try {
      pay(spent);
      memo = remember!(code, systemRandom);
      kept.put(key, memo);
    } catch (error) {
      // The budget is gone: to fall silent now would tell that the value changed.
      if (!before) throw error;
      pay(0n);
      memo = before;
    }
  }
  kept.put(last, memo);
  return memo;
}
