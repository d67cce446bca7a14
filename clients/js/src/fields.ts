import { utf8 } from "./bytes";
import { kindOf, readDomain } from "./domain";
import { check } from "./errors";
import { fingerprint } from "./hash";
import type { Spec } from "./spec";
import type { Pairs } from "./ternary";

/** A text, and its fingerprint: that is made when it is recorded, since a browser hashes only while no transaction waits. */
export interface Text {
  text: string;
  print: bigint;
}

/** What a question reads of a field: a code, a number, a text, the codes of a set, or keys and numbers. */
export type Code = number | Text | number[] | Pairs;

export const EMPTY_TEXT: Text = { text: "", print: 0x141cfc9942c4b0e3n };

/** The code of a value to record (`core/domain/`); one that the field does not have is refused. */
export function codeOf(field: string, domain: Spec, value: unknown): Code | Promise<Code> {
  const kind = kindOf(domain);
  const most = domain.most as number;
  if (kind === "numeric") {
    check(Number.isFinite(value), field, "a finite number");
    return value as number;
  }
  if (kind === "strings") {
    const short = typeof value === "string" && !/\p{Cs}/u.test(value) && utf8(value).length <= (domain.longest as number);
    check(short, field, `a text of at most ${domain.longest} bytes`);
    return fingerprint(value).then((print) => ({ text: value, print }));
  }
  if (kind === "sets") {
    const codes = Array.from(value as Iterable<unknown>, (item) => codeOf(field, domain.items as Spec, item) as number);
    const apart = new Set(codes).size === codes.length;
    check(apart && codes.length <= most, field, `at most ${most} different items`);
    return codes.sort((a, b) => a - b);
  }
  if (kind === "keyvalue") {
    const entries = value instanceof Map || Array.isArray(value) ? [...value] : Object.entries(value ?? [NaN]);
    const pairs = entries.map(([key, value]) => [(domain.keys as unknown[]).indexOf(key), value] as [number, number]);
    const right = pairs.every(([key, value]) => key >= 0 && Number.isFinite(value));
    const apart = new Set(pairs.map(([key]) => key)).size === pairs.length;
    check(right && apart && pairs.length <= most, field, `at most ${most} different keys, with a finite number each`);
    return pairs.sort(([a], [b]) => a - b);
  }
  if (kind === "vector") {
    const numbers = Array.from(value as ArrayLike<number>);
    const right = numbers.length === domain.dimension && numbers.every(Number.isFinite);
    check(right, field, `${domain.dimension} finite numbers`);
    return numbers.flatMap((number, at): Pairs => (number ? [[at, number]] : []));
  }
  const code = readDomain(domain).encode(value);
  check(code !== null, field, "one of the field's values");
  return Number(code);
}

/** What stands for it in a record of several fields: null where that would be a number like any other. */
export const absent = (domain: Spec): Code | null => (kindOf(domain) === "numeric" ? null : missing(domain));

/** The code of a field that nothing was recorded for: "(none)", the lower end, the empty text, set or mapping. */
export function missing(domain: Spec): Code {
  const kind = kindOf(domain);
  if (kind === "numeric") return domain.low as number;
  if (kind === "strings") return EMPTY_TEXT;
  return kind === "sets" || kind === "keyvalue" || kind === "vector" ? [] : readDomain(domain).size;
}
