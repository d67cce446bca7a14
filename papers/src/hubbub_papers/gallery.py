"""The gallery: one page with every reproduction, our numbers next to the print's, and the verdict on every claim."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path

from hubbub import __version__
from hubbub_papers.bibliography import Reference, sources
from hubbub_papers.catalogue import REPRODUCTIONS
from hubbub_papers.harness import PAPERS, Paper, Reproduction
from hubbub_papers.records import KEPT, Record, duration, expected, read
from hubbub_papers.result import VERDICTS, Cell, ClaimCell, remarks_of

KINDS = {"holds": "holds", "fails": "does not hold", "open": "not decided"}
"""What a claim can come to, as a class of the page and in words."""
_FEW_NUMBERS = 14  # a longer table of numbers is closed at first
_CLOSE = 0.05  # the share by which a printed number may differ from ours without being marked
_INCH = 90  # pixels of the page for an inch of a figure that fits into it


def write(folder: Path, names: Sequence[str] = ()) -> Path:
    """Write index.html of a folder's records, and of the kept ones where it has none of a run in full; return its path.

    With `names`, only of these reproductions.
    """
    own, kept = read(folder), read(KEPT)
    own = {name: record for name, record in own.items() if record.whole or name not in kept}
    records = {**kept, **own}
    shown = {name: known for name, known in REPRODUCTIONS.items() if known.paper and (not names or name in names)}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    known = {name: records[name] for name in shown if name in records}
    path.write_text(page(shown, known, own.keys()), encoding="utf-8")
    return path


def page(known: Mapping[str, Reproduction], records: Mapping[str, Record], drawn: Collection[str]) -> str:
    """The page of these reproductions with their records; of those that are `drawn`, CSV and figure are next to it."""
    style = (resources.files("hubbub_papers") / "gallery.css").read_text(encoding="utf-8")
    papers = {paper: [name for name, item in known.items() if item.paper == paper] for paper in PAPERS}
    papers = {paper: names for paper, names in papers.items() if names}
    claims = [(records[name], cell) for name in known if name in records for cell in records[name].claims]
    parts = [_overview(papers, records), _index(papers, known, records), _every_claim(claims)]
    parts += [_paper(paper, names, known, records, drawn) for paper, names in papers.items()]
    counts = Counter(kind_of(cell) for _, cell in claims)
    verdicts = (
        f"Of {len(claims)} claims {counts['holds']} hold, {counts['fails']} do not, {counts['open']} are not decided."
    )
    days = sorted(record.day for record in records.values())
    run = f"Run on {' to '.join(sorted({days[0], days[-1]}))}" if days else "Nothing was run yet"
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>The papers, reproduced: local differential privacy</title>
<style>
{style}</style>
<header>
<h1>The papers, reproduced</h1>
<p class="lead">{len(known)} tables and figures of {len(papers)} papers on local differential privacy, computed anew \
by <i>hubbub</i>: our numbers next to the printed ones. {verdicts}</p>
<p class="muted">{run}, by hubbub {escape(__version__)}. Each part names the command that makes it again.</p>
</header>
<main>
{"".join(parts)}</main>
<footer>Made by <code>hubbub reproduce gallery</code>. The page needs no server and loads nothing from elsewhere. \
Figures are drawn by us; of the papers we quote numbers and claims.</footer>
</html>
"""


def kind_of(cell: ClaimCell) -> str:
    """What a claim came to: a key of `KINDS`. Without a known noise, nothing is decided."""
    if not cell.decided:
        return "open"
    return "holds" if cell.verdict == VERDICTS[0] else "fails"


# -- the overview ----------------------------------------------------------------------------------------------------


