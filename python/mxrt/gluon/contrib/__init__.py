"""Names that programs look for in ``mx.gluon.contrib``."""

from ..symbol_block import SymbolBlockThreadSafe

__all__ = ["SymbolBlockThreadSafe"]
