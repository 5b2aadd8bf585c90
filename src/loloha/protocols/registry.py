"""The registry of protocols: those of this package, and those of installed packages."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from loloha.protocols.base import Protocol

GROUP = "loloha.protocols"
"""The entry points by which an installed package adds protocols: name = module:class."""


class Registry(Mapping[str, type[Protocol]]):
    """Name -> class, in the order of the package's own and then of those that are installed.

    Installed packages are asked only where a name is not one of the package's own, or all are
    listed: a device with a protocol of this package loads nothing of theirs.

    Attributes
    ----------
    own : dict of str to type of Protocol
        Those of this package.
    """

    def __init__(self, own: Sequence[type[Protocol]]) -> None:
        self.own = {cls.name: cls for cls in own}

    @cached_property
    def installed(self) -> dict[str, type[Protocol]]:
        """Those of other packages; one that cannot be used is left out with a warning."""
        from importlib.metadata import entry_points

        classes: dict[str, type[Protocol]] = {}
        for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
            try:
                cls = point.load()
            except Exception as error:  # noqa: BLE001 - foreign code may raise anything
                wrong = f"it cannot be loaded ({type(error).__name__}: {error})"
            else:
                wrong = self._fault(point.name, cls, classes)
            if wrong:
                source = point.dist.name if point.dist else "an installed package"
                warnings.warn(
                    f"protocol {point.name!r} of {source} is left out: {wrong}",
                    RuntimeWarning,
                    stacklevel=2,
                )
            else:
                classes[point.name] = cls
        return classes

    def _fault(self, name: str, cls: object, classes: Mapping[str, object]) -> str:
        """Why an entry point cannot be used; empty if it can."""
        if not (isinstance(cls, type) and issubclass(cls, Protocol)):
            return "it is not a subclass of loloha.Protocol"
        if getattr(cls, "name", None) != name or name != name.lower():
            return "its entry point must have the lower-case name of the class"
        return "there is one of that name already" if name in self.own or name in classes else ""

    def __getitem__(self, name: str) -> type[Protocol]:
        cls = self.own.get(name)
        return self.installed[name] if cls is None else cls

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from self.installed

    def __len__(self) -> int:
        return len(self.own) + len(self.installed)