def _overview(papers: Mapping[Paper, Sequence[str]], records: Mapping[str, Record]) -> str:
    rows, sums = [], Counter[str]()
    for paper, names in papers.items():
        here = [records[name] for name in names if name in records]
        counts = Counter(kind_of(cell) for record in here for cell in record.claims)
        counts |= Counter(run=sum(not record.failure for record in here), all=len(names))
        shares = [share for record in here for _, share in compared(record)]
        counts |= Counter(printed=len(shares), close=sum(abs(share) <= _CLOSE for share in shares))
        sums += counts
        label = f'<a href="#{paper.name}">{escape(sources()[paper.key].label)}</a>'
        rows.append(f"<tr><th>{label}{_bar(counts)}</th>{_counts(counts)}</tr>\n")
    heads = "".join(f'<th class="number {kind}">{word}</th>' for kind, word in KINDS.items())
    return f"""<h2>All in one table</h2>
<div class="scroll"><table>
<thead><tr><th>paper</th>{heads}<th class="number">printed numbers</th>\
<th class="number">within {_CLOSE:.0%}</th><th class="number">parts run</th></tr></thead>
<tbody>
{"".join(rows)}</tbody>
<tfoot><tr><th>all</th>{_counts(sums)}</tr></tfoot>
</table></div>
<p class="muted">A claim <b>holds</b> or <b>does not hold</b> if its number is at least two standard errors (by the \
jackknife over the runs) from the bound, or is exact. Otherwise, or with fewer than three runs of a random number, it \
is <b>not decided</b>. If the truth were exactly on a bound, chance would put a claim on one side in 9% of cases with \
three runs, and in 4% with ten. What was run with fewer people than the paper has is marked with the share of them.</p>
"""


def _counts(counts: Counter[str]) -> str:
    values = [*(counts[key] for key in (*KINDS, "printed", "close")), f"{counts['run']} of {counts['all']}"]
    return "".join(f'<td class="number">{value}</td>' for value in values)


def _bar(counts: Counter[str]) -> str:
    parts = "".join(f'<i class="{kind}" style="flex-grow:{counts[kind]}"></i>' for kind in KINDS if counts[kind])
    return f'<div class="bar">{parts or "<i></i>"}</div>'


def compared(record: Record) -> Iterator[tuple[Cell, float]]:
    """The cells whose printed number is a number, and by which share ours differs from it."""
    for cell in record.numbers:
        if isinstance(cell.paper, int | float) and math.isfinite(cell.ours):
            off = cell.ours - cell.paper
            yield cell, off / abs(cell.paper) if cell.paper else (0.0 if off == 0 else math.inf)


def _index(
    papers: Mapping[Paper, Sequence[str]], known: Mapping[str, Reproduction], records: Mapping[str, Record]
) -> str:
    """Every part by paper, each with the verdicts on its claims as a bar."""
    parts = []
    for paper, names in papers.items():
        items = []
        for name in names:
            record = records.get(name)
            bar = _bar(Counter(map(kind_of, record.claims))) if record and record.claims else ""
            never = "" if _came(record) else " class=never"
            title = f'title="{escape(known[name].title)}"'
            items.append(f'<li{never}><a href="#{name}" {title}>{escape(_short(name))}{bar}</a></li>')
        head = f'<a href="#{paper.name}">{escape(sources()[paper.key].label)}</a>'
        parts.append(f'<section><h3>{head}</h3><ul class="contents">{"".join(items)}</ul></section>\n')
    legend = ", ".join(f'<span class="{kind}"><b>{word}</b></span>' for kind, word in KINDS.items())
    return f"""<h2>Index</h2>
<p class="muted">The bar of a part shows its claims: {legend}. What was not run is dashed.</p>
<div class="index">
{"".join(parts)}</div>
"""


def _every_claim(claims: Sequence[tuple[Record, ClaimCell]]) -> str:
    counts = Counter(kind_of(cell) for _, cell in claims)
    buttons = [("all", f"all {len(claims)}"), *((kind, f"{word} {counts[kind]}") for kind, word in KINDS.items())]
    radios = "".join(
        f'<label><input type="radio" name="shown" value="{value}"{" checked" if value == "all" else ""}>{text}</label>'
        for value, text in buttons
    )
    rows = "".join(_claim(cell, _place(record)) for record, cell in claims)
    return f"""<h2>Every claim</h2>
<section class="every">
<fieldset class="filter"><legend class="muted">Show</legend>{radios}</fieldset>
<div class="scroll"><table class="claims">
<thead><tr><th>claim</th><th>ours ± two standard errors</th><th>print</th><th>verdict</th><th>where</th></tr></thead>
<tbody>
{rows}</tbody>
</table></div>
</section>
"""


def _place(record: Record) -> str:
    """Where a claim is on the page, and at which size it was judged."""
    smaller = f'<br><span class="muted">{_people(record)}</span>' if record.scale < 1 else ""
    return f'<a href="#{record.name}">{escape(_short(record.name))}</a>{smaller}'


def _people(record: Record) -> str:
    return f"{100 * record.scale:g}% of the people"


