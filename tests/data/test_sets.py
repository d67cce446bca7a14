"""The facts of each data set, as they are known of the source."""

import subprocess
import sys
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from hubbub import data
from hubbub.core.errors import InvalidValue, MissingDependency
from hubbub.data import CATALOG, YEARS, Baskets, Counts, KeyValues, Table
from hubbub.random.source import Random

KINDS: dict[str, type] = dict.fromkeys(("adult", "flights", "taxi", "flights3m", "stocks", "census"), Table)
KINDS |= dict.fromkeys(("emoji", "names", "domains", "words"), Counts)
KINDS |= {"retail": Baskets, "online_retail": Baskets, "movies": KeyValues}


@lru_cache(maxsize=1)  # two tests in a row look at one of them
def read(name: str) -> Any:
    content = data.load(name)
    assert type(content) is KINDS[name]
    return content


def test_every_set_is_read_here() -> None:
    assert set(KINDS) == set(CATALOG)


def test_emoji(cached) -> None:
    counts = read("emoji")
    assert (len(counts), counts.n) == (969, 156_941)
    assert np.unique(counts.labels).size == 969
    assert (counts.labels[0], counts.counts[0]) == ("\N{FACE WITH TEARS OF JOY}", 14_622)
    assert (np.diff(counts.counts) <= 0).all()
    blocks = counts.by_group()
    assert (len(blocks), blocks.n) == (26, 156_941)
    assert counts.groups is not None
    assert (counts.groups == "Emoticons").sum() == 76


def test_retail(cached) -> None:
    baskets = read("retail")
    assert (baskets.n, baskets.domain, baskets.items.size) == (88_162, 16_470, 908_576)
    assert (baskets.sizes.min(), baskets.sizes.max()) == (1, 76)
    assert baskets[1].tolist() == [30, 31, 32]
    assert baskets.support().min() == 1
    assert baskets.support().argmax() == 39


def test_adult(cached) -> None:
    table = read("adult")
    assert (table.n, len(table)) == (48_842, 15)
    assert [table.missing(name) for name in ("workclass", "occupation", "native_country")] == [2799, 2809, 857]
    assert sum(table.missing(name) for name in table) == 6465  # as the donors state
    assert table.counts("income").labels.tolist() == ["<=50K", ">50K"]
    assert round(float(table.counts("income").frequencies[1]), 4) == 0.2393  # as the donors state
    assert "?" in table.counts("workclass").labels
    assert table["age"].dtype == np.int64
    assert (table["age"].min(), table["age"].max()) == (17, 90)


def test_flights(cached) -> None:
    table = read("flights")
    assert (table.n, len(table)) == (336_776, 19)
    assert [len(table.counts(name)) for name in ("carrier", "dest", "origin", "month")] == [16, 105, 3, 12]
    assert table.missing("tailnum") == 2512
    assert len(table.counts("tailnum")) == 4043 + 1  # and the label of the missing
    assert (table.missing("dep_time"), table.missing("arr_delay"), table.missing("hour")) == (8255, 9430, 0)
    assert str(table["time_hour"][0]) == "2013-01-01T10:00:00"


def test_names(cached) -> None:
    first = data.names(1880)
    assert first.groups is not None
    assert (first.labels[0], first.groups[0], first.counts[0]) == ("John", "M", 9655)
    girls = data.names(1880, sex="F")
    assert (girls.labels[0], girls.counts[0]) == ("Mary", 7065)
    assert girls.n + data.names(1880, sex="M").n == first.n == first.by_label().n
    assert len(first.by_label()) < len(first)


@pytest.mark.slow
def test_names_of_every_year(cached) -> None:
    years = {year: data.names(year) for year in YEARS}
    assert len(years) == 137
    assert sum(map(len, years.values())) == 1_891_894
    assert sum(counts.n for counts in years.values()) == read("names").n == 344_533_897


def test_taxi(cached) -> None:
    table = read("taxi")
    assert (table.n, len(table)) == (50_000, 20)
    assert np.unique(table["row"]).size == 50_000
    times = table["tpep_pickup_datetime"]
    assert (str(times.min()), str(times.max())) == ("2015-01-01T00:00:09", "2015-01-31T23:59:55")
    assert (times <= table["tpep_dropoff_datetime"]).all()
    fares = table["fare_amount"]
    assert (fares.min(), np.median(fares), fares.max(), (fares < 0).sum()) == (-4.5, 8.0, 400.0, 16)
    assert table.counts("store_and_fwd_flag").labels.tolist() == ["N", "Y"]
    assert table["pickup_x"].min() > -8_242_000
    assert table["pickup_y"].max() < 4_983_000


def test_flights3m(cached) -> None:
    table = read("flights3m")
    assert (table.n, list(table)) == (3_000_000, ["date", "delay", "distance", "origin", "destination"])
    assert (np.diff(table["date"]) >= np.timedelta64(0)).all()
    assert (str(table["date"][0]), str(table["date"][-1])) == ("2001-01-01T00:01", "2001-07-01T00:00")
    assert (table["delay"].min(), table["delay"].max(), table["distance"].max()) == (-1116, 1688, 4962)
    origins = table.counts("origin")
    assert (len(origins), len(table.counts("destination"))) == (229, 228)
    assert (origins.labels[origins.counts.argmax()], origins.counts.max()) == ("ORD", 166_341)


