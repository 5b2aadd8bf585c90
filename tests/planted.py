"""Bugs to plant one by one, each with the tests that must see it; `mutants.py` runs them."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """A bug: replace the only occurrence of ``old`` in a file of src/loloha by ``new``."""

    bug: str
    file: str
    old: str
    new: str
    caught_by: str
    """Arguments of pytest, below tests/."""


CLIENT, HASHING, CHANNELS = (
    "device/test_client.py",
    "rules/test_hashing.py",
    "rules/test_channels.py",
)
TALLY, PROTOCOLS, ENCODINGS = (
    "server/test_tally.py",
    "rules/test_protocols.py",
    "rules/test_encodings.py",
)


def law(name: str) -> str:
    """The conformance suite's law of this name, on all variants."""
    return f"test_conformance.py -k {name}"


RANDOMISED_RESPONSE = [
    Mutant(
        "the last bit is not randomised",
        "rules/encodings/bit.py",
        "channel.draw(rng, self.size, bits)",
        "channel.draw(rng, self.size - 1, bits)",
        law("memo_is_the_truth"),
    ),
    Mutant(
        "the last bit is never sent",
        "rules/encodings/bit.py",
        "return channel.draw(rng, self.size, bits).to",
        "return (channel.draw(rng, self.size, bits) % (1 << self.size - 1)).to",
        law("memo_is_the_truth"),
    ),
    Mutant(
        "a lie may equal the truth",
        "rules/channels.py",
        "        other = rng.below(self.g - 1)\n        return other + (other >= x)",
        "        return rng.below(self.g)",
        CHANNELS + " -k lies_are_uniform",
    ),
    Mutant(
        "lies leave out the last symbol",
        "rules/channels.py",
        "return other + (other >= x)",
        "return other + (other > x)",
        CHANNELS + " -k lies_are_uniform",
    ),
    Mutant(
        "a set bit is treated as unset",
        "rules/channels.py",
        "return rng.bernoullis(size, bits, self.set, self.unset)",
        "return rng.bernoullis(size, bits, self.unset, self.unset)",
        CHANNELS + " -k answered_with_its_own",
    ),
    Mutant(
        "the second round is skipped",
        "rules/protocols/base.py",
        "return self.encoding.rerandomise(rng, answer, self.second_channel)",
        "return answer",
        law("first_report_loses"),
    ),
    Mutant(
        "the second round starts from the truth",
        "device/client.py",
        "protocol.instant(rng, kept)",
        "protocol.instant(rng, x if isinstance(kept, int) else kept)",
        law("three_reports_share"),
    ),
    Mutant(
        "bernoulli is off by one",
        "rules/rng.py",
        "return secrets.randbits(DIGITS) < threshold",
        "return secrets.randbits(DIGITS) <= threshold",
        "rules/test_rng.py",
    ),
    Mutant(
        "the device draws from the Mersenne Twister",
        "rules/rng.py",
        "return secrets.randbits(DIGITS) < threshold",
        "return random.getrandbits(DIGITS) < threshold",
        "rules/test_rng.py -k 'operating_system'",
    ),
    Mutant(
        "draws made at once: a number equal to its threshold lies below it",
        "rules/rng.py",
        "ones * (guard + threshold - 1) - numbers",
        "ones * (guard + threshold) - numbers",
        "rules/test_rng.py -k at_once",
    ),
    Mutant(
        "draws made at once: a certain answer is not certain",
        "rules/rng.py",
        "ones * ((1 << digits) - 1)",
        "ones * ((2 << digits) - 1)",
        "rules/test_rng.py -k at_once",
    ),
    Mutant(
        "draws made at once: the last digit is left out",
        "rules/rng.py",
        "ones * ((1 << digits) - 1)",
        "ones * ((1 << digits) - 2)",
        "rules/test_rng.py -k at_once",
    ),
    Mutant(
        "draws made at once: all use one number",
        "rules/rng.py",
        "randbytes(width * size)",
        "randbytes(width) * size",
        "rules/test_rng.py -k at_once",
    ),
    Mutant(
        "draws made at once: all use one threshold",
        "rules/rng.py",
        "return other_below ^ ((chosen_below ^ other_below) & chosen)",
        "return chosen_below",
        "rules/test_rng.py -k at_once",
    ),
    Mutant(
        "draws made at once: the randomness taken tells of the bits",
        "rules/rng.py",
        "randbytes(width * size)",
        "randbytes(width * (size + chosen % 2))",
        "rules/test_rng.py -k one_by_one",
    ),
    Mutant(
        "draws made at once come from the Mersenne Twister",
        "rules/rng.py",
        "randbytes=secrets.token_bytes",
        "randbytes=random.randbytes",
        "rules/test_rng.py -k 'operating_system'",
    ),
    Mutant(
        "keep is rounded up: the loss exceeds what was asked",
        "rules/channels.py",
        "return int(SCALE * ratio / (ratio + g - 1))",
        "return int(SCALE * ratio / (ratio + g - 1)) + 1",
        CHANNELS + " -k 'largest_allowed or at_most'",
    ),
    Mutant(
        "the second round is not tightened to eps_1",
        "rules/channels.py",
        "return SymbolChannel(g, min(tightest, int(float(asked) * SCALE)))",
        "return SymbolChannel(g, int(float(asked) * SCALE) + 1)",
        CHANNELS + " -k chain_over_symbols",
    ),
    Mutant(
        "the first second round over bits is taken",
        "rules/channels.py",
        "return p_star * (1 - q_star) <= ratio * (1 - p_star) * q_star",
        "return p_star >= q_star",
        CHANNELS + " -k chain_over_bits",
    ),
    Mutant(
        "eps for eps/2 in each bit",
        "rules/protocols/unary.py",
        "return symmetric_bit_channel(self.eps_inf / 2)",
        "return symmetric_bit_channel(self.eps_inf)",
        law("memo_loses"),
    ),
    Mutant(
        "eps for eps/2 in the formula of SUE",
        "rules/channels.py",
        "return grr(eps / 2, 2)",
        "return grr(eps, 2)",
        CHANNELS + " -k test_unary",
    ),
    Mutant(
        "the published calibration is used for the tight one",
        "rules/protocols/grr.py",
        '{"tight": second_grr, "published"',
        '{"tight": second_grr_published, "published"',
        law("first_report_loses"),
    ),
    Mutant(
        "one sampled bucket spends half of eps_inf",
        "rules/protocols/dbitflip.py",
        'return self.eps_inf if self.d == 1 and self.calibration == "tight" else self.eps_inf / 2',
        "return self.eps_inf / 2",
        law("memo_loses"),
    ),
    Mutant(
        "the loss of bits is that of one bit",
        "rules/encodings/bit.py",
        "        # Two bits differ between two values.\n        return p * (1 - q) / ((1 - p) * q)",
        "        return p / q",
        law("first_report_loses"),
    ),
]

