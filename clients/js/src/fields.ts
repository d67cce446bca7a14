import { utf8 } from "./bytes";
import { kindOf, readDomain } from "./domain";
import { check } from "./errors";
import type { Spec } from "./spec";

/** What a question reads of a field: a code, a number, a text, or the codes of a set. */
export type Code = number | string | number[];

/** The code of a value to record (`collection/fields.py`); one that the field does not have is refused. */
export function codeOf(field: string, domain: Spec, value: unknown): Code {
  const kind = kindOf(domain);
  if (kind === "numeric") {
    check(Number.isFinite(value), field, "a finite number");
    return value as number;
  }
  if (kind === "strings") {
    check(typeof value === "string" && utf8(value).length <= (domain.longest as number), field, `at most ${domain.longest} bytes`);
    return value;
  }
  if (kind === "sets") {
    const codes = Array.from(value as Iterable<unknown>, (item) => codeOf(field, domain.items as Spec, item) as number);
    const apart = new Set(codes).size === codes.length;
    check(apart && codes.length <= (domain.most as number), field, `at most ${domain.most} different items`);
    return codes.sort((a, b) => a - b);
  }
  const code = readDomain(domain).encode(value);
  check(code !== null, field, "one of the field's values");
  return Number(code);
}

/** The code of a field that nothing was recorded for: "(none)", the lower end, the empty text or set. */
export function missing(domain: Spec): Code {
  const kind = kindOf(domain);
  if (kind === "numeric") return domain.low as number;
  return kind === "strings" ? "" : kind === "sets" ? [] : readDomain(domain).size;
}
