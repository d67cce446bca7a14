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
  assert.ok(vectors.hash32.length && older.hash32.length && older.mix32.length && older.bucket.length);
  const halves = (seed) => [Number(BigInt(seed) & 0xffffffffn), Number(BigInt(seed) >> 32n)];
  for (const { seed, value, hash } of older.mix32) {
    assert.equal(js.mix32(...halves(seed), BigInt(value)), hash);
  }
  for (const { seed, value, hash } of [...vectors.hash32, ...older.hash32]) {
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
  for (const { key, collection, place, groups } of vectors.places) {
    const [own, second] = await js.placesOnCircle(await js.deviceKey(js.unhex(key, key.length / 2)), collection);
    assert.equal(own, place);
    assert.deepEqual([1, 2, 3, 1000].map((of) => js.groupOf(second, of)), groups);
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
  const kinds = new Set(vectors.views.map(({ view }) => view.kind));
  assert.deepEqual([...kinds].sort(), ["among", "binned", "clipped", "held", "members", "on", "size", "subsetcount", "subsets", "whole"]);
  const picked = js.readView({ kind: "field", name: "b" });
  assert.deepEqual([picked.see({ a: 1, b: 2 }), picked.see({ a: 1 }), picked.see(7)], [2, undefined, undefined]);
  for (const { view, values, sees } of vectors.views) assert.deepEqual(values.map((value) => js.readView(view).see(value)), sees);
  for (const bad of [null, {}, { kind: "field" }, { kind: "whole", more: 1 }, { kind: "clipped", low: 1, high: 1 },
    { kind: "among", codes: [] }, { kind: "among", codes: [2, 1] }, { kind: "among", codes: [-1] }, { kind: "constructor" },
    ...[null, [], [[]], [[1], null], [[2, 1]], [[-1]], [[1.5]], [[1], [1]], [[2], [1]], [[1, 2], [1]]].map((sets) => ({ kind: "subsets", sets }))]) {
    assert.throws(() => js.readView(bad));
  }
});

test("views of several fields", () => {
  for (const { view, size, values, drawn, sees } of vectors.joint) {
    const seen = values.map((value, at) => {
      const given = js.unhex(drawn[at], drawn[at].length / 2);
      let from = 0;
      const cell = js.readView(view).see(value, (size) => given.slice(from, (from += size)));
      assert.equal(from, given.length);
      return cell;
    });
    assert.deepEqual(seen, sees);
    assert.equal(js.readView(view).gives[0], `${size}`);
  }
  const { view, gives, values, sees } = vectors.withnumbers;
  const { see, gives: given } = js.readView(view);
  assert.deepEqual(given, gives);
  const shown = ([cell, numbers]) => [cell, numbers.map((number) => (Number.isNaN(number) ? null : number))];
  assert.deepEqual(values.map((value) => shown(see(value))), sees);
  const { several } = vectors.withnumbers;
  assert.deepEqual(js.readView(several.view).gives, ["12 x 2"]);
  assert.deepEqual(values.map((value) => js.readView(several.view).see(value)), several.sees);
  const together = js.readView({ kind: "withnumbers", of: several.view, numbers: several.numbers });
  assert.deepEqual(together.gives, ["12 x 2 with 1"]);
  assert.deepEqual(values.map((value) => shown(together.see(value))), several.with);
  for (const of of [null, [], [several.view.of[0]], [several.view.of[0], { kind: "whole" }]]) {
    assert.throws(() => js.readView({ kind: "joints", of }));
  }
  const number = { field: "price", low: 0, high: 1 };
  for (const bad of [{ of: { kind: "whole" }, numbers: [number] }, { of: view.of, numbers: [] }, { of: view.of, numbers: [{ ...number, high: 0 }] },
    { of: view.of, numbers: [{ ...number, more: 1 }] }, { of: view.of }]) {
    assert.throws(() => js.readView({ kind: "withnumbers", ...bad }));
  }
  const good = { field: "os", codes: 3, width: 1 };
  for (const axes of [null, [], [null], [{}], [{ ...good, more: 1 }], [{ ...good, codes: 0 }], [{ ...good, width: 4 }], [{ ...good, field: "" }],
    [{ field: "age", low: 1, high: 1, points: 2 }], [{ field: "age", low: 0, high: 1, points: 1 }], [{ field: "age", low: 0, high: 1, cells: 1, width: 1 }],
    [{ ...good, codes: 2 ** 53 - 1 }, good]]) {
    assert.throws(() => js.readView({ kind: "joint", axes }));
  }
});

