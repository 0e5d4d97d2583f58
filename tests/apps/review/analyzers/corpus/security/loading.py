"""Saved sessions."""

import marshal
import pickle

import yaml


def load(data: bytes) -> object:
    return pickle.loads(data)


def settings(text: str) -> object:
    return yaml.load(text, Loader=yaml.Loader)


def code(data: bytes) -> object:
    return marshal.loads(data)
