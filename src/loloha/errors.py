"""The typed errors of loloha: one family, which one ``except LolohaError`` catches."""


class LolohaError(Exception):
    """Base of every error that loloha raises on purpose."""


class ParameterError(LolohaError, ValueError):
    """A public parameter is unusable; the message names it, shows it and says what to do."""


class DomainError(LolohaError, ValueError):
    """A user's value is outside the domain or of the wrong type; the value is never shown."""


class BudgetError(LolohaError):
    """A client's hard limit on its loss refuses the report that was asked for."""


class StateError(LolohaError):
    """A client's saved state is damaged, foreign or of another version, or forbids the request."""


class WireError(LolohaError, ValueError):
    """A message is truncated, extended, out of range, of another version or campaign."""


class MergeError(LolohaError):
    """Two tallies of different protocols cannot be added."""


class CampaignError(LolohaError, ValueError):
    """A campaign document is invalid or not the one that was agreed on.

    Attributes
    ----------
    status : int or None
        How a collector answered (HTTP), where it refused.
    """

    status: int | None = None


class ExtraError(LolohaError, ImportError):
    """A library that only this part needs is not installed; the message names the extra."""


class StoreError(LolohaError):
    """The collector's store could not do what was asked; nothing was half-applied."""


class StorageError(LolohaError, OSError):
    """A filesystem that an address names did not do what was asked; the message says why."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        # Where others than the operator read, the address stays out.
        self.strerror = reason or message


class AuditError(LolohaError):
    """An audited program did not answer, ended too early, or answered what is no report."""


class LawError(LolohaError, AssertionError):
    """A protocol breaks a law that every protocol obeys; the message says which, and how."""
