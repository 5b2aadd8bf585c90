"""Filesystems of addresses: properties, connections, and the meaning of failures."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from loloha import checks
from loloha.errors import ExtraError, ParameterError, StorageError

ATTEMPTS = 6
"""Attempts of a request to S3, some seconds in all."""


class _Kind(NamedTuple):
    """One kind of filesystem."""

    spark: str
    """The scheme under which Spark knows the same files."""
    options: frozenset[str] = frozenset()
    """Options after the question mark, none of them secret."""
    credentials: str = "the credentials of its client library"
    renames: bool = False
    """Whether a growing file is visible, so that it needs a hidden name until it is complete."""
    in_parts: bool = False
    """Whether a stream buffers everything until it is flushed."""
    starts_empty: bool = False
    """Whether an object is visible, empty, during its upload."""


_S3 = _Kind(
    "s3a",
    frozenset({"region", "scheme", "endpoint_override"}),
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the machine's role",
    in_parts=True,
)
_GS = _Kind(
    "gs",
    frozenset({"scheme", "endpoint_override", "retry_limit_seconds", "project_id"}),
    "GOOGLE_APPLICATION_CREDENTIALS, or the machine's service account",
)
_ABFS = _Kind(
    "abfss",
    frozenset({
        "blob_storage_authority", "blob_storage_scheme",
        "dfs_storage_authority", "dfs_storage_scheme",
    }),
    "AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, or the machine's identity",
    starts_empty=True,
)  # fmt: skip
_HDFS = _Kind("hdfs", frozenset({"replication"}), "HADOOP_USER_NAME or Kerberos", renames=True)
KINDS = {
    "s3": _S3, "s3a": _S3, "gs": _GS, "gcs": _GS, "abfs": _ABFS, "abfss": _ABFS,
    "hdfs": _HDFS, "viewfs": _HDFS._replace(spark="viewfs"),
}  # fmt: skip

# Stores' messages of failure -> meaning and advice.
_REASONS = (
    (("no_such_bucket", "bucket does not exist", "containernotfound", "bucket not found",
      "no such bucket"),
     "its bucket or container does not exist", "check the name, or create it"),
    (("invalid_access_key", "signature_does_not_match", "invalid_client_token", "expired_token",
      "expiredtoken", "unrecognized_client", "authenticationfailed", "failed to authenticate",
      "invalid_signature"),
     "its credentials are not accepted", "renew {credentials}"),
    (("access_denied", "forbidden", "http status 403", "http status 401", "permission_denied",
      "permission denied", "unauthenticated", "not authorized", "no credentials", "credential"),
     "access is denied, or there are no credentials", "set {credentials}, with rights there"),
    (("permanent_redirect", "http status 301", "moved permanently", "illegal_location"),
     "its bucket is in another region", "add ?region=NAME to the address"),
    (("slow_down", "service_unavailable", "internal_failure", "throttling", "unavailable",
      "http status 5", "service unavailable", "internalerror", "serverbusy"),
     "the service is busy or failing", "try again later: nothing is half-written"),
    (("network_connection", "could not connect", "connection", "curlcode", "timed out", "timeout",
      "request_timeout", "resolve host"),
     "the service cannot be reached", "check the network and the endpoint"),
    (("libhdfs", "libjvm"), "Hadoop's client library is not there",
     "install Java and Hadoop's native libraries, and set JAVA_HOME, HADOOP_HOME and CLASSPATH"),
)  # fmt: skip


@dataclass(frozen=True)
class Mount:
    """One bucket, container or namenode, and how to get there; credentials are no part of it."""

    scheme: str
    host: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def kind(self) -> _Kind:
        """The kind of filesystem."""
        return KINDS.get(self.scheme, _Kind(self.scheme, renames=True))

    @cached_property
    def opened(self) -> tuple[Any, str]:
        """The filesystem of pyarrow, and the path in it under which everything here lies."""
        fs = checks.library("pyarrow.fs", f"use {self.scheme}:// addresses", "engines")
        opener = _OPENERS.get(self.scheme, _fsspec)
        try:
            return opener(fs, self)
        except ImportError:
            if opener is _fsspec:
                raise
            # A build of pyarrow can lack it.
            return _fsspec(fs, self)

    def is_failing(self, error: BaseException) -> bool:
        """Whether an error is the service's, and not that of a file that it gave."""
        return isinstance(error, StorageError) or self._meaning(error) is not None

    def failure(self, error: BaseException, what: str) -> StorageError:
        """A library's error in our words: its own could quote secrets."""
        if isinstance(error, StorageError):
            return error
        unknown = (f"got {type(error).__name__}", "check the address and its service")
        reason, advice = self._meaning(error) or unknown
        advice = advice.format(credentials=self.kind.credentials)
        return StorageError(f"{what} could not be used: {reason}; {advice}", reason)

    @staticmethod
    def _meaning(error: BaseException) -> tuple[str, str] | None:
        text = str(error).lower()
        known = ((why, what) for signs, why, what in _REASONS if any(s in text for s in signs))
        return next(known, None)


