"""Sparse ternary vectors and key-value data: one file a mechanism."""

MECHANISMS = {
    "Collision": "collision",
    "CoCo": "coco",
    "ExSub": "exsub",
    "NetSub": "net_sub",
    "NetSeed": "net_seed",
}
"""Each, and the file that it is in."""

BASELINES = {
    "PrivKV": "priv_kv",
    "KVUE": "kvue",
    "PCKVGRR": "pckv_grr",
    "PCKVAGRR": "pckv_agrr",
    "PCKVUE": "pckv_ue",
    "DDRM": "ddrm",
    "EFMRTT": "efmrtt",
    "ToPLClipped": "topl",
    "FutureRand": "future_rand",
    "Succinct": "succinct",
}
"""Those that only papers compare with, and the files of `hubbub.reproduce.baselines` that they are in."""