CLIENTS = [
    Mutant(
        "the memo is not stored",
        "device/client.py",
        "            memo = {**memo, x: kept}\n",
        "",
        law("three_reports_share"),
    ),
    Mutant(
        "the memo is keyed by the raw value",
        "device/client.py",
        "        kept = memo.get(x)\n",
        "        kept = memo.get(value)\n",
        law("returning_to_a_value"),
    ),
    Mutant(
        "all values share one answer",
        "device/client.py",
        "kept = memo.get(x)",
        "kept = next(iter(memo.values()), None)",
        law("returning_to_a_value"),
    ),
    Mutant(
        "the key is drawn anew for each report",
        "device/client.py",
        "return Report(state.key, protocol.instant(rng, kept)), memo",
        "return Report(protocol.enroll(rng), protocol.instant(rng, kept)), memo",
        law("ten_thousand_reports"),
    ),
    Mutant(
        "a one-round report keeps its key and answer",
        "device/client.py",
        "        key = protocol.enroll(rng)\n",
        "        if not hasattr(rng, 'kept'):\n            rng.kept = protocol.enroll(rng)\n"
        "        key = rng.kept\n",
        law("three_reports_share"),
    ),
    Mutant(
        "a repeated round draws anew",
        "device/client.py",
        "            if round in before.sent:\n                return before.sent[round]\n"
        "            if holds(before.answered, round):\n",
        "            if holds(before.answered, round) and round not in before.sent:\n",
        law("a_round_is_answered_once"),
    ),
    Mutant(
        "a forgotten round is answered again",
        "device/client.py",
        "            if holds(before.answered, round):\n",
        "            if round < -1:\n",
        CLIENT + " -k old_rounds",
    ),
    Mutant(
        "the loss counts rounds",
        "device/client.py",
        "units = len(state.memo) if self.protocol.longitudinal else state.reports",
        "units = state.reports",
        law("loss_counts"),
    ),
    Mutant(
        "the loss counts each value, not each answer, of a one-round rule",
        "device/client.py",
        "units = len(state.memo) if self.protocol.longitudinal else state.reports",
        "units = len(state.memo)",
        law("loss_counts"),
    ),
    Mutant(
        "the limit lets one answer too many pass",
        "device/client.py",
        "after = self._loss(state, more=1)",
        "after = self._loss(state)",
        law("a_limit_refuses"),
    ),
    Mutant(
        "a refused report has spent already",
        "device/client.py",
        "            self._afford(state)\n            table = state.table\n"
        "            kept = protocol.permanent(rng, x) if table is None else table[x]\n",
        "            kept = protocol.permanent(rng, x)\n"
        "            self._state = state._replace(memo={**memo, x: kept})\n"
        "            self._afford(state)\n",
        law("a_limit_refuses"),
    ),
    Mutant(
        "reset renews the budget",
        "device/client.py",
        "Account(spent, before.answered if wait else ())",
        "Account(0.0, before.answered if wait else ())",
        law("reset_forgets"),
    ),
    Mutant(
        "reset keeps the key",
        "device/client.py",
        "after = self._new(None, ",
        "after = self._new(before.key, ",
        law("reset_draws"),
    ),
    Mutant(
        "a restored client loses its memo",
        "device/state.py",
        'memo={_whole(x): _answer(stored, kept) for x, kept in body["memo"]}',
        "memo={}",
        law("restored"),
    ),
    Mutant(
        "a restored client answers old rounds anew",
        "device/state.py",
        'tuple((_whole(first), _whole(last)) for first, last in body["answered"])',
        'tuple((_whole(last), _whole(last)) for first, last in body["answered"])',
        CLIENT + " -k old_rounds",
    ),
    Mutant(
        "a restored client forgets what a reset left spent",
        "device/state.py",
        'spent_before=_amount(body["spent_before"])',
        "spent_before=0.0",
        CLIENT + " -k saved_client_goes_on",
    ),
    Mutant(
        "a state's checksum is not compared",
        "device/state.py",
        'if not hmac.compare_digest(str(body.pop("checksum")), checksum(body)):',
        'if not body.pop("checksum"):',
        CLIENT + " -k 'changed_bit or forged'",
    ),
    Mutant(
        "two clients of a protocol share a memo",
        "device/client.py",
        "            memo = {**memo, x: kept}\n",
        "            memo = vars(protocol).setdefault('shared', {})\n            memo[x] = kept\n",
        law("clients_are_independent"),
    ),
    Mutant(
        "one pseudonym serves all rounds",
        "device/client.py",
        'b"round %d" % round',
        'b"round"',
        CLIENT + " -k pseudonyms",
    ),
    Mutant(
        "a failed save destroys the old state",
        "device/file.py",
        "            with suppress(OSError):\n                os.unlink(temporary)\n",
        "            with suppress(OSError):\n                os.unlink(path)\n",
        CLIENT + " -k failed_save",
    ),
    Mutant(
        "an error shows the value",
        "rules/checks.py",
        "got one outside (not shown: it is private); ",
        "got {number}; ",
        "rules/test_checks.py test_secrecy.py",
    ),
    Mutant(
        "a repr shows the report",
        "rules/report.py",
        'return "Report(key and y hidden)"',
        'return f"Report({self.key}, {self.y!r})"',
        "test_secrecy.py",
    ),
    Mutant(
        "True counts as 1",
        "rules/checks.py",
        "number = None if isinstance(candidate, bool) else operator.index(candidate)",
        "number = operator.index(candidate)",
        "rules/test_checks.py",
    ),
    Mutant(
        "a table for life lists the identity among its lies only",
        "rules/channels.py",
        "identity = (g * alone.keep - SCALE) // (g - 1)",
        "identity = alone.keep",
        law("a_table_for_life"),
    ),
    Mutant(
        "a table for life is shuffled unevenly",
        "rules/channels.py",
        "            j = rng.below(i + 1)\n",
        "            j = rng.below(self.g)\n",
        law("a_table_for_life"),
    ),
    Mutant(
        "a table for life is drawn anew at every new value",
        "device/client.py",
        "kept = protocol.permanent(rng, x) if table is None else table[x]",
        "kept = protocol.permanent(rng, x)",
        law("returning_to_a_value"),
    ),
    Mutant(
        "the odometer of a table counts one cell less",
        "rules/protocols/loloha.py",
        "ways = sum(math.log(g - i) for i in range(answers))",
        "ways = sum(math.log(g - i) for i in range(answers - 1))",
        law("odometer"),
    ),
]

