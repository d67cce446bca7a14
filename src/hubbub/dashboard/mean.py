"""A mean, on the range that its numbers may have."""

from __future__ import annotations

from hubbub.dashboard.answer import AnswerCard
from hubbub.dashboard.markup import Child, Html, el
from hubbub.dashboard.words import Scale


def mean_figure(answer: AnswerCard, low: float, high: float) -> Html:
    """The number, and where it lies."""
    mean, scale = answer.values[0], Scale.of_answer(answer)

    def x(number: float) -> float:
        return round(1000 * (min(max(number, low), high) - low) / (high - low), 1)

    shapes: list[Child] = [el("path", class_="range", d="M0 20H1000M0 12V28M1000 12V28")]
    if mean.low is not None and mean.high is not None:
        left, right = x(mean.low), x(mean.high)
        shapes.append(el("rect", class_="band", x=left, y=8, width=round(right - left, 1), height=24))
    if mean.value is not None:
        shapes.append(el("path", class_="dot", d=f"M{x(mean.value)} 20h0"))
    text = f"{scale.text(mean.value)} {scale.reach(mean.reach)}, on a range from {low:g} to {high:g}"
    return el(
        "figure",
        el("figcaption", scale.text(mean.value), " ", el("span", scale.reach(mean.reach), class_="reach")),
        el("svg", shapes, viewBox="0 0 1000 40", preserveAspectRatio="none", role="img", aria_label=text),
        el("p", el("span", f"{low:g}"), el("span", f"{high:g}"), class_="ends"),
        class_="mean",
    )