def _s3(fs: Any, mount: Mount) -> tuple[Any, str]:
    options = dict(mount.options)
    # As AWS's tools read them; pyarrow reads one only, from addresses.
    for variable in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        if os.environ.get(variable):
            options.setdefault("endpoint_override", os.environ[variable])
    stated = {"AWS_REGION", "AWS_DEFAULT_REGION"} & os.environ.keys()
    if not (stated or {"region", "endpoint_override"} & options.keys()):
        options["region"] = fs.resolve_s3_region(mount.host)
    # Small objects in one request. A stream without background writes forgets failures: closing it
    # would publish the earlier parts.
    filesystem = fs.S3FileSystem(
        **options,
        allow_delayed_open=True,
        background_writes=True,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
    )
    return filesystem, mount.host


def _abfs(fs: Any, mount: Mount) -> tuple[Any, str]:
    container, _, account = mount.host.rpartition("@")
    secret = {
        "account_key": os.environ.get("AZURE_STORAGE_KEY"),
        "sas_token": os.environ.get("AZURE_STORAGE_SAS_TOKEN"),
    }
    given = {name: value for name, value in secret.items() if value}
    account = account.partition(".")[0]
    return fs.AzureFileSystem(account, **given, **dict(mount.options)), container


def _by_uri(fs: Any, mount: Mount) -> tuple[Any, str]:
    query = "&".join(f"{name}={value}" for name, value in mount.options)
    scheme = {"gcs": "gs"}.get(mount.scheme, mount.scheme)
    uri = f"{scheme}://{mount.host}/" + (f"?{query}" if query else "")
    filesystem, base = fs.FileSystem.from_uri(uri)
    return filesystem, base.rstrip("/")


_OPENERS = {
    "s3": _s3, "s3a": _s3, "abfs": _abfs, "abfss": _abfs,
    "gs": _by_uri, "gcs": _by_uri, "hdfs": _by_uri, "viewfs": _by_uri,
}  # fmt: skip


def _fsspec(fs: Any, mount: Mount) -> tuple[Any, str]:
    """The filesystem by fsspec, or an ImportError that says what to install."""
    if mount.options:
        raise ParameterError(
            f"options of a {mount.scheme}:// address need a pyarrow that has this filesystem; "
            "install pyarrow's own wheels"
        )
    core = checks.library("fsspec.core", f"use {mount.scheme}:// addresses", "fsspec")
    try:
        filesystem, base = core.url_to_fs(f"{mount.scheme}://{mount.host}")
    except ImportError as error:
        registry = checks.library("fsspec.registry", "read and write addresses", "fsspec")
        known = registry.known_implementations.get(mount.scheme, {}).get("err", "")
        raise ExtraError(
            f"the package that fsspec needs for {mount.scheme}:// must be installed"
            + (f": {known}" if known else f"; it asks for {error.name}")
        ) from None
    except ValueError:
        raise ParameterError(
            f"an address must be file, s3, gs, abfs, hdfs or known to fsspec, got "
            f"{mount.scheme}://; check its beginning"
        ) from None
    return fs.PyFileSystem(fs.FSSpecHandler(filesystem)), str(base).rstrip("/")
