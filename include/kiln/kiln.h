// SPDX-License-Identifier: Apache-2.0
/// @file
/// The C interface of kiln, for C and for every language that calls C. One header, C11, usable from C++ too. docs/how-to/use-from-c.md
/// has an example program. kiln/session.hpp documents the C++ counterpart of each call in full; this header documents
/// what C adds.
///
/// **Ownership.** A call that returns an object (through its last `**` parameter before `error`) transfers it to the
/// caller, which frees it with the `_free` function of its type. Objects can be freed in any order; freeing NULL does
/// nothing. A string or pointer that a call returns belongs to the object that it was obtained from and lives as long
/// as that object. The library copies its inputs unless a function states otherwise. Objects keep what they need: a
/// kernel, a stream or a buffer keeps its session after kiln_session_free.
///
/// **Errors.** A call that can fail returns a code (KILN_OK is 0) and takes `kiln_error** error` as its last parameter,
/// which can be NULL. The call sets it to NULL on success and to an object that the caller owns on failure. On failure
/// the other output is NULL. No exception leaves the library. NULL, an object of another type, an unknown enumeration
/// value and an invalid length give KILN_INVALID_ARGUMENT if the library can detect them. It can often detect a freed
/// object, but do not rely on it. Functions that cannot fail (a name, a size) return NULL or 0 for NULL.
///
/// **Threads.** Any thread can use any object at any time, with two exceptions: one thread fills in options and units
/// before other threads use them, and no thread uses an object while or after it is freed.
///
/// **Strings** are UTF-8 and end with a zero byte.
///
/// **Versions.** The interface only grows. A struct that is passed by pointer has its size as its first field, unless
/// it is documented as "Never grows". The caller sets the field with `sizeof`. A library with more fields treats the
/// missing ones as zero; a library with fewer fields rejects additional fields that are not zero. Enumerations can
/// grow, so callers must handle unknown values. The last enumerator, `…_MAX_ENUM`, only reserves the range.
#ifndef KILN_KILN_H
#define KILN_KILN_H

#include <stddef.h>
#include <stdint.h>

/// The version of this header, raised with every change.
#define KILN_C_API_VERSION 1

/// A timeout in nanoseconds that means no limit. A timeout of 0 never waits.
#define KILN_FOREVER INT64_MAX

/// Marks the symbols that the library exports for C.
#define KILN_C_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/// Returns the version of the library. A program can use everything that it was compiled with if this is at least
/// KILN_C_API_VERSION.
KILN_C_API int kiln_c_api_version(void);
/// Returns the release of the library, for example "0.1.0".
KILN_C_API const char* kiln_version(void);

/// Error codes: kiln::Code. A cache miss is not an error.
typedef enum kiln_code {
  KILN_OK = 0,
  KILN_INVALID_ARGUMENT = 1,  ///< the caller passed an invalid value
  KILN_UNSUPPORTED = 2,       ///< valid, but not supported on this machine or by this library
  KILN_UNAVAILABLE = 3,       ///< a required library, program, device or directory is missing, or memory ran out
  KILN_COMPILE_FAILED = 4,    ///< the compiler rejected the unit; the log has its output
  KILN_DENIED = 5,            ///< policy or permissions forbid it
  KILN_IO = 6,                ///< an operating system call failed
  KILN_CORRUPT = 7,           ///< the bytes fail verification
  KILN_TIMED_OUT = 8,
  KILN_CANCELLED = 9,
  KILN_LOAD_REJECTED = 10,  ///< the driver rejects the code
  KILN_CAPTURING = 11,      ///< the stream is capturing a graph, and the call would have to load, allocate or wait
  KILN_INTERNAL = 12,       ///< a bug in kiln
  KILN_CODE_MAX_ENUM = 0x7fffffff
} kiln_code;

/// Returns the stable name of a code, for example "timed_out"; "unknown" for a code that the library does not know.
/// Never NULL.
KILN_C_API const char* kiln_code_name(kiln_code code);

/// The error of a failed call.
typedef struct kiln_error kiln_error;
/// Returns KILN_OK for NULL.
KILN_C_API kiln_code kiln_error_code(const kiln_error* error);
/// Returns a human-readable message; empty for NULL.
KILN_C_API const char* kiln_error_message(const kiln_error* error);
/// Returns the output of the compiler if one ran, otherwise an empty string.
KILN_C_API const char* kiln_error_log(const kiln_error* error);
KILN_C_API void kiln_error_free(kiln_error* error);

