// Before and behind a selection of CCCL's, which takes numbers that are not zero: those of the flagged, from one on.
extern "C" __global__ void compact_numbers(unsigned count, const unsigned char* flags, int* numbers) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) numbers[i] = flags[i] != 0 ? static_cast<int>(i) + 1 : 0;
}

// Numbers from zero on, and how many.
extern "C" __global__ void compact_indices(unsigned count, const long long* selected, unsigned* indices,
                                           unsigned* chosen) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) *chosen = static_cast<unsigned>(*selected);
  if (i < count && static_cast<long long>(i) < *selected) --indices[i];
}
