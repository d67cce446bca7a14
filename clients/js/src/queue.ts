import { hex, unhex } from "./bytes";
import { check } from "./errors";
import { wrap } from "./onion";
import { systemRandom } from "./random";
import type { Key, StateRow, Store } from "./store";
import { leave, post } from "./transport";
import { type Entry, entryKey, frame, layerName } from "./upload";

/** The answers that wait, and their way out: the same bytes until they are acknowledged. */
export class Queue {
  #entries: Entry[] = [];
  #sending: Promise<boolean> | null = null;
  #failures = 0;
  #notBefore = 0;
  #store: Store;
  #address: string;
  #now: () => number;

  constructor(store: Store, address: string, now: () => number) {
    this.#store = store;
    this.#address = address;
    this.#now = now;
  }

  /** Read the stored answers that wait, in the order of their steps: other tabs add to them too. Seals those that need it. */
  async load(): Promise<void> {
    const entries = await this.#store((access) => access.all<Entry>(["entry"]));
    const waiting = entries.filter((entry) => entry.report).sort((a, b) => a.step - b.step);
    this.#entries = [];
    for (const entry of waiting) this.#entries.push(entry.route ? await this.#seal(entry) : entry);
  }

  /**
   * Seal a report in its layers, by WebCrypto, for which no transaction waits. Of two tabs that seal the same report, the bytes
   * that are stored first count.
   */
  async #seal({ route, asked, ...entry }: Entry): Promise<Entry> {
    const keys = route!.map((key) => unhex(key, 32)!);
    const sealed: Entry = { ...entry, report: await wrap(entry.report!, keys, await layerName(entry, asked!)) };
    return this.#store(async (access) => {
      const stored = await access.get<Entry>(entryKey(entry));
      if (!stored?.route) return stored ?? sealed;
      access.put(entryKey(entry), sealed);
      return sealed;
    });
  }

  /** Whether the wait after a failure is over. */
  get due(): boolean {
    return this.#now() >= this.#notBefore;
  }

  /** Send what waits; whether nothing waits any more. */
  flush(): Promise<boolean> {
    this.#sending ??= this.#send().finally(() => {
      this.#sending = null;
    });
    return this.#sending;
  }

  /** The page is going. Nobody hears whether this succeeds, so what waits stays here too. */
  leave(): void {
    for (const entry of this.#entries) leave(entry.address ?? this.#address, frame(entry));
  }

  async #send(): Promise<boolean> {
    await this.load();
    try {
      for (const entry of [...this.#entries]) await this.#sendOne(entry);
      this.#failures = 0;
    } catch {
      const wait = 1000 * 2 ** Math.min(this.#failures++, 11); // up to half an hour
      this.#notBefore = this.#now() + wait * (0.5 + systemRandom(1)[0]! / 256);
    }
    return this.#entries.length === 0;
  }

  async #sendOne(entry: Entry): Promise<void> {
    const receipt = (await post(entry.address ?? this.#address, frame(entry))) as { rejected: { id: string; reason: string }[] };
    const reason = receipt.rejected.find(({ id }) => id === hex(entry.id))?.reason;
    check(reason !== "too_early" && reason !== "over_quota", "server", "more time");
    // Acknowledged, or refused for good: the bytes go, the debit stays.
    await this.#store(async (access) => {
      access.put(entryKey(entry), { ...entry, report: null });
      const key: Key = ["state", entry.enrols ?? ""];
      const row = entry.enrols ? await access.get<StateRow>(key) : undefined;
      // A device that enrols says so again until the server has accepted it.
      if (row?.enrolment && hex(row.enrolment) === hex(entry.id)) access.put(key, { ...row, told: !reason, enrolment: null });
    });
    this.#entries = this.#entries.filter((other) => other !== entry);
  }
}
