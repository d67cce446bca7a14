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

/** Why an ask is refused, in one word; null where it is admitted (`collection/admits.py`). */
export function admits(terms: Terms, ask: AskContent, minimumArc: number, fields: Record<string, Spec>): string | null {
  const { run, round, part, mechanism, view, viewSpec, cohort } = ask;
  const family = terms.families.some(
    ({ mechanism: name, units }) =>
      name === mechanism.name && units.includes(mechanism.units) && !!mechanism.reads && view.gives.includes(mechanism.reads),
  );
  if (run < 0 || (run && !terms.study?.every)) return "run";
  if (round < 1 || round > terms.rounds) return "round";
  if (part < 0 || part >= terms.parts) return "part";
  if (cohort.length < minimumArc * terms.group.of) return "arc"; // the least part of all devices
  if (!terms.views.some((pattern) => matches(pattern, viewSpec))) return "view";
  const field = terms.fields.length === 1 ? fields[terms.fields[0]!] : undefined;
  if (!family && !(terms.mechanisms.includes(mechanism.specId) && takes(mechanism.spec, ask, field))) return "mechanism";
  if ((remembers(mechanism) ? mechanism.name : "") !== terms.state) return "state";
  if (mechanism.bytes > terms.reportBytes) return "size";
  return mechanism.spent > terms.limit ? "limit" : null;
}

/**
 * What mechanisms read: ["codes", how many], ["numbers", low, high], ["sets", items, most], ["texts", bytes], ["vector",
 * entries], ["cells", how many, how many, ...] of several codes, or another word for what no mechanism and no view share.
 */
type Inputs = [kind: string, ...sizes: number[]];

/** Whether a signed mechanism takes everything that a view gives of a field (`_takes` in `collection/admits.py`). */
function takes(spec: Spec, { view, viewSpec }: AskContent, field: Spec | undefined): boolean {
  const measures = /with (\d+)$/.exec(view.gives[0] ?? "");
  if (((spec.measures as number | undefined) ?? 0) !== Number(measures?.[1] ?? 0)) return false;
  const [given, taken] = [givenBy(view, viewSpec as Spec, field), takenBy(spec)];
  return !given.length || !taken.length || given.some((one) => taken.some((other) => within(one, other)));
}

function within([kind, ...given]: Inputs, [other, ...taken]: Inputs): boolean {
  if (kind !== other) return false;
  if (kind === "numbers") return taken[0]! <= given[0]! && given[1]! <= taken[1]!;
  if (kind === "cells" && given.length !== taken.length) return false;
  const exact = kind === "vector" || kind === "sets"; // the number of entries or items; the most of them may be less
  return given.every((size, at) => (exact && at === 0 ? size === taken[at]! : size <= taken[at]!));
}

function givenBy(view: View, spec: Spec, field: Spec | undefined): Inputs[] {
  const kind = spec.kind as string;
  if (kind === "whole") return field ? recorded(field) : [];
  if (kind === "held" || kind === "members" || kind === "on") return [["vector", (spec.keys ?? spec.items ?? 1) as number]];
  if (kind === "update") return [["vector", spec.dimension as number]];
  if (kind === "prefix" || kind === "size") return [["codes", kind === "prefix" ? 2 ** 64 : (spec.most as number) + 1]];
  return view.gives.flatMap((text): Inputs[] => {
    if (text.includes(" x ")) return [["cells", ...text.replace(/ with .*/, "").split(" x ").map(Number)]];
    const [first, word, last] = text.split(" ");
    if (word === "to") return [["numbers", Number(first), Number(last)]];
    if (word === "of") return [["sets", Number(last), Number(last)]];
    return word === "bits" ? [] : [["codes", Number(first)]];
  });
}

/** The codes of a field's values, and of "nothing was recorded"; numbers are recorded as they are, of any size. */
function recorded(field: Spec): Inputs[] {
  if (field.kind === "numeric") return [["any number"]];
  const size = sizeOf(field);
  return size ? [["codes", size + 1]] : ofDomain(field);
}

function takenBy(spec: Spec): Inputs[] {
  const { dimension, domain, low, high } = spec as Record<string, number | undefined>;
  // A stream of changes of one value reads a code, of which the last is no entry.
  if (dimension !== undefined) return [spec.one === true ? ["codes", dimension + 1] : ["vector", dimension]];
  if (spec.oracles !== undefined) return [["cells", ...(spec.oracles as Spec[]).map((oracle) => ofDomain(oracle.domain as Spec)[0]![1]!)]];
  if (domain !== undefined) return ofDomain(spec.domain as Spec);
  return low !== undefined && high !== undefined ? [["numbers", low, high]] : [];
}

/** What the values of a domain are; nothing for a domain of another package, whose spec does not tell. */
function ofDomain(domain: Spec): Inputs[] {
  const { kind, size, bits, low, high, items, most, longest } = domain as Record<string, any>;
  if (kind === "ordinal") return [["codes", size]];
  if (kind === "bitstrings") return [["codes", 2 ** bits]];
  if (kind === "numeric") return [["numbers", low, high]];
  if (kind === "strings") return [["texts", longest]];
  if (kind === "sets") return sizeOf(items) ? [["sets", sizeOf(items), most]] : [];
  return kind === "categorical" || kind === "keyvalue" ? [[kind]] : [];
}

/** How many codes a domain has; 0 where it has none, or is of another package. */
function sizeOf({ kind, names, size, cells }: Record<string, any>): number {
  return kind === "categorical" ? names.length : kind === "ordinal" ? size : kind === "numeric" ? cells : 0;
}

/** Why all asks of one round are refused: too many, an arc too short, or two that overlap; null where they are admitted. */
export function admitsParts(terms: Terms, asks: Pick<AskContent, "part" | "cohort">[], minimumArc: number): string | null {
  const arcs = asks.map(({ cohort }) => cohort).sort((a, b) => a.start - b.start);
  const disjoint = arcs.every(({ start, length }, at) => length <= (arcs[at + 1]?.start ?? arcs[0]!.start + CIRCLE) - start);
  const numbers = new Set(asks.map(({ part }) => part));
  if (!disjoint || asks.length > terms.parts || numbers.size < asks.length) return "parts";
  return arcs.some(({ length }) => length < minimumArc * terms.group.of) ? "arc" : null;
}

/**
 * Whether a view's spec matches a pattern: {"from": a, "to": b} matches any number between, {"most": k} at most k different
 * integers of at least 0 in ascending order, {"most": k, "each": p} a list of at most k items that match p, {"hex": k}
 * a text of k hexadecimal digits, and everything else only itself.
 */
export function matches(pattern: Json, value: Json): boolean {
  if (pattern === null || typeof pattern !== "object") return pattern === value;
  const names = (object: Json) => Object.keys(object ?? {}).sort().join(" ");
  const keys = Array.isArray(pattern) ? "" : names(pattern);
  const { from, to, most, hex } = pattern as Record<string, number>;
  if (keys === "hex") return typeof value === "string" && value.length === hex && /^[0-9a-f]*$/.test(value);
  if (keys === "from to") return typeof value === "number" && value >= from! && value <= to!;
  if (keys === "most") return isAscending(value) && value.length <= most!;
  if (keys === "each most") {
    return Array.isArray(value) && value.length <= most! && value.every((part) => matches((pattern as Spec).each!, part));
  }
  const sameShape = value !== null && typeof value === "object" && Array.isArray(value) === Array.isArray(pattern);
  const parts = Object.entries(pattern);
  return sameShape && names(value) === names(pattern) && parts.every(([key, part]) => matches(part, (value as Spec)[key]!));
}
