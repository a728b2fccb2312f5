// y = a * x + y, one work item per element. The global size can be rounded up.
__kernel void saxpy(uint n, float a, __global const float* x, __global float* y) {
  const size_t i = get_global_id(0);
  if (i < n) y[i] += a * x[i];
}

// x = a * x
__kernel void scale(uint n, float a, __global float* x) {
  const size_t i = get_global_id(0);
  if (i < n) x[i] *= a;
}
