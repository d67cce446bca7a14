import { check } from "./errors";
import { openSealed } from "./sealed";
import type { Spec } from "./spec";
import type { Store } from "./store";

// Not from the browser's cache either: it sends back the tag that a server gave with a document, which could be a cookie.
const PLAIN: RequestInit = { cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer" };

/** The longest answer that is read, as in `client/upload.py`. */
const MOST_BYTES = 8 << 20;
/** Milliseconds for a whole request, however the server answers. */
const DEADLINE = 30_000;

/**
 * What the server answers to a request that tells nothing but itself: no cookies, no page's address, and no ETag of
 * an earlier answer, which a browser's own cache would give back and which a server could choose for each device.
 */
export const ask = async (address: string, options: RequestInit = {}): Promise<unknown> =>
  JSON.parse(await (await fetchBytes(address, options)).text());

/** The same of an answer that is not JSON. */
export async function fetchBytes(address: string, options: RequestInit = {}): Promise<Blob> {
  const aborting = new AbortController();
  const timer = setTimeout(() => aborting.abort(), DEADLINE);
  try {
    const { ok, status, body } = await fetch(address, { ...PLAIN, ...options, signal: aborting.signal });
    check(ok, "server", `an answer, not ${status}`);
    const reader = body!.getReader();
    const parts: Uint8Array<ArrayBuffer>[] = [];
    let size = 0;
    for (let part; !(part = await reader.read()).done; parts.push(part.value))
      check((size += part.value.length) <= MOST_BYTES, "server", `an answer of at most ${MOST_BYTES} bytes`);
    return new Blob(parts);
  } catch (error) {
    check(!aborting.signal.aborted, "server", `an answer within ${DEADLINE / 1000} s`);
    throw error;
  } finally {
    clearTimeout(timer);
    aborting.abort(); // what is not read by now is not wanted
  }
}

/** A sealed document: the server's or, where that cannot be reached, the last that was kept. */
export async function fetchSealed(store: Store, address: string, keys: string[]): Promise<Spec> {
  let document: unknown;
  try {
    document = await ask(address);
  } catch (error) {
    document = await store((access) => access.get(["document", address]));
    if (!document) throw error;
  }
  const spec = await openSealed(document, keys);
  await store(async (access) => access.put(["document", address], document));
  return spec;
}

export const post = (address: string, body: string, more: RequestInit = {}): Promise<unknown> =>
  ask(address, { method: "POST", headers: { "content-type": "application/json" }, body, ...more });

/** Hand an upload to the browser, to be sent when the page has gone. */
export function leave(address: string, body: string): void {
  // A beacon takes cookies along, which a collector on another host does not allow: it is for browsers that lack the other.
  if ("keepalive" in Request.prototype) post(address, body, { keepalive: true }).catch(() => {});
  else navigator.sendBeacon(address, new Blob([body], { type: "application/json" }));
}
