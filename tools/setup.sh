#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages for building and testing kiln, by name, from the package registries configured on this machine.
# Idempotent: installed packages are not changed. Needs root for the Debian packages.
#   tools/setup.sh              everything that CI needs
#   tools/setup.sh --minimal    only what `cmake --preset minimal` and programs that use its result need, from Debian alone
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
  '' | --minimal) ;;
  *) echo "setup.sh: unknown option $1; use --minimal or no option" >&2 && exit 2 ;;
esac

packages=(
  g++ cmake ninja-build python3               # python3: the SBOM and the Debian packages' documents
  pkg-config                                  # for programs that use the installed library
  libssl-dev libxxhash-dev                    # SHA-256, XXH3
  libsodium-dev libzstd-dev                   # Ed25519, compression of bundles
  nlohmann-json3-dev libtomlplusplus-dev      # JSON, kiln.toml
  libcli11-dev                                # the command line
  opencl-headers                              # types of OpenCL's functions
  libcurl4-openssl-dev libhiredis-dev         # remote stores and leases: HTTP, opened at run time; Redis, linked in
)
if [ "${1:-}" != --minimal ]; then packages+=(
  clang clang-format clang-tidy lld git python3-venv python3-dev
  libclang-rt-14-dev                          # libFuzzer and the sanitizers for clang
  libgtest-dev libgmock-dev                   # tests
  ocl-icd-opencl-dev pocl-opencl-icd          # OpenCL on the CPU
  libgeos-dev libtbb-dev                      # examples/spatial: WKB and the reference results; the CPU variants
  procps                                      # pkill, with which .ci/run pauses builds while it measures
  strace                                      # files that a program really opened; injected faults
  docker-registry skopeo                      # registry for bundles as images, and the tool that copies them
  nginx-light redis-server openssl            # real servers for tests, and certificates for them
  python3-swift                               # OpenStack Swift, an S3 server that verifies signatures, as a library
  ca-certificates                             # in the container image
  faketime iproute2 iptables                  # wrong clocks; several hosts and packet loss on one machine
  squashfs-tools erofs-utils                  # images whose files have equal times, to swap mounted images
  e2fsprogs xfsprogs btrfs-progs              # file systems in image files, for campaign_never_stale
  protobuf-compiler                           # protoc, for the action results that kiln writes and reads
  dpkg-dev fakeroot file lintian              # Debian packages and their checks
  doxygen                                     # the reference of the headers
  chromium fonts-dejavu-core                  # render the page that kiln report writes
  prometheus                                  # promtool, which checks the metrics text and the queries of deploy/
  libsqlite3-0                                # exports of Nsight Systems, which kiln audit reads
  zsh fish                                    # shells whose completions of kiln are tested
  ccache                                      # bench/peers compares kiln with ccache around nvcc
); fi
missing=()
for package in "${packages[@]}"; do
  [[ $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null) == *'install ok installed'* ]] || missing+=("$package")
done
if ((${#missing[@]})); then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
if [ "${1:-}" = --minimal ]; then exit 0; fi

# A second NVRTC next to the toolkit's, so that tests can really change the compiler.
if [ ! -x .venv/bin/python ]; then
  python3 -m venv .venv
fi
# Releases are pinned, so that a release of another project cannot change what CI tests.
wanted=(
  nvidia-cuda-nvrtc==13.4.92
  mkdocs==1.6.1 mkdocs-material==9.8.1 mkdocstrings==1.0.8 mkdocstrings-python==2.0.10 # the site of docs/
  nanobind==3.1.0 scikit-build-core==1.1.2           # the Python package,
  build==1.6.1                                       # and its wheel
  pytest==9.2.0 mypy==2.4.1 numpy==2.4.6             # for the tests of the package
  cuda-core==1.2.2 cuda-bindings==13.5.0             # kiln.cuda_core integrates with them
  triton==3.9.0                                      # kiln.triton integrates with it; a gigabyte unpacked
  cupy-cuda13x==14.2.0                               # kiln.cupy integrates with it: 70 MB, 200 MB unpacked
  cryptography==50.0.2 grpcio==1.85.1                # their own libcrypto and TLS must not conflict with kiln's
  conan==2.34.0                                      # creates and uses the package of packaging/conan
  kubernetes-validate==1.37.0                        # the manifests of deploy/
  check-jsonschema==0.39.0
)
# One query, because each start of pip takes half a second.
missing=$(.venv/bin/python -c 'import importlib.metadata, sys
there = {one.metadata["Name"].replace("_", "-").lower() for one in importlib.metadata.distributions()}
print(*(name for name in sys.argv[1:] if name.partition("==")[0] not in there))' "${wanted[@]}")
if [ -n "$missing" ]; then
  # shellcheck disable=SC2086  # a list of names
  .venv/bin/python -m pip install -q $missing
fi

# The headers of RMM, which tests/session/adaptors_test.cpp compiles kiln/rmm.hpp against.
[ -d .venv/rmm/librmm ] || .venv/bin/python -m pip install -q --no-deps --target .venv/rmm librmm-cu13==26.10.0

# The oldest NVRTC with precompiled headers, with headers: the CUB of 12.8 includes headers that NVRTC does not have. The
# newest NVRTC is installed above.
[ -d .venv/nvrtc-12.8/nvidia_cuda_cccl_cu12-12.9.27.dist-info ] ||
  .venv/bin/python -m pip install -q --upgrade --no-deps --target .venv/nvrtc-12.8 nvidia-cuda-nvrtc-cu12==12.8.93 \
    nvidia-cuda-runtime-cu12==12.8.90 nvidia-cuda-cccl-cu12==12.9.27

# The releases of NVIDIA's CCCL library that kiln supports: the newest where Python finds it, each older one in a separate
# directory, because their interfaces differ. Only the wheel is installed; its dependencies (numba, cuda-core) are not used
# here.
[[ $(.venv/bin/python -m pip show cuda-cccl 2>/dev/null) == *'Version: 1.2.1'* ]] ||
  .venv/bin/python -m pip install -q --no-deps cuda-cccl==1.2.1
for version in 1.2.0 1.1.1; do
  [ -d ".venv/cccl-$version/cuda" ] ||
    .venv/bin/python -m pip install -q --no-deps --target ".venv/cccl-$version" "cuda-cccl==$version"
done
# What compiles Python operators of cuda.compute, for tests/bindings/python/adapters/test_compute_warmup.py.
[ -d .venv/numba/numba_cuda_mlir ] ||
  .venv/bin/python -m pip install -q --no-deps --target .venv/numba numba-cuda-mlir==0.6.0
# TileLang, for the test jit.tilelang: 80 MB, 264 MB unpacked. Without torch, which would be 2 GB and which it does not need to
# compile (tests/apps/jit/systems/programs.py). Versions are those of its requirements; numpy is installed above.
[ -d .venv/tilelang/tilelang-0.1.15.dist-info ] ||
  .venv/bin/python -m pip install -q --no-deps --target .venv/tilelang tilelang==0.1.15 apache-tvm-ffi==0.1.12 \
    z3-solver==4.15.4.0 cloudpickle==3.1.2 ml-dtypes==0.6.0 psutil==7.2.2 tqdm==4.70.1 typing-extensions==4.16.0
