import type { Bytes } from "./bytes";
import { check } from "./errors";
import type { Built } from "./mechanisms";
import { readOracle } from "./sets";
import { type Spec, canonical, integer } from "./spec";

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
      const numbers = new DataView(new ArrayBuffer(8 * count));
      for (let at = 0; at < count; at++) {
        const value = values[at];
        numbers.setFloat64(8 * at, typeof value === "number" && Number.isFinite(value) ? value : NaN, true);
      }
      return Uint8Array.of(...new Uint8Array(numbers.buffer), ...oracle.randomize(code, random));
    },
  };
}
