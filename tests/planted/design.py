"""Bugs in what is said of protocols before a collection."""

from planted.mutant import Mutant

BUDGETS = [
    Mutant(
        "changes are followed for ever",
        "device/dyadic.py",
        "        elif bit != self._bit and self._left:",
        "        elif bit != self._bit:",
        "device/test_dyadic.py -k whatever_changes",
    ),
    Mutant(
        "every answer tells the first lie",
        "device/dyadic.py",
        "            self._used += 1",
        "            pass",
        "device/test_dyadic.py -k whatever_changes",
    ),
    Mutant(
        "no news is told as it is",
        "device/dyadic.py",
        "            y = int(self._rng.bernoulli(SCALE // 2))",
        "            y = int(bit or 0)",
        "device/test_dyadic.py -k coin",
    ),
    Mutant(
        "lies are a bit rarer than their loss allows",
        "rules/dyadic.py",
        "int(SCALE * few * ratio / (1 - few + few * ratio))",
        "1 + int(SCALE * few * ratio / (1 - few + few * ratio))",
        "rules/test_dyadic.py -k drawn_by_their_law",
    ),
    Mutant(
        "a step counts half",
        "rules/dyadic.py",
        "(2 if piece.number else 1)",
        "1",
        "server/test_dyadic.py -k add_up",
    ),
    Mutant(
        "collisions of hashes are forgotten",
        "server/dyadic.py",
        "        frequencies = 1 + (sums - 1) / protocol.spread",
        "        frequencies = sums",
        "server/test_dyadic.py -k unbiased",
    ),
    Mutant(
        "a population tells the lies in another order",
        "study/dyadic.py",
        "np.where(news, used, 0)]",
        "np.where(news, used[-1] - used, 0)]",
        "study/test_dyadic.py -k law_of_the_device",
    ),
    Mutant(
        "the linear family does not compete in a plan",
        "design/planning.py",
        "compete=hash is None",
        "compete=False",
        "design/test_planning.py -k no_hash_that_may",
    ),
    Mutant(
        "a server looks at no bit of the values themselves",
        "design/change/bits.py",
        "return found + held @ self.tables.common.ravel()",
        "return held @ self.tables.common.ravel()",
        "design/test_change.py -k 'best_tests and LOSUE'",
    ),
    Mutant(
        "a server takes all cells of a key as equal",
        "design/change/cells.py",
        "else self.sizes[rows, symbols]",
        "else np.full(symbols.shape, self.values / self.sizes.shape[1])",
        "design/test_change.py -k 'best_tests and BiLOLOHA'",
    ),
    Mutant(
        "two users of one bucket share their answer",
        "design/change/__init__.py",
        "alike = buckets.area(protocol, users=True)",
        "alike = buckets.area(protocol)",
        "design/test_change.py -k 'best_tests and DBitFlip'",
    ),
    Mutant(
        "a server takes all buckets as equal",
        "design/change/buckets.py",
        "return cls((protocol.k // b, protocol.k // b + 1)",
        "return cls((protocol.k // b, protocol.k // b)",
        "design/test_change.py -k 'best_tests and DBitFlip'",
    ),
    Mutant(
        "what was drawn is printed without its error",
        "design/roc.py",
        "auc + ALLOWED * error",
        "auc",
        "design/test_change.py -k 'best_tests and RAPPOR'",
    ),
]
