#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The container image of deploy/container: its files, made by make_root from the installed build, run in a chroot as the image's user,
# with the entry points and variables of the Containerfile. Needs root, or user namespaces.
#   container_test.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
source_dir=$1
build_dir=$2
file=$source_dir/deploy/container/Containerfile

# Inside the namespace: one container. The rest of the arguments replaces CMD, as with `podman run`.
if [ "${3:-}" = inside ]; then
  root=$4
  target=$5
  shift 5
  # The instructions of a target and of those that it is based on. ENV lines become variables.
  stages=kiln
  [ "$target" = kiln ] || stages="kiln $target"
  settings=()
  for stage in $stages; do
    text=$(sed -n "/^FROM .* AS $stage\$/,/^FROM /p" "$file")
    read -ra more <<<"$(sed -n 's/^ENV //p' <<<"$text")"
    settings+=("${more[@]}")
    owner=$(sed -n 's/^USER //p' <<<"$text" | grep . || echo "${owner:-}")
    entry=$(sed -n 's/^ENTRYPOINT \["\(.*\)"\]/\1/p' <<<"$text" | grep . || echo "${entry:-}")
    words=$(sed -n 's/^CMD \[\(.*\)\]/\1/p' <<<"$text")
    IFS=, read -ra default <<<"$words"
    default=("${default[@]//[\" ]/}")
  done
  if [ $# -eq 0 ]; then set -- "${default[@]}"; fi
  mount --rbind /proc "$root/proc"
  mount -t tmpfs -o mode=755,size=64k tmpfs "$root/dev"
  for device in null zero random urandom; do : >"$root/dev/$device" && mount --bind "/dev/$device" "$root/dev/$device"; done
  touch "$root/.dockerenv"
  exec env -i "${settings[@]}" "$(command -v chroot)" --userspec="$owner" "$root" "$entry" "$@"
fi

. "$(dirname "$0")/../support/processes/scratch.sh"
command -v unshare >/dev/null && [ "$(id -u)" -eq 0 ] || {
  echo "container_test did not run: it needs root for a chroot with another user"
  exit 77
}
# TARGET [ARGUMENT…]: runs the image, prints its output and returns its code.
run() { unshare --mount --propagation private "$0" "$source_dir" "$build_dir" inside "$scratch/$1" "$@" 2>&1; }

cmake --install "$build_dir" --prefix "$scratch/prefix" >/dev/null
"$source_dir/deploy/container/make_root" "$scratch/prefix" "$scratch/kiln"
chmod 755 "$scratch"

# `podman run kiln`: the doctor, not as root, with the worker and the cache of the image. 3: the image has no compiler.
code=0
run kiln >"$scratch/doctor.txt" || code=$?
[ "$code" -eq 3 ] || fail "kiln doctor ended with $code: $(cat "$scratch/doctor.txt")"
grep -q '^ok *worker: /usr/.*libexec/kiln/kiln-worker' "$scratch/doctor.txt" || fail "the worker was not found: $(cat "$scratch/doctor.txt")"
grep -q '^ok *cache: /var/cache/kiln' "$scratch/doctor.txt" || fail "the cache cannot be used: $(cat "$scratch/doctor.txt")"
[ -s "$scratch/kiln/etc/ssl/certs/ca-certificates.crt" ] || fail "the image has no certificates, so https fails"
[ -z "$(find "$scratch/kiln" -path '*/bin/*' -type f ! -name kiln)" ] || fail "the image has other programs"
[ -z "$(find "$scratch/kiln" -perm /6000 -print)" ] || fail "the image has setuid files"

# The target `kernels`: a bundle, the manifest with its sources, and a policy that trusts the bundle's key.
kernels=$scratch/kernels/kernels
cp -a "$scratch/kiln" "$scratch/kernels"
rm -rf "$scratch/kernels/.dockerenv" "$scratch/kernels/var/cache/kiln"/*
cp -r "$source_dir/examples/embedded" "$kernels"
chmod -R go=rX "$kernels"
cd "$kernels"
sed -i 's/^architectures.*/namespace = "acme\/vision"\narchitectures = ["sm_80"]/' kiln.toml
export HOME=$scratch KILN_CACHE_DIR=$scratch/cache
code=0
run kernels >"$scratch/warm.txt" || code=$?
[ "$code" -ne 0 ] || fail "kiln warm succeeds without a bundle: $(cat "$scratch/warm.txt")"
"$build_dir/bin/kiln" key generate -o "$scratch/ci.key" >/dev/null
"$build_dir/bin/kiln" bundle create kiln.toml -o app.kiln --key "$scratch/ci.key" >"$scratch/bundle.txt" 2>&1 || {
  grep -q 'NVRTC' "$scratch/bundle.txt" && echo "the bundle was not tested: no NVRTC is installed" && exit 0
  fail "$(cat "$scratch/bundle.txt")"
}
public=$("$build_dir/bin/kiln" key show "$scratch/ci.key" | grep -o 'kiln-public-1:[0-9a-f]*' | head -n 1)
printf '[[key]]\npublic = "%s"\nnamespaces = ["acme/vision"]\n' "$public" >trust.toml
chmod 644 app.kiln trust.toml
run kernels >"$scratch/warm.txt" || fail "kiln warm failed: $(cat "$scratch/warm.txt")"
grep -q '2 of 2 .*2 from bundle' "$scratch/warm.txt" || fail "the bundle did not serve the units: $(cat "$scratch/warm.txt")"
cat "$scratch/warm.txt"
