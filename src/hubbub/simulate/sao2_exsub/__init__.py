"""Tables 2 and 4 and the offline figures of SaO2. Importing this registers them, in the text's order."""

from hubbub.simulate.sao2_exsub import figure_1, offline, tables_2_and_4, stock  # isort: skip

__all__ = ["figure_1", "offline", "stock", "tables_2_and_4"]
