import { holds, readArc } from "./cohort";
import type { Collection } from "./collection";
import { check } from "./errors";
import { fraction, within } from "./exact";
import { type Mechanism, readMechanism } from "./mechanisms";
import { type Spec, exactly, specId } from "./spec";
import { type Kind, kindOfAsk } from "./split";
import { type View, readView } from "./views";

/** What the server asks (`protocols/ask.py`), checked against what the collection promised. */
export interface Ask {
  id: string;
  question: string;
  kind: Kind;
  field: string;
  step: number;
  mechanism: Mechanism;
  view: View;
  /** Whether this device is in the cohort. */
  asked: boolean;
}

export async function readAsk(collection: Collection, question: string, spec: Spec): Promise<Ask> {
  exactly("ask", spec, "cohort mechanism standing step view");
  check(Object.hasOwn(collection.questions, question), "question", "one of the collection's");
  const { field, epsilon, permanent = epsilon } = collection.questions[question]!;
  const mechanism = await readMechanism(spec.mechanism);
  const kept = mechanism.epsilon <= permanent && within(mechanism.once, ...fraction(epsilon));
  check(kept, "epsilon", "no more than the question's");
  const arc = readArc(spec.cohort);
  check(arc.length >= collection.minimumArc, "cohort", "no shorter arc than the collection's minimum");
  return {
    id: await specId({ ...spec, mechanism: mechanism.specId }),
    question,
    kind: kindOfAsk(collection.questions[question]!),
    field,
    step: spec.step as number,
    mechanism,
    view: readView(spec.view),
    asked: holds(arc, collection.place),
  };
}
