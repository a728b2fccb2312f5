// Kernels before and after a CCCL selection of nonzero numbers. This one numbers the flagged elements, starting at one.
extern "C" __global__ void compact_numbers(unsigned count, const unsigned char* flags, int* numbers) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) numbers[i] = flags[i] != 0 ? static_cast<int>(i) + 1 : 0;
}

// Writes the selected indices, starting at zero, and their number.
extern "C" __global__ void compact_indices(unsigned count, const long long* selected, unsigned* indices,
                                           unsigned* chosen) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) *chosen = static_cast<unsigned>(*selected);
  if (i < count && static_cast<long long>(i) < *selected) --indices[i];
}
