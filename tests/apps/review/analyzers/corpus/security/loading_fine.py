"""Saved sessions as JSON."""

import json

import yaml


def load(data: bytes) -> object:
    return json.loads(data)


def settings(text: str) -> object:
    return yaml.safe_load(text)
