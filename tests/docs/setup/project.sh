# A small project: two units, a header, and a program that requests them.
if [ "$FIRST" = 1 ]; then
  mkdir -p kernels include
  cat >include/geometry.cuh <<'EOF'
struct Box { float left, right; };
EOF
  cat >kernels/pip.cu <<'EOF'
#include <geometry.cuh>
extern "C" __global__ void pip_dense(const float* x, int* inside, Box box) {
  inside[threadIdx.x] = x[threadIdx.x] > box.left && x[threadIdx.x] < box.right;
}
template <class T> __global__ void pip_sparse(T* x) { x[threadIdx.x] = 0; }
EOF
  cp kernels/pip.cu kernels/point_in_polygon.cu
  echo 'extern "C" __global__ void blur(float* x) { x[threadIdx.x] /= 2; }' >kernels/blur.cu
  cat >kiln.toml <<'EOF'
namespace = "acme/vision"
architectures = ["sm_80"]

[[unit]]
source = "kernels/pip.cu"
include = ["include"]
entries = ["pip_dense"]

[[unit]]
source = "kernels/blur.cu"
entries = ["blur"]
EOF
  printf '#!/bin/sh\nexec kiln compile --quiet --manifest kiln.toml --arch "${ARCH:-sm_80}"\n' >app
  chmod +x app && cp app program
fi
