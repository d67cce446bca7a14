import { check } from "./errors";
import { exactly, integer } from "./spec";

export type View = (value: unknown) => unknown;

const finite = (field: string, value: unknown): number => {
  check(typeof value === "number" && Number.isFinite(value), field, "a finite number");
  return value;
};

/**
 * What of a value a question looks at (`protocols/view.py`). Total: no number at all counts as the lower end or the
 * first cell, never as an error or as silence, which would tell something.
 */
export function readView(spec: unknown): View {
  const kind = (spec as { kind?: unknown } | null)?.kind;
  if (kind === "whole") {
    exactly("view", spec, "kind");
    return (value) => value;
  }
  if (kind === "clipped") {
    const given = exactly("view", spec, "high kind low");
    const low = finite("low", given.low);
    const high = finite("high", given.high);
    check(low < high, "high", "a number above low");
    return (value) => Math.min(Math.max(number(value, low), low), high);
  }
  check(kind === "binned", "view", "one of whole, clipped, binned");
  const given = exactly("view", spec, "cells factor first kind");
  const first = finite("first", given.first);
  const factor = finite("factor", given.factor);
  const cells = Number(integer("cells", given.cells, 2, 65536));
  check(first > 0 && factor > 1, "view", "borders that grow");
  return (value) => {
    const seen = number(value, 0);
    let cell = 0;
    while (cell < cells - 1 && seen >= first * factor ** cell) cell++;
    return cell;
  };
}

const number = (value: unknown, missing: number): number =>
  typeof value === "number" && !Number.isNaN(value) ? value : missing;
