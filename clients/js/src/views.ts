import { kindOf } from "./domain";
import { check } from "./errors";
import type { Code } from "./fields";
import { exactly, integer } from "./spec";

export type View = (code: Code) => unknown;

const finite = (field: string, value: unknown): number => {
  check(Number.isFinite(value), field, "a finite number");
  return value as number;
};

/**
 * What of a value a question looks at (`protocols/view.py`). Total: no number at all counts as the lower end or the
 * first cell, never as an error or as silence, which would tell something.
 */
export function readView(spec: unknown): View {
  const kind = kindOf(spec);
  if (kind === "whole") {
    exactly("view", spec, "kind");
    return (code) => code;
  }
  if (kind === "size") {
    const most = Number(integer("most", exactly("view", spec, "kind most").most, 0, 2 ** 32));
    return (code) => Math.min((code as number[]).length, most);
  }
  if (kind === "clipped") {
    const given = exactly("view", spec, "high kind low");
    const low = finite("low", given.low);
    const high = finite("high", given.high);
    check(low < high, "high", "a number above low");
    return (code) => Math.min(Math.max(number(code, low), low), high);
  }
  check(kind === "binned", "view", "whole, size, clipped or binned");
  const given = exactly("view", spec, "cells factor first kind");
  const first = finite("first", given.first);
  const factor = finite("factor", given.factor);
  const cells = Number(integer("cells", given.cells, 2, 65536));
  check(first > 0 && factor > 1, "view", "borders that grow");
  return (code) => {
    const seen = number(code, 0);
    let cell = 0;
    while (cell < cells - 1 && seen >= first * factor ** cell) cell++;
    return cell;
  };
}

const number = (code: Code, otherwise: number): number =>
  typeof code === "number" && !Number.isNaN(code) ? code : otherwise;
