"""Addresses: what is taken for one, what is refused, and that nothing secret is shown."""

import errno
import pickle
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from loloha import address, mount
from loloha.address import Address, located
from loloha.errors import ExtraError, ParameterError, StorageError

SECRET = "wJalrXUtnFEMI"


@pytest.mark.parametrize(
    ("given", "text", "spark"),
    [
        ("s3://b/LOG", "s3://b/LOG", "s3a://b/LOG"),
        ("s3a://b/a/LOG/", "s3a://b/a/LOG", "s3a://b/a/LOG"),
        ("S3://b/LOG?region=eu-west-1", "s3://b/LOG", "s3a://b/LOG"),
        ("gs://b/LOG", "gs://b/LOG", "gs://b/LOG"),
        ("gcs://b", "gcs://b/", "gs://b/"),
        ("gs://anonymous@b/x", "gs://anonymous@b/x", "gs://anonymous@b/x"),
        ("abfs://c@a.dfs.core.windows.net/y=1", "abfs://c@a.dfs.core.windows.net/y=1",
         "abfss://c@a.dfs.core.windows.net/y=1"),
        ("hdfs://node:8020/a b/x#1", "hdfs://node:8020/a b/x#1", "hdfs://node:8020/a b/x#1"),
        ("hdfs:///LOG", "hdfs:///LOG", "hdfs:///LOG"),
        ("viewfs://c/LOG", "viewfs://c/LOG", "viewfs://c/LOG"),
        ("memory://m/LOG", "memory://m/LOG", "memory://m/LOG"),
    ],
)  # fmt: skip
def test_an_address_is_itself_and_spark_knows_it_by_its_own_scheme(
    given: str, text: str, spark: str
) -> None:
    place = located(given)
    assert isinstance(place, Address)
    assert (str(place), place.for_spark) == (text, spark)
    assert located(place) is place


@pytest.mark.parametrize("given", ["LOG", "a/co:lon", "/x/y", "s3", "a:/b", Path("a//b")])
def test_a_path_stays_a_path(given: Any) -> None:
    assert located(given) == Path(given)


def test_a_file_address_is_a_path() -> None:
    assert located("file:///a/b") == located("file://localhost/a/b") == Path("/a/b")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (Path("s3://b/LOG"), "must be text that begins with s3://"),
        ("s3:/b/LOG", "must be text that begins with s3://"),
        ("file://elsewhere/x", "file:///PATH"),
        ("s3://", "must begin s3://BUCKET"),
        ("abfs://c/x", "must begin abfs://CONTAINER@ACCOUNT"),
        (f"s3://KEY:{SECRET}@b/x", "no credentials; they belong into AWS_ACCESS_KEY_ID"),
        (f"s3://{SECRET}@b/x", "no credentials"),
        (f"gs://{SECRET}@b/x", "no credentials; they belong into GOOGLE"),
        (f"abfs://:{SECRET}@a.dfs.core.windows.net/x", "no credentials; they belong into AZURE"),
        (f"hdfs://me:{SECRET}@n/x", "no credentials"),
        (f"sftp://me:{SECRET}@n/x", "no credentials; they belong into its client"),
        (f"s3://b/x?secret_key={SECRET}", "must be of endpoint_override, region, scheme"),
        (f"s3://b/x?{SECRET}", "must be of endpoint_override"),
        ("s3://b/x?region=a&region=b", "each once"),
        (f"s3://b/x?endpoint_override=http://me:{SECRET}@h", "without credentials"),
        ("memory://m/x?a=b", "must be of none"),
        ("s3://b/x//y", "names between single slashes"),
        ("s3://b/../y", "names between single slashes"),
        ("s3://b/x/./y", "names between single slashes"),
        ("s3://b/x\0", "names between single slashes"),
    ],
)
def test_other_writings_are_refused_without_being_shown(given: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says) as caught:
        located(given)
    assert SECRET not in str(caught.value)


