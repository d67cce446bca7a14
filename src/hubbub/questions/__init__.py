"""Questions: one file per kind, with everything that is known of it; and reading collections with them."""

from hubbub.collection.setting import Setting
from hubbub.questions.base import QUESTIONS, Example, Question, Shape
from hubbub.questions.read import read_collection
from hubbub.questions.statistic import StatisticQuestion

__all__ = ["QUESTIONS", "Example", "Question", "Setting", "Shape", "StatisticQuestion", "read_collection"]
