import type { Ask } from "./ask";
import type { Book, DeviceClock } from "./book";
import type { Bytes } from "./bytes";
import { type Collection, fieldOf, opens, roundTimes, stepAt } from "./collection";
import { type Refused, check } from "./errors";
import { type Code, absent, missing } from "./fields";
import { type Stateful, type State, remembers } from "./mechanisms";
import { charge } from "./promises";
import { systemRandom } from "./random";
import { hasNumbers, numberBytes } from "./shares";
import type { Spec } from "./spec";
import type { Access, Key, StateRow, StudyState } from "./store";
import { type Entry, entryKey } from "./upload";

/** What an answer is made with: an open transaction, and the book with what was charged so far. */
interface AnswerContext {
  access: Access;
  collection: Collection;
  ask: Ask;
  book: Book;
  id: Bytes;
  /** What the program computed from the ask's public model, if there is such a program. */
  update?: Code;
  /** The state whose enrolment the answer tells of, and the stream of the state that it is made from. */
  enrols?: string;
  stream?: string;
}

/**
 * Answer an ask, at most once: the frozen value, the state, the debit and the randomised bytes are stored in one
 * transaction, before anything is sent. A device outside the cohort, or whose budget is spent, may send cover instead.
 * Returns the refusal that cover stands for, if there was one.
 */
export async function answer(
  ...[access, collection, ask, clock, update]: [Access, Collection, Ask, DeviceClock, Code?]
): Promise<unknown> {
  if (await access.get(entryKey(ask))) return;
  const book = clock.open((await access.get<Book>(["book"]))!);
  const { wall } = book;
  const { question, run, step, round, part, terms } = ask;
  check(book.version === collection.version, "version", "the one in force");
  check(terms.study || step === stepAt(collection, wall), "step", "the one that the device is in");
  check(ask.opens <= wall && wall < ask.closes, "round", "the one that the device is in");
  const back = stepAt(collection, wall) < stepAt(collection, book.latest);
  check(!back && wall >= collection.origin, "step", "the clock was set back: a later step was answered");
  const shares = !!collection.shuffle?.sealing.homomorphic;
  check(!shares || hasNumbers(ask.mechanism.spec), "mechanism", "GRR or SOLH: their reports can be divided into shares");
  const context: AnswerContext = { access, collection, ask, book, id: systemRandom(16), update };
  let cover = !ask.inCohort;
  let refused: unknown;
  let report: Bytes | null = null;
  try {
    if (!cover) report = await (remembers(ask.mechanism) ? fromState(context, ask.mechanism) : fresh(context));
  } catch (error) {
    if (!collection.cover || (error as Refused).field !== "budget") throw error;
    refused = error;
  }
  cover = !report && collection.cover; // of whoever has nothing to say, too
  for (const old of await access.all<Entry>(["entry"])) {
    if (!old.report && old.until <= wall) access.drop(entryKey(old));
  }
  access.put(entryKey(ask), {
    ...{ collection: collection.name, version: collection.version, question, run, step, round, part },
    id: context.id,
    report: cover ? new Uint8Array() : shares ? numberBytes(ask.mechanism.spec, report!, systemRandom) : report,
    cover,
    until: terms.study ? ask.closes : opens(collection, step + 1),
    size: collection.uploadBytes,
    ...(collection.shuffle && { addresses: collection.shuffle.addresses }),
    ...(collection.shuffle && !cover && { sealing: collection.shuffle.sealing, asked: askedOf(ask) }),
    enrols: context.enrols,
    stream: context.stream,
  } satisfies Entry);
  const latest = Math.max(wall, book.latest);
  const { answers } = book;
  access.put(["book"], { ...context.book, latest, answers: answers + 1, page: clock.page } satisfies Book);
  return refused;
}

/** The mechanism and the view of an ask, which the layers of a sealed report are bound to. */
const askedOf = ({ mechanism, viewSpec }: Ask): Spec => ({ mechanism: mechanism.specId, view: viewSpec });

/** Charge an answer, as of a later moment where it is paid for beforehand. */
function pay(context: AnswerContext, cost: bigint, until?: number): void {
  const { book, ask } = context;
  context.book = { ...book, ...charge(book, ask.terms.account, ask.question, cost, book, until) };
}

/** A fresh report. */
async function fresh(context: AnswerContext): Promise<Bytes> {
  const { ask } = context;
  const { mechanism } = ask;
  if (remembers(mechanism)) throw new TypeError("its state is needed");
  const input = ask.terms.study ? await inStudy(context) : await frozen(context);
  if (!ask.terms.study) pay(context, mechanism.spent);
  return mechanism.randomize(input, systemRandom);
}

/**
 * The input of a study's ask. The first answer of a run freezes the values for the whole run and charges its whole limit,
 * dated at the end of the run: so silence in a later round does not depend on what that round would cost. Later rounds cost
 * nothing more, and the epsilons of all rounds together are at most the limit. Rounds go forward: a missed round stays
 * unanswered.
 */
