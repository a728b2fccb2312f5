#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The wheel, packed from the build, has no more requirements than promised, contains its license and SBOM, and coexists with
# packages that have their own libcrypto.
#   wheel_test.sh SOURCE_DIR BUILD_DIR PYTHON
set -euo pipefail
source_dir=$1
build_dir=$2
python=$3
. "$(dirname "$0")/../support/processes/scratch.sh"

"$python" -c 'import build, scikit_build_core' 2>/dev/null || {
  echo "wheel_test did not run: $python has no build and scikit-build-core (tools/setup.sh installs them)"
  exit 77
}
(cd "$source_dir" && KILN_PREBUILT=$build_dir "$python" -m build -q --wheel --no-isolation -o "$scratch" .) >"$scratch/said.txt" 2>&1 ||
  fail "$(cat "$scratch/said.txt")"
wheel=$(echo "$scratch"/*.whl)
"$source_dir/tools/check_wheel" "$wheel"
# check_wheel must fail if a build needs more than promised, and if a third-party library is included.
if "$source_dir/tools/check_wheel" --tag manylinux_2_28 "$wheel" >"$scratch/said.txt" 2>&1; then fail "check_wheel accepted manylinux_2_28"; fi
grep -q 'needs GLIBC_2.34, which manylinux_2_28 does not provide' "$scratch/said.txt" || fail "$(cat "$scratch/said.txt")"
"$python" -m zipfile -e "$wheel" "$scratch/metadata"
for extra in nvrtc cccl; do
  grep -qx "Provides-Extra: $extra" "$scratch"/metadata/*.dist-info/METADATA || fail "the wheel has no extra [$extra]"
done
# The source distribution has no build directories, and a wheel can be made from it, beside a directory `build`.
(cd "$source_dir" && "$python" -m build -q --sdist --no-isolation -o "$scratch/sdist" .) >"$scratch/said.txt" 2>&1 || fail "$(cat "$scratch/said.txt")"
tar -xzf "$scratch"/sdist/*.tar.gz -C "$scratch/sdist"
unpacked=$(echo "$scratch"/sdist/*/)
for folder in build .venv .git; do [ ! -e "$unpacked/$folder" ] || fail "the source distribution contains $folder"; done
mkdir "$unpacked/build"
(cd "$unpacked" && KILN_PREBUILT=$build_dir "$python" -m build -q --wheel --no-isolation -o "$scratch/again" .) >"$scratch/said.txt" 2>&1 ||
  fail "$(cat "$scratch/said.txt")"
[ "$(basename "$scratch"/again/*.whl)" = "$(basename "$wheel")" ] || fail "the source distribution makes another wheel"
mkdir -p "$scratch/kiln"
cp "$build_dir/bin/kiln" "$scratch/kiln/libnvrtc.so.13"
(cd "$scratch" && "$python" -m zipfile -e "$wheel" all && mkdir -p all/kiln && cp kiln/libnvrtc.so.13 all/kiln && cd all && "$python" -m zipfile -c ../other.whl *)
if "$source_dir/tools/check_wheel" "$scratch/other.whl" >"$scratch/said.txt" 2>&1; then fail "check_wheel accepted a library of NVIDIA"; fi
grep -q 'contains kiln/libnvrtc.so.13' "$scratch/said.txt" || fail "$(cat "$scratch/said.txt")"
if "$python" -c 'import auditwheel' 2>/dev/null; then
  "$python" -m auditwheel show "$wheel" | tr '\n' ' ' | grep -o 'platform tag: "manylinux[^"]*"' | head -n 1
fi

rm "$scratch/all/kiln/libnvrtc.so.13"
"$source_dir/tools/check_hardening" "$scratch/all" || fail "the binaries above lack a mitigation"
chmod +x "$scratch"/all/kiln/bin/*
PYTHONPATH=$scratch/all "$python" "$source_dir/tests/packages/wheel_coexistence.py" || [ $? -eq 77 ]
