# SPDX-License-Identifier: Apache-2.0
# For tests that are shell scripts: a directory that is removed with the test, an environment without the caller's settings, and a
# function to fail.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
while read -r name; do unset "$name"; done < <(compgen -e | grep '^KILN_' | grep -v '^KILN_NVRTC$' || true)
fail() {
  echo "$(basename "$0" .sh): $1" >&2
  exit 1
}
