// Onions of the browser's client: RFC 9180's numbers, and layers for the library to open.
import assert from "node:assert/strict";
import { test } from "node:test";

const js = await import(process.env.HUBBUB_JS);

/** A private key as WebCrypto takes it: its bytes behind the fixed head of PKCS #8. */
const pkcs8 = (bytes) => js.unhex(`302e020100300506032b656e04220420${bytes}`, 48);

test("RFC 9180, appendix A.1.1: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM in base mode", async () => {
  const usages = ["deriveBits"];
  const privateKey = await crypto.subtle.importKey(
    "pkcs8", pkcs8("52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736"), "X25519", false, usages,
  );
  const sent = js.unhex("37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431", 32);
  const publicKey = await crypto.subtle.importKey("raw", sent, "X25519", true, []);
  const receiver = js.unhex("3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d", 32);
  const info = js.unhex("4f6465206f6e2061204772656369616e2055726e", 20);
  const { ephemeral, key, nonce } = await js.senderKeys(receiver, info, { privateKey, publicKey });
  assert.equal(js.hex(ephemeral), js.hex(sent));
  assert.equal(js.hex(key), "4531685d41d65f03dc48f6b8302c05b0");
  assert.equal(js.hex(nonce), "56d890e5accaaf011cff4b7d");
});

test("what is no key is refused", async () => {
  await assert.rejects(js.wrap(new Uint8Array(3), [new Uint8Array(31)], "themes.1"), /32 bytes/);
});

test("shares for the library", async () => {
  const { specs, reports, homomorphic, route, batch } = JSON.parse(process.env.HUBBUB_ROUTE);
  const key = js.readHomomorphicKey(homomorphic);
  const keys = route.map((shuffler) => js.unhex(shuffler, 32));
  for (const [at, spec] of specs.entries()) {
    const number = js.numberBytes(spec, js.unhex(reports[at], reports[at].length / 2), js.systemRandom);
    console.log(`shares ${js.hex(await js.sealedShares(number, key, keys, batch))}`);
  }
});

test("onions for the library", async () => {
  const { report, route, batch } = JSON.parse(process.env.HUBBUB_ROUTE);
  const keys = route.map((key) => js.unhex(key, 32));
  const onions = [];
  for (let count = 0; count < 3; count++) onions.push(js.hex(await js.wrap(js.unhex(report, report.length / 2), keys, batch)));
  console.log(`onions ${onions.join(" ")}`);
});
