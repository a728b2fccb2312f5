// SPDX-License-Identifier: Apache-2.0
// A library with the run functions of CCCL's library that runs nothing and records the arguments. NVIDIA's library
// rejects every driver but NVIDIA's, so this is how calls are tested without a device. The parameter lists are written
// out again here, independently of kiln's.
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "backends/cccl/cccl_abi.hpp"
#include "support/fakes/cccl_record.hpp"

namespace {

using kiln::cccl_abi::AnyBuild;
using kiln::cccl_abi::BuildHead;
using kiln::cccl_abi::Iterator;
using kiln::cccl_abi::Op;
using kiln::cccl_abi::Value;
using kiln::test::CcclCounts;
using kiln::test::CcclRecord;

CcclRecord last;
CcclCounts totals;

template <std::size_t Size>
struct Build {
  unsigned long words[Size / 8];
};

// Every build result ends with its size, so that a result of another size is detected.
template <std::size_t Size>
void note(const char* function, const Build<Size>& build) {
  static_assert(sizeof(Build<Size>) == Size);
  last = CcclRecord{};
  last.function = function;
  last.whole = build.words[0] == 80 && build.words[Size / 8 - 1] == Size;
}
void note(const Iterator& iterator) {
  last.iterators[last.iterator_count] = iterator.state;
  last.value_sizes[last.iterator_count++] = iterator.value.size;
}
void note(const Op& op) {
  last.op_states[last.op_count] = op.state;
  last.op_kinds[last.op_count++] = op.kind;
}
void note(const Value& value) {
  unsigned long number = 0;
  std::memcpy(&number, value.state, value.type.size < 8 ? value.type.size : 8);
  last.values[last.value_count++] = number;
}
void note_numbers(unsigned long number) { last.numbers[last.number_count++] = number; }
int put_on(void* stream) {
  last.stream = stream;
  ++totals.runs;
  return totals.outcome;
}

// Handles a storage size query, which passes no memory. The required size grows in steps, as in the real library.
bool only_asks(void* memory, std::size_t* bytes, unsigned long items) {
  const std::size_t needed = 256 * (1 + items / 1000);
  last.storage = memory;
  last.storage_bytes = *bytes;
  if (memory != nullptr) {
    last.enough = *bytes >= needed;
    return false;
  }
  ++totals.questions;
  *bytes = needed;
  return true;
}

int make(AnyBuild* build, std::size_t size) {
  BuildHead& head = build->head();
  head.capability = 80;
  head.payload = std::malloc(1);
  head.payload_size = 1;
  std::memcpy(build->bytes + size - 8, &size, sizeof size);
  return 0;
}

}  // namespace

extern "C" {
#define KILN_EXPORT __attribute__((visibility("default")))

KILN_EXPORT const CcclRecord* kiln_cccl_record() { return &last; }
KILN_EXPORT CcclCounts* kiln_cccl_counts() { return &totals; }

// Functions that all algorithms share. A macro, because the names are the interface.
#define KILN_FAMILY(name, size)                                                                                     \
  KILN_EXPORT int cccl_device_##name##_deserialize(AnyBuild* b, const void*, std::size_t) { return make(b, size); } \
  KILN_EXPORT int cccl_device_##name##_load(AnyBuild*) { return 0; }                                                \
  KILN_EXPORT int cccl_device_##name##_cleanup(AnyBuild* b) {                                                       \
    std::free(b->head().payload);                                                                                   \
    b->head().payload = nullptr;                                                                                    \
    return 0;                                                                                                       \
  }
KILN_FAMILY(scan, 184)
KILN_FAMILY(reduce, 120)
KILN_FAMILY(segmented_reduce, 80)
KILN_FAMILY(three_way_partition, 88)
KILN_FAMILY(binary_search, 104)
KILN_FAMILY(radix_sort, 288)
KILN_FAMILY(merge_sort, 152)
KILN_FAMILY(unique_by_key, 104)
KILN_FAMILY(transform, 88)
KILN_FAMILY(for, 56)
KILN_FAMILY(histogram, 168)
KILN_FAMILY(segmented_sort, 400)

