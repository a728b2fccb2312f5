#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds Debian packages, and installs, uses and removes them in a temporary root: an overlay over this machine's root in a
# mount namespace, so that all files left behind are in one directory and the machine is not changed.
#   deb_test.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
source_dir=$1
build_dir=$2

fail() {
  echo "deb_test: $1" >&2
  exit 1
}
skip() {
  echo "deb_test did not run: $1"
  exit 77
}

# Inside the new root: the steps of a user.
if [ "${3:-}" = inside ]; then
  scratch=$4
  # The user files of kiln (its cache and status files) and a compiler launcher are not created by the packages.
  mkdir -m 0700 "$scratch/run"
  export HOME=$scratch/home XDG_CACHE_HOME=$scratch/cache XDG_RUNTIME_DIR=$scratch/run TMPDIR=$scratch LC_ALL=C.UTF-8
  unset CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER
  dpkg --force-unsafe-io -i "$scratch"/debs/*.deb >"$scratch/dpkg.txt" 2>&1 || fail "$(cat "$scratch/dpkg.txt")"
  [ "$(command -v kiln)" = /usr/bin/kiln ] || fail "kiln is at $(command -v kiln)"
  for file in /usr/share/bash-completion/completions/kiln /usr/share/zsh/site-functions/_kiln \
    /usr/share/fish/vendor_completions.d/kiln.fish /usr/libexec/kiln/kiln-worker; do
    dpkg -S "$file" >/dev/null || fail "$file is not in any package"
  done
  for package in libkiln0 libkiln-dev kiln-tools; do
    "$source_dir/tools/make_sbom" --check "/usr/share/doc/$package/kiln.spdx.json" || fail "$package has no valid SBOM"
  done
  kiln doctor --json >"$scratch/doctor.json" || fail "kiln doctor failed: $(cat "$scratch/doctor.json")"
  grep -q '/libexec/kiln/kiln-worker, at most' "$scratch/doctor.json" || fail "kiln does not find its worker: $(cat "$scratch/doctor.json")"

  # A C program, with pkg-config and with CMake.
  cp "$source_dir"/tests/packages/uses_kiln/* "$scratch/program"
  cc -std=c11 -Wall -Wextra -Wpedantic -Werror "$scratch/program/uses_kiln.c" -o "$scratch/by_pkg_config" $(pkg-config --cflags --libs kiln)
  cmake -G Ninja -S "$scratch/program" -B "$scratch/by_cmake" >"$scratch/cmake.txt" 2>&1 &&
    cmake --build "$scratch/by_cmake" >>"$scratch/cmake.txt" 2>&1 || fail "$(cat "$scratch/cmake.txt")"
  for program in "$scratch/by_pkg_config" "$scratch/by_cmake/uses_kiln"; do
    # Not with a pipe: grep exits at the first match, which would end ldd by a signal and fail the pipeline.
    needed=$(ldd "$program")
    grep -q 'libkiln.so.0 => /' <<<"$needed" || fail "$program does not use the installed library: $needed"
    "$program" >"$scratch/said.txt" || fail "$program: $(cat "$scratch/said.txt")"
  done
  cat "$scratch/said.txt"

  dpkg --force-unsafe-io --purge libkiln-dev kiln-tools libkiln0 >"$scratch/dpkg.txt" 2>&1 || fail "$(cat "$scratch/dpkg.txt")"
  exit 0
fi

# Inside the namespace: mounts the overlay, and afterwards checks the files left in it.
if [ "${3:-}" = namespace ]; then
  scratch=$4
  mount -t tmpfs -o mode=0755 overlay "$scratch/layers"
  mkdir "$scratch"/layers/{upper,work,root}
  root=$scratch/layers/root
  mount -t overlay -o "lowerdir=/,upperdir=$scratch/layers/upper,workdir=$scratch/layers/work" overlay "$root" 2>"$scratch/why" ||
    skip "cannot mount an overlay here: $(cat "$scratch/why")"
  for folder in /proc /sys /dev "$scratch" "$source_dir"; do
    mkdir -p "$root$folder"
    mount --rbind "$folder" "$root$folder"
  done
  # The directories of the sources and of this test are not compared.
  chroot "$root" "$source_dir/tests/packages/deb_test.sh" "$source_dir" "$build_dir" inside "$scratch"
  umount -l "$root$source_dir" "$root$scratch" "$root/dev" "$root/sys" "$root/proc"
  cd "$scratch/layers/upper"
  # Files of dpkg, ldconfig and man-db are ignored; a directory counts only if it did not exist before.
  left=$(find . \( -path ./var/lib/dpkg -o -path ./var/cache/ldconfig -o -path ./var/cache/man -o -path ./var/log \) -prune -o \
    ! -type d -print -o -type d -print | while read -r path; do
    case $path in ./etc/ld.so.cache) continue ;; esac
    if [ -d "$path" ] && [ -d "/$path" ]; then continue; fi
    echo "${path#.}"
  done)
  [ -z "$left" ] || fail "the packages leave behind: $left"
  for package in libkiln0 libkiln-dev kiln-tools; do
    [ -z "$(find var/lib/dpkg/info -name "$package*")" ] || fail "dpkg still lists $package"
  done
  echo "uninstalled: no files are left"
  exit 0
fi

for command in dpkg-deb dpkg-shlibdeps fakeroot unshare; do
  command -v "$command" >/dev/null || skip "$command is not installed (tools/setup.sh installs it)"
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch"/{debs,layers,home,program}
while read -r name; do unset "$name"; done < <(compgen -e | grep '^KILN_' | grep -v '^KILN_NVRTC$' || true)

# gzip is faster than the compression of the released packages, and the test does not depend on it.
cpack --config "$build_dir/CPackConfig.cmake" -D CPACK_DEBIAN_COMPRESSION_TYPE=gzip -B "$scratch/debs" >"$scratch/cpack.txt" 2>&1 || fail "$(cat "$scratch/cpack.txt")"
rm -rf "$scratch/debs/_CPack_Packages"
[ "$(ls "$scratch/debs" | sed 's/_.*//' | tr '\n' ' ')" = "kiln-tools libkiln-dev libkiln0 " ] || fail "unexpected packages: $(ls "$scratch/debs")"
for deb in "$scratch"/debs/*.deb; do
  dpkg-deb -W --showformat='${Package} ${Version} ${Architecture}, ${Installed-Size} KiB, needs ${Depends}\n' "$deb"
done
if command -v lintian >/dev/null; then
  lintian --fail-on error --suppress-tags no-manual-page "$scratch"/debs/*.deb || fail "lintian finds errors"
else
  echo "lintian was not run: it is not installed"
fi
mode=(-m)
if [ "$(id -u)" -ne 0 ]; then mode=(-r -m); fi
unshare "${mode[@]}" "$0" "$source_dir" "$build_dir" namespace "$scratch"