test("several fields as entries", () => {
  const { view, values, sees } = vectors.entries;
  assert.deepEqual(values.map((value) => js.readView(view).see(value)), sees);
  const good = { field: "os", reads: "code", entries: 3 };
  for (const fields of [null, [], [{ ...good, more: 1 }], [{ ...good, field: "" }], [{ ...good, reads: "set" }], [{ ...good, entries: 0 }],
    [{ ...good, reads: "bit" }]]) {
    assert.throws(() => js.readView({ kind: "entries", fields }));
  }
});

test("updates of a public model", async () => {
  assert.ok(vectors.updates.length);
  for (const { view, bytes, values, drawn, sees } of vectors.updates) {
    const { see, model } = js.readView(view);
    assert.deepEqual(model, { hash: view.model, bytes });
    for (const [at, value] of values.entries()) {
      assert.deepEqual(drawn.map((random) => see(value, (size) => js.unhex(random, size))), sees[at], JSON.stringify(value));
    }
    assert.deepEqual(see([[0, NaN], [1.5, 1], [2, Infinity]], (size) => new Uint8Array(size)), []);
    for (const bad of [{ clip: 0 }, { model: "f" }, { sparsity: 7 }, { dimension: 65537 }, { more: 1 }]) {
      assert.throws(() => js.readView({ ...view, ...bad }));
    }
  }
  const domain = { kind: "vector", dimension: 3 };
  assert.deepEqual(js.codeOf("step", domain, new Float64Array([0, 0.5, -2])), [[1, 0.5], [2, -2]]);
  assert.deepEqual(js.missing(domain), []);
  for (const bad of [[1, 2], [1, 2, NaN], ["1", "2", "3"], 7, {}]) assert.throws(() => js.codeOf("step", domain, bad));
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

for (const { spec, spec_id, spent, bytes: length, reports } of vectors.mechanisms) {
  test(`${spec.mechanism}, epsilon ${spec.epsilon}, ${JSON.stringify(spec).slice(0, 60)}`, async () => {
    const mechanism = await js.readMechanism(spec);
    assert.equal(mechanism.specId, spec_id);
    assert.equal(String(mechanism.spent), spent);
    assert.equal(mechanism.bytes, length);
    for (const { value, random, bytes } of reports) {
      const rng = given(random);
      const seen = spec.mechanism === "Rappor" ? await js.codeOf("field", spec.domain, value) : value;
      assert.equal(js.hex(mechanism.randomize(seen, rng)), bytes, JSON.stringify(value));
      assert.equal(rng.left(), 0);
    }
  });
}

test("devices that remember: what steps cost and send, paid for or not", async () => {
  const [names, counts] = [new Set(), { spoken: 0, silent: 0, unpaid: 0 }];
  for (const { spec, spec_id, spent, bytes, enrolled, turns } of vectors.transcripts) {
    const mechanism = await js.readMechanism(spec);
    names.add(spec.mechanism);
    assert.deepEqual([mechanism.specId, String(mechanism.spent), mechanism.bytes], [spec_id, spent, bytes]);
    const enrolling = given(enrolled);
    let state = mechanism.enroll(enrolling);
    assert.equal(enrolling.left(), 0);
    for (const { step, seen: value, price, paid, random, report, enrolment } of turns) {
      const seen = spec.mechanism === "BloomRappor" ? await js.codeOf("field", spec.domain, value) : value;
      assert.ok(mechanism.fits(state));
      assert.equal(String(mechanism.price(state, step, seen)), price);
      const rng = given(random);
      const before = structuredClone(state);
      const [after, said] = mechanism.step(state, step, seen, rng, paid);
      assert.deepEqual(state, before); // what was kept is not touched
      state = structuredClone(after);
      assert.equal(said && js.hex(said), report, JSON.stringify([spec, step]));
      assert.equal(rng.left(), 0);
      if (mechanism.enrolment && enrolment) assert.equal(js.hex(mechanism.enrolment(state, said)), enrolment);
      counts[report ? "spoken" : "silent"]++;
      counts.unpaid += !paid;
    }
  }
  assert.deepEqual([...names].sort(), ["BasicRappor", "BloomRappor", "ChangeStream", "Loloha", "NetStream"]);
  assert.ok(counts.spoken > 100 && counts.silent > 20 && counts.unpaid > 20, JSON.stringify(counts));
});

test("a state that is foreign, truncated or impossible is not gone on from", async () => {
  for (const { spec, enrolled } of vectors.transcripts) {
    const mechanism = await js.readMechanism(spec);
    const state = mechanism.enroll(given(enrolled));
    for (const name of Object.keys(state)) {
      for (const bad of [undefined, {}, -1, "x"]) {
        if (name === "paid" || (name === "memos" && typeof bad === "object")) continue; // there are such states
        assert.ok(!mechanism.fits({ ...state, [name]: bad }), `${name} ${bad}`);
      }
    }
    assert.ok(!mechanism.fits({}));
  }
});

test("a spec names its hash function, and no other is known", async () => {
  for (const { spec } of [...vectors.mechanisms, ...vectors.transcripts]) {
    for (const hash of "hash" in spec ? ["sha256", "", null, undefined, 5] : ["product32"]) {
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
  let [taken, back, ahead] = [0, 0, 0];
  for (const { interval, turns } of vectors.ledgers) {
    let ledger = { promises: [], debits: [], totals: {}, latest: -Infinity, recovered: null };
    for (const [turn, { made, kept, debit, until, ...told }] of turns.entries()) {
      ledger.promises = js.addPromises(ledger.promises, made.map(readPromise));
      assert.equal(ledger.promises.length, kept);
      const [account, question, cost, wall, trusted] = debit;
      const setBack = Math.floor(wall / interval) < Math.floor(ledger.latest / interval);
      back += !setBack && wall < ledger.latest;
      try {
        assert.ok(!setBack || !told.taken);
        if (setBack) continue;
        const charged = js.charge(ledger, account, question, BigInt(cost), { wall, trusted }, until ?? undefined);
        ahead += until > wall;
        ledger = { ...ledger, ...charged, latest: Math.max(wall, ledger.latest) };
        taken++;
        assert.ok(told.taken, `turn ${turn} was refused there`);
      } catch (error) {
        assert.equal(error.name, "Refused", error);
        assert.ok(!told.taken, `turn ${turn} was taken there`);
      }
    }
  }
  assert.ok(taken > 500 && back > 100 && ahead > 50, `${taken} ${back} ${ahead}`);
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
const refusalOf = async (work) => Promise.resolve().then(work).then(() => "", (error) => error.message);
const why = async (work) => work().then(() => "", (error) => (error.name === "Refused" ? error.field : error));

test("documents: what is safe and what is not, and the asks of every kind of question", async () => {
  let asked = 0;
  for (const { spec, changes, asks } of vectors.documents) {
    for (const { change, why: refused } of changes) {
      const changed = { ...spec, ...change, terms: { ...spec.terms, ...change.terms } };
      assert.equal(await why(() => js.readCollection(changed, "vectors", anyKey)), refused, JSON.stringify(change));
    }
    const collection = await js.readCollection(spec, "vectors", anyKey);
    for (const published of asks) {
      assert.equal(await why(() => js.readAsk(collection, published)), "", JSON.stringify(published));
      asked++;
      const others = [{ question: "nothing" }, { question: "constructor" }, { more: 1 }, { ask: null }, { run: -1 }, { step: -1 }, { round: 0.5 }];
      for (const other of others) await assert.rejects(js.readAsk(collection, { ...published, ...other }), { name: "Refused" });
      for (const other of [{ kept: false }, { more: 1 }, { view: undefined }]) {
        const changed = { ...published, ask: { ...published.ask, ...other } };
        await assert.rejects(js.readAsk(collection, changed), { name: "Refused" }, JSON.stringify(other));
      }
    }
  }
  assert.ok(asked >= 19);
});

const admitted = read("admits");
const termsOf = (spec) => {
  // What memos cost is not charged to the account of other questions: a browser refuses terms that say so.
  const account = spec.state ? `memo:${spec.fields}:${spec.mechanisms}` : spec.account;
  const fields = Object.fromEntries(spec.fields.map((field) => [field, {}]));
  return js.readTerms({ terms: { q: { ...spec, account } }, fields }).q;
};
const publishedAs = ({ ask, ...named }) => ({ question: "q", run: 0, step: 0, round: 1, part: 0, closes: 1, ...named, ask });
const within = (terms, minimumArc, fields = {}) => ({ terms: { q: terms }, fields, minimumArc, origin: 0, interval: 1000, places: [0, 0] });

test("which asks terms admit", async () => {
  const words = new Set();
  for (const { name, terms, fields, minimum_arc, run, round, part, ask, says } of admitted.admits) {
    words.add(says ?? "");
    const collection = within(termsOf(terms), minimum_arc, fields);
    const read = (other = {}) => js.readAsk(collection, publishedAs({ ask, run, round, part, ...other }));
    assert.equal(await why(() => read()), says ?? "", name);
    if (says) continue;
    for (const [other, word] of [[{ part: terms.parts }, "part"], [{ run: 1 }, terms.study?.every ? "" : "run"], [{ run: -1 }, "run"]]) {
      assert.equal(await why(() => read(other)), word, name);
    }
  }
  assert.deepEqual([...words].sort(), ["", "arc", "limit", "mechanism", "part", "round", "run", "size", "state", "view"]);
});

test("which mechanism of a family fits which view", async () => {
  const { terms, minimum_arc, views, mechanisms, says } = admitted.families;
  const collection = within(termsOf(terms), minimum_arc);
  const ask = { cohort: { start: 0, length: 2 ** 32 }, standing: false, step: 0 };
  for (const [at, view] of views.entries()) {
    const words = await Promise.all(
      mechanisms.map((mechanism) => why(() => js.readAsk(collection, publishedAs({ ask: { ...ask, view, mechanism } })))),
    );
    assert.deepEqual(words.map((word) => word || null), says[at], JSON.stringify(view));
  }
  const known = (message) => message.split("one of ")[1].split(",").sort();
  const named = (specs, key) => [...new Set(specs.map((spec) => spec[key]))].sort();
  const remembering = ["BasicRappor", "BloomRappor", "ChangeStream", "Loloha", "NetStream"]; // no family has them
  assert.deepEqual(known(await refusalOf(() => js.readView({ kind: "?" }))), named(views, "kind"));
  assert.deepEqual(known(await refusalOf(() => js.readMechanism({ mechanism: "?" }))), [...named(mechanisms, "mechanism"), ...remembering].sort());
});

test("an ask is answered by the devices of its group alone", async () => {
  const { terms, fields, minimum_arc, run, round, part, ask } = admitted.admits.find(({ terms, says }) => terms.group && !says);
  const whole = { ...ask, cohort: { start: 0, length: 2 ** 32 } };
  for (const second of [0, 2 ** 32 / 3 - 1, 2 ** 32 / 3 + 1, 2 ** 32 - 1].map(Math.floor)) {
    const collection = { ...within(termsOf(terms), minimum_arc, fields), places: [7, second] };
    const { inCohort } = await js.readAsk(collection, publishedAs({ ask: whole, run, round, part }));
    assert.equal(inCohort, js.groupOf(second, terms.group.of) === terms.group.number);
  }
});

test("terms whose bounds or groups are none are refused", async () => {
  for (const { terms, says } of [...admitted.terms, ...admitted.groups]) {
    const refused = await why(async () => termsOf(terms));
    assert.equal(refused === "", says, JSON.stringify([terms.views, terms.group]));
    if (!says) assert.match(refused, /^(views|most|hex|group|number|of)$/);
  }
});

test("which asks of a round are admitted together", () => {
  for (const { name, terms, minimum_arc, arcs, says } of admitted.admits_parts) {
    const asks = arcs.map((cohort, part) => ({ cohort, part }));
    assert.equal(js.admitsParts(termsOf(terms), asks, minimum_arc), says, name);
    const same = asks.map((ask) => ({ ...ask, part: 0 }));
    if (asks.length > 1) assert.equal(js.admitsParts(termsOf(terms), same, minimum_arc), "parts", name);
  }
});

test("patterns of views", () => {
  for (const { pattern, given, says } of admitted.matches) assert.equal(js.matches(pattern, given), says, JSON.stringify([pattern, given]));
  assert.ok(admitted.matches.length > 20);
});

test("uploads, letter for letter", () => {
  for (const { id, report, body, ...name } of vectors.frames) {
    assert.equal(js.frame({ ...name, id: js.unhex(id, 16), report: js.unhex(report, report.length / 2) }), body);
  }
});

test("uploads are all of one size, whatever they hold", () => {
  for (const [length, size] of [[0, 2048], [16, 2048], [900, 2048], [1500, 4096]]) {
    const name = { collection: "c", version: 1, question: "q", run: 0, step: 0, round: 1, part: 0, size };
    const body = js.frame({ ...name, id: new Uint8Array(16), report: new Uint8Array(length) });
    assert.equal(body.length, size);
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

test("a later version that promises less is found by its clause", () => {
  const { documents, cases } = read("weaker");
  assert.ok(cases.length > 30);
  for (const { name, of, was, now, clauses } of cases) {
    const version = (change) => Object.fromEntries(Object.entries({ ...documents[of], ...change }).filter(([, value]) => value !== null));
    assert.deepEqual(js.weakerClauses(version(now), version(was)).sort(), clauses, name);
  }
});
