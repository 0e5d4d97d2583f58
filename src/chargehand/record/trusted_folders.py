"""The directories whose files may set endpoints, key variables, commands and tool code: `trusted.json` in the home."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

from chargehand.errors import StorageError, UsageError


class TrustRegistry(NamedTuple):
    """Trust in a directory covers its real path at the time it was given, and everything below it."""

    home: str
    # Another home whose trusted directories count too: that of the settings, where runs are recorded in `home`.
    also: str | None = None

    @property
    def file(self) -> Path:
        return Path(self.home, "trusted.json")

    def directories(self) -> list[str]:
        """The real paths that are trusted, of both homes."""
        others = [] if self.also is None else TrustRegistry(self.also).directories()
        return [*dict.fromkeys([*self._read(), *others])]

    def _read(self) -> list[str]:
        try:
            data = json.loads(self.file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise StorageError(
                f"{self.file} cannot be read ({error}): repair or remove it, then trust again."
            ) from None
        listed = data.get("directories") if isinstance(data, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        if not isinstance(listed, list):
            raise StorageError(f"{self.file} is not a list of trusted directories: remove it, then trust again.")
        return [entry for entry in listed if isinstance(entry, str)]  # pyright: ignore[reportUnknownVariableType]

    def is_trusted(self, path: str | Path) -> bool:
        """True when the real path is a trusted directory or is below one."""
        real = Path(path).resolve()
        chain = {str(real), *(str(parent) for parent in real.parents)}
        return not chain.isdisjoint(self.directories())

    def trust(self, directory: str | Path) -> str:
        """Trust a directory; returns the real path that is trusted from now on."""
        real = os.path.realpath(directory)
        if not os.path.isdir(real):
            raise UsageError(f"{directory} is not a directory: name the folder that holds the team or chargehand.toml.")
        self._write(sorted({*self._read(), real}))
        return real

    def untrust(self, directory: str | Path) -> bool:
        """Take trust back; False when the directory itself was not on the list."""
        real = str(Path(directory).resolve())
        known = self._read()
        if real not in known:
            return False
        self._write([entry for entry in known if entry != real])
        return True

    def _write(self, directories: list[str]) -> None:
        try:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            import tempfile

            # mkstemp makes the file with mode 0600; the rename makes the change atomic.
            handle, name = tempfile.mkstemp(dir=self.file.parent, prefix=".trusted-")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as out:
                    json.dump({"directories": directories}, out, indent=2)
                    out.write("\n")
                Path(name).replace(self.file)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as error:
            raise StorageError(f"{self.file} cannot be written ({error.strerror}): check CHARGEHAND_HOME.") from None
