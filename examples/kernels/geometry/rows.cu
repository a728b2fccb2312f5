// Operations on rows regardless of geometry: which are null, empty or present; masks combined as in SQL; and columns of
// the rows that a mask selects. The state of a row is preserved: null rows are selected as null, empty ones as empty.
#include "block.cuh"

namespace {

// Values of three-valued logic: a bit is true, false or, if it is not valid, unknown.
struct Answer {
  unsigned value;
  unsigned valid;
};

// Unknown and false is false; unknown or true is true; otherwise unknown stays unknown. Computes 32 rows at once.
__device__ Answer both(Answer a, Answer b) {
  const unsigned known_false = (a.valid & ~a.value) | (b.valid & ~b.value);
  return {a.value & b.value & a.valid & b.valid, (a.valid & b.valid) | known_false};
}
__device__ Answer either(Answer a, Answer b) {
  const unsigned known_true = (a.valid & a.value) | (b.valid & b.value);
  return {known_true, (a.valid & b.valid) | known_true};
}
__device__ Answer opposite(Answer a) { return {~a.value & a.valid, a.valid}; }

enum Connective { kAnd = 0, kOr = 1, kAndNot = 2, kXor = 3 };

__device__ Answer connected(int how, Answer a, Answer b) {
  switch (how) {
    case kAnd: return both(a, b);
    case kOr: return either(a, b);
    case kAndNot: return both(a, opposite(b));
    default: {
      const unsigned known = a.valid & b.valid;
      return {(a.value ^ b.value) & known, known};
    }
  }
}

__device__ Answer answer_at(const unsigned* values, const unsigned* valid, int word) {
  return {values[word], valid == nullptr ? 0xffffffffu : valid[word]};
}

// Returns a mask of the rows that exist in a word.
__device__ unsigned rows_in_word(int rows, int word) {
  const int left = rows - word * 32;
  return left >= 32 ? 0xffffffffu : (1u << left) - 1u;
}

}  // namespace

// Computes the state of each row, as a byte, and two bitmaps of it. `totals` counts the null, empty and present rows.
template <class Column>
__global__ void states_of(Column column, unsigned char* states, unsigned* valid, unsigned* present, int* totals) {
  for (int row = first_row(); row < whole_warps(column.rows); row += row_step()) {
    const bool here = row < column.rows;
    const State state = here ? column.state(row) : State::Null;
    if (here && states != nullptr) states[row] = static_cast<unsigned char>(state);
    write_bits(valid, row, state != State::Null);
    write_bits(present, row, state == State::Present);
    for (int kind = 0; kind < 3; ++kind) {
      const unsigned alike = __ballot_sync(0xffffffffu, here && static_cast<int>(state) == kind);
      if (lane() == 0 && alike != 0) atomicAdd(totals + kind, __popc(alike));
    }
  }
}

// Combines two masks, a word of 32 rows per thread. Bits past the last row are 0 in both bitmaps.
extern "C" __global__ void combine_answers(int how, const unsigned* left, const unsigned* left_valid,
                                           const unsigned* right, const unsigned* right_valid, int rows,
                                           unsigned* values, unsigned* valid) {
  const int words = (rows + 31) / 32;
  for (int word = first_row(); word < words; word += row_step()) {
    const Answer answer = connected(how, answer_at(left, left_valid, word), answer_at(right, right_valid, word));
    const unsigned there = rows_in_word(rows, word);
    values[word] = answer.value & there;
    valid[word] = answer.valid & there;
  }
}

// Counts the rows that each block of 1,024 selects: those that are known to be true, as in WHERE. The caller sums the
// counts over the blocks before take_rows.
extern "C" __global__ void count_taken(const unsigned* values, const unsigned* valid, int rows, int* of_blocks) {
  const int word = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
  int count = 0;
  if (threadIdx.x < 32 && word * 32 < rows) {
    const Answer answer = answer_at(values, valid, word);
    count = __popc(answer.value & answer.valid & rows_in_word(rows, word));
  }
  const int total = over_block<Sum<int>>(count);
  if (threadIdx.x == 0) of_blocks[blockIdx.x] = total;
}

// Writes the numbers of the selected rows, in order. Blocks have 1,024 threads, one row each.
extern "C" __global__ void take_rows(const unsigned* values, const unsigned* valid, int rows, const int* block_offsets,
                                     int* taken) {
  const int row = first_row();
  bool take = false;
  if (row < rows) {
    const Answer answer = answer_at(values, valid, row >> 5);
    take = ((answer.value & answer.valid) >> (row & 31) & 1u) != 0;
  }
  int total = 0;
  const int before = sum_before_in_block(take ? 1 : 0, total);
  if (take) taken[block_offsets[blockIdx.x] + before] = row;
}

// Computes the number of coordinates of each selected row, and whether it is valid. Null rows have none, regardless of
// their offsets: they may refer to uninitialized memory.
extern "C" __global__ void measure_taken(Lines lines, const int* taken, int count, int* sizes, unsigned* valid) {
  for (int i = first_row(); i < whole_warps(count); i += row_step()) {
    State state = State::Null;
    if (i < count) {
      // -1 selects a missing row, which an outer join produces. It becomes null.
      const int row = taken[i];
      state = row >= 0 ? lines.state(row) : State::Null;
      sizes[i] = state == State::Present ? lines.coordinates(row).size() : 0;
    }
    write_bits(valid, i, state != State::Null);
  }
}

// Copies their coordinates. One thread per coordinate of the result, which finds its row by its offset: this balances
// the work for rows of any length.
extern "C" __global__ void gather_coordinates(Lines lines, const int* taken, int count, const int* offsets, double* xs,
                                              double* ys) {
  const int coordinates = offsets[count];
  for (int i = first_row(); i < coordinates; i += row_step()) {
    const int place = row_of(offsets, count, i);
    const int from = lines.offsets[taken[place]] + (i - offsets[place]);
    xs[i] = lines.at.x[from];
    ys[i] = lines.at.y[from];
  }
}
