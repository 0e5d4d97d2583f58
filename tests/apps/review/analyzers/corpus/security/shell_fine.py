"""Archives with argument lists."""

import subprocess


def pack(folder: str) -> None:
    subprocess.run(["/bin/tar", "czf", "backup.tgz", "--", folder], check=True)


def today() -> str:
    return subprocess.run(["/bin/date", "-I"], check=True, capture_output=True, text=True).stdout


def cores() -> int:
    return int(subprocess.check_output("nproc --all", shell=True))
