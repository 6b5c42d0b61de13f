"""Advisories of the RustSec database, for tools/deny: which of the crates that are built are known to be bad.

The database is a git repository: crates/NAME/RUSTSEC-YEAR-NUMBER.md, each with a block of TOML in front.
It is cloned into target/, and fetched anew on each run; a copy that cannot be renewed is not used, because
what it does not know yet is what matters.
"""

import os
import re
import shutil
import subprocess
import tomllib

FETCH_SECONDS = 60  # A clone of one commit is a few megabytes.
REASON_CHARS = 200  # Of what git says.


class NotReached(Exception):
    """The database could not be brought here."""


def fetch(url, directory):
    """Brings the newest commit of the database to `directory`."""
    if directory.exists():
        shutil.rmtree(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    command = ["git", "clone", "--quiet", "--depth", "1", url, str(directory)]
    # Nobody is there to type a password.
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, env=environment,
                              stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise NotReached("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise NotReached(f"{url} did not answer within {FETCH_SECONDS} s") from None
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[:REASON_CHARS]
        raise NotReached(said or f"git ended with {done.returncode}")
    if not (directory / "crates").is_dir():
        raise NotReached(f"{url} has no folder 'crates': it is not an advisory database")


def check(directory, built, ignored):
    """Findings about the crates that are built. `ignored` is the list of deny.toml, with its reasons."""
    reasons = {entry["id"]: entry.get("reason", "") for entry in ignored}
    unused = set(reasons)
    for name, version in sorted(built):
        for path in sorted((directory / "crates" / name).glob("*.md")):
            try:
                advisory = read(path)
                affected = concerns(advisory, version)
            except ValueError as fault:
                yield f"{path.name} cannot be read: {fault}"
                continue
            if not affected:
                continue
            about = advisory["advisory"]
            unused.discard(about["id"])
            if about["id"] in reasons:
                continue
            fixed = ", ".join(advisory.get("versions", {}).get("patched", [])) or "no version"
            yield (f"{name} {version} has {about['id']} ({about.get('informational', 'vulnerability')}), "
                   f"repaired in {fixed}: update it, or name it in deny.toml under [advisories] with the reason")
    for id_ in sorted(unused):
        yield f"deny.toml ignores {id_}, which concerns nothing that is built: remove it"


def read(path):
    """The block of TOML in front of an advisory."""
    block = re.search(r"```toml\n(.*?)```", path.read_text(), re.DOTALL)
    if block is None:
        raise ValueError("it has no block of TOML")
    advisory = tomllib.loads(block[1])
    if "id" not in advisory.get("advisory", {}):
        raise ValueError("it has no id")
    return advisory


def concerns(advisory, version):
    if "withdrawn" in advisory["advisory"]:
        return False
    versions = advisory.get("versions", {})
    safe = [*versions.get("patched", []), *versions.get("unaffected", [])]
    return not any(matches(version, requirement) for requirement in safe)


def matches(version, requirement):
    """Whether a version meets a requirement as Cargo writes it: `>= 1.2, < 2`, `^0.3.1`, `~1.2`, `=1.0.0`."""
    return all(meets(parse(version), one.strip()) for one in requirement.split(","))


def meets(version, comparator):
    found = re.fullmatch(r"(>=|<=|>|<|=|\^|~)?\s*(\S+)", comparator)
    if found is None:
        raise ValueError(f"{comparator!r} is no requirement of a version")
    sign, text = found[1] or "^", found[2]
    low = parse(text)
    given = len(text.split("-")[0].split("+")[0].split("."))
    simple = {">=": version >= low, ">": version > low, "<": version < low, "<=": version <= low}
    if sign in simple:
        return simple[sign]
    numbers = low[0]
    if sign == "=":
        return version == low if given == 3 else version[0][:given] == numbers[:given]
    if sign == "~":
        kept = min(given, 2)
    else:
        # The first number that is not zero stays as it is.
        kept = next((at for at, number in enumerate(numbers[:given], 1) if number), given)
    return version >= low and version[0][:kept] == numbers[:kept]


def parse(text):
    """What versions are compared by: numbers, then releases after their pre-releases."""
    found = re.fullmatch(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+.*)?", text)
    if found is None:
        raise ValueError(f"{text!r} is no version")
    numbers = tuple(int(number or 0) for number in found.group(1, 2, 3))
    pre = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in (found[4] or "").split(".") if part]
    return numbers, not pre, pre
