import { admitsParts } from "./admits";
import { type Recorded, answer, valueKey } from "./answer";
import { type Ask, readAsk } from "./ask";
import { type Book, DeviceClock, newBook } from "./book";
import { hex } from "./bytes";
import { type Collection, fieldOf, readCollection, stepAt } from "./collection";
import { Refused, check } from "./errors";
import { type Code, codeOf, missing } from "./fields";
import { addPromises, ofQuestion, spending } from "./promises";
import { Queue } from "./queue";
import { type Spec, exactly } from "./spec";
import { type Store, openStore } from "./store";
import { fetchBytes, fetchSealed } from "./transport";
import { type Entry, entryKey } from "./upload";
import { AGREED, weakerClauses } from "./weaker";

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

/** Takes the bytes of a public model (32-bit floats, little-endian); gives the vector by which this device would change it. */
export type ModelFunction = (model: Uint8Array) => ArrayLike<number> | Promise<ArrayLike<number>>;

/** An ask as it is published, before anything of it is believed. */
interface Published {
  question: string;
  run: number;
  step: number;
  round: number;
  closes: number;
  ask: { standing?: boolean } | null;
}

/** What the device has spent, in units of 1e-12 epsilon, what waits to be sent, and what it refused to answer, and why. */
export interface Status {
  step: number;
  /** All that was ever spent. */
  lifetime: bigint;
  /** Every promise that was ever made: of an account or a question, in a number of steps of a length (0: in a life). */
  promises: { scope: string; limit: bigint; spent: bigint; steps: number; interval: number }[];
  /** Whether the account was lost, and begun anew with all of it spent. */
  recovered: boolean;
  pending: number;
  refused: Record<string, string>;
}

/** Fetch a collection, check its signature, and open the device's account in it. */
export const connect = (options: Options): Promise<Client> => open(options, false);

/**
 * Connect where the device's account is gone, but its key is not: `connect` refuses that. Whatever the lost account could
 * have spent counts as spent: promises for life for good, the others until their time has passed.
 */
export const recover = (options: Options): Promise<Client> => open(options, true);

async function open(options: Options, recovering: boolean): Promise<Client> {
  const { server, collection, database = "hubbub" } = options;
  const client = new Client(options, await openStore(database, `${server} ${collection}`));
  await client.load(recovering);
  addEventListener("pagehide", () => client.hide());
  addEventListener("online", () => void client.flush());
  return client;
}

export class Client {
  /** The signed collection: its fields, and what they may hold. */
  collection!: Collection;
  private asks: Spec | null = null;
  #functions: Record<string, ModelFunction> = {};
  /** What was computed from public models, by the round that it answers. */
  #updates = new Map<string, Code | undefined>();
  #refused: Record<string, string> = {};
  #options: Options;
  #store: Store;
  #clock: DeviceClock;
  #queue: Queue;

  constructor(options: Options, store: Store) {
    this.#options = options;
    this.#store = store;
    this.#clock = new DeviceClock(options.now ?? Date.now, !!options.trustWallClock);
    this.#queue = new Queue(store, `${options.server}/v1/reports`, this.#clock.now);
  }

  /**
   * Record the value of a field. Questions of a step see what was last recorded in it, and "(none)" where nothing was;
   * questions with memos see what was last recorded. A value that the field does not have is refused.
   */
  async record(field: string, value: unknown): Promise<void> {
    const { collection } = this;
    const wall = this.#clock.now();
    const recorded: Recorded = { wall, code: await codeOf(field, fieldOf(collection, field), value) };
    await this.#store(async (access) => access.put(valueKey(collection, field), recorded));
  }

  /**
   * Have a function compute this device's part of a model that devices train together, once in each round that the device
   * answers. If it fails, or gives no vector of the field, the device answers with zeros: silence would tell of it.
   */
  onModel(question: string, compute: ModelFunction): void {
    this.#functions[question] = compute;
  }

