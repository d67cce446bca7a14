import { type Arc, CIRCLE } from "./cohort";
import { type Mechanism, type Stateful, remembers } from "./mechanisms";
import { type Json, type Spec, isAscending } from "./spec";
import type { Terms } from "./terms";
import type { View } from "./views";

/** What the terms decide about an ask by. No recorded value is read here, so that no refusal depends on one. */
export interface AskContent {
  run: number;
  round: number;
  part: number;
  mechanism: Mechanism | Stateful;
  view: View;
  viewSpec: Json;
  cohort: Arc;
}

/** The name of a state in terms, by the name of its mechanism in specs, where an older name is still used there. */
const STATES: Record<string, string> = { Symbols: "ChangeStream" };

/** Why an ask is refused, in one word; null where it is admitted (`collection/admits.py`). */
export function admits(terms: Terms, ask: AskContent, minimumArc: number): string | null {
  const { run, round, part, mechanism, view, viewSpec, cohort } = ask;
  const family = terms.families.some(
    ({ mechanism: name, units }) =>
      name === mechanism.name && units.includes(mechanism.units) && !!mechanism.reads && view.gives.includes(mechanism.reads),
  );
  if (run < 0 || (run && !terms.study?.every)) return "run";
  if (round < 1 || round > terms.rounds) return "round";
  if (part < 0 || part >= terms.parts) return "part";
  if (cohort.length < minimumArc) return "arc";
  if (!terms.views.some((pattern) => matches(pattern, viewSpec))) return "view";
  if (!family && !terms.mechanisms.includes(mechanism.specId)) return "mechanism";
  if ((remembers(mechanism) ? (STATES[mechanism.name] ?? mechanism.name) : "") !== terms.state) return "state";
  if (mechanism.bytes > terms.reportBytes) return "size";
  return mechanism.spent > terms.limit ? "limit" : null;
}

/** Why all asks of one round are refused: too many, an arc too short, or two that overlap; null where they are admitted. */
export function admitsParts(terms: Terms, asks: Pick<AskContent, "part" | "cohort">[], minimumArc: number): string | null {
  const arcs = asks.map(({ cohort }) => cohort).sort((a, b) => a.start - b.start);
  const disjoint = arcs.every(({ start, length }, at) => length <= (arcs[at + 1]?.start ?? arcs[0]!.start + CIRCLE) - start);
  const numbers = new Set(asks.map(({ part }) => part));
  if (!disjoint || asks.length > terms.parts || numbers.size < asks.length) return "parts";
  return arcs.some(({ length }) => length < minimumArc) ? "arc" : null;
}

/**
 * Whether a view's spec matches a pattern: {"from": a, "to": b} matches any number between, {"most": k} at most k different
 * integers of at least 0 in ascending order, {"most": k, "each": p} a list of at most k items that match p, and everything
 * else only itself.
 */
export function matches(pattern: Json, value: Json): boolean {
  if (pattern === null || typeof pattern !== "object") return pattern === value;
  const names = (object: Json) => Object.keys(object ?? {}).sort().join(" ");
  const keys = Array.isArray(pattern) ? "" : names(pattern);
  const { from, to, most } = pattern as Record<string, number>;
  if (keys === "from to") return typeof value === "number" && value >= from! && value <= to!;
  if (keys === "most") return isAscending(value) && value.length <= most!;
  if (keys === "each most") {
    return Array.isArray(value) && value.length <= most! && value.every((part) => matches((pattern as Spec).each!, part));
  }
  const sameShape = value !== null && typeof value === "object" && Array.isArray(value) === Array.isArray(pattern);
  const parts = Object.entries(pattern);
  return sameShape && names(value) === names(pattern) && parts.every(([key, part]) => matches(part, (value as Spec)[key]!));
}
