"""What is done with a block of each language but console's: compiled, parsed, or known to be no code."""
import configparser
import json
import re
import subprocess
import tomllib

from .pages import Mistake

# No code: grammars, layouts, queries for programs that are not here.
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
                raise Mistake(block.page, block.line + number, f"this is neither one JSON value nor one on each line: {error}")


def parse_toml(_, block, text, __):
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Mistake(block.page, block.line, f"this is no TOML: {error}")


def parse_yaml(workshop, block, text, _):
    ran = run([workshop.python, "-c", "import sys, yaml; list(yaml.safe_load_all(sys.argv[1]))", text])
    if ran.returncode:
        raise Mistake(block.page, block.line, "this is no YAML", ran.stdout)


def parse_ini(_, block, text, __):
    try:
        configparser.ConfigParser().read_string(text)
    except configparser.Error as error:
        raise Mistake(block.page, block.line, f"this is no INI file: {error}")


def check_shell(_, block, text, __):
    ran = run(["bash", "-n", "-c", text])
    if ran.returncode:
        raise Mistake(block.page, block.line, "bash does not understand this", ran.stdout)


def check_nginx(workshop, block, text, folder):
    """The server's own opinion. A block without a server stands in one; names of files lead to those of the page."""
    server = text if re.search(r"^\s*server\s*\{", text, re.M) else f"server {{ listen 8080; root {folder};\n{text}\n}}"
    for name in ("cache.pem", "cache.key"):
        server = server.replace(f"/etc/nginx/{name}", str(folder / name))
    server = server.replace("/etc/nginx/", f"{workshop.root}/docs/").replace("/srv/kiln", str(folder))
    run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
         "/CN=cache.example", "-keyout", str(folder / "cache.key"), "-out", str(folder / "cache.pem")])
    file = folder / "nginx.conf"
    own = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in ("fastcgi", "uwsgi", "scgi", "proxy"))
    file.write_text(f"pid {folder}/pid; error_log stderr;\nevents {{}}\n"
                    f"http {{\n{own}{server}\n}}\n", encoding="utf-8")
    ran = run(["nginx", "-t", "-c", str(file)])
    if ran.returncode:
        raise Mistake(block.page, block.line, "nginx does not take this", ran.stdout)


def check_promql(_, block, text, folder):
    """Each expression, which may go on in lines that are indented, as a rule for promtool."""
    expressions = re.split(r"\n(?=\S)", text.strip())
    rules = [{"record": f"docs:block:{at}", "expr": each} for at, each in enumerate(expressions)]
    file = folder / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "docs", "rules": rules}]}), encoding="utf-8")
    ran = run(["promtool", "check", "rules", str(file)])
    if ran.returncode:
        raise Mistake(block.page, block.line, "promtool does not take this", ran.stdout)


PARSERS = {"json": parse_json, "toml": parse_toml, "yaml": parse_yaml, "ini": parse_ini, "sh": check_shell,
           "bash": check_shell, "nginx": check_nginx, "promql": check_promql}


def is_program(block):
    return re.search(r"^\s*(?:int|auto)\s+main\s*\(", block.text, re.M) is not None


def in_prelude(workshop, block, marker="@block@"):
    """(includes, the rest) of a fragment within its prelude."""
    prelude = marker + "\n"
    if name := block.notes.get("prelude"):
        file = workshop.preludes / f"{name}.cpp"
        if not file.exists():
            known = ", ".join(sorted(each.stem for each in workshop.preludes.glob("*.cpp")))
            raise Mistake(block.page, block.line, f"there is no prelude '{name}'; there are: {known}")
        prelude = file.read_text(encoding="utf-8")
    includes = INCLUDE.findall(prelude) + INCLUDE.findall(block.text)
    body = INCLUDE.sub("", block.text)
    rest = INCLUDE.sub("", prelude).replace(marker, f'\n#line {block.line} "{block.page}"\n{body}')
    return includes, rest


def fragment_source(workshop, blocks):
    """One source for all of them: most of what a compiler does for a fragment is reading the headers."""
    includes, bodies = {}, []
    for number, block in enumerate(blocks):
        wanted, body = in_prelude(workshop, block)
        includes.update(dict.fromkeys(wanted))
        bodies.append(f"namespace block_{number} {{\n{body}\n}}\n")
    return "\n".join(includes) + "\n" + "".join(bodies)


def compiler_mistake(block, ran):
    """Names the line of the page that the compiler complains of."""
    if found := ERROR.search(ran.stdout):
        line = min(int(found[2]), block.line + len(block.lines) - 1)  # a block that does not end is complained of behind it
        return Mistake(block.page, line, f"this does not compile: {found[3]}", ran.stdout)
    return Mistake(block.page, block.line, "this does not compile", ran.stdout)


def fragment_mistakes(workshop, blocks, folder):
    if not blocks:
        return []
    file = folder / "fragments.cpp"
    file.write_text(fragment_source(workshop, blocks), encoding="utf-8")
    ran = run([*workshop.cpp, "-fsyntax-only", "-w", str(file)])
    if ran.returncode == 0:
        return []
    if len(blocks) == 1:
        return [compiler_mistake(blocks[0], ran)]
    # A brace that is missing in one is complained of in the next: who is it?
    alone = [mistake for block in blocks for mistake in fragment_mistakes(workshop, [block], folder)]
    return alone or [compiler_mistake(blocks[0], ran)]


def check_program(workshop, block, folder):
    """Compiles and runs a whole program; C in the strictest standard that the header promises."""
    c = block.language == "c"
    source, program = folder / ("program.c" if c else "program.cpp"), folder / "program"
    source.write_text(f'#line {block.line} "{block.page}"\n{block.text}', encoding="utf-8")
    arguments = [*(workshop.c if c else workshop.cpp), str(source)]
    ran = run([*arguments, *workshop.libraries, "-o", str(program)] if is_program(block) else [*arguments, "-fsyntax-only"])
    if ran.returncode:
        raise compiler_mistake(block, ran)
    if not is_program(block):
        return
    home = folder / "home"
    home.mkdir(exist_ok=True)
    ran = run([str(program)], cwd=folder, env=workshop.environment(home))
    if ran.returncode:
        raise Mistake(block.page, block.line, f"this program ends with {ran.returncode}", ran.stdout)


PYTHON_RUNNER = """
import json, sys
names = {"__name__": "__main__"}
for page, line, text in json.load(open(sys.argv[1])):
    exec(compile("\\n" * (line - 1) + text, page, "exec"), names)
"""


def check_python(page, blocks, shells, folder):
    """A page's blocks, one after another in one interpreter, in the page's folder after what its console did."""
    texts, runner = folder / "blocks.json", folder / "run_blocks.py"
    texts.write_text(json.dumps([(block.page, block.line, page.read_as_meant(block.text)) for block in blocks]), encoding="utf-8")
    runner.write_text(PYTHON_RUNNER, encoding="utf-8")
    code, printed = shells.shell("").run(f"python3 '{runner}' '{texts}'")
    if code != 0:
        at = re.findall(rf'File "{re.escape(page.name)}", line (\d+)', printed)
        raise Mistake(page.name, int(at[-1]) if at else blocks[0].line, "this Python fails", printed)
