import { view } from "./bytes";
import { bounded } from "./choice";
import { kindOf, readDomain } from "./domain";
import { check } from "./errors";
import type { Built, Fresh } from "./mechanisms";
import { type Json, type Spec, exactly, integer } from "./spec";

/** The mechanisms that another one may contain: fresh reports of one code, of a domain with a size. */
const ORACLES = ["GRR", "BLH", "OLH", "SUE", "OUE"];

type NamedBuild = (spec: unknown) => Built & { name: string };

/** The oracle that a spec contains. */
export function readOracle(spec: Spec, build: NamedBuild): Built & Fresh & { name: string } {
  const oracle = build(spec.oracle);
  check(ORACLES.includes(oracle.name) && "randomize" in oracle, "oracle", `one of ${ORACLES}`);
  return oracle;
}

/** A domain of sets: how many items there are and may be held, and the codes of those that are; what is no item is left out. */
export function readSets(spec: Json | undefined) {
  check(kindOf(spec) === "sets", "domain", "sets");
  const sets = exactly("domain", spec, "items kind most");
  const { size, encode } = readDomain(sets.items);
  const codes = (input: unknown[]) => [...new Set(input)].map(encode).filter((code) => code !== null);
  const most = Number(integer("most", sets.most, 1, size));
  return {
    size,
    most,
    /** What a family may be of: any set of the codes of a view, however large. */
    reads: most === size && kindOf(sets.items) === "ordinal" ? `sets of ${size}` : "",
    held: (input: unknown): number[] => codes(Array.isArray(input) ? input : []).map(Number),
  };
}

/** Padding and sampling (`psfo.py`): a set is filled up with dummies, one of its elements is drawn, and an oracle reports it. */
export function psfo(spec: Spec, _name: string, build: (spec: unknown) => Built & { name: string }): Built {
  const { size, reads, held } = readSets(spec.domain);
  const length = Number(integer("length", spec.length, 1, 2 ** 20));
  const oracle = readOracle(spec, build);
  const domain = (spec.oracle as Spec).domain as Json;
  check(kindOf(domain) === "ordinal" && oracle.reads === `${size + length}`, "oracle", "one over the items and as many dummies");
  const [over, under] = oracle.ratio;
  const times = BigInt(length);
  return {
    // One of `length` elements: that hides which of them GRR reported, and no more than that (Theorems 5.2.1 and 5.2.2).
    ratio: oracle.name === "GRR" ? [under * times + over - under, under * times] : oracle.ratio,
    reads,
    bytes: oracle.bytes,
    randomize(input, random) {
      const items = held(input);
      const place = bounded(view(random(8)).getBigUint64(0, true), Math.max(items.length, length), random);
      return oracle.randomize(place < items.length ? items[place] : size + place, random);
    },
  };
}
