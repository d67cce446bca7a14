import type { Promised } from "./promises";
import type { Json, Spec } from "./spec";
import { type Terms, readPromises, readTerms, smallestArc } from "./terms";

export const AGREED = "people agreed to the older promise: to promise less, begin a new collection under a new name";

/**
 * Where a version promises less than the version before (`collection/safety.py`): the keys of the clauses in a collection's
 * file. A number that cannot be compared is less.
 */
export function weakerClauses(now: Spec, was: Spec): string[] {
  const [terms, before] = [readTerms(now), readTerms(was)];
  return [
    ...notKept(readPromises(was), readPromises(now), wholeKey),
    ...Object.entries(before).flatMap(([name, { promises }]) =>
      terms[name] ? notKept(promises, terms[name].promises, () => `questions.${name}`) : [],
    ),
    ...sentOrLinked(terms, before),
    ...keptReports(now, was, terms, before),
    ...["minimum_batch", "minimum_arc"].filter((key) => less(now[key], was[key])).map((key) => `privacy.${key}`),
    ...(less(smallestArc(now) ?? 0, smallestArc(was) ?? 0) ? ["privacy.planned_devices"] : []),
    ...(less(was.retention_days, now.retention_days) ? ["schedule.retention"] : []),
    ...(has(now, "epsilon_above_8") && !has(was, "epsilon_above_8") ? ["override.epsilon_above_8"] : []),
    ...(was.cover && !now.cover ? ["privacy.cover"] : []),
    ...(was.divide && !now.divide ? ["population.divide"] : []),
    ...weakerRoute(now, was),
  ];
}

const less = (a: unknown, b: unknown): boolean => !(Number(a) >= Number(b));
const has = (spec: Spec, reason: string): boolean => Object.hasOwn(spec.overrides as Spec, reason);
const wholeKey = ({ steps }: Promised): string => `privacy.${["user", "event"][steps] ?? "window"}`;

/** A promise is kept by one whose limit is at most as large and whose time is at least as long. */
function notKept(was: Promised[], now: Promised[], key: (promise: Promised) => string): string[] {
  const keeps = (a: Promised, b: Promised) =>
    a.limit <= b.limit && (!a.steps || (!!b.steps && a.steps * a.interval >= b.steps * b.interval));
  return was.filter((promise) => !now.some((other) => keeps(other, promise))).map(key);
}

type All = Record<string, Terms>;
const fieldsOf = (all: All, of: (terms: Terms, name: string) => string[]): Set<string> =>
  new Set(Object.entries(all).flatMap(([name, terms]) => of(terms, name)));

/** Fields that are now sent without randomisation, or whose reports can now be linked to one device. */
function sentOrLinked(terms: All, before: All): string[] {
  const [clear, asked] = [fieldsOf(before, inClear), fieldsOf(before, ({ fields }) => fields)];
  const linked = fieldsOf(before, ({ fields, state }) => (state ? fields : []));
  return Object.entries(terms).flatMap(([name, question]) => [
    ...new Set(inClear(question).filter((field) => !clear.has(field)).map(() => `questions.${name}.measures`)),
    ...(question.state && question.fields.some((field) => asked.has(field) && !linked.has(field)) ? [`questions.${name}`] : []),
  ]);
}

/** The fields whose numbers an ask may have sent without randomisation. */
function inClear({ fields, views }: Terms): string[] {
  return views.flatMap((pattern) => {
    const { kind, numbers } = pattern as Spec;
    if (kind !== "withnumbers") return [];
    const listed = Array.isArray(numbers) && numbers.every((number) => number && typeof number === "object" && !Array.isArray(number));
    return listed ? (numbers as Spec[]).map(({ field }) => `${field}`) : fields;
  });
}

/** Questions whose single reports are now kept, and before only their sums were. */
function keptReports(now: Spec, was: Spec, terms: All, before: All): string[] {
  const keeps = (spec: Spec, name: string) => ((spec.questions as Spec)[name] as Spec | undefined)?.keep_reports === true;
  const asked = fieldsOf(before, ({ fields }) => fields);
  const kept = fieldsOf(before, ({ fields }, name) => (keeps(was, name) ? fields : []));
  return Object.entries(terms)
    .filter(([name, { fields }]) => keeps(now, name) && fields.some((field) => asked.has(field) && !kept.has(field)))
    .map(([name]) => `questions.${name}.keep_reports`);
}

function weakerRoute(newer: Spec, older: Spec): string[] {
  const [now, was] = [newer.shuffle as Spec | undefined, older.shuffle as Spec | undefined];
  if (!was) return [];
  if (!now || newer.trust !== older.trust) return ["trust"];
  const strength = ({ shufflers, least, fakes, delta }: Spec) =>
    Object.entries({ shufflers: (shufflers as Json[]).length, least, fakes, delta: -Number(delta) });
  return strength(now).filter(([, value], at) => less(value, strength(was)[at]![1])).map(([key]) => `shuffle.${key}`);
}
