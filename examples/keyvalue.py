"""Which movies are watched, and how they are liked, without learning what anyone watched.

The ratings of MovieLens 100K: a person's keys are the mysteries they rated, the values one to five stars as -1 to 1.
Each device sends one report on all of them together. Run it with `python examples/keyvalue.py`.
"""

import numpy as np

import hubbub as hb
from hubbub.consistency import capped_signs, conditional_means
from hubbub.data import KeyValues, movies
from hubbub.random.source import Random
from hubbub.simulate.conversation import collect

EPSILON, SPARSITY = 2.0, 16
SHOWN = 8


def stars(value: float | np.ndarray) -> float | np.ndarray:
    """From -1 to 1 back to one to five stars."""
    return 3 + 2 * value


def ask(people: KeyValues, rng: Random) -> dict[str, hb.Estimate]:
    """One report of each person; for every movie, its mean over all, the share who rated it, and the mean of those."""
    exsub = hb.ExSub(epsilon=EPSILON, dimension=people.dimension, sparsity=SPARSITY)
    sketch = collect(exsub, people.ternary(), rng)
    return {of: exsub.estimate(sketch, of=of) for of in ("mean", "frequency", "conditional")}


def possible(answers: dict[str, hb.Estimate]) -> dict[str, hb.Estimate]:
    """The nearest answers that people with at most so many movies can give: less error, some bias."""
    mean, frequency = capped_signs(answers["mean"], answers["frequency"], SPARSITY)
    return {"mean": mean, "frequency": frequency, "conditional": conditional_means(mean, frequency)}


def truth(people: KeyValues) -> dict[str, np.ndarray]:
    """What only a simulation knows."""
    mean, frequency = people.ternary().means(), people.ternary().frequencies()
    return {"mean": mean, "frequency": frequency, "conditional": mean / frequency}


def main(resampled: int | None = None) -> dict[str, dict[str, float]]:
    """Ask the people, or so many drawn from them, and print the estimates and their errors."""
    people, rng = movies(genre="Mystery"), Random(seed=1)  # a simulation; a device leaves the seed out
    if resampled is not None:
        people = people.resampled(resampled, rng)
    who = f"{people.n:,} people{'' if resampled is None else ' (resampled)'}"
    print(f"{who}, {people.dimension} movies, epsilon {EPSILON:g}, at most {SPARSITY} movies a person")
    clipping = people.ternary().clipping(SPARSITY)
    print(f"{clipping.rows:,} hold more and leave some out, {clipping.lost:.1%} of all ratings: ", end="")
    print(f"no mean is off by more than {np.abs(clipping.bias).max():.4f} for it")

    true, raw = truth(people), ask(people, rng)
    low, high = raw["frequency"].interval()
    print(f"surely rated by someone: {np.count_nonzero(low > 0)} of {people.dimension}")
    print(f"{'the most rated':34}{'rated by':>20}{'true':>7}   {'stars':>16}{'true':>6}")
    least, most = (stars(end) for end in raw["conditional"].interval())
    for i in raw["frequency"].top(SHOWN):
        rated = f"{low[i]:.1%} to {high[i]:.1%}"
        liked = f"{least[i]:.1f} to {most[i]:.1f}" if low[i] > 0 else "unknown"
        row = f"{people.labels[i][:33]:34}{rated:>20}{true['frequency'][i]:>7.1%}"
        print(f"{row}   {liked:>16}{stars(true['conditional'][i]):>6.1f}")

    errors = {}
    known = raw["frequency"].value > 4 * raw["frequency"].stderr  # elsewhere a quotient says nothing
    print(f"{'mean absolute error':34}{'as it is':>12}{'made possible':>15}{'in the 95% interval':>22}")
    for of, consistent in possible(raw).items():
        chosen = known if of == "conditional" else np.full(people.dimension, fill_value=True)
        if not chosen.any():
            print(f"{of:34}{'no movie is rated by enough of so few people':>49}")
            continue
        ends, right = raw[of].interval(), true[of]
        errors[of] = {
            "raw": float(np.abs(raw[of].value - right)[chosen].mean()),
            "possible": float(np.abs(consistent.value - right)[chosen].mean()),
            "covered": float(((ends[0] <= right) & (right <= ends[1]))[chosen].mean()),
        }
        print(f"{of:34}{errors[of]['raw']:>12.4f}{errors[of]['possible']:>15.4f}{errors[of]['covered']:>22.0%}")
    return errors


if __name__ == "__main__":
    main()
    print()
    main(100_000)
