# SPDX-License-Identifier: Apache-2.0
"""The files of deploy/: manifests match their schemas, metrics and queries match the library, and the servers, settings and commands
that the files name work together on this machine, without containers.

    deploy_test.py SOURCE_DIR BUILD_DIR [unittest arguments]
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Any

import yaml

SOURCE = pathlib.Path(sys.argv[1])
KILN = pathlib.Path(sys.argv[2]) / "bin" / "kiln"
DEPLOY = SOURCE / "deploy"
KUBERNETES = ("1.31", "1.33")  # the first with image volumes, and the first with them in beta
ARCHITECTURE = "sm_90"


def documents(path: pathlib.Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


def kubernetes() -> dict[tuple[str, str], dict[str, Any]]:
    """Returns all objects of deploy/kubernetes by kind and name."""
    return {
        (each["kind"], each["metadata"]["name"]): each
        for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
        for each in documents(path)
    }


def needs(program: str) -> str:
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if found is None:
        raise unittest.SkipTest(f"{program} is not installed (tools/setup.sh installs it)")
    return found


def call(*command: str | pathlib.Path, code: int = 0, **variables: str) -> str:
    environment = {"PATH": f"{KILN.parent}:/usr/bin:/bin", "LC_ALL": "C.UTF-8", **variables}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    text = done.stdout + done.stderr
    assert done.returncode == code, f"{command} ended with {done.returncode}, expected {code}\n{text}"
    return text


def without_comments(text: str) -> list[str]:
    return [line for line in (line.split("#")[0].rstrip() for line in text.splitlines()) if line]


class Manifests(unittest.TestCase):
    def test_kubernetes_objects_match_the_schemas(self) -> None:
        try:
            import kubernetes_validate
        except ImportError:
            self.skipTest("kubernetes-validate is not installed (tools/setup.sh installs it)")
        objects = kubernetes()
        self.assertGreaterEqual(len(objects), 8)
        known = set(kubernetes_validate.major_minor_versions()) if hasattr(kubernetes_validate, "major_minor_versions") else None
        versions = [version for version in KUBERNETES if known is None or version in known] or [kubernetes_validate.latest_version()]
        for version in versions:
            for name, each in objects.items():
                with self.subTest(version=version, name=name):
                    kubernetes_validate.validate(each, version, strict=True)
            wrong = json.loads(json.dumps(objects["Deployment", "program"]))
            wrong["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
            with self.assertRaises(kubernetes_validate.ValidationError):
                kubernetes_validate.validate(wrong, version, strict=True)
        print(f"\nkubernetes-validate: {len(objects)} objects, Kubernetes {', '.join(versions)}")

    def test_caches_are_below_the_volumes_that_every_user_can_write_to(self) -> None:
        pod = kubernetes()["Deployment", "program"]["spec"]["template"]["spec"]
        shared = {volume["name"] for volume in pod["volumes"] if "emptyDir" in volume}
        for container in pod["initContainers"] + pod["containers"]:
            (cache,) = [pathlib.Path(each["value"]) for each in container["env"] if each["name"] == "KILN_CACHE_DIR"]
            mounts = [pathlib.Path(each["mountPath"]) for each in container["volumeMounts"] if each["name"] in shared]
            self.assertNotIn(cache, mounts, "kiln does not use a directory that other users can write to")
            self.assertTrue(set(mounts) & set(cache.parents), f"{cache} is not on a volume")

    def test_compose_file_and_action_match_their_schemas(self) -> None:
        try:
            import check_jsonschema  # noqa: F401
        except ImportError:
            self.skipTest("check-jsonschema is not installed (tools/setup.sh installs it)")
        files = {
            "vendor.compose-spec": "deploy/compose.yaml",
            "vendor.github-actions": "deploy/ci/kiln-cache/action.yml",
        }
        for schema, name in files.items():
            checker = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
            call(*checker, SOURCE / name, PYTHONPATH=os.pathsep.join(sys.path))

    def test_development_container_is_json_with_comments(self) -> None:
        text = (SOURCE / ".devcontainer/devcontainer.json").read_text()
        parsed = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
        self.assertIn("tools/setup.sh", parsed["onCreateCommand"])

    def test_objects_refer_to_objects_and_files_that_exist(self) -> None:
        objects = kubernetes()
        for (kind, name), each in objects.items():
            if kind == "Service":
                self.assertIn(("Deployment", name), objects)
                labels = objects["Deployment", name]["spec"]["template"]["metadata"]["labels"]
                self.assertLessEqual(each["spec"]["selector"].items(), labels.items())
            if kind != "Deployment":
                continue
            pod = each["spec"]["template"]["spec"]
            self.assertTrue(pod["securityContext"]["runAsNonRoot"])
            volumes = {volume["name"]: volume for volume in pod["volumes"]} if "volumes" in pod else {}
            for container in pod["containers"] + pod.get("initContainers", []):
                for mount in container.get("volumeMounts", []):
                    self.assertIn(mount["name"], volumes)
            for volume in volumes.values():
                if "configMap" in volume:
                    self.assertIn(("ConfigMap", volume["configMap"]["name"]), objects)
        (compose,) = documents(DEPLOY / "compose.yaml")
        for mount in compose["services"]["store"]["volumes"]:
            if mount.startswith("."):
                self.assertTrue((DEPLOY / mount.split(":")[0]).is_file(), mount)
        self.assertTrue((SOURCE / compose["services"]["warm"]["build"]["dockerfile"]).is_file())
        # Compose mounts secrets that are files as they are: it ignores an owner and a mode.
        self.assertEqual(compose["services"]["warm"]["secrets"], list(compose["secrets"]))
        user = re.search(r"^USER (\d+)", (DEPLOY / "container/Containerfile").read_text(), re.MULTILINE)
        assert user
        self.assertIn(f"sudo chown {user[1]} host.key trust.toml", (DEPLOY / "compose.yaml").read_text())

    def test_config_map_of_the_store_has_the_files_of_this_tree(self) -> None:
        data = kubernetes()["ConfigMap", "kiln-store"]["data"]
        for name, path in {"default.conf": DEPLOY / "nginx.conf", "nginx-kiln.conf": SOURCE / "examples/nginx/nginx-kiln.conf"}.items():
            self.assertEqual(without_comments(data[name]), without_comments(path.read_text()), name)


class Monitoring(unittest.TestCase):
    def test_dashboard_queries_are_valid_and_use_exported_metrics(self) -> None:
        dashboard = json.loads((DEPLOY / "monitoring/grafana-dashboard.json").read_text())
        source = "".join(path.read_text() for path in (SOURCE / "src/events").glob("*.cpp"))
        exported = set(re.findall(r"kiln_[a-z_]+", source))
        queries = [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel["targets"]]
        self.assertGreaterEqual(len(queries), 20)
        alerts = yaml.safe_load((DEPLOY / "monitoring/alerts.yml").read_text())
        used = queries + [(rule["alert"], rule["expr"]) for rule in alerts["groups"][0]["rules"]]
        for title, text in used:
            for metric in re.findall(r"kiln_[a-z_]+", text):
                self.assertIn(re.sub(r"_(bucket|sum|count)$", "", metric), exported, f"{title}: no such metric")
        shown = {re.sub(r"_(bucket|sum|count)$", "", name) for _, text in queries for name in re.findall(r"kiln_[a-z_]+", text)}
        metrics = {name for name in exported if re.search(r"_(total|seconds)$|^kiln_(units|units_submitted|remote_up)$", name)}
        self.assertEqual(metrics - shown, set(), "the dashboard does not show these metrics")
        kinds = {kind for _, text in used for found in re.findall(r'kind=~?"([^"]*)"', text) for kind in found.split("|")}
        names = set(re.findall(r'"([a-z_]+)"', source + (SOURCE / "include/kiln/event.hpp").read_text()))
        self.assertLessEqual(kinds, names, "these kinds of events do not exist")
        self.check_rules([text for _, text in queries])

    def check_rules(self, queries: list[str]) -> None:
        promtool = needs("promtool")
        # Grafana replaces its variables before it sends a query.
        replaced = [text.replace("$__rate_interval", "5m").replace("$job", ".*").replace("$instance", ".*") for text in queries]
        self.assertFalse([text for text in replaced if "$" in text], "unknown variables")
        rules = [{"record": f"panel:query:{number}", "expr": text} for number, text in enumerate(replaced)]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rules.yml"
            path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
            self.assertIn(f"{len(rules)} rules found", call(promtool, "check", "rules", path))
            rules[0]["expr"] += " by"
            path.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
            call(promtool, "check", "rules", path, code=1)

    def test_alerts_fire_and_only_then(self) -> None:
        print("\n" + call(needs("promtool"), "test", "rules", DEPLOY / "monitoring/alerts_test.yml"))


class Servers:
    """nginx and Redis as compose.yaml starts them, on free ports and below `place`."""

    def __init__(self, place: pathlib.Path) -> None:
        (compose,) = documents(DEPLOY / "compose.yaml")
        self.processes: list[subprocess.Popen[bytes]] = []
        self.ports = [free_port(), free_port()]
        root = place / "store"
        for name in ("ac", "cas", "incoming"):
            (root / name).mkdir(parents=True)
        block = (DEPLOY / "nginx.conf").read_text()
        for text, replacement in {
            "listen 8080": f"listen 127.0.0.1:{self.ports[0]}",
            "/srv/kiln": str(root),
            "/etc/nginx/nginx-kiln.conf": str(SOURCE / "examples/nginx/nginx-kiln.conf"),
        }.items():
            assert text in block, text
            block = block.replace(text, replacement)
        paths = "".join(f"{kind}_temp_path {place}/{kind};\n" for kind in ("fastcgi", "uwsgi", "scgi", "proxy"))
        user = f"user {os.environ.get('USER', 'root')};\n" if os.getuid() == 0 else ""
        (place / "nginx.conf").write_text(
            f"{user}pid {place}/pid; error_log {place}/errors; daemon off; worker_processes 1;\nevents {{}}\n"
            f"http {{ access_log off;\n{paths}{block} }}\n"
        )
        self.start(place, needs("nginx"), "-c", str(place / "nginx.conf"))
        redis = [needs("redis-server"), *compose["services"]["leases"]["command"][1:]]
        self.start(place, *redis, "--bind", "127.0.0.1", "--port", str(self.ports[1]), "--dir", str(place))
        for port in self.ports:
            wait_for(port)

    def start(self, place: pathlib.Path, *command: str) -> None:
        with (place / f"{pathlib.PurePath(command[0]).name}.log").open("wb") as log:
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL))

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()
            process.wait(30)

    def read_as(self, text: str) -> str:
        """Replaces the names of the servers by their addresses here."""
        text = re.sub(r"http://(kiln-)?store:8080", f"http://127.0.0.1:{self.ports[0]}", text)
        return re.sub(r"redis://(kiln-)?leases:6379", f"redis://127.0.0.1:{self.ports[1]}", text)


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def wait_for(port: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"no server on port {port}")


class Together(unittest.TestCase):
    place: pathlib.Path
    servers: Servers

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.place = pathlib.Path(folder.name)
        cls.servers = Servers(cls.place)
        cls.addClassCleanup(cls.servers.stop)
        project = cls.place / "project"
        project.mkdir()
        (project / "k.cu").write_text('extern "C" __global__ void scale(float* x) { *x *= 2; }\n')
        (project / "kiln.toml").write_text(
            f'namespace = "acme/vision"\narchitectures = ["{ARCHITECTURE}"]\n[[unit]]\nsource = "k.cu"\nentries = ["scale"]\n'
        )
        # The key and the policy, by the command that the head of the file states.
        found = re.search(r"^#   (kiln key generate .*)$", (DEPLOY / "compose.yaml").read_text(), re.MULTILINE)
        assert found
        call("bash", "-euc", f"cd '{cls.place}' && {found[1]}", HOME=str(cls.place))

    def settings(self, cache: str) -> dict[str, str]:
        return {"HOME": str(self.place), "KILN_CACHE_DIR": str(self.place / cache)}

    def read_as(self, text: str, kernels: str = "none") -> str:
        """Replaces the paths of containers by those of this test."""
        for path, replacement in {
            "/opt/program": self.place / "project",
            "/project": self.place / "project",
            "/mnt/kernels": self.place / kernels,
            "/etc/kiln": self.place,
            "/run/secrets/host_key": self.place / "host.key",
        }.items():
            text = re.sub(f"(?<![\\w/]){path}\\b", str(replacement), text)
        return self.servers.read_as(text)

    def test_compose_commands_publish_and_other_hosts_fetch(self) -> None:
        (compose,) = documents(DEPLOY / "compose.yaml")
        warm = compose["services"]["warm"]
        variables = {name: self.read_as(text) for name, text in warm["environment"].items()}
        command = [self.read_as(word) for word in warm["command"]]
        first = call(KILN, *command, **self.settings("publisher"), **variables)
        self.assertRegex(first, "1 of 1 .*1 compiled; 1 published")
        reader = {name: text for name, text in variables.items() if name in ("KILN_REMOTE", "KILN_LEASE", "KILN_TRUST")}
        second = call(KILN, *command, KILN_COMPILE="never", **self.settings("reader"), **reader)
        self.assertRegex(second, "1 of 1 .*1 from remote")

    def test_kubernetes_pod_is_ready_only_with_its_kernels(self) -> None:
        objects = kubernetes()
        pod = objects["Deployment", "program"]["spec"]["template"]["spec"]
        probe = pod["containers"][0]["readinessProbe"]["exec"]["command"]
        data = objects["ConfigMap", "kiln"]["data"]
        self.assertIn("namespaces", data["trust.toml"])
        (self.place / "bad.toml").write_text(data["trust.toml"])
        call(KILN, "config", "show", KILN_TRUST=str(self.place / "bad.toml"), HOME=str(self.place))
        config = self.place / "config.toml"

        def probed(code: int, kernels: str) -> str:
            # The store is empty for this test: only the bundle can make the pod ready.
            text = self.read_as(data["config.toml"], kernels).replace('remote.url = "http://', 'remote.url = "http://127.0.0.1:9/')
            config.write_text(text)
            command = [self.read_as(word, kernels) for word in probe]
            return call(*command, code=code, KILN_CONFIG=str(config), **self.settings("pod"))

        self.assertIn("KILN_COMPILE=never", probe)
        probed(4, "absent")
        call(
            KILN, "bundle", "create", self.place / "project/kiln.toml", "-o", self.place / "app.kiln",
            "--key", self.place / "host.key", **self.settings("builder"),
        )  # fmt: skip
        # A node mounts the layers of the image as a directory.
        call(KILN, "bundle", "oci", self.place / "app.kiln", "-o", self.place / "layout")
        mounted = self.place / "mounted"
        mounted.mkdir()
        for blob in sorted((self.place / "layout/blobs/sha256").iterdir()):
            subprocess.run(["tar", "-xf", blob, "-C", mounted], stderr=subprocess.DEVNULL, check=False)
        probed(0, "mounted")

    def test_settings_of_the_config_map_are_known(self) -> None:
        config = self.place / "known.toml"
        config.write_text(self.read_as(kubernetes()["ConfigMap", "kiln"]["data"]["config.toml"], "none"))
        shown = json.loads(call(KILN, "config", "show", "--json", KILN_CONFIG=str(config), HOME=str(self.place)))
        self.assertEqual(shown.get("warnings", []), [])

    def test_action_sets_the_cache_directory(self) -> None:
        action = yaml.safe_load((DEPLOY / "ci/kiln-cache/action.yml").read_text())
        step = action["runs"]["steps"][0]
        result = self.place / "github_env"
        cache = self.place / "ci-cache"
        call("bash", "-euo", "pipefail", "-c", step["run"], GITHUB_ENV=str(result), CACHE_PATH=str(cache), MAX_SIZE="500M")
        variables = dict(line.split("=", 1) for line in result.read_text().splitlines())
        shown = call(KILN, "config", "show", HOME=str(self.place), **variables)
        self.assertIn(str(cache), shown)
        self.assertNotIn("warning", shown)
        self.assertEqual(action["runs"]["steps"][1]["with"]["path"], "${{ inputs.path }}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
