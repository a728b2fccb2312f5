# For tests that are shell scripts: a folder that is gone with the test, none of the settings of whoever runs it, and a way to fail.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
while read -r name; do unset "$name"; done < <(compgen -e | grep '^KILN_' | grep -v '^KILN_NVRTC$' || true)
fail() {
  echo "$(basename "$0" .sh): $1" >&2
  exit 1
}
