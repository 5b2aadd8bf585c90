"""Bugs in the collector and its store."""

from planted.mutant import Mutant

COLLECTOR = [
    Mutant(
        "small uploads wait for all large ones",
        "collector/commit.py",
        "self._next_is_small = waiting is self._large",
        "self._next_is_small = False",
        "collector/test_commit.py -k take_turns",
    ),
    Mutant(
        "half an answer stays in the pipe to a helper",
        "collector/process.py",
        "            # Half a message may be under way.\n            self.end()\n",
        "            # Half a message may be under way.\n",
        "collector/test_process.py -k half",
    ),
    Mutant(
        "pages cannot read that they send too fast",
        "collector/middleware.py",
        "self.share(response(problem))",
        "response(problem)",
        "collector/test_operations.py -k read_every_error",
    ),
    Mutant(
        "what cannot be decoded costs nothing",
        "collector/upload.py",
        "        context.rate.charge(request.scope, charged)\n",
        "",
        "collector/test_limits.py -k bytes_are_charged",
    ),
    Mutant(
        "the guard's hash leaves out some bytes of a pseudonym",
        "collector/guard.py",
        " + (names >> high) * self._key[2:4]",
        "",
        "collector/test_guard.py -k two_bytes",
    ),
    Mutant(
        "the rows of a stream are not counted while it is read",
        "wire/columns.py",
        "rows += batch.num_rows",
        "rows += 0",
        "wire/test_wire.py -k 'too_many and nulls'",
    ),
    Mutant(
        "what is no report is built in memory",
        "wire/text.py",
        "_object = msgspec.json.Decoder(_Object)",
        "_object = msgspec.json.Decoder(dict)",
        "wire/test_wire.py -k not_built",
    ),
    Mutant(
        "every report is published at once",
        "collector/terms.py",
        "return 0 < step <= waiting and n >= self.minimum_cohort",
        "return step > 0 and n >= self.minimum_cohort",
        "collector/test_publication.py -k by_a_step",
    ),
    Mutant(
        "what waits is lost when it is published",
        "collector/store/counts.py",
        "self._write(connection, cell, stored, round, add_parts(shown, more, total))",
        "self._write(connection, cell, stored, round, add_parts(more, shown, total))",
        "collector/test_publication.py -k added_exactly",
    ),
    Mutant(
        "pseudonyms of closed rounds stay in the log of the store",
        "collector/store/store.py",
        "        if self._record.has_deleted:\n",
        "        if False:\n",
        "collector/test_publication.py -k leave_the_files",
    ),
    Mutant(
        "a clock that jumps back is believed",
        "collector/timekeeper.py",
        "if abs(jump) <= MOST_JUMP:",
        "if jump <= MOST_JUMP:",
        "collector/test_clock.py -k taken_back",
    ),
    Mutant(
        "endless headers are taken",
        "collector/connections.py",
        "if self._unread > MOST_HEADER_BYTES:",
        "if self._unread < 0:",
        "collector/test_connections.py -k 'endless and one'",
    ),
]