/// An interface to devices.
typedef enum kiln_backend {
  KILN_BACKEND_ANY = 0,  ///< in a kiln_allocator: every device of the session. Functions reject it
  KILN_BACKEND_CUDA = 1,
  KILN_BACKEND_OPENCL = 2,
  KILN_BACKEND_MAX_ENUM = 0x7fffffff
} kiln_backend;

/// @name Units
/// A unit is one program for one compiler, with its options and the kernels to export. The calls after kiln_unit_copy
/// modify a unit; a session keeps the state that the unit had when it was passed in.
/// @{
typedef struct kiln_unit kiln_unit;

/// The format of the bytes of an artifact or of a link part.
typedef enum kiln_form {
  KILN_FORM_CUBIN = 1,
  KILN_FORM_PTX = 2,
  KILN_FORM_LTOIR = 3,
  KILN_FORM_OPENCL_BINARY = 4,
  KILN_FORM_CCCL = 5,
  KILN_FORM_MAX_ENUM = 0x7fffffff
} kiln_form;

/// One part of a linked unit: a CUDA unit, or compiled bytes. Never grows.
typedef struct kiln_link_part {
  const kiln_unit* unit;  ///< if it is not NULL, the other fields are ignored
  const char* name;       ///< name in linker messages
  kiln_form form;         ///< KILN_FORM_CUBIN, KILN_FORM_PTX or KILN_FORM_LTOIR
  const void* data;
  size_t bytes;
} kiln_link_part;

/// Creates a CUDA C++ unit for NVRTC. `name` is the program name in compiler messages.
KILN_C_API kiln_code kiln_unit_cuda(const char* name, const char* source, kiln_unit** unit, kiln_error** error);
/// Creates an OpenCL C unit for the device's own compiler.
KILN_C_API kiln_code kiln_unit_opencl(const char* name, const char* source, kiln_unit** unit, kiln_error** error);
/// Reads a source file, as `kiln compile PATH` does: the name is the file's base name, and a CUDA source with a quoted
/// `#include` gets its directory as the first include root. KILN_IO if the file cannot be read.
KILN_C_API kiln_code kiln_unit_cuda_file(const char* path, kiln_unit** unit, kiln_error** error);
KILN_C_API kiln_code kiln_unit_opencl_file(const char* path, kiln_unit** unit, kiln_error** error);
/// Creates a unit that nvJitLink links from several compiled parts.
KILN_C_API kiln_code kiln_unit_link(const char* name, const kiln_link_part* parts, size_t part_count, kiln_unit** unit,
                                    kiln_error** error);
/// Creates a unit for a compiler that is a program, with its command line (docs/how-to/link-and-nvcc.md). NULL and 0 select
/// nvcc.
KILN_C_API kiln_code kiln_unit_command(const char* name, const char* source, const char* const* arguments,
                                       size_t argument_count, kiln_unit** unit, kiln_error** error);
/// Creates a unit for an algorithm of NVIDIA's CCCL, from its spec in JSON (docs/reference/cccl.md) or the name of a
/// predefined spec.
KILN_C_API kiln_code kiln_unit_cccl(const char* spec, kiln_unit** unit, kiln_error** error);
/// Creates another unit with the same content, which can then be modified.
KILN_C_API kiln_code kiln_unit_copy(const kiln_unit* from, kiln_unit** unit, kiln_error** error);
/// Creates a copy with another source after the same preamble, and with this entry.
KILN_C_API kiln_code kiln_unit_instance(const kiln_unit* from, const char* entry, const char* source, kiln_unit** unit,
                                        kiln_error** error);

/// Adds a kernel to export: a name, or for CUDA any name expression such as `scale<float, 4>`.
KILN_C_API kiln_code kiln_unit_add_entry(kiln_unit* unit, const char* name, kiln_error** error);
KILN_C_API kiln_code kiln_unit_add_option(kiln_unit* unit, const char* option, kiln_error** error);
/// Adds a directory to search for headers. `sentinel` is NULL, or the path of a file whose content represents the whole
/// directory.
KILN_C_API kiln_code kiln_unit_add_include_root(kiln_unit* unit, const char* path, const char* sentinel,
                                                kiln_error** error);
/// Adds a header from memory, under the name that the source includes it by.
KILN_C_API kiln_code kiln_unit_add_header(kiln_unit* unit, const char* name, const char* content, kiln_error** error);
/// Sets the text that precedes the source, replacing the previous preamble.
KILN_C_API kiln_code kiln_unit_set_preamble(kiln_unit* unit, const char* text, kiln_error** error);

