# The source tree, as a new user sees it after a build: everything but what pages write themselves.
if [ "$FIRST" = 1 ]; then
  for each in "$ROOT"/* "$ROOT"/.venv; do
    if [ -e "$each" ] && [ "$(basename "$each")" != build ]; then ln -sfn "$each" .; fi
  done
  # The kernels of kernels/geometry take half a minute to compile: the first three stand for all.
  sed -e 's,"\.","kernels/geometry",; s,source = ",&kernels/geometry/,' -e '/^# /d' kernels/geometry/kiln.toml |
    awk '/unit/ && ++n > 3 { exit } { print }' >three-units.toml
  mkdir -p build && ln -sfn "$BUILD" build/release
fi
