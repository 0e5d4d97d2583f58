"""Uploads."""

import os
import tarfile
import tempfile
import xml.etree.ElementTree as ET


def unpack(name: str) -> None:
    with tarfile.open(name) as archive:
        archive.extractall("/srv/uploads")


def share(name: str) -> None:
    os.chmod(name, 0o777)


def scratch() -> str:
    return tempfile.mktemp()


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)
