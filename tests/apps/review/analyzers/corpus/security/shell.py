"""Archives on demand."""

import os
import subprocess


def pack(folder: str) -> None:
    subprocess.run(f"tar czf backup.tgz {folder}", shell=True, check=True)


def unpack(name: str) -> None:
    os.system("tar xzf " + name)


def listing(name: str) -> str:
    return subprocess.check_output("ls -l %s" % name, shell=True).decode()
