import { unhex, utf8 } from "./bytes";
import { check } from "./errors";
import { type Spec, canonical, exactly } from "./spec";

/**
 * What a document says, if it was signed with one of the trusted keys and is spelt canonically (`collection/sealing.py`).
 *
 * A browser without Ed25519 cannot tell who signed, and so believes nothing: importing the key fails there.
 */
export async function openSealed(document: unknown, trusted: string[]): Promise<Spec> {
  const { payload, key, signature } = exactly("document", document, "key payload signature");
  const [raw, signed] = [unhex(key, 32), unhex(signature, 64)];
  check(raw && trusted.includes(key as string), "key", "a trusted key");
  check(signed && typeof payload === "string", "document", "a signed text");
  const verifier = await crypto.subtle.importKey("raw", raw, "Ed25519", false, ["verify"]);
  check(await crypto.subtle.verify("Ed25519", verifier, signed, utf8(payload)), "signature", "the key's own");
  const spec = JSON.parse(payload) as Spec;
  check(canonical(spec) === payload, "payload", "JSON in its canonical spelling");
  return spec;
}
