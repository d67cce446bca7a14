import { kindOf } from "./domain";
import { check } from "./errors";
import type { Code } from "./fields";
import { prefixCode } from "./prefix";
import { readAxis } from "./joint";
import type { Random } from "./random";
import { type Spec, exactly, isAscending, wholeNumber } from "./spec";
import type { Pairs } from "./ternary";

/** A function from the recorded codes to the input of a mechanism. */
export interface View {
  /** What a mechanism of a family must read to fit the view, one of these: a number of codes, sets, a range. Empty: none fits. */
  gives: string[];
  /** Apply the view to a code, or to several by field. A view that rounds numbers draws 4 random bytes for each. */
  see(code: Code | Record<string, Code | null>, random?: Random): unknown;
  /** The public model that it is about: the hash of its bytes, and how many there are. */
  model?: { hash: string; bytes: number };
}

const finite = (field: string, value: unknown): number => {
  check(Number.isFinite(value), field, "a finite number");
  return value as number;
};

const range = (spec: Spec): [low: number, high: number] => {
  const [low, high] = [finite("low", spec.low), finite("high", spec.high)];
  check(low < high, "high", "a number above low");
  return [low, high];
};

const number = (code: unknown, otherwise: number): number =>
  typeof code === "number" && !Number.isNaN(code) ? code : otherwise;

const list = (code: unknown): unknown[] => (Array.isArray(code) ? code : []);

const clip = (code: unknown, low: number, high: number) => Math.min(Math.max(number(code, low), low), high);

/** Whether a list of numbers comes after another in lexicographic order; a list comes after its own beginnings. */
const after = (before: number[], next: number[]): boolean => {
  const at = next.findIndex((code, place) => code !== before[place]);
  return at >= 0 && (at >= before.length || next[at]! > before[at]!);
};

const GRAIN = 2 ** 32;

/**
 * A vector, shrunk until it meets both bounds, and rounded without bias to signs of at most `sparsity` entries, by one random
 * number (`protocols/views/update.py`). A position that does not exist and a number that is not finite count as 0.
 */
function readUpdate(spec: Spec): View {
  const dimension = wholeNumber(spec, "dimension", 1, 65536);
  const sparsity = wholeNumber(spec, "sparsity", 1, dimension);
  const [clip, hash] = [finite("clip", spec.clip), spec.model];
  check(clip > 0, "clip", "a number above 0");
  check(typeof hash === "string" && /^[0-9a-f]{64}$/.test(hash), "model", "64 hexadecimal digits");
  return {
    gives: [],
    model: { hash: hash as string, bytes: 4 * dimension },
    see(code, random) {
      const entries = [...new Map(list(code) as Pairs)].filter(([at]) => Number.isInteger(at) && at >= 0 && at < dimension);
      const numbers = entries.map(([at, value]) => [at, Number.isFinite(value) ? Math.min(Math.max(value, -1e100), 1e100) : 0] as const);
      const sizes = numbers.sort(([a], [b]) => a - b).map(([, value]) => Math.abs(value));
      const whole = sizes.reduce((sum, size) => sum + size, 0);
      const excess = Math.max(sizes.reduce((most, size) => Math.max(most, size), 0), whole / sparsity) / clip;
      // A grid of step 2^32 is laid over the sizes end to end, from a random place: an entry with a point of it is chosen.
      const bytes = random!(4);
      let end = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
      const most = end + sparsity * GRAIN;
      return numbers.flatMap(([at, value], place) => {
        const begin = end;
        end = Math.min(end + Math.floor(Math.min((sizes[place]! / Math.max(excess, 1) / clip) * GRAIN, GRAIN)), most);
        return Math.floor(end / GRAIN) > Math.floor(begin / GRAIN) ? [[at, Math.sign(value)]] : [];
      });
    },
  };
}

/** The names of what reads codes from 0 to size - 1: that many codes, or the bits that they need. */
const codesOf = (size: number): string[] => [`${size}`, `${Math.max(size - 1, 1).toString(2).length} bits`];

/** A view of candidate itemsets (`protocols/views/sets.py`); `tell` makes the input of the numbers of those that a set contains. */
const candidates = (spec: Spec, gives: (size: number) => string[], tell: (within: number[]) => unknown): View => {
  const sets = list(spec.sets) as number[][];
  const right = sets.every((codes) => isAscending(codes) && codes.length > 0 && codes.length <= 64);
  check(right && sets.length > 0 && sets.length <= 65536, "sets", "lists of different codes, in order");
  check(sets.every((codes, at) => !at || after(sets[at - 1]!, codes)), "sets", "different itemsets, in order");
  const within = (held: Set<unknown>) => [...sets.keys()].filter((number) => sets[number]!.every((code) => held.has(code)));
  return { gives: gives(sets.length), see: (code) => tell(within(new Set(list(code)))) };
};

/** A field as entries that are 0 or 1 (`protocols/views/records.py`). */
function readBits(spec: unknown): (codes: Record<string, unknown>) => number[] {
  const read = exactly("fields", spec, "entries field reads");
  const { field, reads } = read;
  check(typeof field === "string" && field, "field", "the name of a field");
  check(reads === "bit" || reads === "code" || reads === "items", "reads", "bit, code or items");
  const entries = wholeNumber(read, "entries", 1, reads === "bit" ? 1 : 2 ** 24);
  const ones = Array.from({ length: entries }, (_, entry) => (reads === "bit" ? 1 : entry));
  const holds = (code: unknown, entry: number) => (reads === "items" ? list(code).includes(entry) : code === entry);
  return (codes) => ones.map((entry) => Number(holds(codes[field as string], entry)));
}

