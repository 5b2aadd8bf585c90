"""Classes of 0.2.0 that only held parameters, for `isinstance`. Gone in 0.4."""

from abc import ABCMeta

from loloha.protocols.table import BLH, LGRR, LOLOHA, OLH, OLOLOHA


def _group(name: str, *classes: type) -> ABCMeta:
    group = ABCMeta(name, (), {})
    for cls in classes:
        group.register(cls)
    return group


SymbolChain = _group("SymbolChain", LGRR, LOLOHA)
LocalHashing = _group("LocalHashing", BLH, OLH, LOLOHA)
ChosenG = _group("ChosenG", OLH, OLOLOHA)
