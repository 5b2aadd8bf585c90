"""Bugs in how logs are counted and averaged."""

from planted.mutant import Mutant

WINDOWS = [
    Mutant(
        "rounds of a mean are taken for independent",
        "server/mean.py",
        "        before[panel] = earlier + share\n",
        "",
        "server/test_mean.py -k variance_of_users",
    ),
    Mutant(
        "panels of a window are taken to share their users",
        "server/mean.py",
        "t % every",
        "0",
        "server/test_panel.py -k holds_each_user_once",
    ),
    Mutant(
        "a panel is taken for all users",
        "server/mean.py",
        "users or n",
        "n",
        "server/test_panel.py -k drawn_anew",
    ),
    Mutant(
        "a window is a round too long",
        "server/panel.py",
        "t - every",
        "t - every - 1",
        "server/test_panel.py -k windows_slide",
    ),
    Mutant(
        "two rounds share the users of the larger",
        "server/mean.py",
        "sorted",
        "list",
        "server/test_mean.py -k different_sizes",
    ),
    Mutant(
        "scores are centred on those of who holds the value",
        "engines/window.py",
        "table[reports.counts[users]], moments.other",
        "table[reports.counts[users]], moments.held",
        "engines/test_window.py -k without_bias",
    ),
    Mutant(
        "likelihood is kept where users change",
        "engines/window.py",
        "seen <= 0",
        "seen <= -1000000000.0",
        "engines/test_window.py -k change_too_much",
    ),
    Mutant(
        "the price of one table is that of independent answers",
        "privacy/plain_words.py",
        "return protocol.spent(max(1, protocol.encoding.memo_cells - 1))",
        "return protocol.asked_memo",
        "lab/test_frontier_tables.py -k exchanged",
    ),
    Mutant(
        "moves are said to be hidden where each cell has its own answer",
        "privacy/plain_words.py",
        "not channel.joint or channel.constant",
        "not channel.joint or channel.g",
        "lab/test_frontier_tables.py -k hidden_is_said",
    ),
    Mutant(
        "a key of two users joins their reports",
        "engines/linked.py",
        "return keys[~twice], ys[~twice]",
        "return keys, ys",
        "engines/test_window.py -k not_joined",
    ),
    Mutant(
        "DuckDB reads columns out of folders' names",
        "engines/sql.py",
        "'], hive_partitioning = false)'",
        "'], hive_partitioning = true)'",
        "engines/test_folders.py -k 'what_they_like or every_kind'",
    ),
    Mutant(
        "a tally counts for the round in its name, whatever it says itself",
        "engines/saved.py",
        "origin.round not in (None, round)",
        "origin.round not in (None, round, origin.round)",
        "engines/test_command.py -k name_of_another",
    ),
    Mutant(
        "two tallies of the same files add up",
        "engines/saved.py",
        "(origin.counts, *origin.sources)",
        "(origin.counts,)",
        "engines/test_command.py -k counted_in_two",
    ),
]