/**
 * The views (`protocols/views/basic.py`, `protocols/views/sets.py`, `protocols/views/sets.py`): the fields of their specs, and how each is
 * read. Every value has a result: no number counts as the lower end or the first cell. An error or silence would reveal it.
 */
const VIEWS: Record<string, [fields: string, read: (spec: Spec) => View]> = {
  whole: ["kind", () => ({ gives: [], see: (code) => code })],
  field: ["kind name", ({ name }) => ({ gives: [], see: (codes) => (codes as Record<string, Code>)[name as string] })],
  size: [
    "kind most",
    (spec) => {
      const most = wholeNumber(spec, "most", 0, 2 ** 32);
      return { gives: [], see: (code) => Math.min(list(code).length, most) };
    },
  ],
  clipped: [
    "high kind low",
    (spec) => {
      const [low, high] = range(spec);
      return { gives: [`${low} to ${high}`], see: (code) => clip(code, low, high) };
    },
  ],
  binned: [
    "cells factor first kind",
    (spec) => {
      const [first, factor, cells] = [finite("first", spec.first), finite("factor", spec.factor), wholeNumber(spec, "cells", 2, 65536)];
      check(first > 0 && factor > 1, "view", "borders that grow");
      return {
        gives: [...codesOf(cells), `0 to ${cells - 1}`],
        see: (code) => {
          const seen = number(code, 0);
          let cell = 0;
          while (cell < cells - 1 && seen >= first * factor ** cell) cell++;
          return cell;
        },
      };
    },
  ],
  among: [
    "codes kind",
    (spec) => {
      const codes = list(spec.codes);
      check(codes.length && isAscending(codes), "codes", "different integers of at least 0, in order");
      return { gives: codesOf(codes.length + 1), see: (code) => (codes.includes(code as number) ? codes.indexOf(code as number) : codes.length) };
    },
  ],
  held: [
    "high keys kind low",
    (spec) => {
      const [low, high] = range(spec);
      const keys = wholeNumber(spec, "keys", 1, 65536);
      const scaled = (value: number) => clip(((clip(value, low, high) - low) / (high - low)) * 2 - 1, -1, 1);
      return {
        gives: [],
        see: (code) => (list(code) as Pairs).filter(([key]) => key < keys).map(([key, value]) => [key, scaled(value)]),
      };
    },
  ],
  members: [
    "items kind",
    (spec) => {
      const items = wholeNumber(spec, "items", 1, 2 ** 24);
      return { gives: [], see: (code) => Array.from({ length: items }, (_, item) => Number(list(code).includes(item))) };
    },
  ],
  joint: [
    "axes kind",
    (spec) => {
      const axes = list(spec.axes).map(readAxis);
      const size = axes.reduce((product, axis) => product * axis.size, 1);
      check(axes.length && size <= Number.MAX_SAFE_INTEGER + 1, "axes", "at least one, and at most 2^53 cells");
      return {
        gives: codesOf(size),
        see: (codes, random) =>
          axes.reduce((cell, axis) => cell * axis.size + axis.place((codes as Record<string, unknown>)[axis.field], random), 0),
      };
    },
  ],
  joints: [
    "kind of",
    (spec) => {
      const views = list(spec.of).map((of) => {
        check(kindOf(of) === "joint", "of", "views of several fields");
        return readView(of);
      });
      check(views.length >= 2, "of", "at least two views of several fields");
      return {
        gives: [views.map(({ gives }) => gives[0]!).join(" x ")],
        see: (codes, random) => views.map((view) => view.see(codes, random)),
      };
    },
  ],
  entries: [
    "fields kind",
    (spec) => {
      const parts = list(spec.fields).map(readBits);
      check(parts.length, "fields", "at least one");
      return { gives: [], see: (codes) => parts.flatMap((bits) => bits(codes as Record<string, unknown>)) };
    },
  ],
  withnumbers: [
    "kind numbers of",
    (spec) => {
      const of = readView(spec.of);
      check(["joint", "joints"].includes(kindOf(spec.of) as string), "of", "a view of several fields");
      const numbers = list(spec.numbers).map((each) => {
        const read = exactly("numbers", each, "field high low");
        check(typeof read.field === "string" && read.field, "field", "the name of a field");
        return { field: read.field as string, range: range(read) };
      });
      check(numbers.length, "numbers", "at least one");
      const plain = (value: unknown, [low, high]: [number, number]) => (typeof value === "number" ? clip(value, low, high) : NaN);
      return {
        gives: of.gives.map((gives) => `${gives} with ${numbers.length}`),
        see: (codes, random) => [
          of.see(codes, random),
          numbers.map(({ field, range }) => plain((codes as Record<string, unknown>)[field], range)),
        ],
      };
    },
  ],
  update: ["clip dimension kind model sparsity", readUpdate],
  on: ["kind", () => ({ gives: [], see: (code) => [Number(code === 1)] })],
  prefix: [
    "bits kind of",
    (spec) => {
      const of = wholeNumber(spec, "of", 1, 4096);
      const bits = wholeNumber(spec, "bits", 1, of);
      return { gives: [], see: (code) => prefixCode(code, bits, of) };
    },
  ],
  subsets: ["kind sets", (spec) => candidates(spec, (size) => [`sets of ${size}`], (within) => within)],
  subsetcount: ["kind sets", (spec) => candidates(spec, (size) => codesOf(size + 1), (within) => within.length)],
};

export function readView(spec: unknown): View {
  const kind = kindOf(spec) as string;
  check(Object.hasOwn(VIEWS, kind), "view", `one of ${Object.keys(VIEWS)}`);
  const [fields, read] = VIEWS[kind]!;
  return read(exactly("view", spec, fields));
}
