# SPDX-License-Identifier: Apache-2.0
"""Checks the blocks of each language except console: compiled, parsed, or not code."""
import configparser
import json
import re
import subprocess
import tomllib

from .pages import Mistake

# Not code: grammars, layouts, queries for programs that are not installed here.
TEXT = {"", "text", "grammar", "sql"}
INCLUDE = re.compile(r"^\s*#\s*include\b.*$", re.M)
ERROR = re.compile(r"^(\S+\.md):(\d+):.*?(?:error|warning): (.*)$", re.M)


def run(arguments, **more):
    return subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
                          timeout=120, errors="replace", **more)


def parse_json(_, block, text, __):
    try:
        json.loads(text)
    except ValueError:
        for number, line in enumerate(text.splitlines()):
            try:
                json.loads(line)
            except ValueError as error:
                raise Mistake(block.page, block.line + number, f"invalid JSON: neither one value nor one value per line: {error}")


def parse_toml(_, block, text, __):
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Mistake(block.page, block.line, f"invalid TOML: {error}")


def parse_yaml(workspace, block, text, _):
    ran = run([workspace.python, "-c", "import sys, yaml; list(yaml.safe_load_all(sys.argv[1]))", text])
    if ran.returncode:
        raise Mistake(block.page, block.line, "invalid YAML", ran.stdout)


def parse_ini(_, block, text, __):
    try:
        configparser.ConfigParser().read_string(text)
    except configparser.Error as error:
        raise Mistake(block.page, block.line, f"invalid INI file: {error}")


def check_shell(_, block, text, __):
    ran = run(["bash", "-n", "-c", text])
    if ran.returncode:
        raise Mistake(block.page, block.line, "invalid shell syntax", ran.stdout)


def check_nginx(workspace, block, text, folder):
    """Checks a block with nginx -t. A block without a server is put into one; file names refer to files of the page."""
    server = text if re.search(r"^\s*server\s*\{", text, re.M) else f"server {{ listen 8080; root {folder};\n{text}\n}}"
    for name in ("cache.pem", "cache.key"):
        server = server.replace(f"/etc/nginx/{name}", str(folder / name))
    server = server.replace("/etc/nginx/", f"{workspace.root}/examples/nginx/").replace("/srv/kiln", str(folder))
    run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
         "/CN=cache.example", "-keyout", str(folder / "cache.key"), "-out", str(folder / "cache.pem")])
    file = folder / "nginx.conf"
    own = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in ("fastcgi", "uwsgi", "scgi", "proxy"))
    file.write_text(f"pid {folder}/pid; error_log stderr;\nevents {{}}\n"
                    f"http {{\n{own}{server}\n}}\n", encoding="utf-8")
    ran = run(["nginx", "-t", "-c", str(file)])
    if ran.returncode:
        raise Mistake(block.page, block.line, "nginx rejects this", ran.stdout)


def check_promql(_, block, text, folder):
    """Checks each expression, which can continue on indented lines, as a rule with promtool."""
    expressions = re.split(r"\n(?=\S)", text.strip())
    rules = [{"record": f"docs:block:{at}", "expr": each} for at, each in enumerate(expressions)]
    file = folder / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "docs", "rules": rules}]}), encoding="utf-8")
    ran = run(["promtool", "check", "rules", str(file)])
    if ran.returncode:
        raise Mistake(block.page, block.line, "promtool rejects this", ran.stdout)


PARSERS = {"json": parse_json, "toml": parse_toml, "yaml": parse_yaml, "ini": parse_ini, "sh": check_shell,
           "bash": check_shell, "nginx": check_nginx, "promql": check_promql}


def is_program(block):
    return re.search(r"^\s*(?:int|auto)\s+main\s*\(", block.text, re.M) is not None