def test_movies(cached) -> None:
    ratings = read("movies")
    assert (ratings.n, ratings.dimension, ratings.key.size) == (943, 1682, 100_000)
    assert np.unique(ratings.labels).size == 1682
    assert (ratings.held.min(), ratings.held.max()) == (20, 737)
    values, counts = np.unique(ratings.value, return_counts=True)
    assert values.tolist() == [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert counts.tolist() == [6110, 11_370, 27_145, 34_174, 21_201]  # one to five stars
    rated = np.bincount(ratings.key)
    assert (ratings.labels[rated.argmax()], rated.max()) == ("Star Wars (1977)", 583)
    assert ratings.ternary().frequencies().sum() == pytest.approx(100_000 / 943)


def test_movies_of_a_genre(cached) -> None:
    mysteries = data.movies(genre="Mystery")
    assert (mysteries.n, mysteries.dimension, mysteries.key.size) == (943, 61, 5245)
    whole = read("movies")
    assert mysteries.key.size == np.isin(whole.labels[whole.key], mysteries.labels).sum()
    with pytest.raises(InvalidValue, match="Film-Noir"):
        data.movies(genre="mystery")


def test_stocks(cached) -> None:
    table = read("stocks")
    assert (table.n, len(table)) == (12_154, 8)
    tickers, rows = np.unique(table["ticker"], return_counts=True)
    assert (tickers.tolist(), rows.tolist()) == (["AAPL", "FB", "GOOG", "IBM", "MSFT"], [3270, 196, 2148, 3270, 3270])
    assert (str(table["date"].min()), str(table["date"].max())) == ("2000-03-01", "2013-03-01")
    assert all((table[name] > 0).all() for name in ("open", "high", "low", "close", "volume", "adj_close"))
    for ticker in tickers:
        assert (np.diff(table["date"][table["ticker"] == ticker]) > np.timedelta64(0)).all()


def test_stock_moves(cached) -> None:
    windows = data.stock_moves()
    assert (len(windows), windows.dimension) == (3 * (3270 // 32) + 2148 // 32 + 196 // 32, 32)
    frequencies = windows.frequencies()
    assert frequencies[0] == 0  # what the others are measured from
    assert frequencies.sum() == pytest.approx(9.57, abs=0.01)
    drawn = data.stock_moves(5000, Random(seed=1))
    assert len(drawn) == 5000
    # 32 shares of 5,000, deviations of 0.007 at most: six of them, below one in a million.
    assert np.abs(drawn.frequencies() - frequencies).max() < 0.042
    assert len(data.stock_moves(days=3270)) == 3
    with pytest.raises(InvalidValue, match="rng"):
        data.stock_moves(5000)
    with pytest.raises(InvalidValue, match="days"):
        data.stock_moves(days=0)


def test_domains(cached) -> None:
    counts = data.domains()
    assert (len(counts), counts.n) == (16_616, 1_200_000)
    assert np.unique(counts.labels).size == 16_616
    assert (np.diff(counts.counts) <= 0).all()
    assert counts.counts[0] == pytest.approx(10 * counts.counts[9], rel=0.001)  # Zipf's
    assert {"google.com", "facebook.com", "youtube.com"} < set(counts.labels[:500].tolist())
    even = data.domains(100, exponent=0.0)
    assert (even.n, even.counts.max()) == (100, 1)
    with pytest.raises(InvalidValue, match="n:"):
        data.domains(0)


def test_words(cached) -> None:
    counts = data.words()
    assert (len(counts), counts.n) == (318_587, 971_057_846)
    assert np.unique(counts.labels).size == len(counts)
    assert counts.labels[:6].tolist() == ["the", "to", "and", "of", "a", "in"]
    assert round(float(counts.counts[0]) / 1e9, 4) == 0.0537  # as wordfreq says of "the"
    assert (np.diff(counts.counts) <= 0).all()
    assert not any("00" in label for label in counts.labels)


def test_online_retail(cached) -> None:
    baskets = data.online_retail()
    assert (baskets.n, baskets.domain, baskets.items.size) == (4372, 3885, 269_032)
    assert (baskets.sizes.min(), baskets.sizes.max()) == (1, 1823)
    assert baskets.labels is not None
    support = baskets.support()
    assert (baskets.labels[support.argmax()], support.max()) == ("REGENCY CAKESTAND 3 TIER", 887)
    assert support.min() >= 1


def test_flights3m_without_pyarrow(cached, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingDependency, match="pyarrow"):
        data.flights3m()


@pytest.mark.parametrize("year", [1879, 2017, 1880.5])
def test_years_there_are_none_of(year: int) -> None:
    with pytest.raises(InvalidValue, match="from 1880 to 2016"):
        data.names(year)
    with pytest.raises(InvalidValue, match="F, M, or nothing"):
        data.names(1880, sex="X")  # type: ignore[arg-type]


def test_a_light_import() -> None:
    heavy = "{'numpy', 'scipy', 'numba', 'pandas', 'pyarrow', 'duckdb', 'matplotlib'}"
    code = f"import sys, hubbub.data; print(sorted({heavy} & set(sys.modules)), callable(hubbub.data.fetch))"
    code += "; hubbub.data.zipf, hubbub.data.emoji, hubbub.data.adult, hubbub.data.flights3m, hubbub.data.stocks"
    code += f"; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[] True", "['numpy']"]


def test_census(cached) -> None:
    table = read("census")
    assert (table.n, len(table)) == (299_285, 15)
    assert (table["age"][0], table["education"][0], table["weeks_worked"][1]) == (73, "High school graduate", 52)
    assert table.counts("income").counts.tolist() == [280_717, 18_568]
    assert table.counts("sex").labels.tolist() == ["Female", "Male"]


def test_columns_of_the_census_by_name(cached) -> None:
    table = data.census(columns=["self_country", "instance_weight"])
    assert list(table) == ["self_country", "instance_weight"]
    assert (table["self_country"][2], table["instance_weight"][0]) == ("Vietnam", 1700.09)
    with pytest.raises(InvalidValue, match="columns: got"):
        data.census(columns=["age", "age"])
