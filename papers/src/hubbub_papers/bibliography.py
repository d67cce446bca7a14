"""The bibliography: `references.bib`, citations in docstrings, and docs/references.md, which is written from both."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from inspect import getdoc, isclass, isfunction
from pkgutil import walk_packages
from types import MappingProxyType

from hubbub.core.errors import InvalidValue

_NAME = r"[^\W\d_a-z][\w'-]+(?: [^\W\d_a-z][\w'-]+)*"
_CITATION = re.compile(rf"(?:([^\W\d_a-z])\. )?({_NAME}(?:, {_NAME})*)(?:( et al\.)|,? and ({_NAME}))?, (\d{{4}})")
_ACCENTS = {"'": "\u0301", '"': "\u0308", "`": "\u0300", "^": "\u0302", "v ": "\u030c"}
_MOST_NAMES = 3  # of more authors than these, a citation names the first


@dataclass(frozen=True)
class Reference:
    """An entry of `references.bib`: its key, its kind, its fields without TeX, and its text in the file."""

    key: str
    kind: str
    fields: Mapping[str, str]
    bibtex: str

    @property
    def authors(self) -> list[tuple[str, str]]:
        """Surname and given names of each author; a team has no given names."""
        pairs = (author.partition(", ") for author in self.fields["author"].split(" and ") if author != "others")
        return [(surname, given) for surname, _, given in pairs]

    @property
    def link(self) -> str:
        """The address of the text, or nothing."""
        known = {"doi": "https://doi.org/", "eprint": "https://arxiv.org/abs/", "url": ""}
        return next((start + self.fields[field] for field, start in known.items() if field in self.fields), "")

    @property
    def label(self) -> str:
        """The shortest citation that is of this source alone, such as "T. Wang, Chen et al., 2021"."""
        (first, given), *others = self.authors
        namesakes = {source.authors[0][1] for source in sources().values() if source.authors[0][0] == first}
        start = f"{given[0]}. {first}" if len(namesakes) > 1 else first
        surnames = [start, *(surname for surname, _ in others)]
        complete = ", ".join(surnames[:-1]) + f" and {surnames[-1]}" if others else start
        shorter = [f"{', '.join(surnames[:names])} et al." for names in range(1, len(surnames))]
        tried = [complete, *shorter] if len(surnames) <= _MOST_NAMES else [*shorter, complete]
        return next(text for text in (f"{names}, {self.fields['year']}" for names in tried) if len(_cited(text)) == 1)

    def text(self) -> str:
        """The source in full, in one line."""
        fields = self.fields
        names = [
            f"{' '.join(f'{word[0]}.' for word in given.split())} {surname}".strip() for surname, given in self.authors
        ]
        where = fields.get("booktitle") or fields.get("journal") or fields.get("school", "")
        number = f" {fields['volume']}({fields['number']})" if "volume" in fields and "number" in fields else ""
        pages = f", pages {fields['pages'].replace('--', ' to ')}" if "pages" in fields else ""
        kind = "PhD thesis, " if self.kind == "phdthesis" else f"arXiv {fields['eprint']}" if "eprint" in fields else ""
        day = f"{fields.get('month', '')} {fields['year']}".strip()
        day += f" ({fields['note']})" if "note" in fields else ""
        others = ", and others" if fields["author"].endswith(" and others") else ""
        parts = [part for part in (f"{kind}{where}{number}{pages}", day) if part]
        return f"{', '.join(names)}{others}. {fields['title']}. {', '.join(parts)}."


@cache
def sources() -> Mapping[str, Reference]:
    """Every entry of `references.bib` by its key, in the order of the file."""
    found: dict[str, Reference] = {}
    file = resources.files("hubbub_papers").joinpath("references.bib").read_text(encoding="utf-8")
    for entry in re.finditer(r"^@(\w+)\{(\w+),\n(.*?)^\}\n", file, re.MULTILINE | re.DOTALL):
        kind, key, body = entry.groups()
        fields = dict(re.findall(r"^  (\w+) = \{(.*)\},?$", body, re.MULTILINE))
        if key in found:
            raise InvalidValue("references.bib", key, "a key that is not taken")
        found[key] = Reference(
            key, kind, MappingProxyType({name: _plain(text) for name, text in fields.items()}), entry[0]
        )
    return MappingProxyType(found)


def _plain(text: str) -> str:
    """A field without TeX: accents as letters, no braces."""
    accented = re.sub(
        r"\{\\(v |['\"`^])(\w)\}", lambda match: unicodedata.normalize("NFC", match[2] + _ACCENTS[match[1]]), text
    )
    return re.sub(r"[{}]|\\(?=&)", "", accented)


def _folded(name: str) -> str:
    """A name without accents: docstrings write Ozgur for Özgür."""
    return "".join(letter for letter in unicodedata.normalize("NFD", name) if not unicodedata.combining(letter)).lower()


def citations(text: str) -> list[Reference]:
    """The sources that a text cites by author and year, such as "Gu et al., 2020", in its order.

    An author's initial is given where two have a surname in common. More authors are named where the first and the year
    leave several sources. A citation of no source, or of several, is refused.
    """
    found: list[Reference] = []
    for citation in _CITATION.finditer(text):
        matching = _cited(citation[0])
        if len(matching) != 1:
            several = ", ".join(source.key for source in matching) or "none"
            raise InvalidValue(
                "citation", citation[0], f"authors and year of one entry of references.bib; of: {several}"
            )
        found += [source for source in matching if source not in found]
    return found


def _cited(citation: str) -> list[Reference]:
    """The sources that a citation may be of."""
    match = _CITATION.fullmatch(citation)
    if match is None:
        return []
    initial, names, others, last, year = match.groups()
    surnames = [_folded(name) for name in [*names.split(", "), *([last] if last else [])]]
    matching: list[Reference] = []
    for source in sources().values():
        authors = [_folded(surname) for surname, _ in source.authors]
        same = authors[: len(surnames)] == surnames and bool(others) == (len(authors) > len(surnames))
        first = source.authors[0][1]
        if same and source.fields["year"] == year and (not initial or first.startswith(initial)):
            matching.append(source)
    return matching


def references(documented: object) -> str | None:
    """The References section of a docstring, in one line, or None."""
    section = (getdoc(documented) or "").partition("References\n----------\n")[2]
    return " ".join(section.split()) or None


def baselines() -> Iterator[tuple[str, object]]:
    """The public classes and functions of the baselines that have a References section of their own, by name."""
    package = import_module("hubbub_papers.baselines")
    for module in walk_packages(package.__path__, f"{package.__name__}."):
        for name, item in vars(import_module(module.name)).items():
            own = (isclass(item) or isfunction(item)) and item.__module__ == module.name
            if own and not name.startswith("_") and item.__doc__ and references(item):
                yield name, item


def page() -> str:
    """The text of docs/references.md."""
    from hubbub.mechanisms import MECHANISMS
    from hubbub_papers.harness import PAPERS

    lines = [
        "# References",
        "",
        "Written by `python -m hubbub_papers.bibliography` from the docstrings and from",
        "[references.bib](../papers/src/hubbub_papers/references.bib), which has the same in BibTeX.",
        "`hubbub reproduce NAME --cite` prints the entry of a figure's paper, `hubbub reproduce list --cite` all.",
        "A volume or page that could not be confirmed is left out.",
        "",
        "## The papers that are reproduced",
        "",
        "| names | short | paper |",
        "|---|---|---|",
        *(f"| `{paper.name}-*` | `{paper.alias}-*` | {_line(sources()[paper.key])} |" for paper in PAPERS),
        "",
        "## Who a mechanism or a baseline is by",
        "",
        "| mechanism | source |",
        "|---|---|",
    ]
    known = {name: kind for name, kind in MECHANISMS.usable().items() if kind.__module__.startswith("hubbub.")}
    for name, item in {**known, **dict(baselines())}.items():
        cited = citations(references(item) or "")
        lines.append(f"| `{name}` | {'; '.join(source.label for source in cited) or 'ours'} |")
    lines += ["", "## All sources", ""]
    in_order = sorted(sources().values(), key=lambda source: (_folded(source.label.split(". ")[-1]), source.label))
    lines += [f"- **{source.label}.** {_line(source)}" for source in in_order]
    return "\n".join(lines) + "\n"


def _line(source: Reference) -> str:
    """A source in Markdown, with its link."""
    return f"{source.text()} <{source.link}>" if source.link else source.text()


if __name__ == "__main__":
    print(page(), end="")
