"""The door: bytes become text, text becomes a syntax tree, or a ``SourceError`` says what to mend.

The same bytes are hashed, parsed, shown and run, so anything that could read differently from how it runs is refused
here: encodings, bare carriage returns, invisible and look-alike characters. Size and nesting are capped before Python's
parser sees the text, because the parser answers hostile nesting with MemoryError or RecursionError.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import unicodedata

from harness.domain.errors import SourceError
from harness.domain.parsing import syntax_tree
from harness.evaluation.source.syntax import children

MAX_BYTES = 64 * 1024
MAX_BRACKETS = 40
MAX_INDENT_LEVELS = 30
MAX_LINE = 1000
MAX_DEPTH = 150
MAX_NODES = 60_000
MAX_CHAIN = 120

_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_REFUSED_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Drawn as nothing although Unicode files them as letters or marks.
_INVISIBLE = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
_RUN_OF_OPERATORS = re.compile(
    rf"(?:[-+~]\s*){{{MAX_CHAIN},}}|(?:\bnot\s+){{{MAX_CHAIN},}}|(?:\blambda\b[^\n:]*:\s*){{20,}}")


def read_source(data: bytes) -> str:
    """Decode a candidate's bytes.

    Raises:
        SourceError: not UTF-8, too large, BOM, coding cookie, carriage returns, control, bidirectional or invisible
            characters; ``line`` counts from 1.
    """
    if len(data) > MAX_BYTES:
        raise SourceError(f"The source has {len(data):,} bytes; at most {MAX_BYTES:,} are read. Shorten it.",
                          code="source_too_large")
    if data.startswith(b"\xef\xbb\xbf"):
        raise SourceError("The file starts with a byte order mark. Save it as UTF-8 without BOM.", line=1,
                          code="source_encoding")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(f"Line {line} is not UTF-8 (byte {error.start}). Save the file as UTF-8.", line=line,
                          code="source_encoding") from error
    _check_characters(text)
    for number, row in enumerate(text.split("\n", 2)[:2], start=1):
        if _COOKIE.match(row):
            raise SourceError(f"Line {number} is a coding cookie. Sources are UTF-8; delete the line.", line=number,
                              code="source_encoding")
    if not text.strip():
        raise SourceError("The source is empty. A kernel needs at least a function `run`.", line=1,
                          code="source_empty")
    return text


def parse(source: str) -> ast.Module:
    """The syntax tree of ``source``, of bounded size and depth.

    Raises:
        SourceError: ``source_nesting`` where it is nested or chained too deeply, ``syntax_error`` where Python does
            not accept it, ``source_identifier`` where a name is not plain ASCII.
    """
    _check_nesting(source)
    try:
        tree = syntax_tree(source, "candidate.py")
        _check_tree(tree)
        # Finds what the parser alone does not: `return` outside a function, an argument named twice, bad scopes.
        compile(source, "candidate.py", "exec", dont_inherit=True)
    except SyntaxError as error:
        where = f"Line {error.lineno}: " if error.lineno else ""
        raise SourceError(f"{where}{error.msg}. Mend the syntax and submit again.", line=error.lineno,
                          code="syntax_error") from error
    except (MemoryError, RecursionError) as error:
        raise SourceError("The source is nested too deeply for Python's parser. Split it into statements.",
                          code="source_nesting") from error
    except (ValueError, OverflowError) as error:
        raise SourceError(f"Python cannot read this source: {error}. Use ordinary literals.",
                          code="syntax_error") from error
    _check_identifiers(source)
    return tree


def _check_characters(text: str) -> None:
    if text.isascii() and not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text):
        return
    line = 1
    for character in text:
        if character == "\n":
            line += 1
        elif character == "\t":
            raise SourceError(f"Line {line} contains a tab. Indent with spaces.", line=line, code="source_characters")
        elif character == "\r":
            raise SourceError(f"Line {line} contains a carriage return. Use LF line ends only.", line=line,
                              code="source_characters")
        elif ord(character) in _INVISIBLE or unicodedata.category(character) in _REFUSED_CATEGORIES:
            name = unicodedata.name(character, "control or unassigned character")
            raise SourceError(f"Line {line} contains U+{ord(character):04X} ({name.lower()}), which a reader cannot "
                              "see. Delete it.", line=line, code="source_characters")


def _check_text(value: str, line: int) -> None:
    """Escapes write in a text what the file may not contain: it would read differently where it is shown, and a lone
    surrogate cannot be written at all. Line feeds and tabs are fine."""
    if value.isascii() and value.isprintable():
        return
    for character in value:
        if character not in "\n\t" and (ord(character) in _INVISIBLE
                                        or unicodedata.category(character) in _REFUSED_CATEGORIES):
            raise SourceError(f"Line {line}: a text contains U+{ord(character):04X}, written as an escape, which a "
                              "reader cannot see. Take it out.", line=line, code="source_characters")


def _check_nesting(text: str) -> None:
    """Cap brackets, indentation, line length and operator chains on the raw text.

    Brackets inside strings and comments count as well: simple, and honest code stays far below the cap either way
    because a mismatch only ever makes the count relative to its own line wrong by a few.
    """
    depth = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if len(line) > MAX_LINE:
            raise SourceError(f"Line {number} has {len(line):,} characters; at most {MAX_LINE:,} are read. "
                              "Break the line.", line=number, code="source_nesting")
        indent = len(line) - len(line.lstrip(" "))
        if depth == 0 and indent > 4 * MAX_INDENT_LEVELS and line.strip():
            raise SourceError(f"Line {number} is indented by {indent} columns. Move inner blocks into functions.",
                              line=number, code="source_nesting")
        for character in line.partition("#")[0]:
            if character in "([{":
                depth += 1
                if depth > MAX_BRACKETS:
                    raise SourceError(f"Line {number}: brackets are nested more than {MAX_BRACKETS} deep. "
                                      "Use intermediate names.", line=number, code="source_nesting")
            elif character in ")]}" and depth:
                depth -= 1
    chain = _RUN_OF_OPERATORS.search(text)
    if chain:
        number = text.count("\n", 0, chain.start()) + 1
        raise SourceError(f"Line {number} chains too many operators. Use intermediate names.", line=number,
                          code="source_nesting")


def _check_tree(tree: ast.AST) -> None:
    """Cap depth and node count without recursion; texts are held to what the file itself is held to."""
    count = 0
    level = [tree]
    for _ in range(MAX_DEPTH):
        below: list[ast.AST] = []
        for node in level:
            below += children(node)
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                _check_text(node.value, node.lineno)
        count += len(level)
        if count > MAX_NODES:
            raise SourceError(f"The source has more than {MAX_NODES:,} syntax nodes. Shorten it.",
                              code="source_too_large")
        if not below:
            return
        level = below
    line = getattr(level[0], "lineno", None)
    raise SourceError(f"The source is nested more than {MAX_DEPTH} levels deep. Split long expressions into "
                      "statements.", line=line, code="source_nesting")


def _check_identifiers(source: str) -> None:
    """Names are plain ASCII: Python folds look-alikes (a full-width ``exec`` runs ``exec``), readers do not."""
    if source.isascii():
        return
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in (tokenize.NAME, tokenize.ERRORTOKEN, tokenize.OP) and not token.string.isascii():
                raise SourceError(f"Line {token.start[0]}: the name {token.string!r} is not plain ASCII. Rename it.",
                                  line=token.start[0], code="source_identifier")
    except (tokenize.TokenError, SyntaxError, ValueError) as error:
        raise SourceError("The source cannot be split into tokens. Remove unusual characters outside strings.",
                          code="source_identifier") from error
