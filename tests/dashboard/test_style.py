"""The stylesheet and the programs: light and dark, legible in both, nothing from elsewhere."""

import re
from importlib.resources import files

import pytest

STATIC = files("hubbub.dashboard").joinpath("static")
CSS = STATIC.joinpath("style.css").read_text(encoding="utf-8")
LIGHT, DARK = re.findall(r":root \{([^}]*)\}", CSS)


def colors(block: str) -> dict[str, str]:
    return dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6,8});", block))


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    light, dark = sorted((luminance(a), luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_black_on_white_has_the_contrast_that_it_has():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)


@pytest.mark.parametrize("block", [LIGHT, DARK], ids=["light", "dark"])
def test_text_is_legible(block: str):
    # WCAG 2.2: 4.5 for text, 3 for what must be seen to understand a drawing.
    given = colors(block)
    for text in ("ink", "muted", "accent", "alarm"):
        for ground in ("paper", "raised"):
            assert contrast(given[text], given[ground]) >= 4.5, (text, ground)
    assert contrast(given["bar"], given["paper"]) >= 3
    assert contrast(given["ink"], given["bar"]) >= 3


def test_both_schemes_have_all_colors():
    assert colors(LIGHT).keys() == colors(DARK).keys()
    assert "@media (prefers-color-scheme: dark)" in CSS
    used = set(re.findall(r"var\(--([a-z]+)\)", CSS))
    assert used <= {*colors(LIGHT), "serif", "sans", "mono"}


def test_focus_motion_and_forced_colors_are_seen_to():
    for rule in (":focus-visible", "prefers-reduced-motion", "forced-colors", ".skip:focus"):
        assert rule in CSS
    assert not re.search(
        r"outline:\s*(?:none|0)", CSS.replace("main { padding-block: 1.5rem 4rem; outline: none; }", "")
    )


@pytest.mark.parametrize("name", ["style.css", "live.js", "charts.js", "icon.svg", "uplot/uPlot.min.css"])
def test_nothing_is_fetched_from_elsewhere(name: str):
    text = STATIC.joinpath(name).read_text(encoding="utf-8")
    text = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?://|url\(|@import|//[a-z]+\.[a-z]", text)


@pytest.mark.parametrize("name", ["live.js", "charts.js"])
def test_programs_make_no_markup_from_text(name: str):
    text = STATIC.joinpath(name).read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text)
