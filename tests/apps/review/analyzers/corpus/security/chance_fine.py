"""Dice and shuffled playlists."""

import random
import secrets


def roll() -> int:
    return random.randint(1, 6)


def playlist(songs: list[str]) -> list[str]:
    return random.sample(songs, len(songs))


def reset_token() -> str:
    return secrets.token_urlsafe(32)
