"""Sparse ternary vectors and key-value data: one file a mechanism."""

from hubbub.mechanisms.base import Mechanism
from hubbub.mechanisms.ternary.coco import CoCo
from hubbub.mechanisms.ternary.collision import Collision
from hubbub.mechanisms.ternary.ddrm import DDRM
from hubbub.mechanisms.ternary.efmrtt import EFMRTT
from hubbub.mechanisms.ternary.exsub import ExSub
from hubbub.mechanisms.ternary.future_rand import FutureRand
from hubbub.mechanisms.ternary.kvue import KVUE
from hubbub.mechanisms.ternary.pckv_agrr import PCKVAGRR
from hubbub.mechanisms.ternary.pckv_grr import PCKVGRR
from hubbub.mechanisms.ternary.pckv_ue import PCKVUE
from hubbub.mechanisms.ternary.priv_kv import PrivKV
from hubbub.mechanisms.ternary.succinct import Succinct
from hubbub.mechanisms.ternary.topl import ToPLClipped

MECHANISMS: tuple[type[Mechanism], ...] = (
    Collision,
    CoCo,
    ExSub,
    PrivKV,
    KVUE,
    PCKVGRR,
    PCKVAGRR,
    PCKVUE,
    DDRM,
    EFMRTT,
    ToPLClipped,
    FutureRand,
    Succinct,
)
