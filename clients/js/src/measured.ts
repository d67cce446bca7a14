import type { Bytes } from "./bytes";
import { kindOf } from "./domain";
import { check } from "./errors";
import type { Ratio } from "./exact";
import type { Built } from "./mechanisms";
import { readOracle } from "./sets";
import { type Spec, canonical, integer } from "./spec";

const numbersOf = (values: unknown[], count: number): Uint8Array => {
  const numbers = new DataView(new ArrayBuffer(8 * count));
  for (let at = 0; at < count; at++) {
    const value = values[at];
    numbers.setFloat64(8 * at, typeof value === "number" && Number.isFinite(value) ? value : NaN, true);
  }
  return new Uint8Array(numbers.buffer);
};

/** Numbers that are sent as they are, and an oracle's report of the code with them (`measured.py`). */
export function measured(spec: Spec, _name: string, build: (spec: unknown) => Built & { name: string }): Built {
  const oracle = readOracle(spec, build);
  check(canonical((spec.oracle as Spec).domain!) === canonical(spec.domain!), "oracle", "one over the domain");
  const count = Number(integer("measures", spec.measures, 1, 64));
  return {
    ratio: oracle.ratio,
    reads: `${oracle.reads} with ${count}`,
    bytes: 8 * count + oracle.bytes,
    randomize(input, random): Bytes {
      const [code, values] = input as [unknown, unknown[]];
      return Uint8Array.of(...numbersOf(values, count), ...oracle.randomize(code, random));
    },
  };
}

/**
 * A report on each of several codes by an oracle each, perhaps with numbers (`Bundle` in `measured.py`). Public columns come
 * first: of a hash, its seed.
 */
export function bundle(spec: Spec, _name: string, build: (spec: unknown) => Built & { name: string }): Built {
  const specs = Array.isArray(spec.oracles) ? spec.oracles : [];
  check(specs.length >= 2 && specs.length <= 64, "oracles", "2 to 64 oracles");
  const oracles = specs.map((oracle) => {
    check(["ordinal", "bitstrings"].includes(kindOf((oracle as Spec | null)?.domain) as string), "oracles", "oracles over codes");
    return readOracle({ oracle } as Spec, build);
  });
  const count = Number(integer("measures", spec.measures, 0, 64));
  const seed = ({ name }: { name: string }) => (["BLH", "OLH", "SOLH"].includes(name) ? 8 : 0);
  return {
    ratio: oracles.reduce(([over, under], { ratio }) => [over * ratio[0], under * ratio[1]], [1n, 1n] as Ratio),
    reads: "",
    bytes: oracles.reduce((sum, { bytes }) => sum + bytes, 8 * count),
    randomize(input, random): Bytes {
      const [codes, values] = (count ? input : [input, []]) as [unknown[], unknown[]];
      const made = oracles.map((oracle, at) => oracle.randomize(codes[at], random));
      const [seeds, rest] = [made.map((bytes, at) => bytes.slice(0, seed(oracles[at]!))), made.map((bytes, at) => bytes.slice(seed(oracles[at]!)))];
      return Uint8Array.of(...numbersOf(values, count), ...[...seeds, ...rest].flatMap((bytes) => [...bytes]));
    },
  };
}
