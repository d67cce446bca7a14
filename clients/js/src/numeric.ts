import { type Bytes, view } from "./bytes";
import { TWO_64, bytesOf, widthOf } from "./choice";
import { check } from "./errors";
import type { Ratio } from "./exact";
import type { Built } from "./mechanisms";
import { type Spec, integer } from "./spec";

const GRAIN = 2 ** 32;

/** A number from low to high as an integer from 0 to cells 2^32, to the nearest, of two the even one (`random/integers.py`). */
export function toUnits(value: number, low: number, high: number, cells: number): number {
  const exact = ((value - low) / (high - low)) * (cells * GRAIN);
  const floor = Math.floor(exact);
  const up = exact - floor > 0.5 || (exact - floor === 0.5 && floor % 2);
  return Math.min(Math.max(floor + Number(up), 0), cells * GRAIN);
}

/** Rounded up or down to a grid point by 32 random bits, so that its mean is kept exactly. */
export const toGrid = (units: number, draw: number): number => Math.floor(units / GRAIN) + Number(draw < units % GRAIN);

function rangeOf({ low, high }: Spec) {
  const [from, to] = [low as number, high as number];
  check(Number.isFinite(from) && Number.isFinite(to) && from < to, "high", "a number above low");
  const inside = (input: unknown) => (typeof input === "number" && input > from ? Math.min(input, to) : from);
  return { reads: `${from} to ${to}`, units: (input: unknown, cells: number) => toUnits(inside(input), from, to, cells) };
}

/** A band of cells that starts at the value's point is more likely than the others (`banded.py`). */
function band(cells: number, width: number, share: unknown, field: string) {
  const other = integer(field, share, 1, TWO_64 / BigInt(cells + width));
  const start = TWO_64 - BigInt(cells) * other;
  const high = start / BigInt(width);
  check(start % BigInt(width) === 0n && high > other, field, "a share that leaves a multiple of the band, below the share of its cells");
  return {
    ratio: [high, other] as Ratio,
    scatter(point: number, draw: bigint): number {
      if (draw < start) return point + Number(draw / high);
      const far = Number((draw - start) / other);
      return far + width * Number(far >= point);
    },
  };
}

const shape = (spec: Spec) => [integer("cells", spec.cells, 1, 65536), integer("band", spec.band, 1, 65536)].map(Number);

/** The piecewise mechanism, the square wave and stochastic rounding (`hybrid.py`, `square_wave.py`). */
export function banded(spec: Spec, name: string): Built {
  const [cells, width] = shape(spec) as [number, number];
  check(name !== "StochasticRounding" || cells * width === 1, "cells", "1 cell and a band of 1");
  const { ratio, scatter } = band(cells, width, spec.other, "other");
  const { reads, units } = rangeOf(spec);
  const below = cells + width;
  return {
    ratio,
    reads,
    bytes: widthOf(below),
    randomize(input, random) {
      const block = view(random(16));
      const point = toGrid(units(input, cells), block.getUint32(4, true));
      return bytesOf(below, scatter(point, block.getBigUint64(8, true)));
    },
  };
}

/** The hybrid mechanism (`hybrid.py`): piecewise or stochastic rounding, by a public coin. */
export function hybrid(spec: Spec): Built {
  const [cells, width] = shape(spec) as [number, number];
  const coin = integer("coin", spec.coin, 1, TWO_64);
  const [piecewise, rounding] = [band(cells, width, spec.other, "other"), band(1, 1, spec.flip, "flip")];
  const { reads, units } = rangeOf(spec);
  const [[a, b], [c, d]] = [piecewise.ratio, rounding.ratio];
  const below = cells + width;
  return {
    ratio: coin === TWO_64 || c * b > a * d ? [c, d] : [a, b],
    reads,
    bytes: 1 + widthOf(below),
    randomize(input, random): Bytes {
      const block = view(random(24));
      const rounded = block.getBigUint64(0, true) < coin;
      const value = units(input, cells);
      // Rounding reads the same value on a grid of one cell.
      const point = toGrid(rounded ? Math.floor(value / cells) : value, block.getUint32(12, true));
      const cell = (rounded ? rounding : piecewise).scatter(point, block.getBigUint64(16, true));
      return Uint8Array.of(Number(rounded), ...bytesOf(below, cell));
    },
  };
}
