"""Laws that ship with the package, for protocols from elsewhere: tried on those of this one."""

from laws import law, oracle
from laws.variants import FLAGSHIPS, VARIANTS
from loloha.conform import laws

FEW = {"a_client_cannot_be_copied", "no_reports_are_a_clear_error"}
LEAST = [variant for variant in VARIANTS if variant.build().k == 2]

for name, shipped in laws.LAWS.items():
    if name in laws.EXACT:
        needs_all_keys = name == "support_has_the_stated_chances"
        law(LEAST, oracle.every_key_is_listed if needs_all_keys else lambda _: True)(shipped)
    else:
        law(FLAGSHIPS if name in FEW else VARIANTS)(shipped)
