import { type AskContent, admits } from "./admits";
import { groupOf, holds, readArc } from "./cohort";
import { type Collection, roundTimes } from "./collection";
import { Refused, check } from "./errors";
import { type Mechanism, readMechanism } from "./mechanisms";
import { type Spec, exactly, integer } from "./spec";
import type { Terms } from "./terms";
import { readView } from "./views";

/** What the server asks (`protocols/ask.py`), of which step and round, and when that is by the device's own grid. */
export interface Ask extends AskContent {
  question: string;
  step: number;
  terms: Terms;
  /** Milliseconds. */
  opens: number;
  closes: number;
  /** Whether this device is in the cohort. */
  inCohort: boolean;
}

/** Read an ask that was published: it may only name what the signed terms of its question allow. */
export async function readAsk(collection: Collection, published: unknown): Promise<Ask> {
  const { ask, question, step, ...named } = exactly("ask", published, "ask closes part question round run step");
  const { kept, step: _, ...spec } = (ask ?? {}) as Spec;
  exactly("ask", spec, "cohort mechanism standing view");
  check(kept === undefined || kept === true, "kept", "true, or left out");
  check(Object.hasOwn(collection.terms, question as string), "question", "one of the collection's");
  const terms = collection.terms[question as string]!;
  const whole = (field: string) => Number(integer(field, named[field], 0, 2 ** 31));
  const content: AskContent = {
    run: whole("run"),
    round: whole("round"),
    part: whole("part"),
    mechanism: (await readMechanism(spec.mechanism)) as Mechanism,
    view: readView(spec.view),
    viewSpec: spec.view!,
    cohort: readArc(spec.cohort),
  };
  const reason = admits(terms, content, collection.minimumArc, collection.fields);
  if (reason) throw new Refused(reason, "what the question's terms allow");
  const at = terms.study ? 0 : Number(integer("step", step, 0, 2 ** 53 - 1));
  check(at === step, "step", "0 in a study");
  const [opens, closes] = roundTimes(collection, terms, content.run, at, content.round);
  const [place, second] = collection.places;
  const inCohort = groupOf(second, terms.group.of) === terms.group.number && holds(content.cohort, place);
  return { ...content, question: question as string, step: at, terms, opens, closes, inCohort };
}
