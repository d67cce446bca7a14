import { answer } from "./answer";
import { readAsk } from "./ask";
import { hex } from "./bytes";
import { type Collection, fieldOf, readCollection, stepAt } from "./collection";
import { check } from "./errors";
import { codeOf } from "./fields";
import { type Account, type Spending, spendings } from "./ledger";
import { systemRandom } from "./random";
import type { Spec } from "./spec";
import { type Store, openStore } from "./store";
import { beacon, fetchSealed, post } from "./transport";
import { type Entry, frames } from "./upload";
import { Watch } from "./watch";

export interface Options {
  /** The collector's address. */
  server: string;
  /** The name of the collection. */
  collection: string;
  /** The public keys that its documents may be signed with: 64 hexadecimal digits each. */
  keys: string[];
  /**
   * Whether the wall clock is believed about the time between visits. Otherwise only the time that pages are open
   * gives back what a window has spent, which holds whatever is done to the device's clock.
   */
  trustWallClock?: boolean;
  /** The name of the database in which everything is kept. */
  database?: string;
  /** Milliseconds since 1970, for tests. */
  now?: () => number;
}

/** What the device has spent, in units of 1e-12 epsilon, what waits to be sent, and what it refused to answer, and why. */
export interface Status extends Spending {
  step: number;
  lifetime: bigint;
  pending: number;
  refused: Record<string, string>;
}

/** Fetch a collection, check its signature, and open the device's account in it. */
export async function connect(options: Options): Promise<Client> {
  const { server, collection, database = "hubbub" } = options;
  const client = new Client(options, await openStore(database, `${server} ${collection}`));
  await client.load();
  addEventListener("pagehide", () => client.hide());
  addEventListener("online", () => void client.flush());
  return client;
}

export class Client {
  private collection!: Collection;
  private asks: Spec | null = null;
  private queue: Entry[] = [];
  private refused: Record<string, string> = {};
  private sending: Promise<boolean> | null = null;
  private failures = 0;
  private notBefore = 0;
  private readonly watch: Watch;

  constructor(
    private readonly options: Options,
    private readonly store: Store,
  ) {
    this.watch = new Watch(options.now ?? Date.now, !!options.trustWallClock);
  }

  /** Keep a value of a field; it stands until another is recorded. One that the field does not have is refused. */
  async record(field: string, value: unknown): Promise<void> {
    const code = codeOf(field, fieldOf(this.collection, field), value);
    await this.store(async (kept) => kept.put(["value", field], code));
  }

  /** Answer what is asked in this step, and send what waits. Done when a page opens, and now and then. */
  async tick(): Promise<void> {
    this.refused = {};
    await this.attempt("asks", () => this.answers());
    await this.waiting();
    if (this.watch.now() >= this.notBefore) await this.flush();
  }

  /** Send what waits, the same bytes as before; whether nothing waits any more. */
  flush(): Promise<boolean> {
    this.sending ??= this.send().finally(() => {
      this.sending = null;
    });
    return this.sending;
  }

  /** What is spent and what remains, now. */
  status(): Promise<Status> {
    return this.store(async (kept) => {
      const { account, now } = this.watch.read(this.collection, await kept.get<Account>(["account"]));
      kept.put(["account"], account); // time is only as good as it is often read
      const { budget, interval } = this.collection;
      const pending = (await kept.all<Entry>(["entry"])).filter((entry) => entry.report).length;
      const spent = spendings(account, now, budget, interval);
      return { ...spent, step: now.step, lifetime: account.lifetime, pending, refused: this.refused };
    });
  }

  /** @internal */
  async load(): Promise<void> {
    const { collection, keys } = this.options;
    const spec = await fetchSealed(this.store, this.address(""), keys);
    const made = await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256", length: 256 }, false, ["sign"]);
    const key = await this.store(async (kept) => {
      const known = await kept.get<CryptoKey>(["key"]);
      if (!known) kept.put(["key"], made); // it can be used, and never be read again
      return known ?? made;
    });
    const found = await readCollection(spec, collection, key);
    await this.store(async (kept) => {
      const seen = (await kept.get<number>(["version"])) ?? 0;
      check(found.version >= seen, "version", "no older than the last one seen"); // its signature is good too
      kept.put(["version"], found.version);
    });
    this.collection = found;
    await this.waiting();
  }

  /** The page is going. Nobody hears whether this succeeds, so what waits stays in the queue too. @internal */
  hide(): void {
    for (const { body } of this.frames()) beacon(this.reports(), body);
  }

  /** Answer the asks that were just published, and the standing ones of before. */
  private async answers(): Promise<void> {
    const at = this.watch.now();
    const step = stepAt(this.collection, at);
    const over = (asks: Spec) => asks.step !== step || at >= (asks.closes as number) * 1000;
    if (!this.asks || over(this.asks)) {
      const asks = await fetchSealed(this.store, this.address("/asks"), this.options.keys);
      if (asks.collection_id !== this.collection.id) await this.load(); // there is a new version
      check(asks.collection_id === this.collection.id, "collection_id", "the collection's own asks");
      this.asks = asks;
    }
    for (const { question, ask } of this.asks.asks as { question: string; ask: Spec }[]) {
      if (over(this.asks) && !ask.standing) continue;
      await this.attempt(question, async () => {
        const read = await readAsk(this.collection, question, ask.standing ? { ...ask, step } : ask);
        if (read.asked) await this.store((kept) => answer(kept, this.collection, read, this.watch));
      });
    }
  }

  private async attempt(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.refused[what] = error instanceof Error ? error.message : `${error}`;
    }
  }

  private async send(): Promise<boolean> {
    await this.waiting();
    for (const { entries, body } of this.frames()) {
      try {
        const said = (await post(this.reports(), body)) as { rejected?: { id: string; reason: string }[] };
        await this.sent(entries, said.rejected ?? []);
        this.failures = 0;
      } catch {
        const wait = 1000 * 2 ** Math.min(this.failures++, 11); // up to half an hour
        this.notBefore = this.watch.now() + wait * (0.5 + systemRandom(1)[0]! / 256);
        return false;
      }
    }
    return this.queue.length === 0;
  }

  /** Look up what waits, in the order of its steps: other tabs add to it too. */
  private async waiting(): Promise<void> {
    const entries = await this.store((kept) => kept.all<Entry>(["entry"]));
    this.queue = entries.filter((entry) => entry.report).sort((a, b) => a.step - b.step);
  }

  /** Drop the bytes of what was acknowledged or is refused for good; the debits stay. */
  private async sent(entries: Entry[], rejected: { id: string; reason: string }[]): Promise<void> {
    const later = rejected.filter(({ reason }) => reason === "too_early" || reason === "over_quota");
    const over = entries.filter((entry) => !later.some(({ id }) => id === hex(entry.id)));
    await this.store(async (kept) => {
      for (const entry of over) kept.put(["entry", entry.ask], { ...entry, report: null });
    });
    this.queue = this.queue.filter((entry) => !over.includes(entry));
  }

  private frames() {
    const bytes = this.asks?.frame_bytes;
    return frames(this.queue, 2 * (typeof bytes === "number" ? bytes : 1024));
  }

  private address(path: string): string {
    return `${this.options.server}/v1/collections/${this.options.collection}${path}`;
  }

  private reports(): string {
    return `${this.options.server}/v1/reports`;
  }
}
