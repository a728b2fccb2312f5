# SPDX-License-Identifier: Apache-2.0
"""The mutations of tools/mutate: one small change to the code of a C++ line in clang-format style, never to its strings."""
import re

# Lines without effect at run time, or that are only for readers or the compiler.
PASSED_OVER = re.compile(r"^\s*(#|//|using |namespace |template|static_assert|friend |enum |struct |class |public:|private:|"
                         r"virtual |extern |KILN_)|= (default|delete|0);|\boperator\b")
NOT_A_CALL = re.compile(r"^\s*(return|if|else|for|while|do|switch|case|default|throw|delete|const|auto|constexpr|static|"
                        r"break|continue|goto|explicit)\b")
CALL = re.compile(r"^\s*(\(void\))?[\w:.>*\-\[\]()]+\(.*\);$")
ASSIGNMENT = re.compile(r"^\s*[\w.\->\[\]*]+ [-+|&]?= [^=].*;$|^\s*(\+\+|--)[\w.\->]+;$")
EARLY_RETURN = re.compile(r"^\s*if \(.*\) return\b.*;$")
ERROR = re.compile(r"return (failure\(.*\)|[\w.\->]*error\(\)|corrupt\(.*\)|error);$")
SWAPS = [  # name, from, to; binary operators have a space on both sides, templates and references do not
    ("comparison flipped", " < ", " <= "), ("comparison flipped", " <= ", " < "), ("comparison flipped", " > ", " >= "),
    ("comparison flipped", " >= ", " > "), ("comparison flipped", " == ", " != "), ("comparison flipped", " != ", " == "),
    ("and for or", " && ", " || "), ("or for and", " || ", " && "), ("sign flipped", " + ", " - "),
    ("sign flipped", " - ", " + "), ("sign flipped", " += ", " -= "), ("sign flipped", " -= ", " += "),
]


def masked(text):
    """Returns the text with comments and literals replaced by blanks, with the same length and offsets."""
    def blank(found):
        return re.sub(r"[^\n]", " ", found[0])

    pattern = re.compile(r'R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'',
                         re.S)
    return pattern.sub(lambda found: blank(found) if found[0][0] == "/" else '"' + blank(found)[2:] + '"', text)


def mutations_of(text):
    """Yields (line number, description, new line) of every mutation of a source."""
    for number, (line, code) in enumerate(zip(text.split("\n"), masked(text).split("\n")), 1):
        if not code.strip() or PASSED_OVER.search(code):
            continue
        for what, changed in changes(line, code):
            if changed != line:
                yield number, what, changed


def changes(line, code):
    yield from swaps(line, code)
    yield from constants(line, code)
    yield from whole_statements(line, code)
    yield from conditions(line, code)


def swaps(line, code):
    for what, old, new in SWAPS:
        if what == "sign flipped" and '"' in code:
            continue  # concatenation of strings
        for found in re.finditer(re.escape(old), code):
            yield what, line[:found.start()] + new + line[found.end():]
    for found in re.finditer(r"\b(true|false)\b", code):
        other = "false" if found[0] == "true" else "true"
        yield f"{found[0]} is {other}", line[:found.start()] + other + line[found.end():]


def constants(line, code):
    for found in re.finditer(r"(?<![\w.'])\d+(?![\w.'])", code):
        octal = len(found[0]) > 1 and found[0].startswith("0")
        value = int(found[0], 8 if octal else 10)
        for changed in [value + 1] + ([value - 1] if value > 0 else []):
            other = f"0{changed:o}" if octal else str(changed)
            yield f"{found[0]} is {other}", line[:found.start()] + other + line[found.end():]


def balanced(code):
    return code.count("(") == code.count(")") and code.count("{") == code.count("}")


def whole_statements(line, code):
    indent = line[:len(line) - len(line.lstrip())]
    if balanced(code) and not NOT_A_CALL.match(code) and (CALL.match(code) or ASSIGNMENT.match(code)):
        yield "statement deleted", indent + ";"
    if balanced(code) and EARLY_RETURN.match(code):
        yield "early return removed", indent + ";"
    if found := ERROR.search(code):
        if balanced(found[0]):
            yield "error made success", line[:found.start()] + "return {};"


def conditions(line, code):
    found = re.match(r"^(\s*(?:\} else )?if \()(.*)$", code)
    if not found:
        return
    depth, start = 1, found.end(1)
    for at in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            break
    else:
        return
    begin = max(start, code.rfind("; ", start, at) + 2) if "; " in code[start:at] else start
    if re.match(r"(const |auto)", code[begin:]):
        return  # a declaration is not a condition that can be inverted
    yield "condition negated", f"{line[:begin]}!({line[begin:at]}){line[at:]}"