def _claim(cell: ClaimCell, last: str = "", notes: str = "") -> str:
    """A row of a table of claims."""
    kind = kind_of(cell)
    error = f" ± {2 * cell.error:.2g}" if cell.error else "" if cell.error == 0 else ", noise unknown"
    where = f"<td>{last}</td>" if last else ""
    said = "" if cell.paper is None else escape(cell.paper if isinstance(cell.paper, str) else f"{cell.paper:g}")
    return (
        f'<tr class="{kind}"><th>{escape(cell.row)}{notes}</th><td>{_strip(cell)}'
        f'{cell.ours:.4g}{error}<br><span class="muted">{_bounds(cell)}</span></td><td>{said}</td>'
        f'<td><span class="verdict">{KINDS[kind]}</span></td>{where}</tr>\n'
    )


def _bounds(cell: ClaimCell) -> str:
    """Where a claim holds, in words."""
    low, high = f"{cell.above:.4g}", f"{cell.below:.4g}"
    if math.isinf(cell.above):
        return f"holds if below {high}"
    if math.isinf(cell.below):
        return f"holds if above {low}"
    return f"holds at {low}" if low == high else f"holds from {low} to {high}"


def _strip(cell: ClaimCell) -> str:
    """A drawing of a claim: where it holds (shaded), ours with two standard errors, and the printed number (dashed)."""
    if not math.isfinite(cell.ours):
        return ""
    spread = 2 * (cell.error or 0.0)
    printed = [float(cell.paper)] if isinstance(cell.paper, int | float) else []
    points = [cell.ours - spread, cell.ours + spread, *printed, *filter(math.isfinite, (cell.above, cell.below))]
    least, most = min(points), max(points)
    margin = 0.12 * (most - least) or abs(most) or 1.0

    def place(value: float) -> str:
        share = (value - least + margin) / (most - least + 2 * margin)
        return f"{200 * min(max(share, 0.0), 1.0):.1f}"

    left, right = place(cell.above), place(cell.below)
    paper = "".join(f'<line class="print" x1="{place(x)}" x2="{place(x)}" y1="3" y2="29"/>' for x in printed)
    return (
        f'<svg class="strip" viewBox="0 0 200 32" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="zone" x="{left}" width="{float(right) - float(left):.1f}" y="3" height="26"/>{paper}'
        f'<line x1="{place(cell.ours - spread)}" x2="{place(cell.ours + spread)}" y1="16" y2="16"/>'
        f'<circle cx="{place(cell.ours)}" cy="16" r="4.5"/></svg>'
    )


# -- a paper ---------------------------------------------------------------------------------------------------------


def _paper(
    paper: Paper,
    names: Sequence[str],
    known: Mapping[str, Reproduction],
    records: Mapping[str, Record],
    drawn: Collection[str],
) -> str:
    source = sources()[paper.key]
    articles = "".join(_article(known[name], records.get(name), name in drawn) for name in names)
    return f"""<h2 id="{paper.name}">{escape(source.fields["title"])}</h2>
<p>{_linked(source)}</p>
<details><summary>BibTeX</summary><pre>{escape(source.bibtex)}</pre></details>
{articles}"""


def _linked(source: Reference) -> str:
    link = f' <a href="{escape(source.link)}">{escape(source.link)}</a>' if source.link else ""
    return escape(source.text()) + link


def _came(record: Record | None) -> bool:
    return record is not None and not record.failure


def _short(name: str) -> str:
    """ "Table 3.2" of "wang-2021-analyzing-table-3.2"."""
    paper = REPRODUCTIONS[name].paper
    text = name.removeprefix(f"{paper.name}-" if paper else "").replace("-", " ")
    return text[:1].upper() + text[1:]


def _article(item: Reproduction, record: Record | None, drawn: bool) -> str:
    head = f"<h3>{escape(_short(item.name))}. {escape(item.title)}</h3>"
    command = f"<code>hubbub reproduce {escape(item.name)}</code>"
    if record is None or record.failure:
        why = f"Not finished: {escape(record.failure)}." if record else "Not run yet."
        needs = f"; needs {escape(', '.join(item.needs))}" if item.needs else ""
        return (
            f'<article class="never" id="{item.name}">{head}<p class="meta">{why} '
            f"Expected on one core: {expected(item)}{needs}. {command}</p></article>\n"
        )
    remarks, footnotes = remarks_of(record.cells)
    body = [_figure(item, record, drawn)]
    if record.claims:
        rows = "".join(_claim(cell, notes=_own(remarks[cell][1:], footnotes)) for cell in record.claims)
        heads = "<th>claim</th><th>ours ± two standard errors</th><th>print</th><th>verdict</th>"
        body.append(
            f'<h4>Claims</h4><div class="scroll"><table class="claims"><thead><tr>{heads}</tr></thead>'
            f"<tbody>\n{rows}</tbody></table></div>"
        )
    body.append(_numbers(record, remarks, footnotes))
    if footnotes:
        points = "".join(f"<li>{escape(remark)}</li>" for remark in footnotes)
        body.append(f"<h4>How, and what differs</h4><ol>{points}</ol>")
    return f'<article id="{item.name}">{head}{_meta(item, record, drawn)}{"".join(body)}</article>\n'


