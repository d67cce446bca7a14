"""Reports in DataFrames: folded where they lie, by Spark or anything that speaks Spark Connect (`docs/spark.md`).

Only the DataFrame API is used, so that the same lines run on Spark, Spark Connect, Databricks, EMR and Sail.
"""

from hubbub.spark.batch import DataFrameFold as DataFrameFold
from hubbub.spark.batch import fold as fold
from hubbub.spark.batch import plan_of as plan_of
from hubbub.spark.kept import next_asks as next_asks
from hubbub.spark.kept import releases as releases
from hubbub.spark.kept import table as table
from hubbub.spark.sink import SinkRefused as SinkRefused
from hubbub.spark.sink import SketchSink as SketchSink
from hubbub.spark.stream import fold_stream as fold_stream
