import { holds, readArc } from "./cohort";
import type { Collection } from "./collection";
import { check } from "./errors";
import { type Mechanism, readMechanism } from "./mechanisms";
import { canonical, exactly, integer } from "./spec";
import type { Terms } from "./terms";
import { type View, readView } from "./views";

/** What the server asks (`protocols/ask.py`), checked against what the collection promised. */
export interface Ask {
  question: string;
  round: number;
  step: number;
  terms: Terms;
  mechanism: Mechanism;
  view: View;
  /** Whether this device is in the cohort. */
  asked: boolean;
}

/** Read an ask, published for a step: it may only name what the signed terms of its question allow. */
export async function admits(collection: Collection, published: unknown, step: number): Promise<Ask> {
  const { ask, part, question, round, run } = exactly("ask", published, "ask part question round run");
  const spec = exactly("ask", ask, "cohort mechanism standing step view");
  check(Object.hasOwn(collection.terms, question as string), "question", "one of the collection's");
  const terms = collection.terms[question as string]!;
  check(run === 0 && part === 0, "run", "0, and part 0");
  check(spec.step === step || spec.standing === true, "step", "the one that the device is in");
  const mechanism = await readMechanism(spec.mechanism);
  const known = terms.mechanisms.includes(mechanism.specId) && terms.memo === !!mechanism.remember;
  check(known && collection.safe(mechanism.spent), "mechanism", "one that the question promised");
  check(canonical(spec.view!) === terms.view, "view", "the one that the question promised");
  const arc = readArc(spec.cohort);
  check(arc.length >= collection.minimumArc, "cohort", "no shorter arc than the collection's minimum");
  return {
    question: question as string,
    round: Number(integer("round", round, 1, terms.rounds)),
    step,
    terms,
    mechanism,
    view: readView(spec.view),
    asked: holds(arc, collection.place),
  };
}
