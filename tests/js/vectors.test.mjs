// The browser's client against the vectors that the Python library wrote.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const js = await import(process.env.HUBBUB_JS);
const read = (name) => JSON.parse(readFileSync(`${process.env.HUBBUB_VECTORS}/${name}.json`, "utf8"));
const vectors = read("js");
const older = { ...read("hash32"), ...read("spec") };

const given = (hex) => {
  let at = 0;
  const take = (size) => js.unhex(hex.slice(2 * at, 2 * (at += size)), size);
  take.left = () => hex.length / 2 - at;
  return take;
};

test("hashes and buckets", () => {
  assert.ok(vectors.hash32.length && older.hash32.length && older.product32.length && older.bucket.length);
  const halves = (seed) => [Number(BigInt(seed) & 0xffffffffn), Number(BigInt(seed) >> 32n)];
  for (const { seed, value, hash } of [...vectors.hash32, ...older.hash32]) {
    assert.equal(js.mix32(...halves(seed), BigInt(value)), hash);
  }
  for (const { seed, value, hash } of older.product32) {
    assert.equal(js.product32(...halves(seed), BigInt(value)), hash);
  }
  for (const { hash, buckets, bucket } of older.bucket) assert.equal(js.bucket(hash, buckets), bucket);
});

test("fingerprints", async () => {
  for (const { text, fingerprint } of older.fingerprint) assert.equal(String(await js.fingerprint(text)), fingerprint);
});

test("canonical spelling and ids", async () => {
  for (const { ieee754, canonical } of older.numbers) {
    assert.equal(js.canonical(Buffer.from(ieee754, "hex").readDoubleBE(0)), canonical);
  }
  for (const { json, canonical, spec_id } of older.values) {
    assert.equal(js.canonical(JSON.parse(json)), canonical);
    assert.equal(await js.specId(JSON.parse(json)), spec_id);
  }
  assert.throws(() => js.canonical(NaN), /finite/);
});

test("places on the circle", async () => {
  for (const { key, collection, place } of vectors.places) {
    assert.equal(await js.placeOnCircle(await js.deviceKey(js.unhex(key, key.length / 2)), collection), place);
  }
});

test("arcs", () => {
  for (const { arc, places, holds } of vectors.arcs) {
    assert.deepEqual(places.map((place) => js.holds(js.readArc(arc), place)), holds);
  }
  for (const bad of [{ start: -1, length: 1 }, { start: 0, length: 2 ** 32 + 1 }, { start: 0.5, length: 1 }, { start: 0 }, null]) {
    assert.throws(() => js.readArc(bad));
  }
});

test("views", () => {
  for (const { view, values, sees } of vectors.views) assert.deepEqual(values.map(js.readView(view)), sees);
  for (const bad of [null, {}, { kind: "field", name: "x" }, { kind: "whole", more: 1 }, { kind: "clipped", low: 1, high: 1 }]) {
    assert.throws(() => js.readView(bad));
  }
});

test("codes of values", async () => {
  for (const { domain, values, codes } of vectors.codes) {
    const found = js.readDomain(domain);
    for (const [at, value] of values.entries()) assert.equal(String(await found.encode(value)), codes[at], `${value}`);
    for (const bad of [undefined, null, NaN, -1e9, 1e9, 0.5e-9 - 2, {}, [], "no such name at all"]) {
      assert.equal(await found.encode(bad), null);
    }
  }
});

for (const { spec, spec_id, spent, reports } of vectors.mechanisms) {
  test(`${spec.mechanism}, epsilon ${spec.epsilon}, ${JSON.stringify(spec.domain).slice(0, 40)}`, async () => {
    const mechanism = await js.readMechanism(spec);
    assert.equal(mechanism.specId, spec_id);
    assert.equal(String(mechanism.spent), spent);
    for (const { value, random, bytes } of reports) {
      const rng = given(random);
      const code = await mechanism.domain.encode(value);
      const seen = mechanism.remember ? mechanism.remember(code, rng) : code;
      assert.equal(js.hex(mechanism.answer(seen, rng)), bytes);
      assert.equal(rng.left(), 0);
    }
  });
}

test("a spec may name the hash function it means, and no other is known", async () => {
  for (const { spec, spec_id } of vectors.mechanisms) {
    const hashes = ["BLH", "OLH"].includes(spec.mechanism);
    if (hashes && !spec.hash) assert.equal((await js.readMechanism({ ...spec, hash: "mix32" })).specId, spec_id);
    if (spec.hash) assert.notEqual((await js.readMechanism({ ...spec, hash: "mix32" })).specId, spec_id);
    for (const hash of hashes ? ["sha256", "", null, 5] : ["mix32"]) {
      await assert.rejects(js.readMechanism({ ...spec, hash }), { name: "Refused" });
    }
  }
});

test("specs that spend more than they say, or are not what they seem, are refused", async () => {
  assert.ok(vectors.refused.length > 100);
  for (const spec of vectors.refused) await assert.rejects(js.readMechanism(spec), { name: "Refused" }, JSON.stringify(spec));
});

const readPromise = ({ limit, parts = {}, ...grid }) => ({
  ...grid,
  limit: BigInt(limit),
  parts: Object.fromEntries(Object.entries(parts).map(([account, part]) => [account, BigInt(part)])),
});