def test_an_address_has_the_words_of_a_path() -> None:
    place = located("s3://b/LOG") / "round=1" / "ab.parquet"
    assert isinstance(place, Address)
    assert (place.name, place.stem, place.suffix) == ("ab.parquet", "ab", ".parquet")
    assert place.parent == located("s3://b/LOG/round=1")
    assert place.parent.parent.parent.path == PurePosixPath()
    # The same name at another endpoint is another file.
    assert place.parent != located("s3://b/LOG/round=1?endpoint_override=x")
    assert repr(place.parent) == "Address('s3://b/LOG/round=1')"


def test_what_libraries_raise_is_not_repeated() -> None:
    place = located("s3://b/LOG")
    assert isinstance(place, Address)
    for text, reason in [
        (f"AWS Error NO_SUCH_BUCKET {SECRET}", "its bucket or container does not exist"),
        (f"AWS Error ACCESS_DENIED {SECRET}", "access is denied, or there are no credentials"),
        (f"AWS Error SLOW_DOWN {SECRET}", "the service is busy or failing"),
        (f"Unable to load libjvm {SECRET}", "Hadoop's client library is not there"),
        (SECRET, "got OSError"),
    ]:
        error = place.mount.failure(OSError(text), str(place))
        assert reason in str(error)
        assert error.strerror == reason
        assert SECRET not in str(error) + repr(error)
        again = pickle.loads(pickle.dumps(error))
        assert str(again) == str(error)
        assert place.mount.failure(error, "x") is error


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    pytest.importorskip("fsspec")

    def use(text: str) -> Any:
        place = located(text)
        assert isinstance(place, Address)
        return place.exists()

    with pytest.raises(ParameterError, match="fsspec, got nonsense://"):
        use("nonsense://b/x")
    with pytest.raises(ExtraError, match=r"fsspec needs for dropbox:// must be installed: .*drop"):
        use("dropbox://b/x")

    def lacking(fs: Any, mount: Any) -> Any:
        raise ImportError("The pyarrow installation is not built with support for 'S3FileSystem'")

    monkeypatch.setitem(mount._OPENERS, "s3", lacking)
    with pytest.raises(ParameterError, match="need a pyarrow that has this filesystem"):
        use("s3://b/x?region=eu")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    for text in ("s3://b/x", "memory://b/x"):
        with pytest.raises(ExtraError, match=r"fsspec must be installed .*loloha\[fsspec\]"):
            use(text)
    monkeypatch.setitem(sys.modules, "pyarrow.fs", None)
    with pytest.raises(ExtraError, match=r"pyarrow must be installed .*loloha\[engines\]"):
        use("gs://b/x")


@pytest.fixture
def memory() -> Address:
    """A folder of fsspec's, where a file is seen while it grows."""
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").store.clear()
    place = located("memory://m/LOG")
    assert isinstance(place, Address)
    return place


def test_files_are_written_listed_read_and_deleted(memory: Address) -> None:
    file = memory / "a" / "b"
    file.write_bytes(b"1")
    file.write_bytes(b"22")
    (memory / "c").write_bytes(b"3")
    for root in (memory, memory.snapshot()):
        assert [str(one) for one in sorted(root.iterdir())] == [
            "memory://m/LOG/a", "memory://m/LOG/c",
        ]  # fmt: skip
        assert [root.is_dir(), root.is_file(), (root / "x").exists()] == [True, False, False]
        assert [(root / "a").is_dir(), (root / "a" / "b").is_file()] == [True, True]
    assert [str(one) for one in memory.glob("c*")] == ["memory://m/LOG/c"]
    assert sorted(map(str, memory.walk())) == ["memory://m/LOG/a/b", "memory://m/LOG/c"]
    assert file.read_bytes() == b"22"
    file.unlink()
    file.unlink(missing_ok=True)
    with pytest.raises(FileNotFoundError) as caught:
        file.unlink()
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, str(file))
    with pytest.raises(FileNotFoundError):
        file.read_bytes()
    assert list((memory / "nowhere").iterdir()) == []
    assert not (memory / "nowhere").snapshot().exists()


