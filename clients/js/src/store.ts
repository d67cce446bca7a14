/** What is kept in IndexedDB for one collection, by keys that are lists of names. In all tabs one transaction at a time writes. */
export type Key = [kind: string, ...rest: string[]];

export interface Access {
  get<T>(key: Key): Promise<T | undefined>;
  /** Everything whose key begins so. */
  all<T>(prefix: Key): Promise<T[]>;
  put(key: Key, value: unknown): void;
  drop(key: Key): void;
}

/** Do some work in one transaction: all of it is on the disk when this resolves, or none of it. Await nothing else in it. */
export type Store = <T>(work: (access: Access) => Promise<T>) => Promise<T>;

const NAME = "kept";

export async function openStore(database: string, scope: string): Promise<Store> {
  const opening = indexedDB.open(database, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(NAME);
  const db = await settled(opening);
  db.onversionchange = () => db.close();
  return async (work) => {
    const transaction = db.transaction(NAME, "readwrite", { durability: "strict" });
    const done = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error);
    });
    const kept = transaction.objectStore(NAME);
    try {
      const result = await work({
        get: (key) => settled(kept.get([scope, ...key])),
        // A list is above any text: this is all that goes on after the prefix.
        all: (prefix) => settled(kept.getAll(IDBKeyRange.bound([scope, ...prefix], [scope, ...prefix, []]))),
        put: (key, value) => kept.put(value, [scope, ...key]),
        drop: (key) => kept.delete([scope, ...key]),
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
