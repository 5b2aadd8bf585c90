"""Messages: what is written can be read, one bad report spoils no other, nothing else gets in."""

import json
import re
import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laws.variants import example
from loloha import reportlog
from loloha.campaign import Campaign, Labels, Schedule
from loloha.errors import WireError
from loloha.protocols import REGISTRY
from loloha.rng import SimulationRng
from loloha.wire import Refusal, Widths, encode
from loloha.wire.batch import Batch, Reader
from loloha.wire.columns import encode_many
from loloha.wire.message import key_from_text, key_text
from loloha.wire.text import UploadTooLarge

K = 19
N = 40


def make(name: str, **changes: Any) -> Campaign:
    return Campaign(
        name=name,
        protocol=example(name, k=K, **changes),
        domain=Labels(tuple(range(K))),
        schedule=Schedule(0, 3600),
    )


def messages(campaign: Campaign, n: int = N, *, round: int = 3) -> tuple[list[bytes], Any]:
    """n encoded reports and the tally that they make."""
    tally, encoded = campaign.protocol.tally(), []
    for user in range(n):
        client = campaign.protocol.client(rng=SimulationRng(user))
        report = client.report(user % K, round=round)
        tally.add(report)
        encoded.append(encode(campaign, report, round=round, reporter=client.reporter(round)))
    return encoded, tally


def tallied(campaign: Campaign, batch: Batch) -> Any:
    tally = campaign.protocol.tally()
    tally.update(batch.keys, batch.ys)
    return tally


CASES = {name: make(name) for name in REGISTRY} | {
    "dbitflippm": make("dbitflippm", b=11, d=9),
    "affine": make("biloloha", hash="affine"),
    "prime": make("ololoha", g=4, hash="prime"),
    "wide": make("ololoha", g=300, hash="affine"),
}


@pytest.fixture(params=sorted(CASES))
def campaign(request: pytest.FixtureRequest) -> Campaign:
    return CASES[request.param]


def test_every_way_to_send_reports_is_read_alike(campaign: Campaign) -> None:
    encoded, tally = messages(campaign)
    reader = Reader(campaign)
    lines = reader.read_lines(b"\n".join(encoded) + b"\n\n")
    array = reader.read_json(b"[" + b",".join(encoded) + b"]")
    reporters = lines.reporters.view(np.uint8).reshape(-1, 16)
    stream = encode_many(campaign, reporters, lines.keys, lines.ys, rounds=lines.rounds)
    one_round = encode_many(campaign, reporters, lines.keys, lines.ys, rounds=3)
    for batch in (lines, array, reader.read_arrow(stream), reader.read_arrow(one_round)):
        assert batch.refusals == []
        assert (batch.rounds == 3).all()
        assert (batch.index == np.arange(N)).all()
        assert (batch.reporters == lines.reporters).all()
        assert tallied(campaign, batch) == tally
    single = reader.read_json(encoded[0])
    assert single.size == 1
    assert single.refusals == []


def test_a_message_has_one_length_whatever_it_says(campaign: Campaign) -> None:
    # The length is all that a network observer sees (PAINS 3).
    encoded, _ = messages(campaign, 200)
    assert len({len(message) for message in encoded}) == 1
    assert not any(b" " in message for message in encoded)
    assert len({tuple(json.loads(message)) for message in encoded}) == 1


def test_truncated_and_extended_messages_are_refused(campaign: Campaign) -> None:
    (message,), _ = messages(campaign, 1)
    reader = Reader(campaign)
    for end in range(len(message)):
        try:
            batch = reader.read_json(message[:end])
        except WireError:
            continue
        assert batch.refusals, end
    with pytest.raises(WireError):
        reader.read_json(message + b"}")
    plain = json.loads(message)
    for field in ("y", "key", "reporter"):
        for change in (plain.get(field, "") + "00", plain.get(field, "")[2:]):
            if change != plain.get(field, ""):
                assert reader.read_json(json.dumps({**plain, field: change}).encode()).refusals


def test_a_truncated_or_damaged_stream_is_refused_or_read_within_range(campaign: Campaign) -> None:
    encoded, _ = messages(campaign, 8)
    reader = Reader(campaign)
    lines = reader.read_lines(b"\n".join(encoded))
    reporters = lines.reporters.view(np.uint8).reshape(-1, 16)
    stream = encode_many(campaign, reporters, lines.keys, lines.ys, rounds=lines.rounds)
    rng = np.random.default_rng(5)
    damaged = [stream[:end] for end in range(0, len(stream), 29)]
    for _ in range(300):
        copy = bytearray(stream)
        copy[rng.integers(len(copy))] ^= 1 << rng.integers(8)
        damaged.append(bytes(copy))
    for body in damaged:
        try:
            batch = reader.read_arrow(body)
        except WireError:
            continue
        if len(batch.index):
            tallied(campaign, batch)  # raises if a report were out of range


