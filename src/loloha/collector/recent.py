"""What was used last, up to a size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Recent(Generic[Item]):
    """Items by name; the least recently used go when all are larger than ``most``, one stays.

    Threads may use it together.
    """

    def __init__(self, most: int, size: Callable[[Item], int]) -> None:
        self._most = most
        self._size_of = size
        self._size = 0
        self._items: OrderedDict[Hashable, Item] = OrderedDict()
        self._lock = Lock()

    def __contains__(self, name: Hashable) -> bool:
        return name in self._items

    def get(self, name: Hashable) -> Item | None:
        """The item of a name, which is used hereby."""
        with self._lock:
            if name in self._items:
                self._items.move_to_end(name)
            return self._items.get(name)

    def put(self, name: Hashable, item: Item) -> Item:
        """Keep an item in place of the one of its name."""
        with self._lock:
            replaced = self._items.pop(name, None)
            if replaced is not None:
                self._size -= self._size_of(replaced)
            self._items[name] = item
            self._size += self._size_of(item)
            while self._size > self._most and len(self._items) > 1:
                _, dropped = self._items.popitem(last=False)
                self._size -= self._size_of(dropped)
        return item
