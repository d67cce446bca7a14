import { view } from "./bytes";
import { readDomain } from "./domain";
import { check } from "./errors";
import { toGrid, toUnits } from "./numeric";
import type { Random } from "./random";
import { type Spec, exactly, wholeNumber } from "./spec";

/** One field of a product of fields (`protocols/views/records.py`): how many places it has, and where a value is. */
export interface Axis {
  field: string;
  size: number;
  place(value: unknown, random?: Random): number;
}

const isNumber = (value: unknown): value is number => typeof value === "number" && !Number.isNaN(value);

/** Codes, the last of which stands for nothing recorded; or equal cells, or points of a grid, and then a place for no number. */
export function readAxis(spec: unknown): Axis {
  const keys = Object.keys((spec ?? {}) as Spec);
  const kind = ["codes", "cells", "points"].find((key) => keys.includes(key));
  check(kind, "axes", "a field with codes, with cells, or with points of a grid");
  const range = kind === "codes" ? "" : " high low";
  const axis = exactly("axes", spec, `field ${kind}${range}${kind === "points" ? "" : " width"}`.split(" ").sort().join(" "));
  const field = axis.field as string;
  check(typeof field === "string" && field, "field", "the name of a field");
  if (kind === "codes") {
    const codes = wholeNumber(axis, "codes", 1, 2 ** 53);
    const width = wholeNumber(axis, "width", 1, codes);
    const code = (value: unknown) => (Number.isInteger(value) && (value as number) >= 0 ? Math.min(value as number, codes - 1) : codes - 1);
    return { field, size: Math.ceil(codes / width), place: (value) => Math.floor(code(value) / width) };
  }
  const [low, high] = [axis.low as number, axis.high as number];
  check(Number.isFinite(low) && Number.isFinite(high) && low < high, "high", "a number above low");
  const inside = (value: number) => Math.min(Math.max(value, low), high);
  if (kind === "cells") {
    const cells = wholeNumber(axis, "cells", 2, 2 ** 20);
    const width = wholeNumber(axis, "width", 1, cells + 1);
    const { encode } = readDomain({ kind: "numeric", low, high, cells });
    const cell = (value: unknown) => (isNumber(value) ? Number(encode(inside(value))) : cells);
    return { field, size: Math.ceil((cells + 1) / width), place: (value) => Math.floor(cell(value) / width) };
  }
  const points = wholeNumber(axis, "points", 2, 65536);
  return {
    field,
    size: points + 1,
    place(value, random) {
      // Drawn whether there is a number or not.
      const draw = random ? view(random(4)).getUint32(0, true) : 2 ** 31;
      return isNumber(value) ? toGrid(toUnits(inside(value), low, high, points - 1), draw) : points;
    },
  };
}
