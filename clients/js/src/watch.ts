import { type Collection, stepAt } from "./collection";
import { type Account, type Now, newAccount, recount } from "./ledger";

/**
 * The device's time. Steps follow the wall clock. Trusted time is the smaller of what the wall clock and the page's own
 * clock say has passed: it never runs ahead of true time, and stands still while no page is open.
 */
export class Watch {
  private base: number | null = null;

  constructor(
    readonly now: () => number,
    private readonly trustWallClock: boolean,
  ) {}

  /** The account brought up to now, or a new one. */
  read(collection: Collection, stored: Account | undefined): { account: Account; now: Now } {
    const [wall, monotonic] = [this.now(), performance.now()];
    const steps = `${collection.origin} ${collection.interval}`;
    const before = stored ?? { ...newAccount(steps), wall };
    const passed = Math.max(0, wall - before.wall);
    // Another tab may bring trusted time further than this page's own clock can tell, but none brings it past the truth.
    this.base ??= before.trusted + (this.trustWallClock ? passed : 0) - monotonic;
    const trusted = Math.max(before.trusted, Math.min(before.trusted + passed, this.base + monotonic));
    const now = { step: stepAt(collection, wall), wall, trusted };
    return { account: { ...recount(before, steps, now), wall, trusted }, now };
  }
}
