"""Bugs in simulated populations and in what reads data."""

from planted.mutant import DRAWS, POPULATION, POPULATION_LAW, Mutant

POPULATIONS = [
    Mutant(
        "an audit takes half of the sampled bits for all",
        "audit/event.py",
        "2 if d * (d - 1) >= RARE * b * (b - 1) else 1",
        "1",
        "audit/test_audit.py -k sampled_bits_prove",
    ),
    Mutant(
        "an audit takes a chance symbol for the memo",
        "audit/event.py",
        "max(leanings.count(0), leanings.count(1)) < most",
        "False",
        "audit/test_audit.py -k shows_less",
    ),
    Mutant(
        "a quote that is never closed swallows the rest of a CSV",
        "datasets/csv.py",
        "end not in ragged",
        "bool(ragged and end not in ragged)",
        "datasets/test_datasets_table.py -k never_closed",
    ),
    Mutant(
        "a population's memo is drawn anew in every round",
        "population/samplers/symbol.py",
        "    if chain.second is None:\n        return memos\n",
        "    if chain.second is None:\n        return memos\n"
        "    if hasattr(chain.first, 'keep'):\n"
        "        memos = draws.symbols(chain.first, np.ascontiguousarray(memos))\n",
        POPULATION_LAW + " -k 'l-grr and back'",
    ),
    Mutant(
        "a population's values with one symbol keep two memos",
        "population/samplers/symbol.py",
        "    cell_of, firsts = merge(block.users, symbols, family.g)\n",
        "    cell_of = firsts = np.arange(len(symbols), dtype=np.int32)\n",
        POPULATION_LAW + " -k 'biloloha and back'",
    ),
    Mutant(
        "a population skips the second round",
        "population/samplers/symbol.py",
        "return draws.symbols(chain.second, memos)",
        "return memos",
        POPULATION_LAW + " -k 'l-grr and back'",
    ),
    Mutant(
        "a population's lies may equal the truth",
        "population/samplers/draws.py",
        "    answers[lies] = others + (others >= truths[lies])\n",
        "    answers[lies] = others\n",
        DRAWS,
    ),
    Mutant(
        "a population's bernoulli is off by one",
        "population/samplers/draws.py",
        "settled[settled] = tails < rest",
        "settled[settled] = tails <= rest",
        DRAWS,
    ),
    Mutant(
        "a population's unset bits are answered as set ones",
        "population/samplers/bit.py",
        "return still + draws.binomial(eligible - ones, chain.second.unset)",
        "return still + draws.binomial(eligible - ones, chain.second.set)",
        POPULATION_LAW + " -k 'rappor and once'",
    ),
    Mutant(
        "a population forgets bits that are sent twice",
        "population/samplers/bit.py",
        "repeated = np.flatnonzero(block.visits > 1)",
        "repeated = np.flatnonzero(block.visits > 2)",
        POPULATION_LAW + " -k 'rappor and back'",
    ),
    Mutant(
        "all of a population sample the same buckets",
        "population/samplers/draws.py",
        "np.where(sampled[users, candidate], newest, candidate)",
        "np.where(sampled[users, candidate], newest, newest)",
        DRAWS,
    ),
    Mutant(
        "users who send nothing are counted",
        "population/samplers/history.py",
        "present: Ints = (self.values >= 0).sum(axis=0)",
        "present: Ints = (self.values >= -1).sum(axis=0)",
        POPULATION + " -k without_a_report",
    ),
    Mutant(
        "rounds are divided by all users, not by their reports",
        "population/population.py",
        "        n = int(history.present[t])\n",
        "        n = history.n\n",
        POPULATION + " -k without_a_report",
    ),
    Mutant(
        "a population's loss counts reports",
        "population/samplers/__init__.py",
        "loss = loss_of(protocol, answers)",
        "loss: Any = history.reports * protocol.asked_memo",
        POPULATION_LAW + " -k 'rappor and back'",
    ),
    Mutant(
        "a population's constant tables all say 0",
        "population/samplers/draws.py",
        "        tables[alike] = self.below(g, len(alike))[:, None]\n",
        "        tables[alike] = 0 * self.below(g, len(alike))[:, None]\n",
        POPULATION_LAW + " -k 'joint and once'",
    ),
    Mutant(
        "a population's permutations leave the last place alone",
        "population/samplers/draws.py",
        "range(g - 1, 0, -1)",
        "range(g - 2, 0, -1)",
        POPULATION_LAW + " -k 'joint'",
    ),
]


