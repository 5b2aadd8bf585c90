"""Bugs in the collector and its store."""

from planted.mutant import Mutant

COLLECTOR = [
    Mutant(
        "small uploads wait for all large ones",
        "collector/commit.py",
        "self._next_is_small = line is self._large",
        "self._next_is_small = False",
        "collector/test_commit.py -k take_turns",
    ),
    Mutant(
        "half an answer stays in the pipe to a helper",
        "collector/process.py",
        ("self.end()\nraise"),
        "raise",
        "collector/test_process.py -k half",
    ),
    Mutant(
        "pages cannot read that they send too fast",
        "collector/middleware.py",
        "self._share(_answer_to(error))",
        "_unshared(_answer_to(error))",
        "collector/test_operations.py -k read_every_error",
    ),
    Mutant(
        "reports that came after a failure go out with those of before",
        "collector/store/kept_queue.py",
        "place in marked",
        "False",
        "collector/test_kept_reports.py -k came_after",
    ),
    Mutant(
        "a file's name may be lost with the power",
        "reportlog/writer.py",
        "        sync_folder(str(target.parent))\n",
        "",
        "collector/test_kept_reports.py -k durable",
    ),
    Mutant(
        "reports go into a file that was deleted",
        "collector/store/database.py",
        "with _translated(), self.writer.begin() as connection:\n"
        "    yield connection\n"
        "self.must_be_in_place()\n",
        "with _translated(), self.writer.begin() as connection:\n    yield connection\n",
        "collector/test_kept_reports.py -k is_gone",
    ),
    Mutant(
        "what cannot be decoded costs nothing",
        "collector/admission.py",
        "        self._context.rate.charge(admitted.scope, admitted.charged)\n",
        "",
        "collector/test_limits.py -k bytes_are_charged",
    ),
    Mutant(
        "the guard's hash leaves out some bytes of a pseudonym",
        "collector/guard.py",
        "(names & low) * self._key[:2] + (names >> high) * self._key[2:4]",
        "(names & low) * self._key[:2]",
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
        "self._write(connection, cell, stored, add_parts(shown, more, total))",
        "self._write(connection, cell, stored, add_parts(more, shown, total))",
        "collector/test_publication.py -k added_exactly",
    ),
    Mutant(
        "pseudonyms of closed rounds stay in the log of the store",
        "collector/store/store.py",
        "self._record.has_deleted and (not more)",
        "False",
        "collector/test_publication.py -k leave_the_files",
    ),
    Mutant(
        "a clock that jumps back is believed",
        "collector/timekeeper.py",
        "abs(jump) <= MOST_JUMP",
        "jump <= MOST_JUMP",
        "collector/test_clock.py -k taken_back",
    ),
    Mutant(
        "any page makes its visitors report",
        "collector/admission.py",
        "require_media",
        "require_short_headers",
        "collector/test_admission.py -k every_route",
    ),
    Mutant(
        "a path with an escape is another path's",
        "collector/admission.py",
        "_CANONICAL.fullmatch(raw)",
        "_CANONICAL.match(raw)",
        "collector/test_admission.py -k every_route",
    ),
    Mutant(
        "what follows a body is a header",
        "collector/connections.py",
        "not self._has_headers",
        "True",
        "collector/test_connections.py -k follows_a_body",
    ),
    Mutant(
        "endless headers are taken",
        "collector/connections.py",
        "self._unread > MOST_UNREAD_BYTES",
        "self._unread < 0",
        "collector/test_connections.py -k 'endless and one'",
    ),
]
