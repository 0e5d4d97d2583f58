"""One plain call: a prompt anybody would write, to the same model, without a team."""

from __future__ import annotations

import json
import time
import urllib.request
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PlainReply:
    text: str
    seconds: float
    tokens: int


def ask_plainly(base_url: str, model: str, prompt: str, most_tokens: int) -> PlainReply:
    """What the model replies to the prompt alone, at temperature 0."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": prompt}],
        "temperature": 0,
        "max_tokens": most_tokens,
    }
    request = urllib.request.Request(
        f"{base_url}/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    began = time.monotonic()
    with urllib.request.urlopen(request, timeout=900) as response:
        reply = json.load(response)
    text = reply["choices"][0]["message"]["content"] or ""
    return PlainReply(text, time.monotonic() - began, reply["usage"]["total_tokens"])
