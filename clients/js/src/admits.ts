import { type Arc, CIRCLE } from "./cohort";
import { type Mechanism, type Stateful, remembers } from "./mechanisms";
import type { Json, Spec } from "./spec";
import type { Terms } from "./terms";
import type { View } from "./views";

/** What of an ask its terms decide about. Nothing here looks at a value: what is refused tells nothing about one. */
export interface Asked {
  run: number;
  round: number;
  part: number;
  mechanism: Mechanism | Stateful;
  view: View;
  looks: Json;
  cohort: Arc;
}

/** What terms call a state whose mechanism has another name in its spec, as it was once called. */
const STATES: Record<string, string> = { Symbols: "ChangeStream" };

/** Why an ask is not admitted, in a word; null where it is (`collection/admits.py`). */
export function admits(terms: Terms, ask: Asked, minimumArc: number): string | null {
  const { run, round, part, mechanism, view, looks, cohort } = ask;
  const family = terms.families.some(
    ({ mechanism: name, units }) =>
      name === mechanism.name && units.includes(mechanism.units) && !!mechanism.reads && view.gives.includes(mechanism.reads),
  );
  if (run < 0 || (run && !terms.study?.every)) return "run";
  if (round < 1 || round > terms.rounds) return "round";
  if (part < 0 || part >= terms.parts) return "part";
  if (cohort.length < minimumArc) return "arc";
  if (!terms.views.some((pattern) => matches(pattern, looks))) return "view";
  if (!family && !terms.mechanisms.includes(mechanism.specId)) return "mechanism";
  if ((remembers(mechanism) ? (STATES[mechanism.name] ?? mechanism.name) : "") !== terms.state) return "state";
  if (mechanism.bytes > terms.reportBytes) return "size";
  return mechanism.spent > terms.limit ? "limit" : null;
}

/** Why the asks of one round are not admitted together: too many, arcs too short, or arcs of two that overlap. */
export function admitsParts(terms: Terms, asks: Pick<Asked, "part" | "cohort">[], minimumArc: number): string | null {
  const arcs = asks.map(({ cohort }) => cohort).sort((a, b) => a.start - b.start);
  const apart = arcs.every(({ start, length }, at) => length <= (arcs[at + 1]?.start ?? arcs[0]!.start + CIRCLE) - start);
  const numbers = new Set(asks.map(({ part }) => part));
  if (!apart || asks.length > terms.parts || numbers.size < asks.length) return "parts";
  return arcs.some(({ length }) => length < minimumArc) ? "arc" : null;
}

/**
 * Whether a view's spec is one of a pattern: {"from": a, "to": b} stands for any number between, {"most": k} for at most k
 * different integers of at least 0, in order, {"most": k, "each": p} for a list of at most k that match p; everything else
 * for itself.
 */
export function matches(pattern: Json, given: Json): boolean {
  if (pattern === null || typeof pattern !== "object") return pattern === given;
  const names = (value: Json) => Object.keys(value ?? {}).sort().join(" ");
  const keys = Array.isArray(pattern) ? "" : names(pattern);
  const { from, to, most } = pattern as Record<string, number>;
  if (keys === "from to") return typeof given === "number" && given >= from! && given <= to!;
  if (keys === "most") {
    const above = (code: Json, least: Json) => Number.isSafeInteger(code) && (code as number) > (least as number);
    const rises = (code: Json, at: number, all: Json[]) => above(code, all[at - 1] ?? -1);
    return Array.isArray(given) && given.length <= most! && given.every(rises);
  }
  if (keys === "each most") {
    return Array.isArray(given) && given.length <= most! && given.every((part) => matches((pattern as Spec).each!, part));
  }
  const alike = given !== null && typeof given === "object" && Array.isArray(given) === Array.isArray(pattern);
  const parts = Object.entries(pattern);
  return alike && names(given) === names(pattern) && parts.every(([key, part]) => matches(part, (given as Spec)[key]!));
}