/// Adds a namespace, or a pattern such as "acme/*", that can serve the unit from bundles and remote stores. With none,
/// every namespace that the session admits and trusts can serve it. It is not part of the unit's key.
KILN_C_API kiln_code kiln_unit_add_served_by(kiln_unit* unit, const char* name_space, kiln_error** error);

KILN_C_API const char* kiln_unit_kind(const kiln_unit* unit);
KILN_C_API const char* kiln_unit_name(const kiln_unit* unit);
/// Writes the unit's key, which covers everything that was set: 64 hexadecimal digits and a zero byte.
KILN_C_API kiln_code kiln_unit_key(const kiln_unit* unit, char hex[65], kiln_error** error);
KILN_C_API void kiln_unit_free(kiln_unit* unit);
/// @}

/// @name Options
/// Options of a session. Every option has a default.
/// @{
typedef struct kiln_options kiln_options;

/// A further field of an event of a library on top of kiln: kiln::Event::details.
typedef struct kiln_event_detail {
  const char* name;
  const char* value;
} kiln_event_detail;

/// An event: kiln::Event. The library sets `size` and can have more fields. Strings are valid during the callback and
/// are empty if they do not apply.
typedef struct kiln_event {
  size_t size;
  /// For example "hit", "blocking_compile"; docs/reference/events.md lists all kinds. With a `category`, the name of the
  /// library's event.
  const char* kind;
  const char* unit;
  const char* target;
  const char* key;
  const char* origin;   ///< memory, bundle, disk, remote or compiled
  const char* message;  ///< human-readable reason
  double ms;            ///< duration; it ended when the event was emitted
  uint64_t bytes;
  uint64_t stream;
  uint64_t task_id;  ///< identifies the compile task (unit and target) in this process
  const char* requested;
  const char* selected;
  uint64_t grid_blocks;
  uint32_t block_threads;
  uint32_t suggested_block_threads;
  const char* operation;
  const char* stage;
  uint64_t dispatch;
  uint64_t workflow;
  uint64_t rows;
  const char* residency;
  const char* purpose;
  const char* category;  ///< for an event of a library on top of kiln: that library, for example "runtime"
  /// For a decision, a dispatch or a call of a CCCL algorithm: 1 if its code was ready, 0 if not. Otherwise -1.
  int64_t warm;
  uint64_t shared_bytes;  ///< for a launch: shared memory per block, static and dynamic; 0 if unknown
  /// For a copy between host and device: 1 if the host memory is page-locked, 0 if not. Otherwise, or if unknown, -1.
  int64_t pinned;
  int64_t cpu_device;                ///< 1 if the device of the event is a CPU (for example PoCL), otherwise 0
  const kiln_event_detail* details;  ///< NULL if there are none
  size_t detail_count;
} kiln_event;

/// A callback for events. The library calls it on the thread that emits the event. It must be fast and must not call
/// kiln.
typedef void (*kiln_event_callback)(const kiln_event* event, void* user);
/// A callback that frees `user`. The library calls it when it no longer uses `user`.
typedef void (*kiln_release_callback)(void* user);

/// A source of device memory: kiln::Allocator.
typedef struct kiln_allocator {
  size_t size;
  /// Returns memory for use on the stream (a CUdeviceptr or cl_mem), or NULL if none is available.
  void* (*allocate)(size_t bytes, void* stream, void* user);
  void (*release)(void* memory, size_t bytes, void* stream, void* user);
  /// Optional, may be NULL. Returns why the thread's last `allocate` returned NULL. The library reads it before the
  /// thread calls again.
  const char* (*last_error)(void* user);
  kiln_backend backend;  ///< the backend to use it for, or KILN_BACKEND_ANY
  uint32_t reserved;     ///< set to 0
  void* user_data;
  kiln_release_callback free_user_data;  ///< may be NULL
} kiln_allocator;

KILN_C_API kiln_code kiln_options_new(kiln_options** options, kiln_error** error);
/// Sets a setting by its name in docs/reference/configuration.md. Configuration files and KILN_* variables override it unless it
/// is `locked`. An unknown name or an invalid value is reported as an event, so that an old setting never stops a
/// program.
KILN_C_API kiln_code kiln_options_set(kiln_options* options, const char* name, const char* value, int locked,
                                      kiln_error** error);