LOADERS = [
    Mutant(
        "a float is what it comes to in binary",
        "campaign/scalar.py",
        "        return _parsed(float.__repr__(value))",
        "        return Fraction(value)",
        "campaign/test_scalar.py -k shortest_decimal",
    ),
    Mutant(
        "an hour that the clock shows twice is one",
        "campaign/scalar.py",
        "            return value.astimezone(datetime.UTC)",
        "            return value",
        "datasets/test_table_cells.py -k twice",
    ),
    Mutant(
        "times are read in a zone that must be known here",
        "datasets/arrow_cells.py",
        'column.cast(pyarrow.timestamp("us", dtype.tz and "UTC"))',
        'column.cast(pyarrow.timestamp("us", dtype.tz))',
        "datasets/test_table_cells.py -k zones",
    ),
    Mutant(
        "a named index is a round",
        "datasets/layout.py",
        "rounds = [column for column in plain if column != user]",
        "rounds = [column for column in names if column != user]",
        "datasets/test_table_cells.py -k two_users",
    ),
    Mutant(
        "an infinite number of a CSV makes all labels text",
        "datasets/label.py",
        "is_number = numbers and infinite == known - numbers",
        "is_number = False",
        "datasets/test_datasets_table.py -k of_a_csv_that_are_not_finite",
    ),
    Mutant(
        "rounds that are dates sort as text",
        "datasets/label.py",
        "all(map(UNSORTABLE.search, texts))",
        "False",
        "datasets/test_datasets_table.py -k without_order",
    ),
    Mutant(
        "a column of times that no other has is a round like others",
        "datasets/identifier.py",
        "column.reports >= FEWEST_REPORTS and len(columns) > 1 and column.apart == 1",
        "column.reports >= FEWEST_REPORTS and len(columns) > 1 and column.apart == 2",
        "datasets/test_datasets_table.py -k times_that",
    ),
    Mutant(
        "text that looks like a number is one",
        "datasets/label.py",
        '    return read if text == repr(float(text)) or text == "-0" else text',
        "    return read",
        "datasets/test_table_cells.py -k reads_back",
    ),
    Mutant(
        "a copy of a tally counts again",
        "engines/saved.py",
        (
            "if origin.n:\n"
            "    signs += [(round, sign) for sign in (origin.counts, *origin.sources)]\n"
            "    if origin.round is None:\n"
            "        self._check_unnamed(file, round, origin)"
        ),
        (
            "if origin.n < 0:\n"
            "    signs += [(round, sign) for sign in (origin.counts, *origin.sources)]\n"
            "    if origin.round is None:\n"
            "        self._check_unnamed(file, round, origin)"
        ),
        "engines/test_command.py -k given_twice",
    ),
    Mutant(
        "a result need not add up to its total",
        "engines/result.py",
        "np.count_nonzero(is_total) != 1 or sums[0] != sums[1]",
        "np.count_nonzero(is_total) != 1",
        "engines/test_command.py -k not_whole",
    ),
]


PAPER = [
    Mutant(
        "a mean of ratios is as uncertain as one of them",
        "../loloha_lab/paper/gain.py",
        "measured * math.hypot(*relative) / len(ratios)",
        "measured * math.hypot(*relative)",
        "lab/paper/test_gain.py -k scatter",
    ),
    Mutant(
        "ours is measured under the published calibration",
        "../loloha_lab/paper/method.py",
        "TIGHT if self.ours else calibration",
        "calibration",
        "lab/paper/test_method.py -k one_thing",
    ),
    Mutant(
        "more reports show less",
        "../loloha_lab/paper/pattern.py",
        "max(least, auc.auc)",
        "auc.auc",
        "lab/paper/test_gain.py -k never_show_less",
    ),
    Mutant(
        "a column of ids is a round",
        "datasets/identifier.py",
        "_HALF if column.reports >= MANY_REPORTS else _NEARLY",
        "2 if column.reports >= MANY_REPORTS else _NEARLY",
        "population/test_identifier.py -k 'two_rows'",
    ),
    Mutant(
        "ids that come again are labels",
        "datasets/identifier.py",
        "column.distinct >= FEWEST_REPORTS and column.apart >= _HALF and is_odd",
        "column.distinct >= FEWEST_REPORTS and column.apart > 1 and is_odd",
        "population/test_identifier.py -k 'come_again_are_refused'",
    ),
    Mutant(
        "a release of new versions is a column of ids",
        "datasets/identifier.py",
        "len(others) > 1 and _are_alike(others) and not _are_alike([column.name, *others])",
        "len(others) > 1 and _are_alike(others)",
        "population/test_identifier.py -k 'release'",
    ),
    Mutant(
        "users of a long table are labels",
        "datasets/identifier.py",
        "column.distinct > 2 * sum(other.distinct for other in others)",
        "False",
        "population/test_identifier.py -k 'no_wide_one'",
    ),
    Mutant(
        "chance is no evidence of ids",
        "datasets/identifier.py",
        "return is_apart or _log_chance(column, labels) < _CHANCE",
        "return is_apart",
        "population/test_identifier.py -k 'by_name'",
    ),
    Mutant(
        "every run of a comparison draws the same",
        "population/point.py",
        "np.random.SeedSequence(seed, spawn_key=key.tolist())",
        "np.random.SeedSequence(seed)",
        "population/test_comparison.py -k randomness_of_its_own",
    ),
    Mutant(
        "an interrupted load test sends what waits all the same",
        "population/load_generator.py",
        "pool.shutdown(wait=False, cancel_futures=True)",
        "pool.shutdown(wait=False)",
        "population/test_load_generator.py -k under_way",
    ),
    Mutant(
        "a window whose interval begins at its truth does not hold it",
        "population/trial.py",
        "lower <= truth",
        "lower < truth",
        "population/test_panels.py -k that_nobody_has",
    ),
    Mutant(
        "the shipped laws take a key of nobody for one in range",
        "conform/laws.py",
        "encoding.is_sent(key) and encoding.is_answer(y)",
        "encoding.is_answer(y)",
        "test_shipped_laws.py -k broken_law",
    ),
]
