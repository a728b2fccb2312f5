// The sum, minimum or maximum of each segment of doubles: segment s has the values offsets[s] … offsets[s + 1]. A
// segment without values yields the neutral element. One launch, regardless of the counts: a work group processes a
// range of segments; each of its items alone the short ones, all of them together the long ones. The order of the
// additions depends only on the length of the segment, so the result is deterministic.
#define GROUP 64u
#define SHORT_SEGMENT 64u
#define SUM 0u
#define MINIMUM 1u

double neutral(uint kind) { return kind == SUM ? 0.0 : kind == MINIMUM ? INFINITY : -INFINITY; }

double combined(uint kind, double a, double b) {
  if (kind == SUM) return a + b;
  return kind == MINIMUM ? (b < a ? b : a) : (b > a ? b : a);
}

double reduced(uint kind, __global const double* values, uint first, uint last, uint step) {
  double result = neutral(kind);
  for (uint i = first; i < last; i += step) result = combined(kind, result, values[i]);
  return result;
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void segmented_reduce(uint kind, uint segments, __global const uint* offsets, __global const double* values,
                      __global double* results) {
  __local double parts[GROUP];
  const uint me = (uint)get_local_id(0);
  const ulong stretch = ((ulong)segments + get_num_groups(0) - 1) / get_num_groups(0);
  const uint first = (uint)min((ulong)get_group_id(0) * stretch, (ulong)segments);
  const uint last = (uint)min(((ulong)get_group_id(0) + 1) * stretch, (ulong)segments);
  for (uint i = first + me; i < last; i += GROUP) {
    if (offsets[i + 1] - offsets[i] > SHORT_SEGMENT) continue;
    results[i] = reduced(kind, values, offsets[i], offsets[i + 1], 1);
  }
  for (uint i = first; i < last; ++i) {
    if (offsets[i + 1] - offsets[i] > SHORT_SEGMENT) {  // the same in all items of the group
      parts[me] = reduced(kind, values, offsets[i] + me, offsets[i + 1], GROUP);
      barrier(CLK_LOCAL_MEM_FENCE);
      if (me == 0) {
        double result = parts[0];
        for (uint k = 1; k < GROUP; ++k) result = combined(kind, result, parts[k]);
        results[i] = result;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }
}
