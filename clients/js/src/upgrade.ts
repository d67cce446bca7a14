import type { Bytes } from "./bytes";
import type { StateRow } from "./store";
import type { Entry } from "./upload";

/** What is kept of version 1 of the database as it is kept now: memos are states, and answers have a run and a part. */
export function upgrade(transaction: IDBTransaction): void {
  const kept = transaction.objectStore("kept");
  const states = transaction.objectStore("states");
  const memos = new Map<string, [key: string[], rows: Map<string, Bytes>]>();
  kept.openCursor().onsuccess = ({ target }) => {
    const cursor = (target as IDBRequest<IDBCursorWithValue | null>).result;
    if (!cursor) {
      for (const [[scope, account], rows] of memos.values()) {
        const last = rows.get("")!; // by the bytes: they were kept twice
        const byCode = [...rows].filter(([code]) => code);
        const current = byCode.find(([, memo]) => `${memo}` === `${last}`)?.[0] ?? null;
        const state = { public: 0, memos: Object.fromEntries(byCode), last: current };
        const row: StateRow = { stream: account!.split(":")[2]!, state, told: false, enrolment: null };
        states.put(row, [scope!, "state", account!]);
      }
      return;
    }
    const [scope, kind, name, code = "", round = ""] = cursor.key as string[];
    if (kind === "memo") {
      const known = memos.get(`${scope} ${name}`) ?? [[scope!, name!], new Map<string, Bytes>()];
      memos.set(`${scope} ${name}`, known);
      known[1].set(code, cursor.value as Bytes);
      cursor.delete();
    }
    if (kind === "entry" && (cursor.key as string[]).length === 5) {
      const entry = cursor.value as Entry;
      const length = 512 + 2 * (entry.report?.length ?? 0); // its name and the report's spelling are not longer
      const size = Math.max(2048, Math.ceil(length / 1024) * 1024);
      kept.put({ ...entry, run: 0, part: 0, size }, [scope!, "entry", name!, "0", code, round]);
      cursor.delete();
    }
    cursor.continue();
  };
}