SENDERS = [
    Mutant(
        "a sender adopts what it has not written",
        "device/sender.py",
        "        self._agreement = _UNREAD\n        self._file.write(content)\n"
        "        self._agreement = after\n",
        "        self._agreement = after\n        self._file.write(content)\n",
        "device/test_faults.py -k report-full",
    ),
    Mutant(
        "a state is not synced before it is renamed",
        "device/file.py",
        "                os.fsync(file.fileno())\n                if check",
        "                if check",
        "device/test_faults.py -k deliver-killed",
    ),
    Mutant(
        "a new name is not synced",
        "device/file.py",
        "                os.replace(temporary, path)\n                sync_folder(folder)\n",
        "                os.replace(temporary, path)\n",
        "device/test_faults.py -k deliver",
    ),
    Mutant(
        "a withdrawal forgets before it deletes",
        "device/sender.py",
        "        self._agreement = _UNREAD\n        self._file.delete()\n"
        "        self._agreement = None",
        "        self._agreement = None\n        self._file.delete()",
        "device/test_faults.py -k withdraw-full",
    ),
    Mutant(
        "what was spent is forgotten with the consent",
        "device/sender.py",
        "_limit(limit, enrolments), ledger.spent)",
        "_limit(limit, enrolments), 0.0)",
        "device/test_state_file.py -k outlives_withdrawals",
    ),
    Mutant(
        "the limit bounds each campaign alone",
        "device/agreement.py",
        "client.limit = self.limit - (self.loss - client.loss)",
        "client.limit = self.limit",
        "device/test_state_file.py -k bounds_the_sum",
    ),
    Mutant(
        "a state of two names is opened twice",
        "device/file.py",
        ".st_nlink > 1",
        ".st_nlink > 9",
        "device/test_state_file.py -k two_names",
    ),
    Mutant(
        "the lock is not looked at again",
        "device/file.py",
        'if not _is(self.path + ".lock", self._beside):',
        "if False:",
        "device/test_state_file.py -k deleting_the_lock",
    ),
    Mutant(
        "a writer at work is swept away",
        "device/file.py",
        "        _lock(file)\n        os.unlink(path)",
        "        os.unlink(path)",
        "device/test_state_file.py -k at_work",
    ),
    Mutant(
        "the first gap is closed and not the shortest",
        "device/rounds.py",
        "gaps.index(min(gaps))",
        "0",
        "device/test_state_file.py -k 'heals or only_grows'",
    ),
    Mutant(
        "another report's receipt settles this one",
        "device/receipt.py",
        'said.get("reporter", reporter) == reporter',
        "True",
        "device/test_receipt.py -k whatever_else",
    ),
    Mutant(
        "a receipt may be called anything",
        "device/receipt.py",
        'answer.status == 200 and media == "application/json" and',
        "answer.status == 200 and",
        "device/test_receipt.py -k whatever_else",
    ),
    Mutant(
        "an answer may drip for ever",
        "device/connection.py",
        "        if left <= 0:\n",
        "        if left <= -60:\n",
        "device/test_receipt.py -k whole_in_time",
    ),
]

