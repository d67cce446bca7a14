"""Wang et al., Continuous Release of Data Streams under both Centralized and Local Differential Privacy (CCS 2021)."""

from hubbub.reproduce.tops_topl import table_1 as _table_1  # noqa: F401, I001  # in the order of the paper
from hubbub.reproduce.tops_topl import figure_1 as _figure_1  # noqa: F401
from hubbub.reproduce.tops_topl import figure_2 as _figure_2  # noqa: F401
from hubbub.reproduce.tops_topl import figures_3_and_10 as _figures_3_and_10  # noqa: F401
from hubbub.reproduce.tops_topl import figures_4_and_5 as _figures_4_and_5  # noqa: F401
from hubbub.reproduce.tops_topl import figures_6_and_7 as _figures_6_and_7  # noqa: F401
from hubbub.reproduce.tops_topl import figures_8_and_9 as _figures_8_and_9  # noqa: F401
from hubbub.reproduce.tops_topl import section_7 as _section_7  # noqa: F401
from hubbub.reproduce.tops_topl import counters as _counters  # noqa: F401
