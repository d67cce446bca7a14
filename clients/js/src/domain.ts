import { utf8 } from "./bytes";
import { check } from "./errors";
import { fingerprint } from "./hash";
import { exactly, integer } from "./spec";

/** A set of values (`core/domain.py`): `size` codes, or none where it is open, and the code of a value or null. */
export interface Domain {
  size: number | null;
  encode(value: unknown): bigint | null | Promise<bigint>;
}

export function readDomain(spec: unknown): Domain {
  const kind = (spec as { kind?: unknown } | null)?.kind;
  if (kind === "ordinal") {
    const size = Number(integer("size", exactly("domain", spec, "kind size").size, 2, 2 ** 32));
    return { size, encode: (value) => (Number.isInteger(value) && inside(value, 0, size - 1) ? BigInt(value as number) : null) };
  }
  if (kind === "categorical") {
    const names = exactly("domain", spec, "kind names").names;
    check(Array.isArray(names) && new Set(names).size === names.length && names.length > 1, "names", "a list of names");
    const at = (value: unknown) => names.indexOf(value as string);
    return { size: names.length, encode: (value) => (at(value) < 0 ? null : BigInt(at(value))) };
  }
  if (kind === "numeric") {
    const given = exactly("domain", spec, "cells high kind low");
    const [low, high] = [given.low as number, given.high as number];
    const cells = Number(integer("cells", given.cells, 2, 2 ** 20));
    check(low < high, "high", "a number above low");
    const border = (cell: number) => low + cell * ((high - low) / cells); // as numpy's linspace rounds it
    return {
      size: cells,
      encode: (value) => {
        if (typeof value !== "number" || !inside(value, low, high)) return null;
        let cell = Math.min(Math.floor(((value - low) / (high - low)) * cells), cells - 1);
        while (cell > 0 && value < border(cell)) cell--;
        while (cell < cells - 1 && value >= border(cell + 1)) cell++;
        return BigInt(cell);
      },
    };
  }
  check(kind === "strings", "domain", "one of ordinal, categorical, numeric, strings");
  const longest = integer("longest", exactly("domain", spec, "kind longest").longest, 1, 2 ** 20);
  return {
    size: null,
    encode: (value) => (typeof value === "string" && utf8(value).length <= longest ? fingerprint(value) : null),
  };
}

const inside = (value: unknown, low: number, high: number) => (value as number) >= low && (value as number) <= high;
