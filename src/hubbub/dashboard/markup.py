"""Markup from Python: whatever is not markup already is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import TypeAlias

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
_SHAPES = frozenset({"circle", "line", "path", "rect"})
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


Child: TypeAlias = "str | int | Iterable[Child] | None"


def el(tag: str, *children: Child, **attributes: object) -> Html:
    """An element. In a name, _ stands for - and one at the end is dropped; None and False leave an attribute out."""
    spelled = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID:
        return Html(f"<{tag}{spelled}>")
    if tag in _SHAPES:
        return Html(f"<{tag}{spelled}/>")
    return Html(f"<{tag}{spelled}>{join(*children)}</{tag}>")


def join(*children: Child) -> Html:
    """One after another, each escaped unless it is markup; None is nothing."""
    return Html("".join(_text(child) for child in children))


def _text(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, str | int):
        return escape(_clean(str(child)), quote=False)
    return "".join(_text(part) for part in child)


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return f' {name}="{escape(_clean(str(value)))}"'


def _clean(text: str) -> str:
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
