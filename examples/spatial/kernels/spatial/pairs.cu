// Keys of pairs: gathers the selected keys and decodes them.
extern "C" __global__ void gather_keys(unsigned count, const unsigned* indices, const unsigned long long* keys,
                                       unsigned long long* gathered) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) gathered[i] = keys[indices[i]];
}

// Decodes each key into the point's row and the polygon's row, which are stored consecutively.
extern "C" __global__ void pairs_of_keys(unsigned count, const unsigned long long* keys, int bits, int* pairs) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  pairs[2 * static_cast<size_t>(i)] = static_cast<int>(keys[i] >> bits);
  pairs[2 * static_cast<size_t>(i) + 1] = static_cast<int>(keys[i] & ((1ULL << bits) - 1));
}
