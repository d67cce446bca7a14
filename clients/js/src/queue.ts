import { hex, unhex } from "./bytes";
import { check } from "./errors";
import { wrap } from "./onion";
import { systemRandom } from "./random";
import { sealedShares } from "./shares";
import type { Key, StateRow, Store } from "./store";
import { leave, post } from "./transport";
import { type Entry, entryKey, frame, layerName } from "./upload";

/**
 * Whether an answer waits for another one, which enrols the device, and is not sent without it. Where reports are shuffled, those who
 * were in every batch are counted from enrolments: a report of a device that is not enrolled would stand in for one of another device.
 */
const follows = (entry: Entry, first: Entry): boolean =>
  Boolean(first.enrols && first.addresses) &&
  entry.question === first.question && entry.stream === first.stream && entry.step > first.step;

/** The answers that wait, and their way out: the same bytes until they are acknowledged. */
export class Queue {
  #entries: Entry[] = [];
  #sending: Promise<boolean> | null = null;
  #failures = 0;
  #notBefore = 0;
  #store: Store;
  #address: string;
  #now: () => number;

  /** What receivers said of an entry that others have not responded to: a reason, or nothing where they took it. */
  #responses = new Map<string, Map<string, string>>();

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
    for (const entry of waiting) this.#entries.push(entry.sealing ? await this.#seal(entry) : entry);
  }

  /**
   * Seal a report, in layers or in shares, by WebCrypto, for which no transaction waits. Of two tabs that seal the same report, the bytes
   * that are stored first count.
   */
  async #seal({ sealing, asked, ...entry }: Entry): Promise<Entry> {
    const { keys: route, homomorphic } = sealing!;
    const [keys, name] = [route.map((key) => unhex(key, 32)!), await layerName(entry, asked!)];
    const report = await (homomorphic ? sealedShares(entry.report!, homomorphic, keys, name) : wrap(entry.report!, keys, name));
    const sealed: Entry = { ...entry, report };
    return this.#store(async (access) => {
      const stored = await access.get<Entry>(entryKey(entry));
      if (!stored?.sealing) return stored ?? sealed;
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
    const free = this.#entries.filter((entry) => !this.#entries.some((other) => follows(entry, other)));
    for (const entry of free) this.#receivers(entry).forEach((address, at) => leave(address, frame(entry, at)));
  }

  async #send(): Promise<boolean> {
    await this.load();
    try {
      for (const entry of [...this.#entries]) if (this.#entries.includes(entry)) await this.#sendOne(entry);
      this.#failures = 0;
    } catch {
      const wait = 1000 * 2 ** Math.min(this.#failures++, 11); // up to half an hour
      this.#notBefore = this.#now() + wait * (0.5 + systemRandom(1)[0]! / 256);
    }
    return this.#entries.length === 0;
  }

  #receivers = (entry: Entry): string[] => entry.addresses ?? [this.#address];

  /** Send an entry to every receiver that has not responded to it. What one of them refuses is lost at all of them. */
  async #sendOne(entry: Entry): Promise<void> {
    const key = hex(entry.id);
    const responses = this.#responses.get(key) ?? new Map<string, string>();
    this.#responses.set(key, responses);
    let failure: unknown;
    for (const [at, address] of this.#receivers(entry).entries()) {
      try {
        if (!responses.has(address)) responses.set(address, await this.#post(address, frame(entry, at), key));
      } catch (error) {
        failure = error; // the others may answer
      }
    }
    if (failure) throw failure;
    this.#responses.delete(key);
    const reason = [...responses.values()].find(Boolean);
    // Acknowledged, or refused for good: the bytes go, the debit stays.
    await this.#store(async (access) => {
      access.put(entryKey(entry), { ...entry, report: null });
      const key: Key = ["state", entry.enrols ?? ""];
      const row = entry.enrols ? await access.get<StateRow>(key) : undefined;
      // A device that enrols says so again until the server has accepted it.
      if (row?.enrolment && hex(row.enrolment) === hex(entry.id)) access.put(key, { ...row, told: !reason, enrolment: null });
      for (const other of reason ? await access.all<Entry>(["entry", entry.question]) : [])
        if (follows(other, entry)) access.put(entryKey(other), { ...other, report: null });
    });
    this.#entries = this.#entries.filter((other) => other !== entry && !(reason && follows(other, entry)));
  }

  /** Send a frame; returns why its report was refused, or "". */
  async #post(address: string, body: string, id: string): Promise<string> {
    const receipt = (await post(address, body)) as { rejected: { id: string; reason: string }[] };
    const reason = receipt.rejected.find((rejected) => rejected.id === id)?.reason ?? "";
    check(reason !== "too_early" && reason !== "over_quota", "server", "more time");
    return reason;
  }
}
