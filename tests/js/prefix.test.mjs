// Prefixes of texts and numbers: what the browser's client sees and sends, against the library's vectors.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const js = await import(process.env.HUBBUB_JS);
const vectors = JSON.parse(readFileSync(`${process.env.HUBBUB_VECTORS}/prefix.json`, "utf8"));
const code = (value) => (typeof value === "string" ? { text: value, print: 0n } : value);

test("what is seen", () => {
  assert.ok(vectors.seen.length > 20);
  for (const { view, values, codes } of vectors.seen) {
    const { see, gives } = js.readView(view);
    assert.deepEqual(gives, []);
    assert.deepEqual(values.map((value) => String(see(code(value)))), codes, JSON.stringify(view));
  }
});

test("whatever is no text and no number is seen too", () => {
  const { see } = js.readView({ kind: "prefix", bits: 8, of: 64 });
  for (const odd of [undefined, null, [], {}, { text: 3 }, NaN, 1.5]) assert.equal(see(odd), 255n);
  for (const bad of [{ bits: 0, of: 8 }, { bits: 9, of: 8 }, { bits: 8, of: 5000 }, { bits: 8 }, { bits: "a", of: 8 }]) {
    assert.throws(() => js.readView({ kind: "prefix", ...bad }));
  }
});

test("reports of an open domain", async () => {
  const mechanism = await js.readMechanism(vectors.spec);
  assert.deepEqual([mechanism.specId, mechanism.bytes, mechanism.reads], [vectors.spec_id, vectors.bytes, "64 bits"]);
  for (const { view, value, random, bytes } of vectors.reports) {
    const block = js.unhex(random, 16);
    assert.equal(js.hex(mechanism.randomize(js.readView(view).see(code(value)), () => block)), bytes);
  }
  for (const domain of [{ kind: "bitstrings" }, { kind: "bitstrings", bits: 65 }, { kind: "bitstrings", bits: 0 }]) {
    await assert.rejects(js.readMechanism({ ...vectors.spec, domain }));
  }
  await assert.rejects(js.readMechanism({ ...vectors.spec, mechanism: "GRR" }));
});
