# The source tree as a new user sees it after a build: everything except the files that pages write themselves.
if [ "$FIRST" = 1 ]; then
  for each in "$ROOT"/* "$ROOT"/.venv; do
    if [ -e "$each" ] && [ "$(basename "$each")" != build ]; then ln -sfn "$each" .; fi
  done
  # Compiling the kernels of examples/kernels/geometry takes half a minute, so only the first three are used.
  sed -e 's,"\.","examples/kernels/geometry",; s,source = ",&examples/kernels/geometry/,' -e '/^# /d' examples/kernels/geometry/kiln.toml |
    awk '/unit/ && ++n > 3 { exit } { print }' >three-units.toml
  mkdir -p build && ln -sfn "$BUILD" build/release
fi