BAD = {
    "no object": (b"3", Refusal.MALFORMED),
    "null": (b"null", Refusal.MALFORMED),
    "no JSON": (b"{]", Refusal.MALFORMED),
    "no text": (b'{"y": "\xff"}', Refusal.MALFORMED),
    "empty": ({}, Refusal.MALFORMED),
    "another field": ({"extra": 1}, Refusal.MALFORMED),
    "version": ({"version": 2}, Refusal.VERSION),
    "version with other fields": ({"version": 2, "extra": 1}, Refusal.VERSION),
    "version as text": ({"version": "1"}, Refusal.MALFORMED),
    "version as truth": ({"version": True}, Refusal.MALFORMED),
    "campaign": ({"campaign": "0" * 64}, Refusal.CAMPAIGN),
    "campaign type": ({"campaign": 5}, Refusal.MALFORMED),
    "negative round": ({"round": -1}, Refusal.MALFORMED),
    "fraction of a round": ({"round": 1.5}, Refusal.MALFORMED),
    "round beyond 2^53": ({"round": 1 << 53}, Refusal.MALFORMED),
    "round beyond everything": ({"round": 10**400}, Refusal.MALFORMED),
    "round as text": ({"round": "3"}, Refusal.MALFORMED),
    "short reporter": ({"reporter": "ab"}, Refusal.REPORTER),
    "odd reporter": ({"reporter": "x" * 32}, Refusal.REPORTER),
    "spaced reporter": ({"reporter": "ab " * 10 + "ab"}, Refusal.REPORTER),
    "foreign letters": ({"reporter": "é" * 32}, Refusal.REPORTER),
    "key 0": ({"key": "00"}, Refusal.KEY),
    "key too large": ({"key": "ff"}, Refusal.KEY),
    "no key": ({"key": ""}, Refusal.KEY),
    "key as a number": ({"key": 5}, Refusal.MALFORMED),
    "y too large": ({"y": "07"}, Refusal.ANSWER),
    "long y": ({"y": "0000"}, Refusal.ANSWER),
    "y as a number": ({"y": 1}, Refusal.MALFORMED),
    "a ticket nobody gave": ({"ticket": "00" * 16}, Refusal.TICKET),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("form", ["lines", "array", "single"])
def test_a_bad_report_is_refused_with_its_reason_and_spoils_no_other(name: str, form: str) -> None:
    campaign = CASES["biloloha"]
    (first, last), tally = messages(campaign, 2)
    change, reason = BAD[name]
    bad = change
    if isinstance(change, dict):
        bad = json.dumps({**json.loads(first), **change} if change else {}).encode()
    assert isinstance(bad, bytes)
    reader = Reader(campaign)
    if form == "single":
        try:
            assert reader.read_json(bad).refusals == [(0, reason)]
        except WireError:
            assert name in ("no object", "null", "no JSON", "no text")
        return
    if form == "array" and name == "no JSON":
        with pytest.raises(WireError):
            reader.read_json(b"[" + bad + b"]")
        return
    if form == "lines":
        batch = reader.read_lines(b"\n".join([first, bad, last]))
    else:
        batch = reader.read_json(b"[" + b",".join([first, bad, last]) + b"]")
    assert batch.size == 3
    assert batch.refusals == [(1, reason)]
    assert batch.index.tolist() == [0, 2]
    assert tallied(campaign, batch) == tally


def test_reports_of_another_campaign_are_refused_whatever_their_size() -> None:
    # PAINS 10: 8-bit filters sent to an analyst who expects 16.
    ours = CASES["rappor"]
    theirs = make("rappor", eps_1=0.9)
    other = CASES["ololoha"]
    for campaign in (theirs, other):
        encoded, _ = messages(campaign, 3)
        batch = Reader(ours).read_lines(b"\n".join(encoded))
        assert batch.refusals == [(i, Refusal.CAMPAIGN) for i in range(3)]
        lines = Reader(campaign).read_lines(b"\n".join(encoded))
        names = lines.reporters.view(np.uint8).reshape(-1, 16)
        stream = encode_many(campaign, names, lines.keys, lines.ys, rounds=3)
        assert Reader(ours).read_arrow(stream).refusals == batch.refusals


@pytest.mark.parametrize("form", ["lines", "blank lines", "array", "nested array", "nulls", "rows"])
def test_an_upload_of_too_many_reports_is_refused_before_it_is_decoded(form: str) -> None:
    most = 1_000
    reader = Reader(CASES["biloloha"], most=most)
    encoded, _ = messages(reader.campaign, 4)
    nothing = pa.nulls(most + 1)
    many: dict[str, Any] = {
        "lines": b"0\n" * (most + 1),
        "blank lines": b"\n" * (most + 1),
        "array": b"[" + b",".join([b"0"] * (most + 1)) + b"]",
        "nested array": b"[" + b",".join([b"[0,0,0]"] * (2 * most)) + b"]",
        "nulls": stream_of(pa.record_batch({"y": nothing})),
        "rows": b"".join([b"[", *[encoded[0] + b","] * most, encoded[0], b"]"]),
    }
    read = {
        "nulls": reader.read_arrow,
        "lines": reader.read_lines,
        "blank lines": reader.read_lines,
    }
    with pytest.raises(UploadTooLarge, match=f"at most {most} reports"):
        read.get(form, reader.read_json)(many[form])
    assert reader.read_lines((encoded[0] + b"\n") * most).size == most
    assert reader.read_json(b"[" + b",".join([encoded[0]] * most) + b"]").size == most


def test_streams_of_many_batches_or_columns_are_refused() -> None:
    reader = Reader(CASES["biloloha"])
    sink = pa.BufferOutputStream()
    empty = pa.record_batch({"y": pa.nulls(0)})
    with pa.ipc.new_stream(sink, empty.schema) as stream:
        for _ in range(1_001):
            stream.write_batch(empty)
    with pytest.raises(UploadTooLarge):
        reader.read_arrow(sink.getvalue().to_pybytes())
    with pytest.raises(WireError, match="Arrow IPC stream"):
        reader.read_arrow(stream_of(pa.record_batch({f"c{i}": pa.nulls(1) for i in range(17)})))


def test_what_is_no_report_is_not_built_in_memory() -> None:
    reader = Reader(CASES["biloloha"])
    inner = b"[" + b"[]," * 200_000 + b"[]]"
    tracemalloc.start()
    try:
        for body in (b'{"a":' + inner + b"}", b'{"version":2,"a":' + inner + b"}"):
            assert reader.read_json(body).size == 1
            assert reader.read_lines(body).size == 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(inner)


def stream_of(batch: Any, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, **options) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def arrow_batch(campaign: Campaign, n: int = N) -> Any:
    lines = Reader(campaign).read_lines(b"\n".join(messages(campaign, n)[0]))
    names = lines.reporters.view(np.uint8).reshape(-1, 16)
    return reportlog.to_arrow(campaign, names, lines.keys, lines.ys, rounds=lines.rounds)


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_a_compressed_stream_is_refused_before_it_is_unpacked(codec: str) -> None:
    campaign = CASES["biloloha"]
    options = pa.ipc.IpcWriteOptions(compression=codec)
    body = stream_of(arrow_batch(campaign, 200), options=options)
    with pytest.raises(WireError, match="uncompressed"):
        Reader(campaign).read_arrow(body)


def test_a_stream_with_other_columns_is_refused() -> None:
    campaign = CASES["biloloha"]
    batch = arrow_batch(campaign)
    reader = Reader(campaign)
    dropped = [batch.drop_columns([name]) for name in batch.schema.names]
    y = batch.column("y")
    wrong = [
        batch.set_column(batch.schema.get_field_index("y"), "y", y.cast(pa.int8())),
        batch.set_column(batch.schema.get_field_index("y"), "y", y.dictionary_encode()),
        batch.append_column("y", y),
        batch.replace_schema_metadata({}),
        batch.replace_schema_metadata({"loloha": "[]"}),
        batch.replace_schema_metadata({"loloha": "{"}),
    ]
    for one in [*dropped, *wrong]:
        with pytest.raises(WireError):
            reader.read_arrow(stream_of(one))


def test_nulls_and_odd_rounds_in_a_stream_are_refused() -> None:
    campaign = CASES["biloloha"]
    batch = arrow_batch(campaign, 3)
    reader = Reader(campaign)
    for name, kind in (("round", pa.int64()), ("y", pa.int32()), ("reporter", pa.binary(16))):
        column = pa.array([None, *batch.column(name).to_pylist()[1:]], kind)
        nulled = batch.set_column(batch.schema.get_field_index(name), pa.field(name, kind), column)
        with pytest.raises(WireError):
            reader.read_arrow(stream_of(nulled))
    rounds = pa.array([-1, 3, 1 << 60], pa.int64())
    batch = batch.set_column(batch.schema.get_field_index("round"), "round", rounds)
    assert reader.read_arrow(stream_of(batch)).refusals == [
        (0, Refusal.MALFORMED),
        (2, Refusal.MALFORMED),
    ]


def test_values_out_of_range_in_a_stream_are_refused_one_by_one() -> None:
    campaign = CASES["biloloha"]
    batch = arrow_batch(campaign, 4)
    keys = pa.array([0, 1, 2, 10**6], pa.int32())
    ys = pa.array([0, 7, 1, 1], pa.int32())
    for name, column in (("key", keys), ("y", ys)):
        batch = batch.set_column(batch.schema.get_field_index(name), name, column)
    assert Reader(campaign).read_arrow(stream_of(batch)).refusals == [
        (0, Refusal.KEY),
        (1, Refusal.ANSWER),
        (3, Refusal.KEY),
    ]


def test_an_empty_upload_is_no_error() -> None:
    for campaign in CASES.values():
        reader = Reader(campaign)
        assert reader.read_lines(b"\n").size == 0
        assert reader.read_json(b" [ ] ").size == 0


def test_assigned_keys_travel_with_their_ticket() -> None:
    plain = CASES["biloloha"]
    campaign = Campaign(**{**vars_of(plain), "keys": "assigned"})
    client = campaign.protocol.client()
    report = client.report(1, round=0)
    ticket = "0f" * 16
    reader = Reader(campaign)
    message = encode(campaign, report, round=0, reporter=client.reporter(0), ticket=ticket)
    batch = reader.read_json(message)
    assert batch.tickets.tobytes().hex() == ticket
    without = encode(campaign, report, round=0, reporter=client.reporter(0))
    assert reader.read_json(without).refusals == [(0, Refusal.TICKET)]
    names = batch.reporters.view(np.uint8).reshape(-1, 16)
    tickets = batch.tickets.view(np.uint8).reshape(-1, 16)
    stream = encode_many(campaign, names, batch.keys, batch.ys, rounds=0, tickets=tickets)
    assert reader.read_arrow(stream).tickets.tobytes().hex() == ticket
    with pytest.raises(WireError, match="ticket"):
        reader.read_arrow(encode_many(campaign, names, batch.keys, batch.ys, rounds=0))
    # Where none is asked for, one that comes is refused, as in a message.
    stream = encode_many(plain, names, batch.keys, batch.ys, rounds=0, tickets=tickets)
    assert Reader(plain).read_arrow(stream).refusals == [(0, Refusal.TICKET)]


def vars_of(campaign: Campaign) -> dict[str, Any]:
    return {
        name: getattr(campaign, name) for name in ("name", "protocol", "domain", "schedule", "keys")
    }


def test_keys_survive_as_text(campaign: Campaign) -> None:
    form = Widths.of(campaign.protocol.encoding)
    if not form.groups:
        return
    key = campaign.protocol.enroll(SimulationRng(1))
    text = key_text(campaign, key)
    assert len(text) == 2 * form.key_bytes
    assert key_from_text(campaign, text) == key
    with pytest.raises(ValueError, match="length"):
        key_from_text(campaign, text + "00")


def test_reasons_have_distinct_codes_and_say_what_to_do() -> None:
    assert sorted(reason.code for reason in Refusal) == list(range(1, len(Refusal) + 1))
    for reason in Refusal:
        assert re.fullmatch(r"[a-z_]+", reason)
        assert ";" in reason.help


# Python also writes NaN and Infinity, which are no JSON.
NOT_JSON = st.sampled_from([b"NaN", b"[Infinity]", b'{"round": -Infinity}'])
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["version", "campaign", "round", "reporter", "key", "y", "x"]), inner
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150)
@given(st.binary(max_size=80) | NOT_JSON | JSON.map(lambda plain: json.dumps(plain).encode()))
def test_no_bytes_at_all_raise_anything_but_a_wire_error(body: bytes) -> None:
    reader = Reader(CASES["ololoha"])
    for read in (reader.read_json, reader.read_lines, reader.read_arrow):
        try:
            batch = read(body)
        except WireError:
            continue
        assert len(batch.index) == 0


@settings(max_examples=80)
@given(st.data())
def test_a_changed_field_is_refused_or_in_range(data: st.DataObject) -> None:
    campaign = CASES["dbitflippm"]
    (message,), _ = messages(campaign, 1)
    plain = json.loads(message)
    field = data.draw(st.sampled_from(sorted(plain)))
    plain[field] = data.draw(JSON | st.text("0123456789abcdef", max_size=40))
    batch = Reader(campaign).read_json(json.dumps(plain).encode())
    assert len(batch.refusals) + len(batch.index) == 1
    tallied(campaign, batch)


def test_reading_depth_is_bounded() -> None:
    reader = Reader(CASES["grr"])
    deep = b"[" * 200_000
    with pytest.raises(WireError):
        reader.read_json(deep)
    assert reader.read_lines(b'{"version":' + deep).refusals == [(0, Refusal.MALFORMED)]
