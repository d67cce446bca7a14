import { hex, sha256, utf8 } from "./bytes";
import { check } from "./errors";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Spec = { [key: string]: Json };

/** The one spelling of a JSON value (RFC 8785). Integers of 2^53 or more are decimal strings before they come here. */
export function canonical(value: Json): string {
  if (typeof value === "number") check(Number.isFinite(value), "spec", "finite numbers");
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical)}]`;
  return `{${Object.keys(value)
    .sort() // by UTF-16 units, as the RFC says
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key]!)}`)}}`;
}

/** 32 hexadecimal digits: 128 bits of the SHA-256 of the spelling. */
export const specId = async (spec: Json): Promise<string> => hex(await sha256(utf8(canonical(spec)))).slice(0, 32);

/** An object with exactly these fields: a spec with one more might mean something else by the others. */
export function exactly(field: string, value: unknown, names: string): Spec {
  const keys = value !== null && typeof value === "object" && !Array.isArray(value) ? Object.keys(value) : [];
  check(keys.sort().join(" ") === names, field, `exactly the fields ${names}`);
  return value as Spec;
}

/** An integer within bounds: a number that is exact, or a decimal string where it is large. */
export function integer(field: string, value: unknown, low: bigint | number, high: bigint | number): bigint {
  const whole = Number.isSafeInteger(value) || (typeof value === "string" && /^\d{1,40}$/.test(value));
  const number = whole ? BigInt(value as number) : null;
  check(number !== null && number >= low && number <= high, field, `an integer from ${low} to ${high}`);
  return number;
}

/** A field of a spec that is an integer within bounds, as a number: the bounds are below 2^53. */
export const wholeNumber = (spec: Spec, field: string, low: number, high: number): number =>
  Number(integer(field, spec[field], low, high));

/** Whether a value is a list of different integers of at least 0, in ascending order. */
export const isAscending = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every((code, at) => Number.isSafeInteger(code) && code > (at ? value[at - 1] : -1));
