"""A revision, staged files, or the files that pre-commit gives to a hook -> the change to review."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from chargehand.apps.review import work_tree as git
from chargehand.apps.review.analyzers.git import PLAIN
from chargehand.apps.review.author_lines import beside_removed, changed_lines
from chargehand.apps.review.change import Change, all_lines, make_change, names_in, place, read_tree
from chargehand.apps.review.file_kinds import why_not
from chargehand.apps.review.patch import FilePatch, Ranges, parse
from chargehand.apps.review.patched_files import folder_of, write_snapshot
from chargehand.errors import UsageError

LARGEST_DIFF = 50_000_000
# The most names of files on one command line.
_AT_ONCE = 200
_FLAGS = (
    *(*PLAIN, "--no-color", "--src-prefix=a/", "--dst-prefix=b/", "-M", "-U0"),
    *("--inter-hunk-context=0", "--no-relative"),
)


def read_diff(path: Path, base: str) -> Change:
    """The difference between the merge base of BASE and HEAD and the work tree, with files not added yet."""
    root, inside = _repository(path, "a diff")
    commit = _merge_base(root, base, "HEAD")
    try:
        patches = _patches(root, (commit,))
        where = ("--", inside) if inside else ("--",)
        added = git.ask(root, "ls-files", "-z", "--others", "--exclude-standard", *where)
    except git.GitFailed as error:
        raise UsageError(f"The difference to {base} cannot be read: {error}.") from None
    changed = _changed_lines(root, patches, inside)
    for name in names_in(added):
        changed[name] = all_lines(root / name)
    gone, beside = _deleted_files(patches, inside), beside_removed(patches)
    return make_change(root, changed, changed=changed, base=commit, gone=gone, beside_removed=beside)


def read_staged(path: Path, keep: Path) -> Change:
    """The change of the next commit, from the index alone. Files that differ in the work tree are copied to `keep`."""
    root, inside = _repository(path, "what is staged")
    head: str | None = None
    try:
        head = _commit(root, "HEAD")
    except git.GitFailed:
        empty = git.ask(root, "hash-object", "-t", "tree", "--stdin").decode().strip()
    else:
        empty = ""
    try:
        index = git.index(root)
        patches = _patches(root, ("--cached", head or empty), index)
        differ = _differ(root, (), index)
    except git.GitFailed as error:
        raise UsageError(f"What is staged cannot be read: {error}.") from None
    return _change_on_record(root, inside, patches, differ, keep, base=head, blobs=":0", index=index)


def read_range(path: Path, base: str, tip: str, keep: Path) -> Change:
    """What TIP changed since its merge base with BASE. Files that differ in the work tree are copied to `keep`."""
    root, inside = _repository(path, "A range of commits")
    commit = _merge_base(root, base, tip)
    try:
        end = _commit(root, tip)
        patches = _patches(root, (commit, end))
        differ = _differ(root, (end,), None)
    except git.GitFailed as error:
        raise UsageError(f"The difference between {base} and {tip} cannot be read: {error}.") from None
    return _change_on_record(root, inside, patches, differ, keep, base=commit, blobs=end, index=None)


def read_hooked(path: Path, keep: Path, environment: Mapping[str, str]) -> Change:
    """What is staged, unless pre-commit runs the hook on something else.

    With `--from-ref`, pre-commit gives the range in variables. It starts a hook only if there are files to check, so if
    nothing is staged, all files are meant.
    """
    if base := environment.get("PRE_COMMIT_FROM_REF"):
        return read_range(path, base, environment.get("PRE_COMMIT_TO_REF") or "HEAD", keep)
    staged = read_staged(path, keep)
    if environment.get("PRE_COMMIT") and not staged.changed and not staged.skipped:
        return read_tree(path)
    return staged


def _change_on_record(
    root: Path,
    inside: str,
    patches: list[FilePatch],
    differ: set[str],
    keep: Path,
    *,
    base: str | None,
    blobs: str,
    index: str | None,
) -> Change:
    """A change between recorded versions, read in place if the work tree is the same."""
    changed, gone = _changed_lines(root, patches, inside), _deleted_files(patches, inside)
    beside = beside_removed(patches)
    if differ.isdisjoint(changed):
        return make_change(root, changed, changed=changed, base=base, gone=gone, beside_removed=beside)
    there = [name for name in changed if not (root / name).is_symlink()]
    contents = {name: git.ask(root, "cat-file", "blob", f"{blobs}:{name}", index=index) for name in there}
    write_snapshot(contents, keep)
    folder = folder_of(contents, keep).resolve()
    return make_change(folder, contents, changed=changed, home=root, gone=gone, beside_removed=beside)


def _differ(root: Path, what: tuple[str, ...], index: str | None) -> set[str]:
    """Files of the work tree that differ from the recorded version."""
    flags = (*PLAIN, "--name-only", "--no-relative", "-z")
    return set(names_in(git.ask(root, "diff", *flags, *what, "--", index=index)))


def _changed_lines(root: Path, patches: list[FilePatch], inside: str) -> dict[str, Ranges]:
    """The changed lines; all lines of a file that git does not compare.

    Moves can be seen only in the whole tree, so files outside the path are removed afterwards.
    """
    changed = changed_lines([file for file in patches if not file.binary])
    changed |= {file.new: all_lines(root / file.new) for file in patches if file.binary and file.new is not None}
    return {name: lines for name, lines in changed.items() if name and _is_inside(name, inside)}


def _deleted_files(patches: list[FilePatch], inside: str) -> list[str]:
    """The files that were deleted."""
    return [file.old for file in patches if file.new is None and file.old and _is_inside(file.old, inside)]


def _is_inside(name: str, folder: str) -> bool:
    return not folder or name == folder or name.startswith(f"{folder}/")


def _patches(root: Path, what: tuple[str, ...], index: str | None = None) -> list[FilePatch]:
    """The diff of every file. Text that the repository's attributes call binary is compared too."""
    files = _diff(root, *what, "--", index=index)
    hidden = [file for file in files if file.binary and file.new is not None and why_not(root, file.new) is None]
    for start in range(0, len(hidden), _AT_ONCE):
        part = hidden[start : start + _AT_ONCE]
        # Both names of a moved file, so that it counts as one file.
        names = list(dict.fromkeys(name for file in part for name in (file.old, file.new) if name))
        known = {file.new: file for file in _diff(root, "--text", *what, "--", *names, index=index) if not file.binary}
        files = [known.get(file.new, file) if file in part else file for file in files]
    return files