def test_where_a_file_is_seen_while_it_grows_it_grows_under_a_hidden_name(
    memory: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, filesystem = memory.within
    handler = type(filesystem.handler)
    before, seen = handler.open_output_stream, []

    def opened(self: Any, path: str, metadata: Any) -> Any:
        seen.append(path.rpartition("/")[2])
        if len(seen) == 2:
            raise OSError("disk failure")
        return before(self, path, metadata)

    monkeypatch.setattr(handler, "open_output_stream", opened)
    (memory / "x").write_bytes(b"1")
    with pytest.raises(StorageError, match="got OSError"):
        (memory / "x").write_bytes(b"2")
    assert all(one.startswith(".") and one.endswith(address.PARTIAL) for one in seen)
    assert (memory / "x").read_bytes() == b"1"
    assert [str(one) for one in memory.walk()] == ["memory://m/LOG/x"]


class Asked:
    """Instead of pyarrow's filesystems: remembers what they are made with."""

    def __init__(self) -> None:
        self.made: dict[str, tuple[Any, dict[str, Any]]] = {}

    def __getattr__(self, name: str) -> Any:
        def make(*given: Any, **options: Any) -> Any:
            self.made[name] = given, options
            return name

        return make

    FileSystem = property(lambda self: self)

    def from_uri(self, uri: str) -> tuple[str, str]:
        return uri, "base/"


def test_each_filesystem_is_opened_with_the_options_of_its_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pyarrow import fs

    fake = Asked()
    for name in ("S3FileSystem", "AzureFileSystem", "FileSystem", "resolve_s3_region"):
        monkeypatch.setattr(fs, name, getattr(fake, name))
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"):
        monkeypatch.delenv(name, raising=False)

    def opened(text: str) -> Any:
        place = located(text)
        assert isinstance(place, Address)
        return place.mount.opened

    def of_s3(text: str) -> Any:
        assert opened(text) == ("S3FileSystem", "b")
        given, options = fake.made.pop("S3FileSystem")
        assert not given
        assert options.pop("allow_delayed_open") is options.pop("background_writes") is True
        assert type(options.pop("retry_strategy")) is fs.AwsStandardS3RetryStrategy
        return options

    # The region is looked up only where nobody says it.
    assert of_s3("s3://b/x") == {"region": "resolve_s3_region"}
    assert fake.made.pop("resolve_s3_region") == (("b",), {})
    assert of_s3("s3a://b/x?region=eu") == {"region": "eu"}
    assert of_s3("s3://b/x?endpoint_override=h") == {"endpoint_override": "h"}
    monkeypatch.setenv("AWS_ENDPOINT_URL", "general")
    assert of_s3("s3://b/x") == {"endpoint_override": "general"}
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "own")
    assert of_s3("s3://b/x") == {"endpoint_override": "own"}
    assert of_s3("s3://b/x?endpoint_override=h") == {"endpoint_override": "h"}
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us")
    assert of_s3("s3://b/x") == {}
    assert not fake.made

    azure = "abfs://c@a.dfs.core.windows.net/x"
    assert opened(azure) == ("AzureFileSystem", "c")
    assert fake.made["AzureFileSystem"] == (("a",), {})
    monkeypatch.setenv("AZURE_STORAGE_KEY", SECRET)
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "")
    assert opened(f"{azure}?blob_storage_scheme=http") == ("AzureFileSystem", "c")
    options = {"account_key": SECRET, "blob_storage_scheme": "http"}
    assert fake.made["AzureFileSystem"] == (("a",), options)

    assert opened("gcs://b/x") == ("gs://b/", "base")
    assert opened("gs://b/x?scheme=http&retry_limit_seconds=3") == (
        "gs://b/?retry_limit_seconds=3&scheme=http", "base",
    )  # fmt: skip
    assert opened("hdfs://n:8020/x") == ("hdfs://n:8020/", "base")
