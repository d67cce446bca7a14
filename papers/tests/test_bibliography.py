"""Every mechanism and baseline names its source, and every source is in the bibliography."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hubbub.core.errors import InvalidValue
from hubbub.mechanisms import MECHANISMS
from hubbub_papers import bibliography
from hubbub_papers.baselines.succinct import Succinct
from hubbub_papers.bibliography import baselines, citations, references, sources
from hubbub_papers.harness import PAPERS

ROOT = Path(__file__).parents[2]
NAMED = {**MECHANISMS.usable(), **dict(baselines())}


@pytest.mark.parametrize("name", NAMED)
def test_a_mechanism_and_a_baseline_name_a_source_of_the_bibliography_or_say_that_they_are_ours(name: str) -> None:
    text = references(NAMED[name])
    assert text is not None, f"{name} has no References section"
    assert citations(text) or text.startswith("Ours"), text


def sections() -> Iterator[tuple[str, str]]:
    """Every References section of both packages, with where it is."""
    for root in (ROOT / "src" / "hubbub", ROOT / "papers" / "src" / "hubbub_papers"):
        for file in sorted(root.rglob("*.py")):
            for section in re.findall(r"^ +References\n +-+\n(.*?)\"\"\"", file.read_text("utf-8"), re.M | re.S):
                yield str(file.relative_to(ROOT)), " ".join(section.split())


def test_every_references_section_cites_sources_of_the_bibliography_and_every_source_is_cited() -> None:
    cited = {source.key for _, section in sections() for source in citations(section)}
    uncited = sources().keys() - cited
    assert not uncited
    for place, section in sections():
        # A year that belongs to no citation is one whose author the bibliography would not be asked for.
        years = len(re.findall(r"\b(?:19|20)\d\d\b", section))
        assert years == sum(1 for _ in bibliography._CITATION.finditer(section)), (place, section)
        assert citations(section) or section.startswith(("Ours", "docs/")), (place, section)


def test_a_citation_is_of_one_source() -> None:
    assert [source.key for source in citations("Gu et al., 2020 (section 5); T. Wang, 2021, section 3")] == [
        "gu2020pckv",
        "wang2021analyzing",
    ]
    assert citations("Chen, Kairouz and Ozgur, 2020")[0].label == "Chen, Kairouz and Özgür, 2020"
    assert {source.key for source in citations("Wang, 2021; T. Wang et al., 2021")} == {
        "wang2021analyzing",
        "wang2021streams",
    }
    with pytest.raises(InvalidValue, match=r"of: wang2023vectors, wang2023sao2"):
        citations("S. Wang et al., 2023")
    with pytest.raises(InvalidValue, match="of: none"):
        citations("Gu et al., 2021")
    with pytest.raises(InvalidValue, match="of: none"):
        citations("X. Wang, 2021")


def test_a_label_leads_back_to_its_source() -> None:
    assert len({source.label for source in sources().values()}) == len(sources())
    assert all(citations(source.label) == [source] for source in sources().values())


def test_the_bibliography_is_plain_bibtex() -> None:
    file = (Path(bibliography.__file__).parent / "references.bib").read_text("utf-8")
    assert file.isascii()
    assert len(re.findall(r"^@", file, re.MULTILINE)) == len(sources())
    for source in sources().values():
        assert {"author", "title", "year"} <= source.fields.keys()
        assert source.bibtex.count("{") == source.bibtex.count("}")
        assert not set("{}\\") & set(source.text())
    assert (
        sources()["balle2019blanket"].text().startswith("B. Balle, J. Bell, A. Gascón, K. Nissim. The Privacy Blanket")
    )


def test_the_papers_are_sources_and_their_names_are_not_each_others_beginnings() -> None:
    assert [sources()[paper.key].key for paper in PAPERS] == [paper.key for paper in PAPERS]
    beginnings = [f"{name}-" for paper in PAPERS for name in (paper.name, paper.alias)]
    assert not [(a, b) for a in beginnings for b in beginnings if a != b and a.startswith(b)]


def test_the_page_of_references_is_written_from_the_bibliography() -> None:
    assert (ROOT / "docs" / "references.md").read_text("utf-8") == bibliography.page(), (
        "run: python -m hubbub_papers.bibliography > docs/references.md"
    )


def test_a_class_that_cites_nothing_is_seen() -> None:
    class Nameless(Succinct):
        """A mechanism."""

    assert references(Nameless) is None
    assert references(Succinct) is not None


def test_no_text_says_the_dissertation() -> None:
    """Two of the papers are by a Wang of 2021: an author and a year say which, "the dissertation" does not."""
    for folder in ("src/hubbub", "papers/src/hubbub_papers", "docs"):
        for file in [*(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.md")]:
            # The alias of its reproductions is no name of a source.
            found = re.findall(r".*\b[Dd]issertation\b(?![-.\"]).*", file.read_text("utf-8"))
            assert not found, (file, found)
