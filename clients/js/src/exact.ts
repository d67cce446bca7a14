import { check } from "./errors";

/** Exact arithmetic for privacy: ratios of probabilities are pairs of big integers, and nothing here is a float. */
export type Ratio = readonly [over: bigint, under: bigint];

const BITS = 256n;

/**
 * A lower bound of 2^256 e^(over/under), for over >= 0.
 *
 * e^x is the sum of x^i/i!. All terms are positive here, each is rounded down, and the sum stops where they reach 0:
 * what is left out only makes it smaller. So a spec whose ratio is at most this bound surely spends no more than it
 * declares, and a doubtful one is refused. The bound is nearer to e^x than 10^-70 of it, while the server's own
 * mechanisms stay below by 10^-58 of it or more: no honest spec is refused.
 */
export function expBelow(over: bigint, under: bigint): bigint {
  let sum = 0n;
  let term = 1n << BITS;
  for (let i = 1n; term > 0n; i++) {
    sum += term;
    term = (term * over) / (under * i);
  }
  return sum;
}

/** Whether a likelihood ratio is surely at most e^(over/under). */
export const within = (ratio: Ratio, over: bigint, under: bigint): boolean =>
  ratio[0] << BITS <= expBelow(over, under) * ratio[1];

/** A double from 0 to a million as the fraction that it is. */
export function fraction(value: number): Ratio {
  check(value >= 0 && value <= 1e6, "epsilon", "a number from 0 to a million"); // false for what is no number too
  let under = 1n;
  for (; !Number.isInteger(value); value *= 2) under *= 2n; // doubling is exact
  return [BigInt(value), under];
}

export const UNITS_PER_EPSILON = 10n ** 12n;

/** What a ratio spends: ln of it in units of 1e-12 epsilon, rounded up. */
export function spentBy(ratio: Ratio): bigint {
  // A float is near enough to begin at: the logarithm is right to a unit.
  const near = BigInt(Math.floor((ln(ratio[0]) - ln(ratio[1])) * 1e12)) - 2n;
  let units = near > 0n ? near : 0n;
  while (!within(ratio, units, UNITS_PER_EPSILON)) units++;
  return units;
}

/** The logarithm of an integer of any size. */
function ln(value: bigint): number {
  const above = Math.max(0, value.toString(16).length - 64); // hexadecimal digits that a double has no room for
  return Math.log(Number(value >> BigInt(4 * above))) + 4 * above * Math.LN2;
}
