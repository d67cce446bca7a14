import type { Ask } from "./ask";
import type { Book, Watch } from "./book";
import type { Bytes } from "./bytes";
import { type Collection, fieldOf, opens, roundTimes, stepAt } from "./collection";
import { type Refused, check } from "./errors";
import { type Code, absent, missing } from "./fields";
import { type Stateful, type State, remembers } from "./mechanisms";
import { charge } from "./promises";
import { systemRandom } from "./random";
import type { Spec } from "./spec";
import type { Access, Key, StateRow, StudyState } from "./store";
import { type Entry, entryKey } from "./upload";

/** What an answer is made with: the book as it is by now, and what of it was decided so far. */
interface Making {
  kept: Access;
  collection: Collection;
  ask: Ask;
  book: Book;
  id: Bytes;
  /** The state whose enrolment the answer tells of. */
  enrols?: string;
}

/**
 * Answer an ask, its name once: the frozen value, the state, the debit and the randomised bytes are kept in one transaction,
 * before anything is sent. Where it is not this device's turn, or the budget is spent, cover may stand for it; what was
 * refused is returned.
 */
export async function answer(kept: Access, collection: Collection, ask: Ask, watch: Watch): Promise<unknown> {
  if (await kept.get(entryKey(ask))) return;
  const book = watch.open((await kept.get<Book>(["book"]))!);
  const { wall } = book;
  const { question, run, step, round, part, terms } = ask;
  check(book.version === collection.version, "version", "the one in force");
  check(terms.study || step === stepAt(collection, wall), "step", "the one that the device is in");
  check(ask.opens <= wall && wall < ask.closes, "round", "the one that the device is in");
  const back = stepAt(collection, wall) < stepAt(collection, book.latest);
  check(!back && wall >= collection.origin, "step", "the clock was set back: a later step was answered");
  const making: Making = { kept, collection, ask, book, id: systemRandom(16) };
  let cover = !ask.asked;
  let refused: unknown;
  let report: Bytes | null = null;
  try {
    if (!cover) report = await (remembers(ask.mechanism) ? fromState(making, ask.mechanism) : fresh(making));
  } catch (error) {
    if (!collection.cover || (error as Refused).field !== "budget") throw error;
    refused = error;
  }
  cover = !report && collection.cover; // of whoever has nothing to say, too
  for (const old of await kept.all<Entry>(["entry"])) {
    if (!old.report && old.until <= wall) kept.drop(entryKey(old));
  }
  kept.put(entryKey(ask), {
    ...{ collection: collection.name, version: collection.version, question, run, step, round, part },
    id: making.id,
    report: cover ? new Uint8Array() : report,
    cover,
    until: terms.study ? ask.closes : opens(collection, step + 1),
    size: collection.uploadBytes,
    ...(collection.shuffle && { address: collection.shuffle.address }),
    ...(collection.shuffle && !cover && { route: collection.shuffle.route, asked: asked(ask) }),
    enrols: making.enrols,
  } satisfies Entry);
  const latest = Math.max(wall, book.latest);
  const { answers } = book;
  kept.put(["book"], { ...making.book, latest, answers: answers + 1, page: watch.page } satisfies Book);
  return refused;
}

/** What the layers of a sealed report are bound to, of what was asked. */
const asked = ({ mechanism, looks }: Ask): Spec => ({ mechanism: mechanism.specId, view: looks });

/** Charge an answer, as of a later moment where it is paid for beforehand. */
function pay(making: Making, cost: bigint, until?: number): void {
  const { book, ask } = making;
  making.book = { ...book, ...charge(book, ask.terms.account, ask.question, cost, book, until) };
}

/** A fresh report. */
async function fresh(making: Making): Promise<Bytes> {
  const { ask } = making;
  const { mechanism } = ask;
  if (remembers(mechanism)) throw new TypeError("its state is needed");
  const seen = ask.terms.study ? await inStudy(making) : await frozen(making);
  if (!ask.terms.study) pay(making, mechanism.spent);
  return mechanism.randomize(seen, systemRandom);
}

/**
 * What a study's ask sees. With the first answer of a run the values are frozen for all of it, and its whole limit is
 * charged, as of its end: nobody who hears nothing more can tell what a round would have cost. Later rounds cost nothing
 * more, and together declare no more than was paid. Rounds go forward: one that was missed stays unanswered.
 */
