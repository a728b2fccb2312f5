// Kernels before and after a CCCL selection of unique keys. This one takes the lowest 32 bits and numbers the keys.
extern "C" __global__ void unique_keys(unsigned count, const unsigned long long* keys, int* lowest, int* numbers) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  lowest[i] = static_cast<int>(static_cast<unsigned>(keys[i]));
  numbers[i] = static_cast<int>(i);
}

// Writes the number of runs, and ends the last run.
extern "C" __global__ void unique_end(unsigned count, const long long* selected, unsigned* heads, unsigned* runs) {
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  *runs = static_cast<unsigned>(*selected);
  heads[*selected] = count;
}
