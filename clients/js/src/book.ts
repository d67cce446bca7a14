import type { Ledger, Moment } from "./promises";

/** All that a device keeps of time and money, through every version of a collection. */
export interface Book extends Ledger, Moment {
  /** The version in force, and the id of its document. */
  version: number;
  id: string;
}

export const newBook = (wall: number, recovered: boolean): Book => ({
  version: 0,
  id: "",
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
 * clock say has passed: it never runs ahead of true time, and stands still while no page is open.
 */
export class Watch {
  #base: number | null = null;
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
    const passed = Math.max(0, wall - book.wall);
    // Another tab may bring trusted time further than this page's own clock can tell, but none brings it past the truth.
    this.#base ??= book.trusted + (this.#trustWallClock ? passed : 0) - monotonic;
    const trusted = Math.max(book.trusted, Math.min(book.trusted + passed, this.#base + monotonic));
    return { ...book, wall, trusted };
  }
}