def in_prelude(workspace, block, marker="@block@"):
    """Returns (includes, the rest) of a fragment within its prelude."""
    prelude = marker + "\n"
    if name := block.notes.get("prelude"):
        file = workspace.preludes / f"{name}.cpp"
        if not file.exists():
            known = ", ".join(sorted(each.stem for each in workspace.preludes.glob("*.cpp")))
            raise Mistake(block.page, block.line, f"unknown prelude '{name}'; known preludes: {known}")
        prelude = file.read_text(encoding="utf-8")
    includes = INCLUDE.findall(prelude) + INCLUDE.findall(block.text)
    body = INCLUDE.sub("", block.text)
    rest = INCLUDE.sub("", prelude).replace(marker, f'\n#line {block.line} "{block.page}"\n{body}')
    return includes, rest


def fragment_source(workspace, blocks):
    """Returns one source for all blocks, because the compiler spends most of its time reading the headers."""
    includes, bodies = {}, []
    for number, block in enumerate(blocks):
        wanted, body = in_prelude(workspace, block)
        includes.update(dict.fromkeys(wanted))
        bodies.append(f"namespace block_{number} {{\n{body}\n}}\n")
    return "\n".join(includes) + "\n" + "".join(bodies)


def compiler_mistake(block, ran):
    """Returns a mistake with the line of the page that the compiler reports."""
    if found := ERROR.search(ran.stdout):
        line = min(int(found[2]), block.line + len(block.lines) - 1)  # an unclosed block is reported after its end
        return Mistake(block.page, line, f"this does not compile: {found[3]}", ran.stdout)
    return Mistake(block.page, block.line, "this does not compile", ran.stdout)


def fragment_mistakes(workspace, blocks, folder):
    if not blocks:
        return []
    file = folder / "fragments.cpp"
    file.write_text(fragment_source(workspace, blocks), encoding="utf-8")
    ran = run([*workspace.cpp, "-fsyntax-only", "-w", str(file)])
    if ran.returncode == 0:
        return []
    if len(blocks) == 1:
        return [compiler_mistake(blocks[0], ran)]
    # The compiler reports a missing brace in the next block. Compile each block alone to find the right one.
    alone = [mistake for block in blocks for mistake in fragment_mistakes(workspace, [block], folder)]
    return alone or [compiler_mistake(blocks[0], ran)]


def check_program(workspace, block, folder, driver=""):
    """Compiles and runs a complete program; C with the strictest standard that the header supports."""
    c = block.language == "c"
    source, program = folder / ("program.c" if c else "program.cpp"), folder / "program"
    source.write_text(f'#line {block.line} "{block.page}"\n{block.text}', encoding="utf-8")
    arguments = [*(workspace.c if c else workspace.cpp), str(source)]
    ran = run([*arguments, *workspace.libraries, "-o", str(program)] if is_program(block) else [*arguments, "-fsyntax-only"])
    if ran.returncode:
        raise compiler_mistake(block, ran)
    if not is_program(block):
        return
    home = folder / "home"
    home.mkdir(exist_ok=True)
    ran = run([str(program)], cwd=folder, env=workspace.environment(home, driver))
    if ran.returncode:
        raise Mistake(block.page, block.line, f"this program exited with {ran.returncode}", ran.stdout)


PYTHON_RUNNER = """
import json, sys
names = {"__name__": "__main__"}
for page, line, text in json.load(open(sys.argv[1])):
    exec(compile("\\n" * (line - 1) + text, page, "exec"), names)
"""


def check_python(page, blocks, shells, folder):
    """Runs the Python blocks of a page in one interpreter, in the page's directory, after its console blocks."""
    texts, runner = folder / "blocks.json", folder / "run_blocks.py"
    texts.write_text(json.dumps([(block.page, block.line, page.read_as_meant(block.text)) for block in blocks]), encoding="utf-8")
    runner.write_text(PYTHON_RUNNER, encoding="utf-8")
    code, printed = shells.shell("").run(f"python3 '{runner}' '{texts}'")
    if code != 0:
        at = re.findall(rf'File "{re.escape(page.name)}", line (\d+)', printed)
        raise Mistake(page.name, int(at[-1]) if at else blocks[0].line, "this Python code fails", printed)
