import type { Bytes } from "./bytes";
import { changeStream } from "./changes";
import { check } from "./errors";
import { type Ratio, UNITS_PER_EPSILON, fraction, spentBy, within } from "./exact";
import { direct, hashed, text, unary } from "./frequency";
import { bundle, measured } from "./measured";
import { bloom, longitudinal, rappor } from "./memo";
import { netSeed } from "./netseed";
import { banded, hybrid } from "./numeric";
import type { Random } from "./random";
import { privSet, splitUnary } from "./set_reports";
import { psfo } from "./sets";
import { type Spec, exactly, specId } from "./spec";
import { signedSets } from "./ternary";

/** What is known of every way to answer, read from a spec and checked: it spends no more than it declares. */
interface Reporting {
  name: string;
  specId: string;
  spec: Spec;
  /** The declared epsilon, in units of 1e-12, rounded down: what a family of mechanisms is signed by. */
  units: bigint;
  /** The same, rounded up: what the answers of a run declare together. */
  declared: bigint;
  /** What an answer spends, in units of 1e-12 epsilon, rounded up: a fresh report, a new memo, or a whole horizon. */
  spent: bigint;
  /** What it reads, where a family may name it: a number of codes, sets of them, or numbers of a range. */
  reads: string;
  /** The length of a report. */
  bytes: number;
}

/** A fresh report for every answer (`mechanisms/base.py`). */
export interface Mechanism extends Reporting, Fresh {}

export interface Fresh {
  /** The bytes of a report on what a view saw, column after column (`Reports.to_bare`). */
  randomize(input: unknown, random: Random): Bytes;
}

/** A mechanism that remembers (`mechanisms/stateful.py`): memos, and streams of changes. */
export interface Stateful extends Reporting, Remembering {}

export interface Remembering {
  /** What a state goes on under, in addition to its mechanism: at another key the device enrols anew. */
  stateKey(step: number): string;
  /** A state that has said nothing: drawn without looking at any value. */
  enroll(random: Random): State;
  /** Whether a stored state is one that this mechanism can go on from. */
  fits(state: State): boolean;
  /** Units to pay before a step: 0 where it is free. */
  price(state: State, step: number, input: unknown): bigint;
  /** The state after a step, and the report, or null where there is nothing to say. */
  step(state: State, step: number, input: unknown, random: Random, paid: boolean): [state: State, report: Bytes | null];
  /** Where the server must learn that a device is there: its report, or one that says nothing, marked as the first. */
  enrolment?(state: State, report: Bytes | null): Bytes;
}

/** What a device keeps between steps: plain numbers and bytes. It tells of its values, and stays with it. */
export type State = Record<string, unknown>;

/** What a family's own file makes of a spec. */
export type Built = { ratio: Ratio; reads: string; bytes: number } & (Fresh | { memory: (spent: bigint) => Remembering });
type Builder = (spec: Spec, name: string, build: (spec: unknown) => Built & { name: string }) => Built;

/** The names of the fields of each mechanism's spec, how it is built, and the hash function that it names. */
const KNOWN: Record<string, [fields: string, build: Builder, hash?: string]> = {
  GRR: ["domain epsilon mechanism other", direct],
  BLH: ["buckets domain epsilon hash mechanism other", hashed, "product32"],
  OLH: ["buckets domain epsilon hash mechanism other", hashed, "product32"],
  SOLH: ["buckets domain epsilon hash mechanism other", hashed, "product32"],
  SUE: ["domain epsilon mechanism one width zero", unary],
  OUE: ["domain epsilon mechanism one width zero", unary],
  Rappor: ["bits cohorts domain epsilon hash hashes mechanism zero", text, "product32"],
  StochasticRounding: ["band cells epsilon high low mechanism other", banded],
  Piecewise: ["band cells epsilon high low mechanism other", banded],
  SquareWave: ["band cells epsilon high low mechanism other", banded],
  Hybrid: ["band cells coin epsilon flip high low mechanism other", hybrid],
  ExSub: ["bits dimension epsilon least m mechanism sparsity", signedSets],
  NetSub: ["bits dimension epsilon least m mechanism sparsity t", signedSets],
  NetSeed: ["bits dimension epsilon hash least mechanism sparsity t", netSeed, "bch"],
  BasicRappor: ["domain epsilon keep lift mechanism one width zero", rappor],
  BloomRappor: ["bits cohorts domain epsilon hash hashes keep mechanism zero", bloom, "product32"],
  Loloha: ["buckets domain epsilon hash mechanism other report_epsilon swap", longitudinal, "toeplitz"],
  PSFO: ["domain epsilon length mechanism oracle", psfo],
  SplitUnary: ["domain epsilon mechanism one zero", splitUnary],
  PrivSet: ["bits domain epsilon least m mechanism t", privSet],
  Measured: ["domain epsilon measures mechanism oracle", measured],
  Bundle: ["epsilon measures mechanism oracles", bundle],
  ChangeStream: ["changes dimension epsilon fanout lengths mechanism one sizes steps", changeStream],
  NetStream: ["changes dimension epsilon fanout lengths mechanism one sizes steps thresholds", changeStream],
};

/** What a spec describes; one that this client does not know, or that overspends, is refused. */
function build(spec: unknown): Built & { name: string; spec: Spec } {
  const name = (spec as { mechanism?: unknown } | null)?.mechanism;
  const known = typeof name === "string" && Object.hasOwn(KNOWN, name) ? KNOWN[name] : null;
  check(known, "mechanism", `one of ${Object.keys(KNOWN)}`);
  const [fields, builder, hash] = known;
  const fieldSpec = exactly("spec", spec, fields);
  check(fieldSpec.hash === hash, "hash", `${hash}`);
  const epsilon = fieldSpec.epsilon as number;
  check(typeof epsilon === "number" && epsilon >= 1e-12 && epsilon <= 1000, "epsilon", "a number from 1e-12 to 1000");
  const built = builder(fieldSpec, name as string, build);
  const [over, under] = fraction(epsilon);
  check(within(built.ratio, over, under), "epsilon", "what its integers spend, or more");
  return { ...built, name: name as string, spec: fieldSpec };
}

/** Build the mechanism that a spec describes. */
export async function readMechanism(spec: unknown): Promise<Mechanism | Stateful> {
  const { ratio, spec: ownSpec, name, ...built } = build(spec);
  const [over, under] = fraction(ownSpec.epsilon as number);
  const scaled = over * UNITS_PER_EPSILON;
  const [units, declared, spent] = [scaled / under, (scaled + under - 1n) / under, spentBy(ratio)];
  const common = { name, specId: await specId(ownSpec), spec: ownSpec, units, declared, spent };
  if (!("memory" in built)) return { ...common, ...built };
  const { memory, ...rest } = built;
  return { ...common, ...rest, ...memory(spent) };
}

export const remembers = (mechanism: Mechanism | Stateful): mechanism is Stateful => "enroll" in mechanism;