/// Sets the event callback. `free_user_data` can be NULL. Otherwise the library calls it once, when no more calls of
/// the callback are possible: after the options, their sessions and all objects of these were freed.
KILN_C_API kiln_code kiln_options_on_event(kiln_options* options, kiln_event_callback callback, void* user_data,
                                           kiln_release_callback free_user_data, kiln_error** error);
KILN_C_API kiln_code kiln_options_allocator(kiln_options* options, const kiln_allocator* allocator, kiln_error** error);
/// Sets the cl_context and cl_device_id to load into; OpenCL has no current context.
KILN_C_API kiln_code kiln_options_opencl(kiln_options* options, void* context, void* device, kiln_error** error);
/// Enables the event counts of kiln_session_metrics.
KILN_C_API kiln_code kiln_options_collect_metrics(kiln_options* options, int enabled, kiln_error** error);
/// Trusts what this key (as printed by `kiln key show`) signs for a namespace ("acme/vision", "acme/*", "*").
KILN_C_API kiln_code kiln_options_trust(kiln_options* options, const char* key, const char* name_space,
                                        kiln_error** error);
/// Sets the minimum epoch of a namespace. The session rejects content with a lower epoch, regardless of who signed it.
KILN_C_API kiln_code kiln_options_minimum_epoch(kiln_options* options, const char* name_space, uint64_t epoch,
                                                kiln_error** error);
/// Trusts what certified hosts published in a live namespace, for 1 to 365 days.
KILN_C_API kiln_code kiln_options_trust_live(kiln_options* options, const char* name_space, uint64_t days,
                                             kiln_error** error);
/// Revokes a key and the hosts that it certified.
KILN_C_API kiln_code kiln_options_revoke(kiln_options* options, const char* key, kiln_error** error);
KILN_C_API void kiln_options_free(kiln_options* options);
/// @}

/// @name Sessions
/// A session looks units up in the cache, compiles missing ones in the background, loads them and keeps them in memory.
/// @{
typedef struct kiln_session kiln_session;

/// Opens a session. `options` can be NULL, and can be freed or reused afterwards. Opens no file and starts no thread.
KILN_C_API kiln_code kiln_session_open(const kiln_options* options, kiln_session** session, kiln_error** error);
/// Returns the process-wide session. Freeing the returned object does not end it.
KILN_C_API kiln_code kiln_session_shared(kiln_session** session, kiln_error** error);
/// Frees a session. When the last object of the session is freed, its work ends: queued units are dropped, workers are
/// terminated, and a compile in this process is waited for.
KILN_C_API void kiln_session_free(kiln_session* session);

/// Requests units that will be needed, and returns at once. `target` is NULL for every device of the process, or the
/// name of a target: "sm_90", "compute_90", "lto_90"; for OpenCL units the `target` of a kiln_device. Repeating a
/// request is free.
KILN_C_API kiln_code kiln_session_request(kiln_session* session, const kiln_unit* const* units, size_t unit_count,
                                          const char* target, kiln_error** error);
/// Cancels a request. Callers that wait for it get KILN_CANCELLED.
KILN_C_API kiln_code kiln_session_cancel(kiln_session* session, const kiln_unit* const* units, size_t unit_count,
                                         const char* target, kiln_error** error);
/// Retries failed units. A failure is cached until an input changes or this is called.
KILN_C_API kiln_code kiln_session_retry(kiln_session* session, const kiln_unit* const* units, size_t unit_count,
                                        const char* target, kiln_error** error);
/// Marks the included files of these units as possibly changed, for all targets. The next request or get of such a
/// unit, or of its artifact, checks the files that it was compiled from. If nothing changed, the kernel stays;
/// otherwise the unit is looked up or compiled again. A kiln_kernel obtained earlier keeps the old code.
KILN_C_API kiln_code kiln_session_refresh(kiln_session* session, const kiln_unit* const* units, size_t unit_count,
                                          kiln_error** error);
/// Cancels these units and removes everything that the session holds for them, for all targets. For programs that
/// generate an unbounded number of units. Stored cache entries stay. A kiln_kernel of such a unit stays usable until it
/// is freed.
KILN_C_API kiln_code kiln_session_release(kiln_session* session, const kiln_unit* const* units, size_t unit_count,
                                          kiln_error** error);

/// The units of a plan that are not ready.
typedef struct kiln_not_ready kiln_not_ready;
/// A unit that is not ready. Strings belong to the kiln_not_ready.
typedef struct kiln_not_ready_unit {
  size_t size;
  const char* unit;
  const char* target;  ///< empty if there is no device
  const char* reason;
} kiln_not_ready_unit;