async function inStudy(making: Making): Promise<unknown> {
  const { kept, collection, ask } = making;
  const { run, round, terms, mechanism } = ask;
  const key: Key = ["state", `study:${ask.question}`];
  const row = await kept.get<StateRow>(key);
  check(!row || +row.stream <= run, "run", "no earlier one than was answered"); // false for what is no number, too
  const domains = terms.fields.map((field) => collection.domains[field]!);
  const until = roundTimes(collection, terms, run, 0, terms.rounds)[1] - 1;
  let study = row?.stream === `${run}` ? (row.state as StudyState) : null;
  if (!study) {
    const codes = await Promise.all(terms.fields.map((field) => recorded(making, field)));
    study = { codes, domains, left: terms.limit, round: 0, until };
    pay(making, terms.limit, until);
  }
  check(isStudyState(study, terms.fields.length), "state", "one that a study can go on from");
  check(`${study.domains}` === `${domains}`, "fields", "what they were when the run began");
  check(until <= study.until, "run", "one that ends when it was to end: what was paid counts until then");
  check(round > study.round, "round", "a later one than was answered");
  const left = study.left - mechanism.declared;
  check(left >= 0n, "limit", "no more in all rounds than was signed");
  const state: StudyState = { ...study, left, round };
  kept.put(key, { stream: `${run}`, state, told: false, enrolment: null } satisfies StateRow);
  return seenBy(ask, study.codes);
}

/** Whether a stored state is one of a study: another version's, or a damaged one, is refused before anything is spent. */
const isStudyState = ({ codes, domains, left, round, until }: Partial<StudyState>, fields: number): boolean =>
  Array.isArray(codes) && codes.length === fields && Array.isArray(domains) && typeof left === "bigint" && left >= 0n &&
  [round, until].every((number) => Number.isSafeInteger(number) && (number as number) >= 0);

/**
 * A report from what the device remembers, which is paid for when the mechanism says so. A state that goes on under another
 * stream begins anew; memos are kept by account, so that two fields do not share their noise.
 */
async function fromState(making: Making, mechanism: Stateful): Promise<Bytes | null> {
  const { kept, collection, ask, id } = making;
  const { account } = ask.terms;
  const name = account === "asks" ? ask.question : account;
  const [key, part]: [Key, string] = [["state", name], mechanism.stateKey(ask.step)];
  const stream = part ? JSON.stringify([part, mechanism.specId, collection.interval, collection.origin]) : mechanism.specId;
  let row = await kept.get<StateRow>(key);
  if (row?.stream !== stream) row = { stream, state: mechanism.enroll(systemRandom), told: false, enrolment: null };
  const before = row.state as State;
  check(mechanism.fits(before), "state", "one that the mechanism can go on from");
  const seen = await frozen(making);
  let unpaid: unknown = null;
  try {
    pay(making, mechanism.price(before, ask.step, seen));
  } catch (error) {
    unpaid = error; // it may go on without
  }
  let [state, report] = mechanism.step(before, ask.step, seen, systemRandom, !unpaid);
  if (unpaid && !report) throw unpaid;
  const enrols = mechanism.enrolment && !row.told && !row.enrolment;
  if (enrols) {
    report = mechanism.enrolment!(state, report);
    making.enrols = name;
  }
  kept.put(key, { ...row, state, enrolment: enrols ? id : row.enrolment } satisfies StateRow);
  return report;
}

/** A value of a field: its code, and when it was recorded. */
export interface Recorded {
  wall: number;
  code: Code;
}

/** What all asks of a step see of some fields. `code` is of a single one, as it was once kept. */
interface Frozen {
  wall: number;
  codes?: (Code | null)[];
  code?: Code;
}

/** Where a field's values are kept. */
export const valueKey = ({ domains }: Collection, field: string): Key => ["value", field, domains[field]!];

/** What was recorded of a field: in the step that it is, or ever. */
async function recorded({ kept, collection, ask, book }: Making, field: string): Promise<Code | null> {
  const found = await kept.get<Recorded>(valueKey(collection, field));
  const step = stepAt(collection, book.wall);
  const known = found && (ask.terms.frozen !== "step" || stepAt(collection, found.wall) === step);
  return known ? found.code : (ask.terms.fields.length > 1 ? absent : missing)(fieldOf(collection, field));
}

/** What all asks of a step see: what was recorded before the first of them, all fields of a question together. */
async function frozen(making: Making): Promise<unknown> {
  const { kept, collection, ask, book } = making;
  const { fields, frozen: how } = ask.terms;
  const key: Key = [how, ...fields, ...fields.map((field) => collection.domains[field]!)];
  const before = await kept.get<Frozen>(key);
  if (before && stepAt(collection, before.wall) === ask.step) return seenBy(ask, before.codes ?? [before.code!]);
  const codes = await Promise.all(fields.map((field) => recorded(making, field)));
  kept.put(key, { wall: book.wall, codes } satisfies Frozen);
  return seenBy(ask, codes);
}

/** What the view sees of one field, or of several by their names. */
const seenBy = ({ view, terms: { fields } }: Ask, codes: (Code | null)[]): unknown =>
  view.see(fields.length === 1 ? codes[0]! : Object.fromEntries(fields.map((field, at) => [field, codes[at]!])), systemRandom);
