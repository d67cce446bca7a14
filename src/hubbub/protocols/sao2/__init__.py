"""SaO2: means over time of 0/1 vectors that change rarely, in real time, for one epsilon over the whole stream."""

from hubbub.protocols.sao2.answers import Answers, Sao2
from hubbub.protocols.sao2.tree import Tree
from hubbub.protocols.views.changes import Changes, members

__all__ = ["Answers", "Changes", "Sao2", "Tree", "members"]