/// Requests units for every device of the process and waits until each one is ready or has failed, at most `timeout_ns`
/// in total. Returns the units that are not ready by then: without a device, all of them. See kiln::WarmupPlan, which
/// waits 3 s by default.
KILN_C_API kiln_code kiln_session_ensure_warm(kiln_session* session, const kiln_unit* const* units, size_t unit_count,
                                              int64_t timeout_ns, kiln_not_ready** not_ready, kiln_error** error);
KILN_C_API size_t kiln_not_ready_count(const kiln_not_ready* not_ready);
/// Fills in `unit`. Set its `size` before the call.
KILN_C_API kiln_code kiln_not_ready_at(const kiln_not_ready* not_ready, size_t index, kiln_not_ready_unit* unit,
                                       kiln_error** error);
KILN_C_API void kiln_not_ready_free(kiln_not_ready* not_ready);

/// Writes the trace file, if the setting `trace` names one. The end of the session writes it too.
KILN_C_API kiln_code kiln_session_write_trace(kiln_session* session, kiln_error** error);
/// Makes the primary context of a device current in this thread, for programs that have no context. OpenCL has no
/// current context: there, it selects the device for all threads.
KILN_C_API kiln_code kiln_session_make_current(kiln_session* session, kiln_backend backend, size_t device,
                                               kiln_error** error);
/// @}

/// @name Level 1: bytes
/// Needs no device, no context and no driver.
/// @{
typedef struct kiln_artifact kiln_artifact;

/// Returns the compiled code of a unit. Waits at most `timeout_ns`. The target is as in kiln_session_request, but not
/// NULL.
KILN_C_API kiln_code kiln_session_artifact(kiln_session* session, const kiln_unit* unit, const char* target,
                                           int64_t timeout_ns, kiln_artifact** artifact, kiln_error** error);
KILN_C_API const void* kiln_artifact_data(const kiln_artifact* artifact);
KILN_C_API size_t kiln_artifact_bytes(const kiln_artifact* artifact);
KILN_C_API kiln_form kiln_artifact_form(const kiln_artifact* artifact);
/// Returns the name of the target.
KILN_C_API const char* kiln_artifact_target(const kiln_artifact* artifact);
/// Returns the symbol that the compiler gave an entry, or NULL if the artifact does not have the entry.
KILN_C_API const char* kiln_artifact_symbol(const kiln_artifact* artifact, const char* entry);
/// Returns the name of an entry, or NULL if the artifact has no entry with this index. The entries of a CCCL algorithm
/// are the lowered names of its kernels.
KILN_C_API const char* kiln_artifact_entry(const kiln_artifact* artifact, size_t index);
/// Returns the name of the compiler.
KILN_C_API const char* kiln_artifact_compiler(const kiln_artifact* artifact);
/// Returns the output of the compiler, for example warnings.
KILN_C_API const char* kiln_artifact_log(const kiln_artifact* artifact);
/// Returns the compile time in milliseconds, measured when the code was compiled.
KILN_C_API double kiln_artifact_cost_ms(const kiln_artifact* artifact);
KILN_C_API void kiln_artifact_free(kiln_artifact* artifact);

/// The description of an artifact of form KILN_FORM_CCCL. The bytes belong to the artifact.
typedef struct kiln_cccl_info {
  size_t size;
  const void* data;       ///< the serialized form of the CCCL library itself, which its deserialize functions read
  size_t bytes;           ///< size of that form
  size_t policy_bytes;    ///< size of the runtime policy
  uint32_t capability;    ///< compute capability: 90 for sm_90
  uint32_t kernel_count;  ///< number of kernels; kiln_artifact_entry returns their lowered names
} kiln_cccl_info;
/// Fills in `info`. Set its `size` before the call. KILN_INVALID_ARGUMENT if the artifact is of another form.
KILN_C_API kiln_code kiln_artifact_cccl(const kiln_artifact* artifact, kiln_cccl_info* info, kiln_error** error);
/// @}

/// @name Levels 2 and 3: native handles and launches
/// @{
typedef struct kiln_kernel kiln_kernel;