def _meta(item: Reproduction, record: Record, drawn: bool) -> str:
    """When and how it was run, and the command."""
    runs = f"{record.repeats} run" + "s" * (record.repeats != 1)
    fewer = [] if record.whole else [f"<b>{_people(record)}</b>" if record.scale < 1 else ""]
    fewer += [f"<b>not the {item.repeats} runs of its setting</b>" if record.repeats < item.repeats else ""]
    files = f'<a href="{item.name}.csv">all numbers (CSV)</a>' if drawn else ""
    needs = f"data: {escape(', '.join(item.needs))}" if item.needs else ""
    parts = [runs, *fewer, f"{duration(record.seconds)} on one core", record.day, needs, files]
    return f'<p class="meta">{"; ".join(filter(None, parts))}. <code>hubbub reproduce {escape(item.name)}</code></p>'


def _figure(item: Reproduction, record: Record, drawn: bool) -> str:
    if record.size is None:
        return ""
    if not drawn:
        return '<p class="muted">The figure is drawn where the command is run: the kept record holds numbers alone.</p>'
    width, height = (round(_INCH * side) for side in record.size)
    sizes = f"--widest:{max(width, 480)}px;--least:{round(width * 0.45)}px"
    return (
        f'<figure class="plot scroll" style="{sizes}"><img loading="lazy" src="{item.name}.svg" width="{width}" '
        f'height="{height}" alt="{escape(item.title)}"></figure>'
    )


def _own(remarks: Sequence[str], footnotes: Sequence[str]) -> str:
    """The remarks of a row that are its own, and the numbers of its footnotes; the standard error is drawn."""
    own = [remark for remark in remarks if remark not in footnotes and not remark.startswith("standard error")]
    marks = ", ".join(str(footnotes.index(remark) + 1) for remark in remarks if remark in footnotes)
    sup = f" <sup>{marks}</sup>" if marks else ""
    return sup + (f'<br><span class="muted">{escape("; ".join(own))}</span>' if any(own) else "")


def _numbers(record: Record, remarks: Mapping[Cell, Sequence[str]], footnotes: Sequence[str]) -> str:
    """The numbers next to the printed ones, and by how much they differ."""
    cells = record.numbers
    if not cells:
        return ""
    off = {id(cell): share for cell, share in compared(record)}
    rows = []
    for cell in cells:
        share = off.get(id(cell))
        differs = "" if share is None else f"{100 * share:+.2g}%" if math.isfinite(share) else "–"
        far = " far" if share is not None and abs(share) > _CLOSE else ""
        printed = "" if cell.paper is None else cell.paper if isinstance(cell.paper, str) else f"{cell.paper:.6g}"
        rows.append(
            f"<tr><th>{escape(cell.row)}</th><td>{escape(cell.column)}{_own(remarks[cell], footnotes)}</td>"
            f'<td class="number">{escape(printed)}</td><td class="number">{cell.ours:.5g}</td>'
            f'<td class="number{far}">{differs}</td></tr>\n'
        )
    heads = "".join(f'<th class="number">{word}</th>' for word in ("print", "ours", "differs by"))
    close = sum(abs(share) <= 0.01 for share in off.values())
    said = f"{len(off)} printed numbers, {close} of them within 1% of ours" if off else f"{len(cells)} numbers"
    opened = " open" if len(cells) <= _FEW_NUMBERS else ""
    return (
        f"<h4>Numbers</h4><details{opened}><summary>{said}</summary>"
        f'<div class="scroll"><table><thead><tr><th>row</th><th>column</th>{heads}</tr></thead>'
        f"<tbody>\n{''.join(rows)}</tbody></table></div></details>"
    )
