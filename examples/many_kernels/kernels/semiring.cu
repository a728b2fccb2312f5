// The family as one program: all 31 kernels. A program that is compiled at run time in this form waits for all of them
// before it can launch one. examples/many_kernels/kiln.toml is what `kiln split` writes for this file.
#include "semiring.cuh"

GEMM(gemm_max_plus_f32, max_plus, f32)
GEMM(gemm_max_plus_f64, max_plus, f64)
GEMM(gemm_max_plus_i32, max_plus, i32)
GEMM(gemm_max_plus_i64, max_plus, i64)
GEMM(gemm_min_plus_f32, min_plus, f32)
GEMM(gemm_min_plus_f64, min_plus, f64)
GEMM(gemm_min_plus_i32, min_plus, i32)
GEMM(gemm_min_plus_i64, min_plus, i64)
GEMM(gemm_max_times_f32, max_times, f32)
GEMM(gemm_max_times_f64, max_times, f64)
GEMM(gemm_max_times_i32, max_times, i32)
GEMM(gemm_max_times_i64, max_times, i64)

ARGMAX(argmax_max_plus_f32, max_plus, f32)
ARGMAX(argmax_max_plus_f64, max_plus, f64)
ARGMAX(argmax_max_plus_i32, max_plus, i32)
ARGMAX(argmax_max_plus_i64, max_plus, i64)
ARGMAX(argmax_min_plus_f32, min_plus, f32)
ARGMAX(argmax_min_plus_f64, min_plus, f64)
ARGMAX(argmax_min_plus_i32, min_plus, i32)
ARGMAX(argmax_min_plus_i64, min_plus, i64)
ARGMAX(argmax_max_times_f32, max_times, f32)
ARGMAX(argmax_max_times_f64, max_times, f64)
ARGMAX(argmax_max_times_i32, max_times, i32)
ARGMAX(argmax_max_times_i64, max_times, i64)

BACKWARD_A(backward_a_f32, f32)
BACKWARD_A(backward_a_f64, f64)
BACKWARD_B(backward_b_f32, f32)
BACKWARD_B(backward_b_f64, f64)

BATCHED(batched_max_plus_f32, max_plus, f32)
BATCHED(batched_min_plus_f32, min_plus, f32)
BATCHED(batched_max_times_f32, max_times, f32)