test("promises that are kept and debits that they allow, on clocks that jump", () => {
  let [taken, back] = [0, 0];
  for (const { interval, turns } of vectors.ledgers) {
    let ledger = { promises: [], debits: [], totals: {}, latest: -Infinity, recovered: null };
    for (const [turn, { made, kept, debit, ...told }] of turns.entries()) {
      ledger.promises = js.addPromises(ledger.promises, made.map(readPromise));
      assert.equal(ledger.promises.length, kept);
      const [account, question, cost, wall, trusted] = debit;
      const setBack = Math.floor(wall / interval) < Math.floor(ledger.latest / interval);
      back += !setBack && wall < ledger.latest;
      try {
        assert.ok(!setBack || !told.taken);
        if (setBack) continue;
        const charged = js.charge(ledger, account, question, BigInt(cost), { wall, trusted });
        ledger = { ...ledger, ...charged, latest: Math.max(wall, ledger.latest) };
        taken++;
        assert.ok(told.taken, `turn ${turn} was refused there`);
      } catch (error) {
        assert.equal(error.name, "Refused", error);
        assert.ok(!told.taken, `turn ${turn} was taken there`);
      }
    }
  }
  assert.ok(taken > 500 && back > 100, `${taken} ${back}`);
});

test("more promises than are kept are refused", () => {
  const window = { question: null, limit: 1n, steps: 1, interval: 1000, parts: { asks: 1n } };
  const promises = Array.from({ length: 513 }, (_, origin) => ({ ...window, origin }));
  const kept = js.addPromises([], promises.slice(0, 512));
  assert.equal(kept.length, 512);
  assert.throws(() => js.addPromises(kept, promises.slice(512)), /promises/);
  assert.equal(js.addPromises(kept, [{ ...window, limit: 0n, steps: 0, interval: 0, origin: 0, parts: {} }]).length, 1);
});

test("an account that was lost counts as spent: for life for good, else until its time has passed", () => {
  const at = { wall: 5000, trusted: 0 };
  const window = { question: null, limit: 10n, steps: 3, interval: 100, origin: 0, parts: { asks: 10n } };
  const life = { ...window, steps: 0, interval: 0 };
  for (const [promise, later, free] of [
    [window, { wall: 5299, trusted: 201 }, false],
    [window, { wall: 5300, trusted: 199 }, false],
    [window, { wall: 5300, trusted: 200 }, true],
    [life, { wall: 1e15, trusted: 1e15 }, false],
  ]) {
    const ledger = { promises: [promise], debits: [], totals: {}, latest: -Infinity, recovered: at };
    const charge = () => js.charge(ledger, "asks", "q", 1n, later);
    if (free) charge();
    else assert.throws(charge, /budget/);
  }
});

const anyKey = await js.deviceKey(new Uint8Array(32));

test("documents: what is safe and what is not, and which asks they admit", async () => {
  const why = async (work) => work().then(() => "", (error) => (error.name === "Refused" ? error.field : error));
  let asked = 0;
  for (const { spec, changes, asks } of vectors.documents) {
    for (const { change, why: refused } of changes) {
      const changed = { ...spec, ...change, terms: { ...spec.terms, ...change.terms } };
      assert.equal(await why(() => js.readCollection(changed, "vectors", anyKey)), refused, JSON.stringify(change));
    }
    const collection = await js.readCollection(spec, "vectors", anyKey);
    for (const { published, step, why: refused } of asks) {
      assert.equal(await why(() => js.admits(collection, published, step)), refused, JSON.stringify(published));
      asked++;
      const others = [{ question: "nothing" }, { question: "constructor" }, { run: 1 }, { part: 1 }, { more: 1 }, { ask: null }];
      for (const other of others) await assert.rejects(js.admits(collection, { ...published, ...other }, step), { name: "Refused" });
    }
  }
  assert.ok(asked > 100);
});

test("uploads, letter for letter", () => {
  for (const { id, report, body, ...name } of vectors.frames) {
    assert.equal(js.frame({ ...name, id: js.unhex(id, 16), report: js.unhex(report, report.length / 2) }), body);
  }
});

test("uploads are all of one size, whatever they hold", () => {
  for (const [size, whole] of [[0, 2048], [16, 2048], [900, 2048], [1500, 3072]]) {
    const name = { collection: "c", version: 1, question: "q", step: 0, round: 1 };
    const body = js.frame({ ...name, id: new Uint8Array(16), report: new Uint8Array(size) });
    assert.equal(body.length, whole);
    assert.match(JSON.parse(body).pad, /^0*$/);
  }
});

test("the bound of e^x is below it, and near", () => {
  // e to 75 digits, rounded up, times 2^256.
  const e = 271828182845904523536028747135266249775724709369995957496696762772407663036n;
  const digits = (e << 256n) / 10n ** 74n;
  assert.ok(js.expBelow(1n, 1n) <= digits && digits - js.expBelow(1n, 1n) < 1n << 16n);
  // e^x e^-x = 1, through e^x (e^y)^-1 = e^(x-y): the bound of a sum is at least the product of bounds.
  for (const [x, y] of [[1n, 7n], [3n, 2n], [44n, 900n]]) {
    const product = (js.expBelow(x, 1n) * js.expBelow(y, 1n)) >> 256n;
    const sum = js.expBelow(x + y, 1n);
    const gap = sum > product ? sum - product : product - sum;
    assert.ok(gap * 10n ** 70n < sum);
  }
  assert.deepEqual(js.fraction(0.75), [3n, 4n]);
  assert.deepEqual(js.fraction(5e-324), [1n, 1n << 1074n]);
});

test("without the browser's randomness nothing is drawn", () => {
  assert.equal(js.systemRandom(200000).length, 200000);
  assert.notEqual(js.hex(js.systemRandom(16)), js.hex(js.systemRandom(16)));
  const crypto = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  Object.defineProperty(globalThis, "crypto", { value: undefined, configurable: true });
  try {
    assert.throws(() => js.systemRandom(1), /randomness/);
  } finally {
    Object.defineProperty(globalThis, "crypto", crypto);
  }
});