#define KILN_SCAN(name)                                                                                             \
  KILN_EXPORT int cccl_device_##name(Build<184> build, void* memory, std::size_t* bytes, Iterator in, Iterator out, \
                                     std::uint64_t n, Op op, Value init, void* stream) {                            \
    note(#name, build), note(in), note(out), note_numbers(n), note(op), note(init);                                 \
    return only_asks(memory, bytes, n) ? 0 : put_on(stream);                                                        \
  }
KILN_SCAN(exclusive_scan)
KILN_SCAN(inclusive_scan)

KILN_EXPORT int cccl_device_exclusive_scan_future_value(Build<184> build, void* memory, std::size_t* bytes, Iterator in,
                                                        Iterator out, std::uint64_t n, Op op, Iterator init,
                                                        void* stream) {
  note("exclusive_scan_future_value", build), note(in), note(out), note_numbers(n), note(op), note(init);
  return only_asks(memory, bytes, n) ? 0 : put_on(stream);
}
KILN_EXPORT int cccl_device_inclusive_scan_no_init(Build<184> build, void* memory, std::size_t* bytes, Iterator in,
                                                   Iterator out, std::uint64_t n, Op op, void* stream) {
  note("inclusive_scan_no_init", build), note(in), note(out), note_numbers(n), note(op);
  return only_asks(memory, bytes, n) ? 0 : put_on(stream);
}

#define KILN_REDUCE(name)                                                                                           \
  KILN_EXPORT int cccl_device_##name(Build<120> build, void* memory, std::size_t* bytes, Iterator in, Iterator out, \
                                     std::uint64_t n, Op op, Value init, void* stream) {                            \
    note(#name, build), note(in), note(out), note_numbers(n), note(op), note(init);                                 \
    return only_asks(memory, bytes, n) ? 0 : put_on(stream);                                                        \
  }
KILN_REDUCE(reduce)
KILN_REDUCE(reduce_nondeterministic)

KILN_EXPORT int cccl_device_segmented_reduce(Build<80> build, void* memory, std::size_t* bytes, Iterator in,
                                             Iterator out, std::uint64_t segments, Iterator begin, Iterator end, Op op,
                                             Value init, std::size_t longest, void* stream) {
  note("segmented_reduce", build), note(in), note(out), note(begin), note(end), note_numbers(segments), note(op);
  note(init), note_numbers(longest);
  return only_asks(memory, bytes, segments) ? 0 : put_on(stream);
}
KILN_EXPORT int cccl_device_three_way_partition(Build<88> build, void* memory, std::size_t* bytes, Iterator in,
                                                Iterator first, Iterator second, Iterator rest, Iterator counts,
                                                Op first_op, Op second_op, std::int64_t n, void* stream) {
  note("three_way_partition", build), note(in), note(first), note(second), note(rest), note(counts), note(first_op);
  note(second_op), note_numbers(static_cast<unsigned long>(n));
  return only_asks(memory, bytes, static_cast<unsigned long>(n)) ? 0 : put_on(stream);
}
KILN_EXPORT int cccl_device_binary_search(Build<104> build, Iterator data, std::uint64_t n, Iterator values,
                                          std::uint64_t m, Iterator out, Op op, void* stream) {
  note("binary_search", build), note(data), note_numbers(n), note(values), note_numbers(m), note(out), note(op);
  return put_on(stream);
}
KILN_EXPORT int cccl_device_radix_sort(Build<288> build, void* memory, std::size_t* bytes, Iterator keys_in,
                                       Iterator keys_out, Iterator values_in, Iterator values_out, Op decomposer,
                                       std::uint64_t n, int first, int last_bit, bool overwrite, int* selector,
                                       void* stream) {
  note("radix_sort", build), note(keys_in), note(keys_out), note(values_in), note(values_out), note(decomposer);
  note_numbers(n), note_numbers(static_cast<unsigned long>(first)), note_numbers(static_cast<unsigned long>(last_bit));
  note_numbers(overwrite ? 1 : 0);
  *selector = 0;
  return only_asks(memory, bytes, n) ? 0 : put_on(stream);
}
KILN_EXPORT int cccl_device_merge_sort(Build<152> build, void* memory, std::size_t* bytes, Iterator keys_in,
                                       Iterator values_in, Iterator keys_out, Iterator values_out, std::uint64_t n,
                                       Op op, void* stream) {
  note("merge_sort", build), note(keys_in), note(values_in), note(keys_out), note(values_out), note_numbers(n);
  note(op);
  return only_asks(memory, bytes, n) ? 0 : put_on(stream);
}
KILN_EXPORT int cccl_device_unique_by_key(Build<104> build, void* memory, std::size_t* bytes, Iterator keys_in,
                                          Iterator values_in, Iterator keys_out, Iterator values_out, Iterator count,
                                          Op op, std::size_t n, void* stream) {
  note("unique_by_key", build), note(keys_in), note(values_in), note(keys_out), note(values_out), note(count);
  note(op), note_numbers(n);
  return only_asks(memory, bytes, n) ? 0 : put_on(stream);
}
KILN_EXPORT int cccl_device_unary_transform(Build<88> build, Iterator in, Iterator out, std::uint64_t n, Op op,
                                            void* stream) {
  note("unary_transform", build), note(in), note(out), note_numbers(n), note(op);
  return put_on(stream);
}
KILN_EXPORT int cccl_device_binary_transform(Build<88> build, Iterator first, Iterator second, Iterator out,
                                             std::uint64_t n, Op op, void* stream) {
  note("binary_transform", build), note(first), note(second), note(out), note_numbers(n), note(op);
  return put_on(stream);
}
KILN_EXPORT int cccl_device_for(Build<56> build, Iterator data, std::int64_t n, Op op, void* stream) {
  note("for", build), note(data), note_numbers(static_cast<unsigned long>(n)), note(op);
  return put_on(stream);
}
KILN_EXPORT int cccl_device_histogram_even(Build<168> build, void* memory, std::size_t* bytes, Iterator samples,
                                           Iterator histogram, Value levels, Value lower, Value upper,
                                           std::int64_t pixels, std::int64_t rows, std::int64_t stride, void* stream) {
  note("histogram_even", build), note(samples), note(histogram), note(levels), note(lower), note(upper);
  for (const std::int64_t number : {pixels, rows, stride}) note_numbers(static_cast<unsigned long>(number));
  return only_asks(memory, bytes, static_cast<unsigned long>(pixels * rows)) ? 0 : put_on(stream);
}
KILN_EXPORT int cccl_device_segmented_sort(Build<400> build, void* memory, std::size_t* bytes, Iterator keys_in,
                                           Iterator keys_out, Iterator values_in, Iterator values_out, std::int64_t n,
                                           std::int64_t segments, Iterator begin, Iterator end, bool overwrite,
                                           int* selector, void* stream) {
  note("segmented_sort", build), note(keys_in), note(keys_out), note(values_in), note(values_out), note(begin);
  note(end), note_numbers(static_cast<unsigned long>(n)), note_numbers(static_cast<unsigned long>(segments));
  note_numbers(overwrite ? 1 : 0);
  *selector = 0;
  return only_asks(memory, bytes, static_cast<unsigned long>(n)) ? 0 : put_on(stream);
}
}
