"""Makes `admits.json`: terms, asks, and what every client must say of them.

    python -m tests.vectors.make_admits

The cases of `admits` are {"name", "terms", "fields", "minimum_arc", "run", "round", "part", "ask", "says"}, where
"says" is null or the reason; those of `admits_parts` are {"name", "terms", "minimum_arc", "arcs", "says"}, of asks that
differ in their arcs alone; those of `matches` are {"pattern", "given", "says"}, where "says" is true or false. "terms"
has {"terms", "says"} of terms with one view, where "says" is whether they can be read; "groups" the same of groups of
devices. "families" has views and mechanisms, and for each view what `admits` says of each mechanism under terms that
admit every view and family.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import hubbub as hb
from hubbub.collection.admits import admits, admits_parts, matches
from hubbub.collection.terms import Family, Group, Study, Terms
from hubbub.core.domain import Categorical, Domain, KeyValue, Numeric, Ordinal, Sets, Strings
from hubbub.core.domain.texts import BitStrings
from hubbub.core.domain.vector import Vector
from hubbub.core.errors import InvalidValue
from hubbub.core.event import units_of
from hubbub.core.spec import canonical
from hubbub.ledger.promise import Promise, of_question
from hubbub.mechanisms.frequency.bundle import Bundle
from hubbub.mechanisms.frequency.measured import Measured
from hubbub.mechanisms.sets.priv_set import PrivSet
from hubbub.mechanisms.sets.psfo import PSFO
from hubbub.mechanisms.sets.split_unary import SplitUnary
from hubbub.protocols.ask import CIRCLE, EVERYONE, Arc, Ask
from hubbub.protocols.changes.net_stream import NetStream
from hubbub.protocols.changes.stream import ChangeStream
from hubbub.protocols.views.basic import Among, Binned, Clipped, Field, Prefix, View, Whole
from hubbub.protocols.views.records import CodeAxis, Entries, FieldBits, Joint, Joints, PublicNumber, WithNumbers
from hubbub.protocols.views.sets import Held, Members, On, Size, SubsetCount, Subsets
from hubbub.protocols.views.update import Update, model_hash
from hubbub.questions import Question, Setting

PLACE = Path(__file__).with_name("admits.json")
LEAST = CIRCLE // 1000
EPSILON = units_of(1.0)
PLACES = ("run", "round", "part")
FIELDS: dict[str, Domain] = {"theme": Ordinal(3)}
GRR = hb.GRR(epsilon=1.0, domain=4)
PROMISES = (Promise(EPSILON, 1, 3600, 0, scope=of_question("popular")),)
PLAIN = Terms(
    fields=("theme",),
    views=(Whole().spec(),),
    mechanisms=(GRR.spec_id,),
    limit=EPSILON,
    promises=PROMISES,
    report_bytes=GRR.report_bytes,
)
STUDY = replace(
    PLAIN,
    frozen="study",
    views=({"kind": "among", "codes": {"most": 3}}, {"kind": "whole"}),
    mechanisms=(GRR.spec_id,),
    families=(Family("GRR", (units_of(0.5), EPSILON)), Family("OUE", (EPSILON,))),
    rounds=3,
    parts=2,
    limit=2 * EPSILON,
    report_bytes=4,
    study=Study(start=7200, round_seconds=600, every=86400),
)
ITEMSETS = replace(
    STUDY,
    families=(*STUDY.families, Family("PSFO", (EPSILON,))),
    report_bytes=9,
    views=tuple({"kind": kind, "sets": {"most": 3, "each": {"most": 2}}} for kind in ("subsets", "subsetcount")),
)
OPEN = hb.OLH(epsilon=1.0, domain=BitStrings(64))
PREFIXES = replace(
    STUDY,
    views=tuple(Prefix(bits, 32).spec() for bits in (12, 32)),
    mechanisms=(OPEN.spec_id,),
    families=(Family("OLH", (EPSILON,)),),
    report_bytes=OPEN.report_bytes,
)
CLIPPED = replace(
    PLAIN,
    views=({"kind": "clipped", "low": 0.0, "high": {"from": 1.0, "to": 64.5}},),
    mechanisms=(),
    families=(Family("Hybrid", (EPSILON,)),),
    rounds=2,
    report_bytes=64,
)
CELLS = Binned(first=0.5, factor=2.0, cells=16)
SEARCHED = replace(
    CLIPPED,
    views=(CELLS.spec(), *CLIPPED.views),
    families=(Family("GRR", (EPSILON,)), Family("Hybrid", (EPSILON,)), Family("SquareWave", (EPSILON,))),
)
MEMO = hb.BasicRappor(epsilon=2.0, domain=4)
KEPT = replace(
    PLAIN,
    frozen="last",
    mechanisms=(MEMO.spec_id,),
    state="BasicRappor",
    limit=MEMO.permanent_event().spent,
    report_bytes=MEMO.report_bytes,
)


def placed() -> Iterator[tuple[str, Terms, Ask, tuple[int, int, int]]]:
    """A name, terms, an ask, and its run, round and part."""
    ask = Ask(mechanism=GRR, step=0)
    once = replace(STUDY, study=Study(start=7200, round_seconds=600))
    for part in (0, 1):
        yield f"part {part} of a stream", PLAIN, ask, (0, 1, part)
    for part in (1, 2):
        yield f"part {part} of a study of two", STUDY, ask, (0, 3, part)
    for run in (1, 1000):
        yield f"run {run} of a stream", PLAIN, ask, (run, 1, 0)
        yield f"run {run} of a study that is repeated", STUDY, ask, (run, 1, 0)
        yield f"run {run} of a study that is not", once, ask, (run, 1, 0)
    stream = ChangeStream(epsilon=1.0, dimension=2, steps=4, changes=2)
    changes = replace(
        PLAIN,
        frozen="last",
        views=(Members(2).spec(),),
        mechanisms=(stream.spec_id,),
        state="ChangeStream",
        limit=stream.event().spent,
        report_bytes=stream.report_bytes,
    )
    watched = Ask(mechanism=stream, step=7, view=Members(2))
    yield "a stream of changes", changes, watched, (0, 1, 0)
    yield "a stream of changes under another state", replace(changes, state="Symbols"), watched, (0, 1, 0)
    yield "a stream of changes where nothing is remembered", replace(changes, state=""), watched, (0, 1, 0)
    yield "a fresh report where the device remembers", replace(KEPT, mechanisms=(GRR.spec_id,)), ask, (0, 1, 0)


def cases() -> Iterator[tuple[str, Terms, Ask, int]]:
    """A name, terms, an ask and its round."""
    ask = Ask(mechanism=GRR, step=7)
    yield "what is signed", PLAIN, ask, 1
    yield "a round too many", PLAIN, ask, 2
    yield "round 0", PLAIN, ask, 0
    yield "an arc of the least length", PLAIN, replace(ask, cohort=Arc(5, LEAST)), 1
    yield "an arc below it", PLAIN, replace(ask, cohort=Arc(5, LEAST - 1)), 1
    yield "another view", PLAIN, replace(ask, view=Among((0, 1, 2))), 1
    yield "another epsilon", PLAIN, replace(ask, mechanism=hb.GRR(epsilon=0.9, domain=4)), 1
    yield "another domain", PLAIN, replace(ask, mechanism=hb.GRR(epsilon=1.0, domain=5)), 1
    yield "another mechanism", PLAIN, replace(ask, mechanism=hb.OUE(epsilon=1.0, domain=4)), 1
    for length in (3 * LEAST, 3 * LEAST - 1):
        asked = replace(ask, cohort=Arc(5, length))
        yield f"an arc of {length} in one group of three", replace(PLAIN, group=Group(1, 3)), asked, 1
    yield "more than the limit", replace(PLAIN, limit=GRR.event().spent - 1), ask, 1
    yield "just the limit", replace(PLAIN, limit=GRR.event().spent), ask, 1
    large = hb.OUE(epsilon=1.0, domain=40)
    yield "a larger report", replace(PLAIN, mechanisms=(large.spec_id,)), replace(ask, mechanism=large), 1
    study = Ask(mechanism=_grr(4), step=0, view=Among((3, 8, 90)))
    for round in (1, 2, 3, 4):
        yield f"round {round} of a study of three", STUDY, study, round
    yield "a candidate too many", STUDY, replace(study, view=Among((1, 2, 3, 4)), mechanism=_grr(5)), 1
    yield "fewer candidates", STUDY, replace(study, view=Among((5,)), mechanism=_grr(2)), 2
    yield "a mechanism for another number of candidates", STUDY, replace(study, mechanism=_grr(5)), 2
    yield "an epsilon that is not in the family", STUDY, replace(study, mechanism=hb.GRR(epsilon=0.25, domain=4)), 1
    yield "another of its epsilons", STUDY, replace(study, mechanism=GRR), 1
    yield "another family", STUDY, replace(study, mechanism=hb.OUE(epsilon=1.0, domain=4)), 1
    yield "an epsilon of another family", STUDY, replace(study, mechanism=hb.OUE(epsilon=0.5, domain=4)), 1
    yield "a family that is not signed", STUDY, replace(study, mechanism=hb.SUE(epsilon=1.0, domain=4)), 1
    yield "a family next to a view without a size", STUDY, replace(study, view=Whole(), mechanism=_grr(4)), 1
    yield "a mechanism by its id", STUDY, replace(study, view=Whole(), mechanism=GRR), 1
    yield "a part of the circle", STUDY, replace(study, cohort=Arc(CIRCLE - 7, LEAST)), 3
    for sets in ([(1,), (2,)], [(1,), (2,), (3,), (4,)], [(1, 2, 3)]):
        subsets, names = Subsets(tuple(sets)), " ".join(map(str, sets))
        size = max(2, subsets.size)
        psfo = PSFO(epsilon=1.0, domain=size, length=2)
        yield f"candidates {names}", ITEMSETS, replace(study, view=subsets, mechanism=psfo), 1
        count = SubsetCount(tuple(sets))
        yield f"how many of {names}", ITEMSETS, replace(study, view=count, mechanism=_grr(count.size)), 1
    pair = replace(study, view=Subsets(((1,), (2,))))
    single = PSFO(epsilon=1.0, domain=Sets(Ordinal(2), most=1), length=1)
    yield "sets that may be too large for a mechanism", ITEMSETS, replace(pair, mechanism=single), 1
    yield "sets for a mechanism that reads a code", ITEMSETS, replace(pair, mechanism=hb.GRR(epsilon=1.0, domain=2)), 1
    narrow_and_wide = [(1, 1), (2, 1), (3, 1), (3, 2), (3, 3), (1025, 10), (1025, 11), (2**52 + 1, 52), (2**52 + 1, 53)]
    for codes, bits in narrow_and_wide:
        cell = Joint((CodeAxis("theme", codes),))
        asked = replace(study, view=cell, mechanism=hb.OLH(epsilon=1.0, domain=BitStrings(bits)))
        yield f"{codes} codes in {bits} bits", replace(PREFIXES, views=(cell.spec(),)), asked, 1
    olh = hb.OLH(epsilon=1.0, domain=9)
    for cells in (NINE, Joint((CodeAxis("theme", 3), CodeAxis("level", 4)))):
        asked = replace(study, view=cells, mechanism=olh)
        yield f"{cells.size} cells for 9 codes", replace(PREFIXES, views=(cells.spec(),)), asked, 1
    terms = replace(PREFIXES, families=(Family("Measured", (EPSILON,)), Family("OLH", (EPSILON,))), report_bytes=99)
    views: list[Joint | WithNumbers] = [NINE, NINE_WITH_A_NUMBER]
    for view in views:
        for measures in (0, 1, 2):
            wrapped = Measured(epsilon=1.0, domain=9, oracle=olh, measures=measures) if measures else olh
            asked = replace(study, view=view, mechanism=wrapped)
            yield f"{measures} numbers for {view.measured}", replace(terms, views=(view.spec(),)), asked, 1
    counted = replace(pair, view=SubsetCount(((1,), (2,))), mechanism=PSFO(epsilon=1.0, domain=3, length=1))
    yield "a code for a mechanism that reads sets", ITEMSETS, counted, 1
    for bits, of in ((12, 32), (32, 32), (13, 32), (12, 64)):
        prefix = Ask(mechanism=OPEN, step=0, view=Prefix(bits, of), kept=True)
        yield f"the first {bits} of {of} bits", PREFIXES, prefix, 1
    whole = Ask(mechanism=OPEN, step=0, view=Prefix(32, 32))
    yield "a prefix for another epsilon", PREFIXES, replace(whole, mechanism=replace(OPEN, epsilon=0.5, other=0)), 1
    narrow = hb.OLH(epsilon=1.0, domain=BitStrings(32))
    yield "a family next to a prefix, which has no size", PREFIXES, replace(whole, mechanism=narrow), 1
    yield "reports that are kept", STUDY, replace(study, kept=True), 1
    for high in (1.0, 64.5, 3.25, 64.6, 0.5):
        clipped = Ask(mechanism=hb.Hybrid(epsilon=1.0, low=0.0, high=high), step=3, view=Clipped(0.0, high))
        yield f"clipped at {high}", CLIPPED, clipped, 2
    other = Ask(mechanism=hb.Hybrid(epsilon=1.0, low=0.0, high=5.0), step=3, view=Clipped(0.0, 4.0))
    yield "a mechanism for another range", CLIPPED, other, 1
    low = Ask(mechanism=hb.Hybrid(epsilon=1.0, low=-1.0, high=4.0), step=3, view=Clipped(-1.0, 4.0))
    yield "another lower end", CLIPPED, low, 1
    wave = hb.SquareWave(epsilon=1.0, low=0.0, high=15.0)
    for high in (15.0, 16.0, 14.0):
        asked = Ask(mechanism=hb.SquareWave(epsilon=1.0, low=0.0, high=high), step=3, view=CELLS)
        yield f"numbers up to {high:g} of 16 cells", SEARCHED, asked, 1
    yield "codes of 16 cells", SEARCHED, Ask(mechanism=hb.GRR(epsilon=1.0, domain=16), step=3, view=CELLS), 1
    yield "codes of 15 cells", SEARCHED, Ask(mechanism=hb.GRR(epsilon=1.0, domain=15), step=3, view=CELLS), 1
    yield "a mechanism for cells, and another view", SEARCHED, Ask(mechanism=wave, step=3, view=Clipped(0.0, 20.0)), 1
    yield "other cells", SEARCHED, Ask(mechanism=wave, step=3, view=replace(CELLS, first=1.0)), 1
    yield "a memo", KEPT, Ask(mechanism=MEMO, step=7), 1
    yield "another state", replace(KEPT, state="Loloha"), Ask(mechanism=MEMO, step=7), 1
    fares = Setting("fares", {"theme": Numeric(0.0, 500.0, cells=50)}, 3600)
    for method in ("LPU", "LBU"):
        found = Question.make("stream", field="theme", epsilon=1.0, method=method, w=4, range="auto").bound(fares)
        terms, search = found.terms(), next(found.protocol())
        assert isinstance(search, Ask)
        yield f"the search for a clip, {method}", terms, search, 1
        for high in (12.5, 500.0, 500.0 / (1 << 16), 500.0 / (1 << 17), 501.0):
            mean = hb.Hybrid(epsilon=terms.families[0].units[0] / 10**12, low=0.0, high=high)
            clipped = Ask(mechanism=mean, step=3, view=Clipped(0.0, high))
            yield f"a number clipped at {high}, {method}", terms, clipped, 2
        yield f"the cells of the search by the mechanism of means, {method}", terms, replace(search, mechanism=mean), 1
        swapped = replace(clipped, view=Clipped(0.0, 12.5), mechanism=search.mechanism)
        yield f"a clipped number by the mechanism of the search, {method}", terms, swapped, 2
    sizes: dict[str, Domain] = {"theme": Ordinal(2), "level": Ordinal(4), "sound": Ordinal(2)}
    marginals = Question.make("marginals", fields=list(sizes), epsilon=1.0).bound(Setting("homes", sizes, 3600))
    first, second, third = (ask for ask in next(marginals.protocol()) if isinstance(ask, Ask))  # type: ignore[union-attr]
    for ask in (first, second, third, replace(first, mechanism=second.mechanism)):
        asked = replace(ask, step=7)
        name = f"a marginal of {asked.view.size} cells by {type(asked.mechanism).__name__}"
        yield name, marginals.terms(), asked, 1


def fitting() -> Iterator[tuple[str, Any, View, Domain]]:
    """A name, a mechanism that is signed by its id, the view that it is asked with, and the domain of the field."""
    four = Categorical(("a", "b", "c", "d"))
    for domain in (Ordinal(2), Ordinal(3), Ordinal(4), four, Numeric(0.0, 3.0, cells=3), Strings(3), Sets(four, 3)):
        yield f"GRR of 4 codes, and the whole of {domain.describe()}", GRR, Whole(), domain
    yield "GRR of 4 names, and their codes", hb.GRR(epsilon=1.0, domain=four), Whole(), Categorical(("a", "b", "c"))
    for longest in (8, 9, 10):
        yield f"texts of up to {longest} bytes", hb.Rappor(epsilon=1.0, domain=Strings(9)), Whole(), Strings(longest)
    psfo = PSFO(epsilon=1.0, domain=Sets(Ordinal(4), 3), length=2)
    for most in (2, 3, 4):
        yield f"sets of up to {most}", psfo, Whole(), Sets(four, most)
    yield "sets of more items", PSFO(epsilon=1.0, domain=Sets(Ordinal(3), 3), length=2), Whole(), Sets(four, 3)
    cells = Numeric(0.0, 8.0, cells=4)
    for low, high in ((0.0, 8.0), (0.0, 7.0), (1.0, 8.0), (-1.0, 9.0)):
        yield f"numbers from {low} to {high}", hb.Hybrid(epsilon=1.0, low=low, high=high), Clipped(0.0, 8.0), cells
    yield "cells of a range", hb.GRR(epsilon=1.0, domain=cells), Clipped(0.0, 8.0), cells
    yield "cells of any number", hb.GRR(epsilon=1.0, domain=cells), Whole(), cells
    yield "numbers of any size", hb.Hybrid(epsilon=1.0, low=0.0, high=8.0), Whole(), cells
    for size in (2, 3, 4):
        yield f"two candidates and {size} codes", hb.GRR(epsilon=1.0, domain=size), Among((1, 2)), Ordinal(9)
        yield f"sizes up to 2 and {size} codes", hb.GRR(epsilon=1.0, domain=size), Size(2), Sets(four, 3)
        stream = ChangeStream(epsilon=1.0, dimension=size, steps=4, changes=2)
        yield f"changes of {size} entries", stream, Members(3), Sets(Ordinal(3), 2)
        net = NetStream(epsilon=1.0, dimension=size, steps=4, changes=2)
        yield f"changes of {size} entries by the net rule", net, Members(3), Sets(Ordinal(3), 2)
        yield f"changes of {size} values", replace(stream, one=True), Whole(), Categorical(("a", "b", "c"))
        yield f"changes of {size} sets", stream, Whole(), Categorical(("a", "b", "c"))
    for size in (8, 9):
        keys = KeyValue(tuple("abcdefghi"), 0.0, 1.0, most=2)
        yield f"{size} of 9 keys", hb.NetSub(epsilon=1.0, dimension=size, sparsity=2), Held(9, 0.0, 1.0), keys
        update = Update(model_hash(b""), 9, 2, 0.5)
        yield f"{size} of 9 entries", hb.NetSub(epsilon=1.0, dimension=size, sparsity=2), update, Vector(9)
    for bits in (32, 64):
        yield f"prefixes as {bits} bits", hb.OLH(epsilon=1.0, domain=BitStrings(bits)), Prefix(12, 32), Strings(4)
    wave = hb.SquareWave(epsilon=1.0, low=0.0, high=15.0)
    yield "cells as numbers", wave, CELLS, Numeric(0.0, 9.0, cells=4)
    yield "more cells as numbers", wave, replace(CELLS, cells=17), Numeric(0.0, 9.0, cells=4)
    pair = Subsets(((1,), (2,)))
    for size in (2, 3):
        yield f"two candidate sets of {size}", PSFO(epsilon=1.0, domain=size, length=2), pair, Sets(four, 3)
    single = PSFO(epsilon=1.0, domain=Sets(Ordinal(2), 1), length=1)
    yield "candidate sets, too many at once", single, pair, Sets(four, 3)
    olh = hb.OLH(epsilon=1.0, domain=9)
    for count in (1, 2):
        measured = Measured(epsilon=1.0, domain=9, oracle=olh, measures=count)
        yield f"{count} numbers next to a code", measured, NINE_WITH_A_NUMBER, four
    yield "a number that is not asked for", olh, NINE_WITH_A_NUMBER, four
    grr, three = hb.GRR(epsilon=0.5, domain=3), hb.OLH(epsilon=0.5, domain=BitStrings(2))
    for oracles in ((olh, grr), (olh, three), (grr, olh), (olh, hb.GRR(epsilon=0.5, domain=2)), (olh, grr, grr)):
        sizes = " and ".join(str(oracle.domain) for oracle in oracles)
        yield f"9 and 3 codes for {sizes}", Bundle(epsilon=2.0, oracles=oracles), NINE_AND_THREE, four
    for count in (0, 1, 2):
        bundle = Bundle(epsilon=2.0, oracles=(olh, grr), measures=count)
        yield f"{count} numbers for 1 next to two codes", bundle, WithNumbers(NINE_AND_THREE, (A_NUMBER,)), four
    yield "two codes for a mechanism that reads one", olh, NINE_AND_THREE, four
    yield "a code for a mechanism that reads two", Bundle(epsilon=2.0, oracles=(olh, grr)), NINE, four


@dataclass(frozen=True)
class Elsewhere(Domain):
    """A domain of another package, of which nothing is known."""

    kind: ClassVar[str] = "elsewhere"
    size = None

    def describe(self) -> str:
        return "a value of another package"

    def encode(self, values: Any) -> Any:
        return values


def signed() -> Iterator[tuple[str, Terms, Ask, dict[str, Domain]]]:
    """A name, terms that list a mechanism, an ask that names it, and the fields."""
    elsewhere = "a field of another package", GRR, Whole(), Elsewhere()
    for name, mechanism, view, domain in (*fitting(), elsewhere):
        state = type(mechanism).__name__ if isinstance(mechanism, ChangeStream) else ""
        signs = replace(PLAIN, views=(view.spec(),), mechanisms=(mechanism.spec_id,), state=state)
        terms = replace(signs, limit=2 * EPSILON, report_bytes=1 << 16)
        yield name, terms, Ask(mechanism=mechanism, step=7, view=view), {"theme": domain}


def _grr(size: int) -> hb.GRR:
    return hb.GRR(epsilon=0.5, domain=size)


ARCS: dict[str, tuple[Terms, list[Arc]]] = {
    "one part of one": (PLAIN, [EVERYONE]),
    "two parts of one": (PLAIN, [Arc(0, LEAST), Arc(LEAST, LEAST)]),
    "two parts of two": (STUDY, [Arc(0, CIRCLE // 2), Arc(CIRCLE // 2, CIRCLE // 2)]),
    "two parts that wrap round": (STUDY, [Arc(CIRCLE - 9, LEAST), Arc(LEAST - 9, LEAST)]),
    "two parts that share one place": (STUDY, [Arc(CIRCLE - 9, LEAST), Arc(LEAST - 10, LEAST)]),
    "three parts of two": (STUDY, [Arc(0, LEAST), Arc(LEAST, LEAST), Arc(2 * LEAST, LEAST)]),
    "a part that is too small": (STUDY, [Arc(0, LEAST), Arc(LEAST, LEAST - 1)]),
    "the same part twice": (STUDY, [EVERYONE, EVERYONE]),
    "parts of a group, each too small": (replace(STUDY, group=Group(0, 2)), [Arc(0, LEAST), Arc(LEAST, LEAST)]),
    "parts of a group": (replace(STUDY, group=Group(0, 2)), [Arc(0, 2 * LEAST), Arc(2 * LEAST, 2 * LEAST)]),
    "no part": (STUDY, []),
}
SEVERAL_SETS: list[Any] = [[], [[]], [[3, 8], [5]], [[3, 8, 9]], [[1], [2], [3]], [[8, 3]], [3], None]
SEVERAL_SETS += [{"most": 2, "each": []}]
PATTERNS: list[tuple[Any, Any]] = [
    ({"kind": "whole"}, {"kind": "whole"}),
    ({"kind": "whole"}, {"kind": "field", "name": "age"}),
    ({"kind": "whole"}, {"kind": "whole", "more": 1}),
    ({"kind": "x", "n": {"from": 2, "to": 8}}, {"kind": "x", "n": 2}),
    ({"kind": "x", "n": {"from": 2, "to": 8}}, {"kind": "x", "n": 8}),
    ({"kind": "x", "n": {"from": 2, "to": 8}}, {"kind": "x", "n": 9}),
    ({"kind": "x", "n": {"from": 2, "to": 8}}, {"kind": "x", "n": "3"}),
    ({"kind": "x", "n": {"from": 0, "to": 8}}, {"kind": "x", "n": True}),
    ({"kind": "x", "n": {"from": 2, "to": 8}}, {"kind": "x", "n": None}),
    ({"kind": "x", "n": {"from": 2, "to": 8}}, {"kind": "x", "n": {"from": 2, "to": 8}}),
    *(
        ({"kind": "x", "n": {"hex": 4}}, {"kind": "x", "n": n})
        for n in ("09af", "09aF", "09a", "09afb", "", "09ag", 4, None)
    ),
    ({"kind": "x", "n": 1}, {"kind": "x", "n": True}),
    ({"kind": "x", "on": True}, {"kind": "x", "on": 1}),
    ({"kind": "x", "on": True}, {"kind": "x", "on": True}),
    ({"kind": "x", "c": {"most": 3}}, {"kind": "x", "c": [0, 5, 9]}),
    ({"kind": "x", "c": {"most": 3}}, {"kind": "x", "c": []}),
    ({"kind": "x", "c": {"most": 3}}, {"kind": "x", "c": [0, 5, 9, 10]}),
    ({"kind": "x", "c": {"most": 3}}, {"kind": "x", "c": [5, 5]}),
    ({"kind": "x", "c": {"most": 3}}, {"kind": "x", "c": [5, 2]}),
    ({"kind": "x", "c": {"most": 3}}, {"kind": "x", "c": [-1, 2]}),
    ({"kind": "x", "c": {"most": 3}}, {"kind": "x", "c": [1, "2"]}),
    ({"kind": "x", "c": {"most": 3}}, {"kind": "x", "c": [True]}),
    ({"kind": "x", "c": {"most": 3}}, {"kind": "x", "c": {"most": 3}}),
    *[({"kind": "x", "c": {"most": 2, "each": {"most": 2}}}, {"kind": "x", "c": given}) for given in SEVERAL_SETS],
    ({"kind": "x", "c": [1, 2]}, {"kind": "x", "c": [1, 2]}),
    ({"kind": "x", "c": [1, 2]}, {"kind": "x", "c": [1, 2, 3]}),
    ({"kind": "x", "c": [1, {"from": 2, "to": 4}]}, {"kind": "x", "c": [1, 3]}),
]
GROUPS: list[Any] = [
    *(
        {"number": number, "of": of}
        for number, of in ((0, 2), (1, 2), (2, 2), (-1, 2), (0, 1), (0, 1025), (1023, 1024))
    ),
    *({"number": 0, "of": of} for of in (None, 2.5, "x", True)),
    {"number": 0},
    {"number": 0, "of": 2, "more": 1},
    None,
    [],
]
BOUNDS: list[Any] = [
    {"from": 1, "to": 2},
    {"from": 1.5, "to": 1.5},
    {"from": 2, "to": 1},
    {"from": None, "to": 1},
    {"from": "0", "to": "9"},
    {"from": False, "to": True},
    {"from": [0], "to": [9]},
    {"most": 3},
    {"most": 0},
    {"most": -1},
    {"most": 1.5},
    {"most": None},
    {"most": "x"},
    {"most": True},
    *({"hex": count} for count in (64, 0, -1, 1.5, None, "x")),
    {"most": 2, "each": {"most": 2}},
    {"most": 2, "each": {"most": "x"}},
    {"most": None, "each": 1},
    [1, {"from": "a", "to": "b"}],
    {"more": {"from": 0, "to": None}},
]


NINE = Joint((CodeAxis("theme", 3), CodeAxis("level", 3)))
A_NUMBER = PublicNumber("age", 0.0, 9.0)
NINE_WITH_A_NUMBER = WithNumbers(NINE, (A_NUMBER,))
NINE_AND_THREE = Joints((NINE, Joint((CodeAxis("theme", 3),))))
NAMES = Categorical(tuple("abcdefghi"))
VIEWS: list[View] = [
    Whole(),
    Field("theme"),
    Size(8),
    Clipped(0.0, 8.0),
    Clipped(0.0, 1.0),
    Binned(first=0.5, factor=2.0, cells=9),
    Binned(first=0.5, factor=2.0, cells=2),
    Among(tuple(range(8))),
    Among((5,)),
    Held(9, 0.0, 8.0),
    Members(9),
    On(),
    NINE,
    Joint((CodeAxis("theme", 1),)),
    Entries((FieldBits("theme", "code", 3),)),
    NINE_WITH_A_NUMBER,
    NINE_AND_THREE,
    WithNumbers(NINE_AND_THREE, (A_NUMBER,)),
    Prefix(4, 32),
    Prefix(1, 32),
    Subsets(tuple((item,) for item in range(9))),
    Subsets(((1,), (2,))),
    SubsetCount(tuple((item,) for item in range(8))),
    SubsetCount(((1,),)),
    Update(model_hash(b""), 9, 2, 0.5),
]
FITTED: list[Any] = [
    *(kind(epsilon=1.0, domain=size) for kind in (hb.GRR, hb.BLH, hb.OLH, hb.SOLH, hb.SUE, hb.OUE) for size in (2, 9)),
    *(hb.OLH(epsilon=1.0, domain=BitStrings(bits)) for bits in (1, 4, 32)),
    *(hb.GRR(epsilon=1.0, domain=Numeric(0.0, high, cells=9)) for high in (1.0, 8.0)),
    hb.GRR(epsilon=1.0, domain=NAMES),
    PSFO(epsilon=1.0, domain=Sets(NAMES, most=9), length=2),
    hb.Rappor(epsilon=1.0, domain=Strings(9)),
    *(
        kind(epsilon=1.0, low=0.0, high=high)
        for kind in (hb.StochasticRounding, hb.Piecewise, hb.SquareWave, hb.Hybrid)
        for high in (1.0, 8.0)
    ),
    *(kind(epsilon=1.0, dimension=9, sparsity=2) for kind in (hb.ExSub, hb.NetSub, hb.NetSeed)),
    *(PSFO(epsilon=1.0, domain=size, length=2) for size in (2, 9)),
    PSFO(epsilon=1.0, domain=Sets(Ordinal(9), most=2), length=2),
    SplitUnary(epsilon=1.0, domain=9),
    PrivSet(epsilon=1.0, domain=9),
    *(Measured(epsilon=1.0, domain=9, oracle=hb.OLH(epsilon=1.0, domain=9), measures=count) for count in (1, 2)),
    *(
        Bundle(epsilon=1.0, oracles=tuple(hb.OLH(epsilon=0.5, domain=size) for size in (9, 3)), measures=count)
        for count in (0, 1)
    ),
]
EVERYTHING = replace(
    STUDY,
    views=tuple(view.spec() for view in VIEWS),
    mechanisms=(),
    families=tuple(Family(name, (EPSILON,)) for name in sorted({type(each).__name__ for each in FITTED})),
    limit=2 * EPSILON,
    report_bytes=1 << 16,
)


def families() -> dict[str, Any]:
    """What fits what."""
    says = [
        [admits(EVERYTHING, Ask(mechanism=each, step=0, view=view), minimum_arc=LEAST) for each in FITTED]
        for view in VIEWS
    ]
    return {
        "terms": _json(EVERYTHING.spec()),
        "minimum_arc": LEAST,
        "views": [_json(view.spec()) for view in VIEWS],
        "mechanisms": [_json(each.spec()) for each in FITTED],
        "says": says,
    }


def admitted() -> Iterator[dict[str, Any]]:
    """Every ask, and what terms say of it."""
    everywhere: list[tuple[str, Terms, Ask, tuple[int, int, int], dict[str, Domain]]] = [
        *((name, terms, ask, (0, round, 0), FIELDS) for name, terms, ask, round in cases()),
        *((*case, FIELDS) for case in placed()),
        *((name, terms, ask, (0, 1, 0), fields) for name, terms, ask, fields in signed()),
    ]
    for name, terms, ask, place, fields in everywhere:
        named = dict(zip(PLACES, place, strict=True))
        says = admits(terms, ask, **named, minimum_arc=LEAST, fields=fields)
        domains = {field: _json(domain.spec()) for field, domain in fields.items()}
        place_of = {"fields": domains, "minimum_arc": LEAST, **named}
        yield {"name": name, "terms": _json(terms.spec()), **place_of, "ask": _json(ask.spec()), "says": says}


def vectors() -> dict[str, Any]:
    """All of them."""
    return {
        "admits": list(admitted()),
        "admits_parts": [
            {
                "name": name,
                "terms": _json(terms.spec()),
                "minimum_arc": LEAST,
                "arcs": [arc.spec() for arc in arcs],
                "says": admits_parts(
                    terms, [Ask(mechanism=GRR, step=0, cohort=arc) for arc in arcs], minimum_arc=LEAST
                ),
            }
            for name, (terms, arcs) in ARCS.items()
        ],
        "matches": [
            {"pattern": pattern, "given": given, "says": matches(pattern, given)} for pattern, given in PATTERNS
        ],
        "families": families(),
        "terms": [{"terms": terms, "says": readable(terms)} for terms in map(bounded, BOUNDS)],
        "groups": [{"terms": terms, "says": readable(terms)} for terms in map(grouped, GROUPS)],
    }


def grouped(group: Any) -> dict[str, Any]:
    """Terms as JSON of this group of devices."""
    terms: dict[str, Any] = {**_json(PLAIN.spec()), "group": group}
    return terms


def bounded(bound: Any) -> dict[str, Any]:
    """Terms as JSON whose only view has this bound."""
    terms: dict[str, Any] = {**_json(PLAIN.spec()), "views": [{"kind": "x", "n": bound}]}
    return terms


def readable(terms: dict[str, Any]) -> bool:
    """Whether terms can be read."""
    try:
        Terms.from_spec(terms, "popular")
    except InvalidValue:
        return False
    return True


def _json(spec: Any) -> Any:
    return json.loads(canonical(spec))


if __name__ == "__main__":
    PLACE.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n")
