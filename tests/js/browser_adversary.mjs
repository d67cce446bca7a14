// Plays histories of an adversarial server against the client: in Node on a store in memory, or in a page on its own.
// A history is a list of events; what is told is every answer that was kept or sent, and the id of the document in force, by event.

/** A store that keeps copies in memory. A transaction that fails leaves nothing behind. */
export function memoryStore() {
  const rows = new Map();
  const state = { rows, failing: -1, committed: [] };
  let last = Promise.resolve();
  const store = (work) => {
    const turn = last.then(async () => {
      const written = new Map();
      const write = (key, value) => {
        if (key[0] !== "document" && state.failing >= 0 && state.failing-- === 0) throw new Error("the disk is full");
        written.set(JSON.stringify(key), value);
      };
      const copy = (value) => (value instanceof CryptoKey ? value : structuredClone(value));
      const at = (key) => copy(written.has(key) ? written.get(key) : rows.get(key));
      const result = await work({
        get: async (key) => at(JSON.stringify(key)),
        all: async (prefix) => {
          const start = JSON.stringify(prefix).slice(0, -1) + ",";
          const keys = [...new Set([...rows.keys(), ...written.keys()])].filter((key) => key.startsWith(start));
          return keys.sort().map(at).filter((value) => value !== undefined);
        },
        put: (key, value) => write(key, copy(value)),
        drop: (key) => write(key, undefined),
      });
      for (const [key, value] of written) {
        if (value === undefined) rows.delete(key);
        else rows.set(key, value);
        state.committed.push([JSON.parse(key), value]);
      }
      return result;
    });
    last = turn.catch(() => {});
    return turn;
  };
  return { store, state };
}

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const unbase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** Play a history. `open` makes a client; `state` is of a store in memory, where there is one. */
export async function play({ keys, events }, open, state) {
  const world = { time: 0, wall: 0, base: [0, 0], tab: 0, losing: false, documents: {} };
  const clients = [null, null];
  const answers = new Map();
  const heard = [];
  const inForce = [];
  const errors = {};
  let at = 0;
  const answered = (id, answer) => answers.has(id) || answers.set(id, { event: at, ...answer });
  globalThis.fetch = async (address, options) => {
    const json = (value) => new Response(JSON.stringify(value));
    if (!options.body) return json(world.documents[address.endsWith("/asks") ? "asks" : "collection"]);
    const { version, entries } = JSON.parse(options.body);
    for (const { id, report, ...name } of entries) {
      const bytes = hex(unbase64(report));
      heard.push([id, bytes]);
      if (!state) answered(id, { version, ...name, report: bytes });
    }
    if (world.losing) throw new Error("nobody heard the answer");
    return json({ rejected: [] });
  };
  Object.defineProperty(performance, "now", { configurable: true, value: () => world.time - world.base[world.tab] });
  const attempt = async (work) => {
    try {
      await work();
    } catch (error) {
      errors[error.message] = (errors[error.message] ?? 0) + 1;
    }
  };
  const does = {
    time: (time, wall) => Object.assign(world, { time, wall }),
    serve: (collection, asks) => Object.assign(world.documents, { collection, asks }),
    losing: (losing) => Object.assign(world, { losing }),
    failing: (puts) => state && Object.assign(state, { failing: puts }),
    record: (field, value) => clients[world.tab] && attempt(() => clients[world.tab].record(field, value)),
    open: (tab) => {
      world.tab = tab;
      world.base[tab] = world.time; // a page's own clock begins at 0
      return attempt(async () => {
        clients[tab] = await open({ server: "http://server", collection: "c", keys: [keys], now: () => world.wall });
      });
    },
    tick: (tab) => {
      world.tab = tab;
      const client = clients[tab];
      return client && attempt(async () => {
        await client.tick();
        for (const why of Object.values((await client.status()).refused)) errors[why] = (errors[why] ?? 0) + 1;
      });
    },
  };
  for (const [what, ...given] of events) {
    await does[what](...given);
    if (state) state.failing = what === "failing" ? state.failing : -1;
    for (const [key, value] of state?.committed.splice(0) ?? []) {
      if (key[0] !== "entry" || !value?.report) continue;
      const { version, question, run, step, round, part, cover } = value;
      answered(hex(value.id), { version, question, run, step, round, part, cover, report: hex(value.report) });
    }
    const known = clients.map((client) => client?.collection ?? { version: 0, id: "" });
    inForce.push(known.reduce((a, b) => (b.version > a.version ? b : a)).id);
    at++;
  }
  return { answers: [...answers].map(([id, answer]) => ({ id, ...answer })), heard, in_force: inForce, errors };
}

if (typeof process !== "undefined" && process.env.HUBBUB_JS) {
  const { Client } = await import(process.env.HUBBUB_JS);
  const { createInterface } = await import("node:readline");
  for await (const line of createInterface({ input: process.stdin })) {
    const { store, state } = memoryStore();
    const open = async (options) => {
      const client = new Client(options, store);
      await client.load();
      return client;
    };
    process.stdout.write(`${JSON.stringify(await play(JSON.parse(line), open, state))}\n`);
  }
}
