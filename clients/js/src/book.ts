import { type Collection, stepAt } from "./collection";
import { type Account, type Budget, type Now, newAccount, recount } from "./ledger";
import { type Kind, least, splitBudget } from "./split";

/** All that a device keeps of time and money, through every version of a collection. */
export interface Book {
  /** Origin and length of a step, which a new version may change. */
  steps: string;
  wall: number;
  trusted: number;
  /** The tightest limit for life that was ever promised: a new version gives no new life. */
  most: bigint | null;
  asks: Account;
  memos: Account;
}

/** The book brought up to now. */
export interface Opened {
  book: Book;
  now: Now;
  budget(kind: Kind): Budget;
}

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

  open(collection: Collection, stored: Book | undefined): Opened {
    const { origin, interval, budget } = collection;
    const [wall, monotonic, steps] = [this.now(), performance.now(), `${origin} ${interval}`];
    const before = stored ?? { steps, wall, trusted: 0, most: null, asks: newAccount(), memos: newAccount() };
    const passed = Math.max(0, wall - before.wall);
    // Another tab may bring trusted time further than this page's own clock can tell, but none brings it past the truth.
    this.#base ??= before.trusted + (this.#trustWallClock ? passed : 0) - monotonic;
    const trusted = Math.max(before.trusted, Math.min(before.trusted + passed, this.#base + monotonic));
    const now = { step: stepAt(collection, wall), trusted, interval };
    const most = before.most !== null && budget.user !== null ? least(before.most, budget.user) : (before.most ?? budget.user);
    const book = { ...before, steps, wall, trusted, most };
    if (steps !== before.steps) Object.assign(book, { asks: recount(book.asks, now), memos: recount(book.memos, now) });
    const parts = splitBudget({ ...budget, user: most }, Object.values(collection.questions));
    return {
      book,
      now,
      budget: (kind) => {
        // What the other account has spent beyond its present part is gone too.
        const left = most === null ? null : most - book[kind === "asks" ? "memos" : "asks"].lifetime;
        const { user } = parts[kind];
        return { ...parts[kind], user: left === null || user === null ? user : least(user, left) };
      },
    };
  }
}
