"""Who this store is in a lake that several may share: its name in the paths, and the id that proves it its own."""

import re
import socket
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from store.errors import StoreError
from store.snapshot import write_durably

if TYPE_CHECKING:
    from store.database import Database

FILE_NAME = "node.json"
_FOREIGN = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Node:
    """Name of a store in the paths of the lake, and an id that no other store has."""

    name: str
    store: str


def node(database: "Database") -> Node:
    """Return who this store is: as the settings say, else as it was at first, else named after the machine.

    It is kept in the data directory: a container's host name changes with every start. Raises StoreError.
    """
    path = database.directory / FILE_NAME
    asked = database.settings.node
    known = None
    try:
        known = msgspec.json.decode(path.read_bytes(), type=Node)
    except FileNotFoundError:
        pass
    except (OSError, msgspec.MsgspecError) as error:
        raise StoreError(
            f"{path} cannot be read: {error}", "delete it and set store.node to the name that its lake has"
        ) from error
    name = cleaned(asked) if asked else known.name if known else cleaned(socket.gethostname())
    found = Node(name, known.store if known else uuid.uuid4().hex)
    if found != known:
        write_durably(path, msgspec.json.encode(found))
    return found


def cleaned(name: str) -> str:
    """Return a name that can be a folder: letters, digits, dot, dash and underscore."""
    return _FOREIGN.sub("-", name).strip(".-") or "node"
