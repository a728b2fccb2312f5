#!/usr/bin/env bash
# Installs what building and testing kiln needs, by name, from the package registries that this machine is set up for.
# Safe to run twice: what is there already is left alone. Needs root for the Debian packages.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  g++ clang clang-format clang-tidy lld cmake ninja-build pkg-config git python3 python3-venv
  libclang-rt-14-dev                          # libFuzzer and the sanitizers for clang
  libssl-dev libxxhash-dev                    # SHA-256, XXH3
  libsodium-dev libzstd-dev                   # Ed25519, what bundles are packed with
  nlohmann-json3-dev libtomlplusplus-dev      # JSON, kiln.toml
  libcli11-dev                                # the command line
  libgtest-dev libgmock-dev                   # tests
  ocl-icd-opencl-dev opencl-headers pocl-opencl-icd # OpenCL on the processor
  libgeos-dev libtbb-dev                      # examples/spatial: reading and the oracle; the processor's variants
  strace                                      # what a program really opened; injected faults
  docker-registry skopeo                      # where bundles travel as images, and what moves them
  prometheus                                  # promtool, which checks the text of the metrics
)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
if ((${#missing[@]})); then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi

# A second NVRTC beside the toolkit's, so that tests can change the compiler for real.
if [ ! -x .venv/bin/python ]; then
  python3 -m venv .venv
fi
wanted=(nvidia-cuda-nvrtc)
for package in "${wanted[@]}"; do
  .venv/bin/python -m pip show -q "$package" >/dev/null 2>&1 || .venv/bin/python -m pip install -q "$package"
done

# The releases of NVIDIA's CCCL library that kiln knows: the newest where Python finds it, each older one in a folder of
# its own, because their interfaces differ. Only the wheel: what it would draw in (numba, cuda-core) is not used here.
.venv/bin/python -m pip show cuda-cccl 2>/dev/null | grep -qx 'Version: 1.2.1' ||
  .venv/bin/python -m pip install -q --no-deps cuda-cccl==1.2.1
for version in 1.2.0 1.1.1; do
  [ -d ".venv/cccl-$version/cuda" ] ||
    .venv/bin/python -m pip install -q --no-deps --target ".venv/cccl-$version" "cuda-cccl==$version"
done
