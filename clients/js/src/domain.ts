import { check } from "./errors";
import { exactly, integer } from "./spec";

/** A set of values with a size (`core/domain/`), and the code of a value, or null where it is none of them. */
export interface Domain {
  size: number;
  encode(value: unknown): bigint | null;
}

export const kindOf = (spec: unknown): unknown => (spec as { kind?: unknown } | null)?.kind;

export function readDomain(spec: unknown): Domain {
  const kind = kindOf(spec);
  if (kind === "ordinal") {
    const size = Number(integer("size", exactly("domain", spec, "kind size").size, 2, 2 ** 32));
    return {
      size,
      encode: (value) => (Number.isInteger(value) && inside(value, 0, size - 1) ? BigInt(value as number) : null),
    };
  }
  if (kind === "categorical") {
    const names = exactly("domain", spec, "kind names").names;
    check(Array.isArray(names) && new Set(names).size === names.length && names.length > 1, "names", "a list of names");
    return {
      size: names.length,
      encode: (value) => {
        const code = names.indexOf(value as string);
        return code < 0 ? null : BigInt(code);
      },
    };
  }
  check(kind === "numeric", "domain", "a domain with a size");
  const numeric = exactly("domain", spec, "cells high kind low");
  const [low, high] = [numeric.low as number, numeric.high as number];
  const cells = Number(integer("cells", numeric.cells, 2, 2 ** 20));
  check(low < high, "high", "a number above low");
  const border = (cell: number) => cell * ((high - low) / cells) + low; // rounded as numpy's linspace is
  return {
    size: cells,
    encode: (value) => {
      if (!inside(value, low, high)) return null;
      let cell = Math.min(Math.floor((((value as number) - low) / (high - low)) * cells), cells - 1);
      while (cell > 0 && (value as number) < border(cell)) cell--;
      while (cell < cells - 1 && (value as number) >= border(cell + 1)) cell++;
      return BigInt(cell);
    },
  };
}

const inside = (value: unknown, low: number, high: number) =>
  typeof value === "number" && value >= low && value <= high;