/// Options of kiln_session_get_ex.
typedef struct kiln_get_options {
  size_t size;
  int64_t timeout_ns;
  const char* file;  ///< caller for events: __FILE__, or NULL; must live as long as the session
  int line;          ///< __LINE__
  int on_stream;     ///< not 0: for a launch on `stream`, which may be capturing a graph (KILN_CAPTURING)
  void* stream;      ///< not NULL if `on_stream` is not 0
} kiln_get_options;

/// A size in up to three dimensions. Never grows.
typedef struct kiln_dim3 {
  uint32_t x;
  uint32_t y;
  uint32_t z;
} kiln_dim3;

/// A CUDA driver launch attribute. Never grows.
typedef struct kiln_launch_attribute {
  uint32_t id;
  unsigned char value[64];
} kiln_launch_attribute;

/// CUDA's legacy default stream, and its default stream of the calling thread, for kiln_launch and kiln_get_options.
#define KILN_CUDA_DEFAULT_STREAM ((void*)1)
#define KILN_CUDA_PER_THREAD_STREAM ((void*)2)

/// The configuration of a kernel launch. Stream, grid and block have no defaults: NULL, or a size with a component of
/// 0, gives KILN_INVALID_ARGUMENT. Anything that the device does not support gives KILN_UNSUPPORTED; it is never
/// silently changed.
typedef struct kiln_launch {
  size_t size;
  void* stream;         ///< CUstream or cl_command_queue
  kiln_dim3 grid;       ///< in blocks
  kiln_dim3 block;      ///< in threads
  size_t shared_bytes;  ///< dynamic shared memory
  kiln_dim3 cluster;    ///< all zero means no cluster
  int cooperative;
  int programmatic;  ///< may start before the preceding launch has finished
  int priority;
  const kiln_launch_attribute* attributes;  ///< other attributes, passed to the driver unchanged
  size_t attribute_count;
} kiln_launch;

/// One kernel argument: the address of its value, valid during the call, and its size. OpenCL local memory has a size
/// and no data. Never grows.
typedef struct kiln_argument {
  const void* data;
  size_t bytes;
} kiln_argument;

/// A launch size that keeps the device fully occupied.
typedef struct kiln_occupancy {
  size_t size;
  uint32_t block_size;     ///< threads per block
  uint32_t min_grid_size;  ///< minimum number of blocks that uses the whole device
} kiln_occupancy;

/// Returns a kernel. `entry` is one of the unit's entries, or NULL if it has only one. If the kernel is ready, the call
/// returns at once. Otherwise it joins or starts the compile of this kernel and waits for it, at most `timeout_ns`.
/// After a timeout the compile continues, and a later call can use its result. Keep the returned object: it works on
/// every device of the process until it is freed.
KILN_C_API kiln_code kiln_session_get(kiln_session* session, const kiln_unit* unit, const char* entry,
                                      int64_t timeout_ns, kiln_kernel** kernel, kiln_error** error);
/// Same as kiln_session_get, for a launch on a stream that may be capturing a graph, or with the location of the
/// caller.
KILN_C_API kiln_code kiln_session_get_ex(kiln_session* session, const kiln_unit* unit, const char* entry,
                                         const kiln_get_options* wait, kiln_kernel** kernel, kiln_error** error);
/// Returns a value other than 0 if an earlier kiln_session_get made the kernel ready for every device of the process.
/// Starts no work. A unit that was only requested is not ready here before its first kiln_session_get, and with devices
/// of different targets none is. To poll, call kiln_session_get with a timeout of 0.
KILN_C_API int kiln_session_ready(kiln_session* session, const kiln_unit* unit, const char* entry);

/// Launches the kernel on the stream, in the thread's current context. Does not wait for it.
KILN_C_API kiln_code kiln_kernel_launch(const kiln_kernel* kernel, const kiln_launch* how,
                                        const kiln_argument* arguments, size_t argument_count, kiln_error** error);
/// Returns the CUkernel or cl_kernel, which belongs to the kernel.
KILN_C_API void* kiln_kernel_native(const kiln_kernel* kernel);
/// Returns the CUfunction in the thread's current context, or the cl_kernel.
KILN_C_API kiln_code kiln_kernel_function(const kiln_kernel* kernel, void** function, kiln_error** error);
/// Fills in `occupancy`. Set its `size` before the call.
KILN_C_API kiln_code kiln_kernel_occupancy(const kiln_kernel* kernel, size_t shared_bytes, kiln_occupancy* occupancy,
                                           kiln_error** error);
KILN_C_API const char* kiln_kernel_name(const kiln_kernel* kernel);
KILN_C_API void kiln_kernel_free(kiln_kernel* kernel);
/// @}

