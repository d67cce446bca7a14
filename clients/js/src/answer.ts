import type { Ask } from "./ask";
import type { Bytes } from "./bytes";
import { type Collection, fieldOf } from "./collection";
import { check } from "./errors";
import { type Code, missing } from "./fields";
import { type Account, charge } from "./ledger";
import { systemRandom } from "./random";
import type { Access, Key } from "./store";
import type { Entry } from "./upload";
import type { Watch } from "./watch";

/** Answer an ask, once: the debit and the randomised bytes are kept in one transaction, before anything is sent. */
export async function answer(kept: Access, collection: Collection, ask: Ask, watch: Watch): Promise<void> {
  if (await kept.get(["entry", ask.id])) return;
  const { account, now } = watch.read(collection, await kept.get<Account>(["account"]));
  check(ask.step === now.step && now.step >= 0, "step", "the device is in another step, and answers no other");
  const pay = (cost: bigint) =>
    kept.put(["account"], charge(account, now, collection.budget, collection.interval, cost));
  const { mechanism } = ask;
  const code = mechanism.domain.encode(ask.view(await frozen(kept, collection, ask)));
  // Whatever is seen has a symbol: silence would tell something.
  const symbol = code ?? BigInt(mechanism.domain.size - 1);
  const report = mechanism.answer(
    mechanism.remember ? await permanent(kept, ask, symbol, pay) : (pay(mechanism.spent), symbol),
    systemRandom,
  );
  const entry: Entry = { collection: collection.id, ask: ask.id, id: systemRandom(16), step: now.step, report };
  for (const old of await kept.all<Entry>(["entry"])) {
    if (!old.report && old.step < now.step) kept.drop(["entry", old.ask]);
  }
  kept.put(["entry", ask.id], entry);
}

/** The field's code in this step: the first that an ask looked at, so that two asks see the same. */
async function frozen(kept: Access, collection: Collection, { field, step }: Ask): Promise<Code> {
  const before = await kept.get<{ step: number; code: Code }>(["frozen", field]);
  if (before?.step === step) return before.code;
  const code = (await kept.get<Code>(["value", field])) ?? missing(fieldOf(collection, field));
  kept.put(["frozen", field], { step, code });
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
