import type { Bytes } from "./bytes";
import type { Code } from "./fields";
import type { State } from "./mechanisms";

/** A key in IndexedDB: a list of names. Of all tabs, one transaction at a time writes. */
export type Key = [kind: string, ...rest: string[]];

export interface Access {
  get<T>(key: Key): Promise<T | undefined>;
  /** Everything whose key begins so. */
  all<T>(prefix: Key): Promise<T[]>;
  put(key: Key, value: unknown): void;
  drop(key: Key): void;
}

/** A stored state, by ["state", name], in an object store of its own. */
export interface StateRow {
  /** The stream that the state belongs to; for another stream the device draws a new state. */
  stream: string;
  state: State | StudyState;
  /** Whether the server has accepted the enrolment, and the id of the report that carries it. */
  told: boolean;
  enrolment: Bytes | null;
}

/** The state of a run of a study. */
export interface StudyState {
  /** The values frozen for the whole run, and the ids of their domains. */
  codes: (Code | null)[];
  domains: string[];
  /** The epsilon that later rounds may still declare, in units, and the last round that was answered. */
  left: bigint;
  round: number;
  /** Until when it was paid for. */
  until: number;
}

/** Do some work in one transaction: all of it is on the disk when this resolves, or none of it. Await nothing else in it. */
export type Store = <T>(work: (access: Access) => Promise<T>) => Promise<T>;

const STORES = ["kept", "states"];

export async function openStore(database: string, scope: string): Promise<Store> {
  const opening = indexedDB.open(database, 1);
  opening.onupgradeneeded = () => {
    for (const name of STORES) opening.result.createObjectStore(name);
  };
  const db = await settled(opening);
  db.onversionchange = () => db.close();
  return async (work) => {
    const transaction = db.transaction(STORES, "readwrite", { durability: "strict" });
    const done = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    });
    const of = ([kind]: Key) => transaction.objectStore(STORES[Number(kind === "state")]!);
    try {
      const result = await work({
        get: (key) => settled(of(key).get([scope, ...key])),
        // A list is above any text: this is all that goes on after the prefix.
        all: (prefix) => settled(of(prefix).getAll(IDBKeyRange.bound([scope, ...prefix], [scope, ...prefix, []]))),
        put: (key, value) => of(key).put(value, [scope, ...key]),
        drop: (key) => of(key).delete([scope, ...key]),
      });
      await done;
      return result;
    } catch (error) {
      done.catch(() => {}); // it did not happen, as it should not
      try {
        transaction.abort();
      } catch {
        // it is over already
      }
      throw error;
    }
  };
}

const settled = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
