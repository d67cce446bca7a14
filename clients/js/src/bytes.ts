/** Bytes and their spellings. A view always has a plain buffer of its own: WebCrypto takes no shared one. */
export type Bytes = Uint8Array<ArrayBuffer>;

export const utf8 = (text: string): Bytes => new TextEncoder().encode(text);

export const hex = (bytes: Bytes): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Two hexadecimal digits a byte; anything else gives null. */
export function unhex(text: unknown, size: number): Bytes | null {
  if (typeof text !== "string" || text.length !== 2 * size || !/^[0-9a-f]*$/.test(text)) return null;
  return Uint8Array.from({ length: size }, (_, at) => parseInt(text.slice(2 * at, 2 * at + 2), 16));
}

export const base64 = (bytes: Bytes): string => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));

export const sha256 = async (bytes: Bytes): Promise<Bytes> =>
  new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));

/** A view for reading little-endian numbers. */
export const view = (bytes: Bytes): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);

/** Bytes, one after the other. */
export function concat(...parts: Bytes[]): Bytes {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
