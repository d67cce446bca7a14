"""All reproductions. Importing this module loads every paper, in the order in which they are listed."""

from hubbub_papers.harness import REPRODUCTIONS, Reproduction, load_modules, reproduce
from hubbub_papers.result import Cell, Result

__all__ = ["REPRODUCTIONS", "Cell", "Reproduction", "Result", "reproduce"]

load_modules("hubbub_papers", ("dissertation", "averaging", "coco", "ldp_ids", "sao2_exsub", "tops_topl"))