SERVER = [
    Mutant(
        "the seed 0 is drawn, under which all values collide",
        "rules/hashing/linear.py",
        "return 1 + rng.below(self.size - 1)",
        "return rng.below(self.size)",
        HASHING,
    ),
    Mutant(
        "the linear c0 is taken as 1/g",
        "rules/hashing/linear.py",
        "return Fraction(self.size // self.g - 1, self.size - 1)",
        "return Fraction(1, self.g)",
        HASHING + " -k collide_exactly",
    ),
    Mutant(
        "the modular c0 is taken as 1/g",
        "rules/hashing/modular.py",
        "return Fraction(colliding_pairs(self.modulus, self.g), self.members)",
        "return Fraction(1, self.g)",
        PROTOCOLS + " -k affine_estimates",
    ),
    Mutant(
        "the modular hash forgets b",
        "rules/hashing/modular.py",
        "return int((a * v + b) % self.modulus % self.g)",
        "return int((a * v) % self.modulus % self.g)",
        HASHING + " -k affine",
    ),
    Mutant(
        "the least prime is the next one",
        "rules/hashing/modular.py",
        "return least_prime(max(self.k, self.g))",
        "return least_prime(max(self.k, self.g) + 1)",
        HASHING + " -k least_prime",
    ),
    Mutant(
        "the plain windows are one residue short",
        "rules/counting/decode.py",
        "(modulus - 1 - np.arange(g)) // g + 1",
        "(modulus - 1) // g",
        "rules/test_decode.py -k 'prime and numpy'",
    ),
    Mutant(
        "the compiled windows slide the other way",
        "rules/counting/compiled/sliding.py",
        "            t -= step\n            t += modulus if t < 0 else 0\n",
        "            t += step\n            t -= modulus if t >= modulus else 0\n",
        "rules/test_decode.py -k 'prime and numba'",
    ),
    Mutant(
        "the linear hash reads one digit",
        "rules/hashing/linear.py",
        "            key //= g\n            v //= g\n",
        "            break\n",
        HASHING + " -k 'collide_exactly or equal_cells'",
    ),
    Mutant(
        "collisions are left out of q_star",
        "rules/encodings/base.py",
        "return p, c0 * p + (1 - c0) * q",
        "return p, q",
        law("estimates_are_unbiased"),
    ),
    Mutant(
        "q_star is that of the first round",
        "rules/protocols/base.py",
        "        p_star, q_star = encoding.supporting(p, q)\n",
        "        p_star, q_star = encoding.supporting(first.p, first.q)\n",
        law("estimates_are_unbiased"),
    ),
    Mutant(
        "values are put into buckets by floats",
        "rules/encodings/bit.py",
        "return v * self.b // self.k",
        "return int(v / (self.k / self.b))",
        ENCODINGS,
    ),
    Mutant(
        "sampled buckets favour some",
        "rules/encodings/bit.py",
        "chosen.add(newest if candidate in chosen else candidate)",
        "chosen.add(candidate if candidate not in chosen else min({*range(self.b)} - chosen))",
        ENCODINGS + " -k uniform_subset",
    ),
    Mutant(
        "a merge loses n",
        "server/tally.py",
        "merged.n = self.n + other.n",
        "merged.n = self.n",
        TALLY + " -k 'split or alone'",
    ),
    Mutant(
        "a merge loses counts",
        "server/tally.py",
        "np.add(self.counts, other.counts, out=merged.counts)",
        "np.maximum(self.counts, other.counts, out=merged.counts)",
        TALLY + " -k split",
    ),
    Mutant(
        "tallies of one shape merge",
        "server/tally.py",
        "        if other.protocol != self.protocol:\n",
        "        if other.protocol.encoding.cells != self.protocol.encoding.cells:\n",
        TALLY + " -k other_rules",
    ),
    Mutant(
        "a batch counts as one report",
        "server/tally.py",
        "self.n += len(ys)",
        "self.n += 1",
        law("many_reports_count"),
    ),
    Mutant(
        "a report out of range is counted",
        "server/tally.py",
        "if not (encoding.is_key(report.key) and encoding.is_answer(report.y)):",
        "if not encoding.is_key(report.key):",
        TALLY + " -k out_of_range",
    ),
    Mutant(
        "a message's checksum is not compared",
        "server/tally.py",
        "if hashlib.sha256(message[:-_DIGEST_BYTES]).digest() != message[-_DIGEST_BYTES:]:",
        "if len(message) < _DIGEST_BYTES:",
        TALLY + " -k changed_bit",
    ),
    Mutant(
        "a message inflates without bound",
        "server/tally.py",
        "raw = unpacker.decompress(body, size + 1)",
        "raw = unpacker.decompress(body)[:size]",
        TALLY + " -k forged_body",
    ),
    Mutant(
        "estimates are divided by all reports, not by those that reach the bin",
        "server/estimate.py",
        "shares: Floats = support / reach\n",
        "shares: Floats = support / np.max(reach, axis=-1, keepdims=True)\n",
        law("a_bin_is_divided"),
    ),
    Mutant(
        "estimates use the memo's channel",
        "server/estimate.py",
        "    channel = Channel.realised(protocol)\n    with np.errstate",
        "    channel = Channel.memoised(protocol)\n    with np.errstate",
        law("estimates_are_unbiased"),
    ),
    Mutant(
        "the variance is that of f = 0",
        "server/variance.py",
        "scatter = (f * (p * (1 - p)) + (1 - f) * (q * (1 - q))) / contrast**2",
        "scatter = (q * (1 - q)) / contrast**2",
        law("estimates_are_unbiased"),
    ),
    Mutant(
        "the transform mistakes x for -x",
        "rules/counting/decode.py",
        "characters = np.fft.rfft(folded, axis=1).conj()",
        "characters = np.fft.rfft(folded, axis=1)",
        law("support_is_counted"),
    ),
    Mutant(
        "the transform forgets the seeds' lower digits",
        "rules/counting/decode.py",
        "line[times[factor - 1]] = column if factor == mirrored else column.conj()",
        "line[:] = column if factor == mirrored else column.conj()",
        law("support_is_counted"),
    ),
    Mutant(
        "the support is that of the other symbol",
        "rules/counting/decode.py",
        "transformed = walsh_hadamard(table[:, 0] - table[:, 1])",
        "transformed = walsh_hadamard(table[:, 1] - table[:, 0])",
        law("support_is_counted"),
    ),
    Mutant(
        "g is rounded instead of compared",
        "rules/protocols/hashed.py",
        "key=lambda g: (noise(name, k, g, eps), g))",
        "key=lambda g: abs(g - round(math.exp(eps) + 1)))",
        PROTOCOLS + " -k exact_argmin",
    ),
    Mutant(
        "the paper's g cancels at large budgets",
        "rules/protocols/loloha.py",
        "rule = 2 * (math.exp(eps_1) - u) / (root + lost)",
        "rule = (root - lost) / (-6 * u * math.expm1(eps_1 - eps_inf))",
        PROTOCOLS + " -k papers_rule",
    ),
    Mutant(
        "one round of bits costs what one bit does",
        "design/transcript.py",
        "return protocol.encoding.memo_symbols * max(ones",
        "return max(ones",
        "design/test_transcript.py -k worst_of_the_second_round",
    ),
    Mutant(
        "calling a cell by another name costs nothing",
        "design/transcript.py",
        "visits * once + _eps(protocol, visits) - alike * once",
        "visits * once - alike * once",
        "design/test_transcript.py -k 'every_pair or least_over_all'",
    ),
    Mutant(
        "the worst of all keys is the best of them",
        "design/transcript.py",
        "bound = max(bound, min(there, back))",
        "bound = min(bound or there, there, back)",
        "design/test_transcript.py -k worst_of_all_keys",
    ),
    Mutant(
        "the loss after t reports is t times eps_1",
        "design/loss.py",
        "np.minimum(_memoised_loss(protocol, t.astype(np.float64), realised), once)",
        "np.minimum(t * protocol.asked_first, once)",
        "design/test_privacy.py",
    ),
    Mutant(
        "the loss of bits after t reports is that of one bit",
        "design/loss.py",
        "    OneHot: _two_bits,\n",
        "    OneHot: _one_symbol,\n",
        "design/test_privacy.py",
    ),
]

