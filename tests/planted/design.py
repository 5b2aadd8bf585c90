"""Bugs in what is said of protocols before a collection."""

from planted.mutant import Mutant

BUDGETS = [
    Mutant(
        "changes are followed for ever",
        "../loloha_lab/dyadic/client.py",
        "bit != self._bit and self._left",
        "bit != self._bit",
        "lab/dyadic/test_client.py -k whatever_changes",
    ),
    Mutant(
        "every answer tells the first lie",
        "../loloha_lab/dyadic/client.py",
        "            self._used += 1",
        "            pass",
        "lab/dyadic/test_client.py -k whatever_changes",
    ),
    Mutant(
        "no news is told as it is",
        "../loloha_lab/dyadic/client.py",
        "            y = int(self._rng.bernoulli(SCALE // 2))",
        "            y = int(bit or 0)",
        "lab/dyadic/test_client.py -k coin",
    ),
    Mutant(
        "lies are a bit rarer than their loss allows",
        "../loloha_lab/dyadic/protocol.py",
        "int(SCALE * few * ratio / (1 - few + few * ratio))",
        "1 + int(SCALE * few * ratio / (1 - few + few * ratio))",
        "lab/dyadic/test_protocol.py -k drawn_by_their_law",
    ),
    Mutant(
        "a step counts half",
        "../loloha_lab/dyadic/protocol.py",
        "(2 if piece.number else 1)",
        "1",
        "lab/dyadic/test_tally.py -k add_up",
    ),
    Mutant(
        "collisions of hashes are forgotten",
        "../loloha_lab/dyadic/tally.py",
        "        frequencies = 1 + (sums - 1) / protocol.spread",
        "        frequencies = sums",
        "lab/dyadic/test_tally.py -k unbiased",
    ),
    Mutant(
        "a population tells the lies in another order",
        "../loloha_lab/dyadic/simulation.py",
        "np.where(news, used, 0)",
        "np.where(news, used[-1] - used, 0)",
        "lab/dyadic/test_simulation.py -k law_of_the_device",
    ),
    Mutant(
        "the least-prime family does not compete in a plan",
        "planning/rivals.py",
        "families = CHOSEN if hash is None else (hash,)",
        "families = CHOSEN[::2] if hash is None else (hash,)",
        "planning/test_planning.py -k no_g_family_or_memo",
    ),
    Mutant(
        "a server looks at no bit of the values themselves",
        "privacy/change/bits.py",
        "return scores + counts @ self.tables.common.ravel()",
        "return counts @ self.tables.common.ravel()",
        "privacy/test_change.py -k 'best_tests and LOSUE'",
    ),
    Mutant(
        "a server takes all cells of a key as equal",
        "privacy/change/known_key.py",
        "self.sizes[rows, symbols]",
        "np.full(symbols.shape, self.values / self.sizes.shape[1])",
        "privacy/test_change.py -k 'best_tests and BiLOLOHA'",
    ),
    Mutant(
        "two users of one bucket share their answer",
        "privacy/change/__init__.py",
        "alike = buckets.area(protocol, users=True)",
        "alike = buckets.area(protocol)",
        "privacy/test_change.py -k 'best_tests and DBitFlip'",
    ),
    Mutant(
        "a server takes all buckets as equal",
        "privacy/change/buckets.py",
        "protocol.k // b + 1",
        "protocol.k // b",
        "privacy/test_change.py -k 'best_tests and DBitFlip'",
    ),
    Mutant(
        "what was drawn is printed without its error",
        "privacy/roc.py",
        "auc + ALLOWED * error",
        "auc",
        "privacy/test_change.py -k 'best_tests and RAPPOR'",
    ),
]
