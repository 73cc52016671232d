"""Names that programs look for in ``mx.gluon.contrib``."""

from .block import SymbolBlockThreadSafe

__all__ = ["SymbolBlockThreadSafe"]
