"""All reproductions. Importing this module loads every paper, in the order in which they are listed."""

from hubbub.reproduce.harness import REPRODUCTIONS, Reproduction, load_modules, reproduce
from hubbub.reproduce.result import Cell, Result

__all__ = ["REPRODUCTIONS", "Cell", "Reproduction", "Result", "reproduce"]

load_modules("hubbub.reproduce", ("dissertation", "averaging", "coco", "ldp_ids", "sao2_exsub", "tops_topl"))
