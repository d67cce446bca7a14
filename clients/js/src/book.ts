import type { Ledger, Moment } from "./promises";
import type { Spec } from "./spec";

/** The account of a device, through every version of a collection: promises, debits and the time. */
export interface Book extends Ledger, Moment {
  /** The version in force, and the id of its document. */
  version: number;
  id: string;
  /** How many answers were made, and the page that made the last of them. */
  answers: number;
  page: number;
  /** The document of the version in force: a later version that promises less is refused (`weaker.ts`). */
  agreed?: Spec;
}

export const newBook = (wall: number, recovered: boolean): Book => ({
  version: 0,
  id: "",
  answers: 0,
  page: 0,
  wall,
  trusted: 0,
  promises: [],
  debits: [],
  totals: {},
  latest: -Infinity,
  recovered: recovered ? { wall, trusted: 0 } : null,
});

/**
 * The device's time. Steps follow the wall clock. Trusted time is the smaller of what the wall clock and the page's own
 * clock say has passed: between an answer and any later moment no more of it passes than of true time. It stands still while
 * no page is open.
 */
export class DeviceClock {
  /** Tells this page from others. */
  readonly page = Math.random();
  #last: { trusted: number; monotonic: number; answers: number } | null = null;
  #trustWallClock: boolean;

  constructor(
    readonly now: () => number,
    trustWallClock: boolean,
  ) {
    this.#trustWallClock = trustWallClock;
  }

  /** The book brought up to now. */
  open(book: Book): Book {
    const [wall, monotonic] = [this.now(), performance.now()];
    const [passed, last] = [Math.max(0, wall - book.wall), this.#last];
    // An answer that another page made since this one last looked: its age is not known here, and time goes on from now.
    const known = last && (book.answers === last.answers || book.page === this.page);
    const own = known ? last.trusted + monotonic - last.monotonic : this.#trustWallClock && !last ? Infinity : 0;
    const trusted = Math.max(book.trusted, Math.min(book.trusted + passed, own));
    this.#last = { trusted, monotonic, answers: book.answers };
    return { ...book, wall, trusted };
  }
}