  /**
   * Answer what is asked in this step, and send what waits. With `wait`, asks are answered only after that part of their
   * time has passed, and what is recorded until then counts. When a device answers must not depend on what it recorded.
   */
  async tick(wait = 0): Promise<void> {
    this.#refused = {};
    await this.#attempt("asks", () => this.#answers(wait));
    await this.#queue.load();
    if (this.#queue.due) await this.flush();
  }

  /** Send what waits, the same bytes as before; whether nothing waits any more. */
  flush(): Promise<boolean> {
    return this.#queue.flush();
  }

  /** What is spent and what remains, now. */
  status(): Promise<Status> {
    return this.#store(async (access) => {
      const book = this.#clock.open((await access.get<Book>(["book"]))!);
      access.put(["book"], book); // time is only as good as it is often read
      const promises = book.promises.flatMap((promise) => {
        const { question, steps, interval, parts } = promise;
        const scopes = question === null ? Object.keys(parts) : [ofQuestion(question)];
        return scopes.map((scope) => ({ scope, ...spending(book, promise, scope, book), steps, interval }));
      });
      const accounts = Object.entries(book.totals).filter(([name]) => !name.startsWith(ofQuestion("")));
      return {
        step: stepAt(this.collection, book.wall),
        lifetime: accounts.reduce((sum, [, spent]) => sum + spent, 0n),
        promises,
        recovered: !!book.recovered,
        pending: (await access.all<Entry>(["entry"])).filter((entry) => entry.report && !entry.cover).length,
        refused: this.#refused,
      };
    });
  }

  /** @internal */
  async load(recovering = false): Promise<void> {
    const { collection: name, keys } = this.#options;
    const newKey = await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256", length: 256 }, false, ["sign"]);
    const key = await this.#store(async (access) => {
      const known = await access.get<CryptoKey>(["key"]);
      const book = await access.get<Book>(["book"]);
      const lost = !!(known || book) && !book?.promises;
      check(!lost || recovering, "account", "gone, while the key is not: only recover() begins another, all spent");
      if (!known) access.put(["key"], newKey); // it can be used, and never be read again
      if (!book?.promises) access.put(["book"], newBook(this.#clock.now(), lost));
      return known ?? newKey;
    });
    const spec = await fetchSealed(this.#store, this.#address(""), keys);
    const collection = await readCollection(spec, name, key);
    await this.#store(async (access) => {
      const { version, id } = collection;
      const book = this.#clock.open((await access.get<Book>(["book"]))!);
      const fits = version > book.version || id === book.id; // the signature of an old one is good too
      check(fits, "version", "what it was, or a later one");
      const [weaker] = book.agreed ? weakerClauses(spec, book.agreed) : [];
      if (weaker) throw new Refused(weaker, AGREED);
      // It is in force at once, and takes back nothing that was promised before.
      const promises = addPromises(book.promises, collection.promises);
      access.put(["book"], { ...book, version, id, promises, agreed: spec } satisfies Book);
    });
    this.collection = collection;
    await this.#queue.load();
  }

  /** @internal */
  hide(): void {
    this.#queue.leave();
  }

  /** Answer the asks that were just published, and the standing ones of before. */
  async #answers(wait: number): Promise<void> {
    const at = this.#clock.now();
    const current = () =>
      this.asks?.step === stepAt(this.collection, at) && at < (this.asks.closes as number) * 1000;
    if (!current()) {
      const asks = await fetchSealed(this.#store, this.#address("/asks"), this.#options.keys);
      exactly("asks", asks, "asks closes collection format step version");
      check(asks.format === 1, "format", "1: all that this client reads");
      if (asks.version !== this.collection.version) await this.load(); // there is a new version
      const { name, version } = this.collection;
      check(asks.collection === name && asks.version === version, "version", "asks of the collection in force");
      this.asks = asks;
    }
    const step = stepAt(this.collection, at);
    const rounds = new Map<string, Published[]>();
    for (const listed of this.asks!.asks as unknown as Published[]) {
      const standing = listed.ask?.standing;
      if (!standing && at >= listed.closes * 1000) continue; // of a round that is over
      const published = standing ? { ...listed, step } : listed; // a standing ask is the same in every step
      const name = `${[listed.question, listed.run, published.step, listed.round]}`;
      rounds.set(name, [...(rounds.get(name) ?? []), published]);
    }
    for (const published of rounds.values()) {
      await this.#attempt(published[0]!.question, async () => {
        const parts: Ask[] = [];
        for (const part of published) parts.push(await readAsk(this.collection, part));
        const { terms, opens, closes } = parts[0]!;
        const reason = admitsParts(terms, parts, this.collection.minimumArc);
        if (reason) throw new Refused(reason, "what the question's terms allow, on arcs apart from each other");
        if (at >= opens && at < opens + wait * (closes - opens)) return; // more may yet be recorded
        // One answer a round: of the part that asks this device, if one does.
        const ask = parts.find(({ inCohort }) => inCohort) ?? parts[0]!;
        if (!ask.inCohort && !this.collection.cover) return;
        if (ask.view.model && (await this.#store((access) => access.get(entryKey(ask))))) return;
        const update = ask.view.model && (await this.#update(ask));
        const refused = await this.#store((access) => answer(access, this.collection, ask, this.#clock, update));
        if (refused) throw refused;
      });
    }
  }

  /** Fetch the public model of an ask, which everyone does who sends anything; and compute its update, once. */
  async #update({ question, run, round, inCohort, terms, view }: Ask): Promise<Code | undefined> {
    const name = `${[question, run, round]}`;
    if (this.#updates.has(name)) return this.#updates.get(name);
    const { hash, bytes } = view.model!;
    const content = await (await fetchBytes(this.#address(`/models/${hash}`))).arrayBuffer();
    const right = content.byteLength === bytes && hex(new Uint8Array(await crypto.subtle.digest("SHA-256", content))) === hash;
    check(right, "model", "the bytes that its hash is of");
    const [compute, domain] = [this.#functions[question], fieldOf(this.collection, terms.fields[0]!)];
    let update: Code | undefined;
    if (compute && inCohort) {
      try {
        update = await codeOf(terms.fields[0]!, domain, await compute(new Uint8Array(content)));
      } catch (error) {
        this.#refused[`model of ${question}`] = `${error}`;
        update = missing(domain);
      }
    }
    this.#updates.set(name, update);
    return update;
  }

  async #attempt(subject: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#refused[subject] = error instanceof Error ? error.message : `${error}`;
    }
  }

  #address(path: string): string {
    return `${this.#options.server}/v1/collections/${this.#options.collection}${path}`;
  }
}