POPULATION_LAW, POPULATION = "study/test_population_law.py", "study/test_population.py"
DRAWS = "study/samplers/test_draws.py"

POPULATIONS = [
    Mutant(
        "a population's memo is drawn anew in every round",
        "study/samplers/symbol.py",
        "    if chain.second is None:\n        return kept\n",
        "    if chain.second is None:\n        return kept\n"
        "    kept = draws.symbols(chain.first, np.ascontiguousarray(kept))\n",
        POPULATION_LAW + " -k 'l-grr and back'",
    ),
    Mutant(
        "a population's values with one symbol keep two memos",
        "study/samplers/symbol.py",
        "            cell_of, firsts = merge(users, symbols, encoding.symbols)\n",
        "            cell_of = firsts = np.arange(len(users), dtype=np.int32)\n",
        POPULATION_LAW + " -k 'biloloha and back'",
    ),
    Mutant(
        "a population skips the second round",
        "study/samplers/symbol.py",
        "return draws.symbols(chain.second, kept)",
        "return kept",
        POPULATION_LAW + " -k 'l-grr and back'",
    ),
    Mutant(
        "a population's lies may equal the truth",
        "study/samplers/draws.py",
        "    told[lies] = others + (others >= truths[lies])\n",
        "    told[lies] = others\n",
        DRAWS,
    ),
    Mutant(
        "a population's bernoulli is off by one",
        "study/samplers/draws.py",
        "settled[settled] = tails < rest",
        "settled[settled] = tails <= rest",
        DRAWS,
    ),
    Mutant(
        "a population's unset bits are answered as set ones",
        "study/samplers/bit.py",
        "return still + draws.binomial(reach - ones, chain.second.unset)",
        "return still + draws.binomial(reach - ones, chain.second.set)",
        POPULATION_LAW + " -k 'rappor and once'",
    ),
    Mutant(
        "a population forgets bits that are sent twice",
        "study/samplers/bit.py",
        "repeated = np.flatnonzero(block.visits > 1)",
        "repeated = np.flatnonzero(block.visits > 2)",
        POPULATION_LAW + " -k 'rappor and back'",
    ),
    Mutant(
        "all of a population sample the same buckets",
        "study/samplers/draws.py",
        "np.where(sampled[users, candidate], newest, candidate)",
        "np.where(sampled[users, candidate], newest, newest)",
        DRAWS,
    ),
    Mutant(
        "users who send nothing are counted",
        "study/samplers/history.py",
        "present: Ints = (self.values >= 0).sum(axis=0)",
        "present: Ints = (self.values >= -1).sum(axis=0)",
        POPULATION + " -k without_a_report",
    ),
    Mutant(
        "rounds are divided by all users, not by their reports",
        "study/population.py",
        "        n = int(result.n[t])\n",
        "        n = len(result.loss)\n",
        POPULATION + " -k without_a_report",
    ),
    Mutant(
        "a population's loss counts reports",
        "study/samplers/__init__.py",
        "loss = loss_of(protocol, answers)",
        "loss: Any = history.reports * protocol.asked_memo",
        POPULATION_LAW + " -k 'rappor and back'",
    ),
    Mutant(
        "a population shares one table",
        "study/samplers/draws.py",
        "        tables[alike] = self.below(g, len(alike))[:, None]\n",
        "        tables[alike] = self.below(g, 1)[:, None]\n",
        POPULATION_LAW + " -k 'joint and once'",
    ),
    Mutant(
        "a population's permutations leave the last place alone",
        "study/samplers/draws.py",
        "        for i in range(g - 1, 0, -1):\n            places",
        "        for i in range(g - 2, 0, -1):\n            places",
        POPULATION_LAW + " -k 'joint'",
    ),
]

