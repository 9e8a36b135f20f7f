#!/usr/bin/env python3
"""Walks every #include line of include/holdfast and src and fails on an arrow that runs up.

    includes.py ROOT      prints one line per fault, exit 1 when there is any
"""
import os
import re
import sys

# What a layer may include besides itself: everything below it, and nothing beside it.
BELOW = {
    "core": set(),
    "policy": {"core"},
    "run": {"policy", "core"},
    "ledger": {"run", "policy", "core"},
    "tools": {"run", "policy", "core"},
    "engine": {"tools", "ledger", "run", "policy", "core"},
    "http": {"core"},
    "api": {"http", "engine", "tools", "ledger", "run", "policy", "core"},
    "cli": {"api", "http", "engine", "tools", "ledger", "run", "policy", "core"},
}
# Headers of the tree that belong to no layer.
LAYERLESS = {"precompiled.h"}

# policy and run decide from what they are given: no socket, file, clock, thread or random device.
PURE_LAYERS = {"policy", "run"}
IMPURE_HEADERS = re.compile(
    r"(fstream|iostream|cstdio|stdio\.h|filesystem|random|thread|mutex|shared_mutex|condition_variable|future|semaphore|ctime|time\.h"
    r"|unistd\.h|fcntl\.h|poll\.h|netdb\.h|dirent\.h|signal\.h|csignal|pthread\.h|sys/.*|arpa/.*|netinet/.*|linux/.*"
    r"|curl/.*|sqlite3\.h|SQLiteCpp/.*|httplib\.h|openssl/.*|yaml-cpp/.*|spdlog/.*)")
IMPURE_WORDS = re.compile(
    r"_clock::now|\b(?:system|steady|high_resolution|utc)_clock\b|\brandom_device\b|\bsystem_random\b|\bSystemClock\b|\bthis_thread\b"
    r"|\bgetrandom\b|\bgettimeofday\b|\bclock_gettime\b|(?<![\w.>])(?:std::)?(?:time|rand|srand)\s*\(\s*(?:0|NULL|nullptr)?\s*\)|\bgetenv\b")

# What an embedding program would have to have installed to read a public header.
HEAVY_HEADERS = re.compile(r"(nlohmann/.*|httplib\.h|curl/.*|sqlite3\.h|SQLiteCpp/.*|spdlog/.*|fmt/.*|openssl/.*|yaml-cpp/.*|CLI/.*|prometheus/.*)")

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:<([^>]+)>|"([^"]+)")', re.M)
SOURCE_ENDINGS = (".h", ".hpp", ".cpp", ".cc", ".inc")


def without_comments(text):
    """Blanks comments and keeps strings and line numbers: a word in a sentence is no call, and an include that is
    commented out is none. `//` inside a string is told by reading strings first."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
    return token.sub(lambda m: m.group() if m.group()[0] == '"' else re.sub(r"[^\n]", " ", m.group()), text)


def layer_of(path):
    """The layer of a file, given relative to the root; None outside the layers."""
    parts = path.split("/")
    if parts[:2] == ["include", "holdfast"]:
        return parts[2] if len(parts) > 3 else None
    return parts[1] if parts[0] == "src" and len(parts) > 2 else None


def target_layer(header, quoted, path, root):
    """The layer that an include leads to; None for a header from outside the tree. A quoted header is first looked for beside the file that
    names it, as the compiler does."""
    header = os.path.normpath(header)
    if quoted:
        beside = os.path.normpath(os.path.join(os.path.dirname(path), header))
        if os.path.isfile(os.path.join(root, beside)):
            return layer_of(beside)
    if header.startswith("holdfast/"):
        return layer_of("include/" + header)
    first = header.split("/")[0]
    return first if first in BELOW and "/" in header else None


def faults_of(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        text = without_comments(file.read())
    layer, public = layer_of(path), path.startswith("include/")
    if layer not in BELOW:
        if os.path.basename(path) not in LAYERLESS:
            yield f"{path}: stands in no layer of the house"
        return
    for match in INCLUDE.finditer(text):
        header, quoted = match.group(1) or match.group(2), match.group(2) is not None
        where = f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
        target = target_layer(header, quoted, path, root)
        if target is not None and target != layer and target not in BELOW[layer]:
            yield f"{where}: {layer} must not include {header} ({target} is not below it)"
        if public and target is not None and not header.startswith("holdfast/"):
            yield f"{where}: a public header must not include {header}, which is private"
        if header == "httplib.h" and (layer != "http" or public):
            yield f"{where}: httplib.h is for src/http alone"
        if public and HEAVY_HEADERS.fullmatch(header):
            yield f"{where}: a public header must not need {header}"
        if layer in PURE_LAYERS and IMPURE_HEADERS.fullmatch(header):
            yield f"{where}: {layer} has no I/O, clock or randomness of its own, so it must not include {header}"
    if layer in PURE_LAYERS:
        for match in IMPURE_WORDS.finditer(text):
            yield f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {layer} must not reach for {match.group().strip()}"


def files(root):
    for top in ("include/holdfast", "src"):
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                if name.endswith(SOURCE_ENDINGS):
                    yield os.path.relpath(os.path.join(folder, name), root)


def faults(root):
    found = list(files(root))
    if not found:
        return [f"{root}: no sources found"]
    return [fault for path in found for fault in faults_of(root, path)]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    problems = faults(sys.argv[1])
    print("\n".join(problems) if problems else "includes point down")
    sys.exit(1 if problems else 0)
