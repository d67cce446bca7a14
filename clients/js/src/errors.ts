/** Anything that is refused: the message names the field and what is allowed. */
export class Refused extends Error {
  constructor(
    readonly field: string,
    allowed: string,
  ) {
    super(`${field}: ${allowed}`);
    this.name = "Refused";
  }
}

export function check(right: unknown, field: string, allowed: string): asserts right {
  if (!right) throw new Refused(field, allowed);
}