/// @name Streams and memory
/// For programs that have no stream. Every calling thread must have the context current in which the stream was
/// created.
/// @{
typedef struct kiln_stream kiln_stream;
typedef struct kiln_buffer kiln_buffer;

/// Creates a stream in the current context. If this thread has no current CUDA context, the primary context of the
/// first device becomes current in it and stays so.
KILN_C_API kiln_code kiln_stream_new(kiln_session* session, kiln_backend backend, kiln_stream** stream,
                                     kiln_error** error);
/// Returns the CUstream or cl_command_queue, which belongs to the stream.
KILN_C_API void* kiln_stream_native(const kiln_stream* stream);
KILN_C_API kiln_code kiln_stream_synchronize(const kiln_stream* stream, kiln_error** error);
KILN_C_API void kiln_stream_free(kiln_stream* stream);

/// Allocates device memory, which is freed in stream order. `from` is NULL, or the bytes to copy into it.
KILN_C_API kiln_code kiln_buffer_new(const kiln_stream* stream, const void* from, size_t bytes, kiln_buffer** buffer,
                                     kiln_error** error);
/// Copies from the start of `from` to the start of `to`. The copy is complete on return.
KILN_C_API kiln_code kiln_buffer_upload(kiln_buffer* to, const void* from, size_t bytes, kiln_error** error);
KILN_C_API kiln_code kiln_buffer_download(void* to, const kiln_buffer* from, size_t bytes, kiln_error** error);
/// Returns the CUdeviceptr or cl_mem, which belongs to the buffer.
KILN_C_API void* kiln_buffer_native(const kiln_buffer* buffer);
KILN_C_API size_t kiln_buffer_bytes(const kiln_buffer* buffer);
/// Returns the buffer as a kernel argument, valid as long as the buffer.
KILN_C_API kiln_argument kiln_buffer_argument(const kiln_buffer* buffer);
KILN_C_API void kiln_buffer_free(kiln_buffer* buffer);
/// @}

/// @name Operations
/// The program's own names for what it does. Every event of the calling thread carries them, so that `kiln audit`
/// (docs/how-to/audit-a-trace.md) reports by operation and stage. A scope belongs to the thread that began it, which must end it;
/// scopes should nest. kiln::OperationScope.
/// @{
typedef struct kiln_scope kiln_scope;

/// The location of the rows that an operation works on.
typedef enum kiln_residency {
  KILN_RESIDENCY_UNKNOWN = 0,
  KILN_RESIDENCY_HOST = 1,
  KILN_RESIDENCY_DEVICE = 2,
  KILN_RESIDENCY_MAX_ENUM = 0x7fffffff
} kiln_residency;

/// The purpose of copies and waits: kiln::Purpose.
typedef enum kiln_purpose {
  KILN_PURPOSE_UNSPECIFIED = 0,
  KILN_PURPOSE_INPUT = 1,            ///< rows that the program passes in are copied to the device
  KILN_PURPOSE_ALLOCATION_SIZE = 2,  ///< one scalar is read that determines the size of an allocation
  KILN_PURPOSE_MATERIALIZE = 3,      ///< results are copied to the host because the caller requested them there
  KILN_PURPOSE_TRACE = 4,            ///< made only to measure; absent without a trace
  KILN_PURPOSE_MAX_ENUM = 0x7fffffff
} kiln_purpose;

/// One run of an operation.
typedef struct kiln_operation {
  size_t size;
  const char* name;  ///< for example "spatial.sjoin"; not empty
  uint64_t rows;
  kiln_residency residency;
  uint32_t reserved;  ///< set to 0
} kiln_operation;

/// Begins a run of an operation on the calling thread. Each run has its own id in events (`dispatch`).
KILN_C_API kiln_code kiln_operation_begin(const kiln_operation* operation, kiln_scope** scope, kiln_error** error);
/// Begins a stage of the calling thread's operation.
KILN_C_API kiln_code kiln_stage_begin(const char* name, kiln_scope** scope, kiln_error** error);
/// Begins a part in which the calling thread's copies and waits have this purpose.
KILN_C_API kiln_code kiln_purpose_begin(kiln_purpose purpose, kiln_scope** scope, kiln_error** error);
/// Ends a scope and frees it. On another thread than the one that began it: KILN_INVALID_ARGUMENT, and the scope stays.
KILN_C_API kiln_code kiln_scope_end(kiln_scope* scope, kiln_error** error);
/// Records that the calling thread launched a kernel by other means than kiln_kernel_launch.
KILN_C_API void kiln_count_launch(void);
/// @}

