"""Questions: one file per kind, with everything that is known of it; and reading collections with them."""

from hubbub.questions.base import QUESTIONS, Example, Question, Setting
from hubbub.questions.collection import Collection, read_collection
from hubbub.questions.shape import Shape
from hubbub.questions.statistic import StatisticQuestion

__all__ = ["QUESTIONS", "Collection", "Example", "Question", "Setting", "Shape", "StatisticQuestion", "read_collection"]