def _diff(root: Path, *args: str, index: str | None) -> list[FilePatch]:
    said = git.ask(root, "diff", *_FLAGS, *args, largest=LARGEST_DIFF, index=index)
    return parse(said.decode("utf-8", "surrogateescape"), "git diff")


def _repository(path: Path, wanted: str) -> tuple[Path, str]:
    found = place(path)
    if not found.in_repository:
        raise UsageError(f"{path} is not in a git repository: {wanted} needs one. Review the folder, or a patch.")
    return found.root, found.inside


def _commit(root: Path, name: str) -> str:
    said = git.ask(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return said.decode().strip()


def _merge_base(root: Path, base: str, tip: str) -> str:
    names = (f"{name}^{{commit}}" for name in (base, tip))
    try:
        return git.ask(root, "merge-base", "--end-of-options", *names).decode().split()[0]
    except (git.GitFailed, IndexError):
        raise _without_base(root, base, tip) from None


def _without_base(root: Path, base: str, tip: str) -> UsageError:
    """Why two commits have no merge base."""
    for name in (tip, base):
        try:
            _commit(root, name)
        except git.GitFailed:
            if name != "HEAD":
                return _unknown(root, name)
            return UsageError(
                "The repository has no commit yet: there is nothing to compare with. Review the folder instead."
            )
    return UsageError(
        f"{base!r} and {tip} have no commit in common; a shallow clone may lack it (`git fetch --unshallow`)."
    )


def _unknown(root: Path, name: str) -> UsageError:
    hint = "name a branch, a tag or a commit; in a fresh clone fetch it first"
    return UsageError(f"There is no revision {name!r} in {root}: {hint}.")
