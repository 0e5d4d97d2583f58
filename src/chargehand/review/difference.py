"""A revision, or what is staged, against the files as they are -> the change between them."""

from __future__ import annotations

from pathlib import Path

from chargehand.analyzers.git import PLAIN
from chargehand.errors import UsageError
from chargehand.review import git
from chargehand.review.change import Change, all_lines, made, names_in, place
from chargehand.review.files import why_not
from chargehand.review.patch import FilePatch, Ranges, parse
from chargehand.review.snapshot import folder_of, kept
from chargehand.review.written import changed_lines

LARGEST_DIFF = 50_000_000
# Names of so many files at most go on one command line.
_AT_ONCE = 200
_FLAGS = (
    *(*PLAIN, "--no-color", "--src-prefix=a/", "--dst-prefix=b/", "-M", "-U0"),
    *("--inter-hunk-context=0", "--no-relative"),
)


def read_diff(path: Path, base: str) -> Change:
    """What differs between the merge base of BASE and HEAD and the work tree, files not added yet included."""
    root, inside = _repository(path, "--diff")
    commit = _merge_base(root, base)
    where = ("--", inside) if inside else ("--",)
    try:
        patches = _patches(root, (commit,), where)
        added = git.ask(root, "ls-files", "-z", "--others", "--exclude-standard", *where)
    except git.GitFailed as error:
        raise UsageError(f"The difference to {base} cannot be read: {error}.") from None
    changed = _written(root, patches)
    for name in names_in(added):
        changed[name] = all_lines(root / name)
    return made(root, [name for name in changed if name], changed=changed, base=commit)


def read_staged(path: Path, keep: Path) -> Change:
    """What the next commit will change, from the index alone; files whose work tree differs are kept under `keep`."""
    root, inside = _repository(path, "--staged")
    where = ("--", inside) if inside else ("--",)
    head: str | None = None
    try:
        head = _commit(root, "HEAD")
    except git.GitFailed:
        empty = git.ask(root, "hash-object", "-t", "tree", "--stdin").decode().strip()
    else:
        empty = ""
    try:
        index = git.index(root)
        patches = _patches(root, ("--cached", head or empty), where, index)
        flags = (*PLAIN, "--name-only", "--no-relative", "-z")
        differ = set(names_in(git.ask(root, "diff", *flags, *where, index=index)))
    except git.GitFailed as error:
        raise UsageError(f"What is staged cannot be read: {error}.") from None
    changed = _written(root, patches)
    names = [name for name in changed if name]
    if differ.isdisjoint(names):
        return made(root, names, changed=changed, base=head)
    there = [name for name in names if not (root / name).is_symlink()]
    staged = {name: git.ask(root, "cat-file", "blob", f":0:{name}", index=index) for name in there}
    kept(staged, keep)
    return made(folder_of(staged, keep).resolve(), staged, changed=changed, home=root)


def _written(root: Path, patches: list[FilePatch]) -> dict[str, Ranges]:
    """The lines that changed; all of a file that git will not compare."""
    changed = changed_lines([file for file in patches if not file.binary])
    return changed | {file.new: all_lines(root / file.new) for file in patches if file.binary and file.new is not None}


def _patches(root: Path, what: tuple[str, ...], where: tuple[str, ...], index: str | None = None) -> list[FilePatch]:
    """What git says of every file. Text that the repository's attributes call binary is compared all the same."""
    files = _diff(root, *what, *where, index=index)
    hidden = [file for file in files if file.binary and file.new is not None and why_not(root, file.new) is None]
    for start in range(0, len(hidden), _AT_ONCE):
        part = hidden[start : start + _AT_ONCE]
        # Both names of a file that was moved, so that it stays one.
        names = list(dict.fromkeys(name for file in part for name in (file.old, file.new) if name))
        known = {file.new: file for file in _diff(root, "--text", *what, "--", *names, index=index) if not file.binary}
        files = [known.get(file.new, file) if file in part else file for file in files]
    return files


def _diff(root: Path, *args: str, index: str | None) -> list[FilePatch]:
    said = git.ask(root, "diff", *_FLAGS, *args, largest=LARGEST_DIFF, index=index)
    return parse(said.decode("utf-8", "surrogateescape"), "git diff")


def _repository(path: Path, flag: str) -> tuple[Path, str]:
    root, inside = place(path)
    if git.top(root) is None:
        raise UsageError(f"{path} is not in a git repository: {flag} needs one. Leave it out, or use --patch.")
    return root, inside


def _commit(root: Path, name: str) -> str:
    said = git.ask(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return said.decode().strip()


def _merge_base(root: Path, base: str) -> str:
    try:
        head = _commit(root, "HEAD")
    except git.GitFailed:
        raise UsageError(
            "The repository has no commit yet: there is nothing to compare with. Leave --diff out."
        ) from None
    try:
        commit = _commit(root, base)
    except git.GitFailed:
        hint = "name a branch, a tag or a commit; in a fresh clone fetch it first"
        raise UsageError(f"There is no revision {base!r} in {root}: {hint}.") from None
    try:
        return git.ask(root, "merge-base", commit, head).decode().split()[0]
    except (git.GitFailed, IndexError):
        raise UsageError(
            f"{base!r} and HEAD have no commit in common; a shallow clone may lack it (`git fetch --unshallow`)."
        ) from None
