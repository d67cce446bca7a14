import { view } from "./bytes";
import { check } from "./errors";
import type { Built, State } from "./mechanisms";
import type { Random } from "./random";
import { type Spec, integer, wholeNumber } from "./spec";
import { type Counters, groups, leastOf, select } from "./ternary";

/** What a device keeps over a horizon: its level, the value as far as it was reported, and the counters of what is left. */
interface ChangeState extends State {
  level: number;
  /** The last node that was reported or passed. */
  node: number;
  /** The value as far as it was reported, and how many changes were reported. */
  held: number[];
  used: number;
  counters: Counters;
  paid: boolean;
}

interface Level {
  /** How many steps a node stands for, how many nodes there are, and how many entries all of them have, stubs included. */
  span: number;
  nodes: number;
  positions: number;
  start: (bits: bigint, random: Random) => Counters;
}

const ENTRIES = 1 << 24;

/**
 * A stream of changes (`protocols/changes/stream.py`): the device draws a level of a tree over time, and reports at the end of each
 * of that level's nodes by how much its value changed since the last. All reports of a horizon are one report of ExSub, or of NetSub.
 */
export function changeStream(spec: Spec, name: string): Built {
  const whole = (field: string, low: number, high: number) => wholeNumber(spec, field, low, high);
  const [dimension, changes] = [whole("dimension", 1, ENTRIES), whole("changes", 1, ENTRIES)];
  const steps = whole("steps", 1, 1 << 10);
  const [fanout, one] = [whole("fanout", 2, ENTRIES), spec.one];
  check(typeof one === "boolean", "one", "true or false");
  check(dimension * steps <= ENTRIES, "steps", "fewer, of that number of entries");
  const weights = leastOf(spec.epsilon as number);
  const net = name === "NetStream";
  const [sizes, lengths, thresholds] = [spec.sizes, spec.lengths, net ? spec.thresholds : spec.sizes];
  check(Array.isArray(sizes) && Array.isArray(lengths) && sizes.length === lengths.length, "lengths", "one a level");
  check(Array.isArray(thresholds) && sizes.length === thresholds.length, "thresholds", "one a level");
  const levels: Level[] = [];
  for (let span = 1; span <= steps; span *= fanout) {
    const nodes = Math.floor(steps / span);
    const most = one ? Math.min(changes - ((changes + 1) % 2), 2 * nodes - 1) : changes;
    const [entries, sparsity] = [dimension * nodes, Math.min(most, dimension * nodes)];
    const m = Number(integer("sizes", sizes[levels.length], 1, entries + sparsity - Number(!net)));
    const t = net ? Number(integer("thresholds", thresholds[levels.length], 1, Math.min(m, sparsity))) : 0;
    const start = groups(entries, sparsity, m, weights, net ? (a, b) => a - b >= t : (a) => a > 0);
    levels.push({ span, nodes, positions: entries + sparsity, start });
  }
  check(sizes.length === levels.length, "lengths", `${levels.length} of them, one a level`);
  let circle = 0;
  const edges = lengths.map((length) => (circle += Number(integer("lengths", length, 0, 2 ** 32))));
  check(circle === 2 ** 32, "lengths", "numbers that sum to 2^32");

  /** The value to report after a node: at most the changes that are left; a category changes as a whole or not at all. */
  function afterNode({ held, used }: ChangeState, input: unknown): { held: number[]; used: number } {
    const row = Array.isArray(input) ? input : null;
    const bits = held.map((_, at) => Number(one ? input === at : row?.[at] === 1));
    const differs = bits.filter((bit, at) => bit !== held[at]).length;
    if (one && !(bits.includes(1) && used + differs <= changes)) return { held, used };
    const after = held.map((before, at) => {
      if (before === bits[at] || used === changes) return before;
      used++;
      return bits[at]!;
    });
    return { held: after, used };
  }

  const sendable = (level: number, signs: number[]) => Uint8Array.of(level, 0, ...signs.map((sign) => (sign + 3) % 3));
  return {
    ratio: weights,
    reads: "",
    bytes: 2 + dimension,
    memory: (spent) => ({
      stateKey: (step) => `${Math.floor(step / steps)}`,
      enroll(random): ChangeState {
        const place = view(random(4)).getUint32(0, true);
        const level = edges.findIndex((edge) => place < edge);
        const counters = levels[level]!.start(view(random(8)).getBigUint64(0, true), random);
        return { level, node: 0, held: new Array<number>(dimension).fill(0), used: 0, counters, paid: false };
      },
      fits(stored) {
        const { level, node, held, used, counters } = stored as ChangeState;
        const at = levels[level];
        const whole = (value: number, most: number) => Number.isSafeInteger(value) && value >= 0 && value <= most;
        const rows = Array.isArray(held) && held.length === dimension && Array.isArray(counters) && counters.length === 5;
        if (!at || !rows || !whole(node, at.nodes) || !whole(used, changes)) return false;
        const [trues, reverses, falses, entries, zeros] = counters;
        const counted = counters.every((value) => whole(value, at.positions)) && trues + reverses <= entries && falses <= zeros;
        return counted && entries + zeros === at.positions - node * dimension && held.every((value) => whole(value, 1));
      },
      price: (state) => (state.paid ? 0n : spent),
      step(stored, step, input, random, paid) {
        const state = { ...(stored as ChangeState), paid: paid || (stored as ChangeState).paid };
        const { span } = levels[state.level]!;
        const at = (step % steps) + 1;
        const node = Math.floor(at / span);
        // Between nodes nothing is said, and nothing of what a version with other steps has told already.
        if (!state.paid || at % span || node <= state.node) return [state, null];
        const counters: Counters = [...state.counters];
        const missed = dimension * (node - state.node - 1);
        if (missed) select(new Array<number>(missed).fill(0), random(4 * missed), counters, random); // passed in silence
        const { held, used } = afterNode(state, input);
        const moved = held.map((value, entry) => value - state.held[entry]!);
        const signs = select(moved, random(4 * dimension), counters, random);
        return [{ ...state, node, held, used, counters }, sendable(state.level, signs)];
      },
      enrolment(state, report) {
        const marked = report ?? sendable((state as ChangeState).level, new Array<number>(dimension).fill(0));
        return Uint8Array.from(marked, (byte, at) => (at === 1 ? 1 : byte));
      },
    }),
  };
}
