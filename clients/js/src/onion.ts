import { type Bytes, concat, utf8 } from "./bytes";
import { check } from "./errors";

/**
 * Reports in layers of encryption, one for each shuffler and the innermost for the server (`shuffle/onion.py`).
 *
 * A layer is HPKE in base mode (RFC 9180: X25519, HKDF-SHA256, AES-128-GCM), made of what the browser's WebCrypto has. A
 * browser without X25519 cannot seal, and sends nothing.
 */
const KEM = concat(utf8("KEM"), new Uint8Array([0, 0x20]));
const SUITE = concat(utf8("HPKE"), new Uint8Array([0, 0x20, 0, 1, 0, 1]));
const NOTHING: Bytes = new Uint8Array(0);
/** What a layer adds: an ephemeral key and a tag. */
export const LAYER_BYTES = 48;

/**
 * The report in a layer for each public key of a route: the shufflers' in their order, the server's last. `first` is the place
 * of the first of them on the whole route.
 */
export async function wrap(report: Bytes, route: Bytes[], batch: string, first = 0): Promise<Bytes> {
  let onion = report;
  for (let place = route.length - 1; place >= 0; place--) {
    const { ephemeral, key, nonce } = await senderKeys(route[place]!, utf8(`hubbub onion 1\0${first + place}\0${batch}`));
    const aes = await crypto.subtle.importKey("raw", key, "AES-GCM", false, ["encrypt"]);
    const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv: nonce }, aes, onion);
    onion = concat(ephemeral, new Uint8Array(sealed));
  }
  return onion;
}

/** The key and nonce of one message to a public key, and the ephemeral key that tells them; a test gives its own pair. */
export async function senderKeys(receiver: Bytes, info: Bytes, ownPair?: CryptoKeyPair) {
  check(receiver.length === 32, "key", "a public key of 32 bytes");
  const pair = ownPair ?? ((await crypto.subtle.generateKey("X25519", false, ["deriveBits"])) as CryptoKeyPair);
  const ephemeral = new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey));
  const theirs = await crypto.subtle.importKey("raw", receiver, "X25519", false, []);
  const shared = await crypto.subtle.deriveBits({ name: "X25519", public: theirs }, pair.privateKey, 256);
  const agreed = await extract(KEM, NOTHING, "eae_prk", new Uint8Array(shared));
  const secret = await expand(KEM, agreed, "shared_secret", concat(ephemeral, receiver), 32);
  const identity = await extract(SUITE, NOTHING, "psk_id_hash", NOTHING);
  const context = concat(new Uint8Array([0]), identity, await extract(SUITE, NOTHING, "info_hash", info));
  const schedule = await extract(SUITE, secret, "secret", NOTHING);
  const key = await expand(SUITE, schedule, "key", context, 16);
  return { ephemeral, key, nonce: await expand(SUITE, schedule, "base_nonce", context, 12) };
}

/** LabeledExtract of RFC 9180, section 4. An HMAC key of zeros is what no salt means, and WebCrypto takes no empty one. */
const extract = (suite: Bytes, salt: Bytes, label: string, material: Bytes): Promise<Bytes> =>
  hmac(salt.length ? salt : new Uint8Array(32), concat(utf8("HPKE-v1"), suite, utf8(label), material));

/** LabeledExpand, of at most 32 bytes: one block. */
const expand = async (suite: Bytes, key: Bytes, label: string, info: Bytes, size: number): Promise<Bytes> =>
  (
    await hmac(key, concat(new Uint8Array([0, size]), utf8("HPKE-v1"), suite, utf8(label), info, new Uint8Array([1])))
  ).slice(0, size);

async function hmac(key: Bytes, text: Bytes): Promise<Bytes> {
  const signer = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", signer, text));
}
