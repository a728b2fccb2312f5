#!/usr/bin/env bash
# Installs what building and testing kiln needs, by name, from the package registries that this machine is set up for.
# Safe to run twice: what is there already is left alone. Needs root for the Debian packages.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  g++ clang clang-format clang-tidy lld cmake ninja-build pkg-config git python3 python3-venv python3-dev
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
  libcurl4-openssl-dev libhiredis-dev         # remote stores and leases: HTTP, opened at run time; Redis, linked in
  nginx-light redis-server openssl            # real servers to test them with, and certificates for those
  faketime iproute2 iptables                  # clocks that are wrong; hosts, and packets that go nowhere, on one machine
  protobuf-compiler                           # protoc, which reads the action results that kiln writes, and the reverse
  dpkg-dev fakeroot file lintian              # Debian packages, and what their makers expect of them
  doxygen                                     # the reference of the headers
  chromium fonts-dejavu-core                  # draw the page that kiln report makes
  prometheus                                  # promtool, which checks the text of the metrics
  ccache                                      # what bench/peers compares kiln with, around nvcc
)
missing=()
for package in "${packages[@]}"; do
  [[ $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) == *'install ok installed'* ]] || missing+=("$package")
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
wanted=(
  nvidia-cuda-nvrtc
  mkdocs            # the site of docs/
  nanobind scikit-build-core build  # the Python package, and its wheel
  pytest mypy numpy                 # what its tests look at it with
  cuda-core cuda-bindings           # what kiln.cuda_core is under
  triton                            # what kiln.triton is under: it compiles without a device; a gigabyte unpacked
  cryptography grpcio               # have a libcrypto and a TLS of their own, which kiln must not meet
)
# Asked in one go: each start of pip takes half a second.
missing=$(.venv/bin/python -c 'import importlib.metadata, sys
there = {one.metadata["Name"].replace("_", "-").lower() for one in importlib.metadata.distributions()}
print(*(name for name in sys.argv[1:] if name not in there))' "${wanted[@]}")
if [ -n "$missing" ]; then
  # shellcheck disable=SC2086  # a list of names
  .venv/bin/python -m pip install -q $missing
fi

# The releases of NVIDIA's CCCL library that kiln knows: the newest where Python finds it, each older one in a folder of
# its own, because their interfaces differ. Only the wheel: what it would draw in (numba, cuda-core) is not used here.
[[ $(.venv/bin/python -m pip show cuda-cccl 2>/dev/null) == *'Version: 1.2.1'* ]] ||
  .venv/bin/python -m pip install -q --no-deps cuda-cccl==1.2.1
for version in 1.2.0 1.1.1; do
  [ -d ".venv/cccl-$version/cuda" ] ||
    .venv/bin/python -m pip install -q --no-deps --target ".venv/cccl-$version" "cuda-cccl==$version"
done