/// @name Devices and status
/// @{
/// A snapshot of the devices of a backend.
typedef struct kiln_devices kiln_devices;
/// One device. Strings belong to the list.
typedef struct kiln_device {
  size_t size;
  const char* name;
  const char* target;  ///< target to compile for
  uint64_t memory;
  uint32_t units;  ///< number of multiprocessors or compute units
  /// ratio of single- to double-precision throughput; 0 if there is no double precision or it is unknown
  uint32_t fp64_ratio;
  uint64_t is_cpu;  ///< 1 if the device is a CPU, as with PoCL; otherwise 0
} kiln_device;

/// Returns the devices of a backend. Opens the driver. An error names what is missing.
KILN_C_API kiln_code kiln_devices_new(kiln_session* session, kiln_backend backend, kiln_devices** devices,
                                      kiln_error** error);
KILN_C_API size_t kiln_devices_count(const kiln_devices* devices);
/// Fills in `device`. Set its `size` before the call.
KILN_C_API kiln_code kiln_devices_at(const kiln_devices* devices, size_t index, kiln_device* device,
                                     kiln_error** error);
KILN_C_API void kiln_devices_free(kiln_devices* devices);

typedef enum kiln_state {
  KILN_STATE_QUEUED = 0,
  KILN_STATE_RUNNING = 1,
  KILN_STATE_READY = 2,
  KILN_STATE_FAILED = 3,
  KILN_STATE_CANCELLED = 4,
  KILN_STATE_MAX_ENUM = 0x7fffffff
} kiln_state;

/// The tier that an artifact came from, or compiled.
typedef enum kiln_origin {
  KILN_ORIGIN_COMPILED = 0,
  KILN_ORIGIN_MEMORY = 1,
  KILN_ORIGIN_BUNDLE = 2,
  KILN_ORIGIN_DISK = 3,
  KILN_ORIGIN_REMOTE = 4,
  KILN_ORIGIN_MAX_ENUM = 0x7fffffff
} kiln_origin;

/// A snapshot of all units of a session.
typedef struct kiln_status kiln_status;
/// The number of units in each state.
typedef struct kiln_totals {
  size_t size;
  size_t submitted;
  size_t compiled;  ///< ready; compiled by this process
  size_t cached;    ///< ready; found in a tier
  size_t pending;   ///< queued or running
  size_t failed;
  size_t cancelled;
  double wall_ms;  ///< from the first request to the end of the last work, or to now if units are pending
} kiln_totals;
/// The status of one unit for one target. Strings belong to the status.
typedef struct kiln_unit_status {
  size_t size;
  const char* unit;
  const char* kind;
  const char* target;
  kiln_state state;
  kiln_origin origin;  ///< tier that had the unit, if it is ready
  double ms;           ///< from the start of the work to its end
  const char* error;   ///< message if it failed, otherwise empty
} kiln_unit_status;

KILN_C_API kiln_code kiln_status_new(kiln_session* session, kiln_status** status, kiln_error** error);
/// Fills in `totals`. Set its `size` before the call.
KILN_C_API kiln_code kiln_status_totals(const kiln_status* status, kiln_totals* totals, kiln_error** error);
KILN_C_API size_t kiln_status_count(const kiln_status* status);
/// Fills in `unit`. Set its `size` before the call. Units are in order of submission.
KILN_C_API kiln_code kiln_status_at(const kiln_status* status, size_t index, kiln_unit_status* unit,
                                    kiln_error** error);
KILN_C_API void kiln_status_free(kiln_status* status);
/// Returns the stable name of a state ("ready") or of an origin ("disk"); "unknown" for other values. Never NULL.
KILN_C_API const char* kiln_state_name(kiln_state state);
KILN_C_API const char* kiln_origin_name(kiln_origin origin);

/// A string that the caller frees.
typedef struct kiln_string kiln_string;
/// Returns the status, and the event counts if the session counts events, in the Prometheus text format.
KILN_C_API kiln_code kiln_session_metrics(kiln_session* session, kiln_string** text, kiln_error** error);
KILN_C_API const char* kiln_string_data(const kiln_string* text);
KILN_C_API size_t kiln_string_size(const kiln_string* text);
KILN_C_API void kiln_string_free(kiln_string* text);
/// @}

#ifdef __cplusplus
}
#endif

#endif
