"""The task as JSON on stdin -> the smallest patch among its inputs that passes the tests, applied to this checkout."""

import json
import subprocess
import sys

TESTS = [sys.executable, "-m", "unittest", "discover", "-q"]


def passes(patch: str) -> bool:
    """Whether the tests pass with a patch; the checkout is as before afterwards."""
    try:
        return apply(patch) and succeeds(TESTS)
    finally:
        subprocess.run(["git", "reset", "-q", "--hard"], check=True)
        subprocess.run(["git", "clean", "-fdq"], check=True)


def apply(patch: str) -> bool:
    return succeeds(["git", "apply", "--index"], patch)


def succeeds(command: list[str], given: str = "") -> bool:
    ended = subprocess.run(command, input=given.encode(), capture_output=True, timeout=300, check=False)
    return ended.returncode == 0


def main() -> None:
    inputs = json.load(sys.stdin)["inputs"]
    patches = {id: given["output"] for id, given in inputs.items() if given["status"] == "done"}
    good = sorted((len(patch), id) for id, patch in patches.items() if isinstance(patch, str) and passes(patch))
    if not good:
        answer = {
            "escalate": {"reason": "confidence_too_low", "message": f"None of {sorted(inputs)} passes the tests."}
        }
        print(json.dumps(answer))
        return
    chosen = good[0][1]
    apply(patches[chosen])
    others = ", ".join(id for _, id in good[1:]) or "no other"
    print(f"The patch of {chosen} passes the tests; so does {others}, and it is the smallest of them.")


main()
