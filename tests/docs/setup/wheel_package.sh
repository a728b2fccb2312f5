# The package of the page, for one architecture and without algorithms, which take seconds to compile.
if [ "$FIRST" = 1 ]; then
  cp -r "$ROOT"/examples/wheel_package/. .
  sed -i -e 's/^architectures = .*/architectures = ["sm_90"]/' -e '/^\[\[cccl/,$d' src/acme_vision/kiln.toml
fi