ENCODINGS = [
    Mutant(
        "reports of a subclass of an encoding are drawn as those of its base",
        "study/samplers/__init__.py",
        "reporter = REPORTERS.get(type(encoding))",
        "reporter = next((r for c, r in REPORTERS.items() if isinstance(encoding, c)), None)",
        "test_new_encoding.py -k generated_log",
    ),
    Mutant(
        "SQL takes an encoding that it does not know for the first that it does",
        "engines/sql.py",
        "view = _VIEWS.get(type(encoding))",
        "view = _VIEWS.get(type(encoding), _VIEWS[Symbols])",
        "test_new_encoding.py -k sql",
    ),
    Mutant(
        "the loss of repeated reports is that of symbols for every encoding",
        "design/loss.py",
        "shown = _SHOWN.get(type(encoding))",
        "shown = _SHOWN.get(type(encoding), _one_symbol)",
        "test_new_encoding.py -k repeated_reports",
    ),
    Mutant(
        "a visible frequency is one of f = 0",
        "design/prospect.py",
        "visible_one=_visible(protocol, n, 0.0, interval + power)",
        "visible_one=(interval + power) * math.sqrt(rare)",
        "design/test_verdict.py",
    ),
]

DOORS = [
    Mutant(
        "a float is what it comes to in binary",
        "rules/campaign/scalar.py",
        "        return _parsed(float.__repr__(value))",
        "        return Fraction(value)",
        "rules/test_scalar.py -k shortest_decimal",
    ),
    Mutant(
        "an hour that the clock shows twice is one",
        "study/datasets/column.py",
        'column.cast(pyarrow.timestamp("us", found.tz and "UTC"))',
        'column.cast(pyarrow.timestamp("us", found.tz))',
        "study/test_datasets_doors.py -k twice",
    ),
    Mutant(
        "a named index is a round",
        "study/datasets/layout.py",
        "rounds = [column for column in plain if column != user]",
        "rounds = [column for column in names if column != user]",
        "study/test_datasets_doors.py -k two_users",
    ),
    Mutant(
        "text that looks like a number is one",
        "study/datasets/label.py",
        "    return read if text == repr(float(text)) else text",
        "    return read",
        "study/test_datasets_doors.py -k reads_back",
    ),
    Mutant(
        "a copy of a tally counts again",
        "engines/saved.py",
        "(round, hashlib.sha256(content).digest())):",
        "(about.st_dev, about.st_ino)):",
        "engines/test_command.py -k given_twice",
    ),
    Mutant(
        "a result need not add up to its total",
        "engines/result.py",
        " or sums[0] != sums[1]:",
        ":",
        "engines/test_command.py -k not_whole",
    ),
]

PLANTED = [*RANDOMISED_RESPONSE, *CLIENTS, *SENDERS, *SERVER, *POPULATIONS, *ENCODINGS, *DOORS]