async function inStudy(context: AnswerContext): Promise<unknown> {
  const { access, collection, ask } = context;
  const { run, round, terms, mechanism } = ask;
  const key: Key = ["state", `study:${ask.question}`];
  const row = await access.get<StateRow>(key);
  check(!row || +row.stream <= run, "run", "no earlier one than was answered"); // false for what is no number, too
  const domains = terms.fields.map((field) => collection.domains[field]!);
  const until = roundTimes(collection, terms, run, 0, terms.rounds)[1] - 1;
  let study = row?.stream === `${run}` ? (row.state as StudyState) : null;
  if (!study) {
    const codes = await Promise.all(terms.fields.map((field) => recorded(context, field)));
    study = { codes, domains, left: terms.limit, round: 0, until };
    pay(context, terms.limit, until);
  }
  check(isStudyState(study, terms.fields.length), "state", "one that a study can go on from");
  check(`${study.domains}` === `${domains}`, "fields", "what they were when the run began");
  check(until <= study.until, "run", "one that ends when it was to end: what was paid counts until then");
  check(round > study.round, "round", "a later one than was answered");
  const left = study.left - mechanism.declared;
  check(left >= 0n, "limit", "no more in all rounds than was signed");
  const state: StudyState = { ...study, left, round };
  access.put(key, { stream: `${run}`, state, told: false, enrolment: null } satisfies StateRow);
  return inputOf(ask, context.update ? [context.update] : study.codes);
}

/** Whether a stored state is one of a study: another version's, or a damaged one, is refused before anything is spent. */
const isStudyState = ({ codes, domains, left, round, until }: Partial<StudyState>, fields: number): boolean =>
  Array.isArray(codes) && codes.length === fields && Array.isArray(domains) && typeof left === "bigint" && left >= 0n &&
  [round, until].every((number) => Number.isSafeInteger(number) && (number as number) >= 0);

/**
 * A report from the stored state of a mechanism that remembers, paid for when the mechanism says so. A state of another
 * stream is replaced by a new one. Memos are stored by account, so that two fields do not share their noise.
 */
async function fromState(context: AnswerContext, mechanism: Stateful): Promise<Bytes | null> {
  const { access, collection, ask, id } = context;
  const { account } = ask.terms;
  const name = account === "asks" ? ask.question : account;
  const [key, part]: [Key, string] = [["state", name], mechanism.stateKey(ask.step)];
  const stream = part ? JSON.stringify([part, mechanism.specId, collection.interval, collection.origin]) : mechanism.specId;
  context.stream = stream;
  let row = await access.get<StateRow>(key);
  if (row?.stream !== stream) row = { stream, state: mechanism.enroll(systemRandom), told: false, enrolment: null };
  const before = row.state as State;
  check(mechanism.fits(before), "state", "one that the mechanism can go on from");
  const input = await frozen(context);
  let unpaid: unknown = null;
  try {
    pay(context, mechanism.price(before, ask.step, input));
  } catch (error) {
    unpaid = error; // it may go on without
  }
  let [state, report] = mechanism.step(before, ask.step, input, systemRandom, !unpaid);
  if (unpaid && !report) throw unpaid;
  // Where reports are shuffled, an enrolment by itself would be in a batch of few.
  const enrols = mechanism.enrolment && !row.told && !row.enrolment && (report || !collection.shuffle);
  if (enrols) {
    report = mechanism.enrolment!(state, report);
    context.enrols = name;
  }
  access.put(key, { ...row, state, enrolment: enrols ? id : row.enrolment } satisfies StateRow);
  return report;
}

/** A value of a field: its code, and when it was recorded. */
export interface Recorded {
  wall: number;
  code: Code;
}

/** The frozen values of some fields in a step. */
interface Frozen {
  wall: number;
  codes: (Code | null)[];
}

/** Where a field's values are kept. */
export const valueKey = ({ domains }: Collection, field: string): Key => ["value", field, domains[field]!];

/** The last value recorded for a field: in the present step, or at any time where the terms say so. */
async function recorded({ access, collection, ask, book }: AnswerContext, field: string): Promise<Code | null> {
  const stored = await access.get<Recorded>(valueKey(collection, field));
  const step = stepAt(collection, book.wall);
  const current = stored && (ask.terms.frozen !== "step" || stepAt(collection, stored.wall) === step);
  return current ? stored.code : (ask.terms.fields.length > 1 ? absent : missing)(fieldOf(collection, field));
}

/** The input of all asks of a step: from what was recorded before the first of them, all fields of a question together. */
async function frozen(context: AnswerContext): Promise<unknown> {
  const { access, collection, ask, book } = context;
  const { fields, frozen: how } = ask.terms;
  const key: Key = [how, ...fields, ...fields.map((field) => collection.domains[field]!)];
  const stored = await access.get<Frozen>(key);
  if (stored && stepAt(collection, stored.wall) === ask.step) return inputOf(ask, stored.codes);
  const codes = await Promise.all(fields.map((field) => recorded(context, field)));
  access.put(key, { wall: book.wall, codes } satisfies Frozen);
  return inputOf(ask, codes);
}

/** The input of the mechanism: what the view gives of one field, or of several by their names. */
const inputOf = ({ view, terms: { fields } }: Ask, codes: (Code | null)[]): unknown =>
  view.see(fields.length === 1 ? codes[0]! : Object.fromEntries(fields.map((field, at) => [field, codes[at]!])), systemRandom);
