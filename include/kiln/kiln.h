/// @file
/// kiln for C, and for every language that calls C: all of it in one header, C11, usable from C++ too. docs/c.md has a
/// program. What a call does is said in full at its counterpart in kiln/session.hpp; here is what C adds.
///
/// **Ownership.** A call that gives you an object (its last `**` argument but `error`) gives it to you: you end it with
/// the `_free` of its type, in any order, and NULL may be freed. A string or pointer that a call returns belongs to the
/// object that it was asked of and lives as long as that. What you hand in is copied, unless its function says
/// otherwise. Objects keep what they need: a kernel, a stream or a buffer keeps its session after kiln_session_free.
///
/// **Errors.** A call that can fail returns a code, KILN_OK being zero, and takes `kiln_error** error` as its last
/// argument, which may be NULL. It is set to NULL when the call succeeds and to an object of yours when it fails. What
/// a call would have given is NULL then. No exception leaves the library. NULL, an object of another type, an unknown
/// number and a length that makes no sense are KILN_INVALID_ARGUMENT where they can be recognised: an object that was
/// freed often can, but you must not count on it. Questions that cannot fail (a name, a size) answer NULL or zero to
/// NULL.
///
/// **Threads.** Any thread may use any object at any time, with two exceptions: options and units are filled in by one
/// thread, before others see them, and nobody uses an object any more when it is freed.
///
/// **Strings** are UTF-8 and end with a zero byte.
///
/// **Versions.** The interface only grows. Structs that are handed over by pointer have their size as their first
/// field (those that "never grow" excepted), which you set with `sizeof`: a library that knows of more fields takes
/// those that are missing as zero, and one that knows of fewer refuses those beyond that are not zero. Enumerations may
/// grow: be ready for a value that you do not know. Their last, `…_ROOM`, only says that there is room for it.
#ifndef KILN_KILN_H
#define KILN_KILN_H

#include <stddef.h>
#include <stdint.h>

/// Raised with every change of this header.
#define KILN_C_API_VERSION 1

/// As a limit of time in nanoseconds: none. Zero never waits.
#define KILN_FOREVER INT64_MAX

/// What the library exports for C.
#define KILN_C_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/// That of the library; a program may ask for what it was compiled with where this is at least KILN_C_API_VERSION.
KILN_C_API int kiln_c_api_version(void);
/// The release that the library is of: "0.1.0".
KILN_C_API const char* kiln_version(void);

/// Why something could not be done: kiln::Code. Absence is not an error.
typedef enum kiln_code {
  KILN_OK = 0,
  KILN_INVALID_ARGUMENT = 1,  ///< the caller asked for something that makes no sense
  KILN_UNSUPPORTED = 2,       ///< it makes sense, but not on this machine or with this library
  KILN_UNAVAILABLE = 3,       ///< a library, program, device or directory that is needed is not there, or no memory is left
  KILN_COMPILE_FAILED = 4,    ///< the compiler ran and said no; the log has what it said
  KILN_REFUSED = 5,           ///< policy says no
  KILN_IO = 6,                ///< the operating system said no
  KILN_CORRUPT = 7,           ///< bytes that are not what they claim to be
  KILN_TIMED_OUT = 8,
  KILN_CANCELLED = 9,
  KILN_LOAD_REFUSED = 10,  ///< the driver does not take these bytes
  KILN_CAPTURING = 11,     ///< the stream records a graph, and this would have to load, allocate or wait
  KILN_INTERNAL = 12,      ///< a bug in kiln
  KILN_CODE_ROOM = 0x7fffffff
} kiln_code;

/// The stable name of a code, "timed_out"; "unknown" of one that the library does not know. Never NULL.
KILN_C_API const char* kiln_code_name(kiln_code code);

/// What a call that failed has to say.
typedef struct kiln_error kiln_error;
/// KILN_OK of NULL.
KILN_C_API kiln_code kiln_error_code(const kiln_error* error);
/// One sentence for a person; empty of NULL.
KILN_C_API const char* kiln_error_message(const kiln_error* error);
/// What a compiler printed, where one ran; else empty.
KILN_C_API const char* kiln_error_log(const kiln_error* error);
KILN_C_API void kiln_error_free(kiln_error* error);

/// @name Units
/// What an author wrote: one program for one compiler, with its options and the kernels wanted from it. The calls below
/// kiln_unit_copy add to a unit; a session that was given it earlier knows it as it was then.
/// @{
typedef struct kiln_unit kiln_unit;

/// What the bytes of an artifact or of a part are.
typedef enum kiln_form {
  KILN_FORM_CUBIN = 1,
  KILN_FORM_PTX = 2,
  KILN_FORM_LTOIR = 3,
  KILN_FORM_OPENCL_BINARY = 4,
  KILN_FORM_CCCL = 5,
  KILN_FORM_ROOM = 0x7fffffff
} kiln_form;

/// One part of a linked unit: a CUDA unit, or compiled code by its bytes. Never grows.
typedef struct kiln_link_part {
  const kiln_unit* unit;  ///< the other fields count where this is NULL
  const char* name;       ///< what the linker calls it in messages
  kiln_form form;         ///< KILN_FORM_CUBIN, KILN_FORM_PTX or KILN_FORM_LTOIR
  const void* data;
  size_t bytes;
} kiln_link_part;

/// CUDA C++ for NVRTC. `name` is what the compiler calls the program.
KILN_C_API kiln_code kiln_unit_cuda(const char* name, const char* source, kiln_unit** unit, kiln_error** error);
/// OpenCL C for the device's own compiler.
KILN_C_API kiln_code kiln_unit_opencl(const char* name, const char* source, kiln_unit** unit, kiln_error** error);
/// Compiled code of several parts, linked into one by nvJitLink.
KILN_C_API kiln_code kiln_unit_link(const char* name, const kiln_link_part* parts, size_t part_count, kiln_unit** unit,
                                    kiln_error** error);
/// A source for a compiler that is a program: its command line, docs/command-compiler.md; NULL and zero for nvcc's.
KILN_C_API kiln_code kiln_unit_command(const char* name, const char* source, const char* const* arguments,
                                       size_t argument_count, kiln_unit** unit, kiln_error** error);
/// An algorithm of NVIDIA's CCCL by its spec in JSON (docs/cccl-spec.md), or by the name of a founding one.
KILN_C_API kiln_code kiln_unit_cccl(const char* spec, kiln_unit** unit, kiln_error** error);
/// Another unit with the same content, to be given more.
KILN_C_API kiln_code kiln_unit_copy(const kiln_unit* from, kiln_unit** unit, kiln_error** error);
/// A copy with other source text behind the same preamble, and this entry.
KILN_C_API kiln_code kiln_unit_instance(const kiln_unit* from, const char* entry, const char* source, kiln_unit** unit,
                                        kiln_error** error);

/// One kernel to find in the result: a name, or for CUDA any name expression such as `scale<float, 4>`.
KILN_C_API kiln_code kiln_unit_add_entry(kiln_unit* unit, const char* name, kiln_error** error);
KILN_C_API kiln_code kiln_unit_add_option(kiln_unit* unit, const char* option, kiln_error** error);
/// A folder to search for headers. `seal` is NULL, or one file whose content stands for everything in the folder.
KILN_C_API kiln_code kiln_unit_add_include_root(kiln_unit* unit, const char* path, const char* seal,
                                                kiln_error** error);
/// A header from memory, under the name by which the source includes it.
KILN_C_API kiln_code kiln_unit_add_header(kiln_unit* unit, const char* name, const char* content, kiln_error** error);
/// Text that goes before the source, in the place of what was there.
KILN_C_API kiln_code kiln_unit_set_preamble(kiln_unit* unit, const char* text, kiln_error** error);

KILN_C_API const char* kiln_unit_kind(const kiln_unit* unit);
KILN_C_API const char* kiln_unit_name(const kiln_unit* unit);
/// Its key, which covers all that was given: 64 hexadecimal digits and a zero byte.
KILN_C_API kiln_code kiln_unit_key(const kiln_unit* unit, char hex[65], kiln_error** error);
KILN_C_API void kiln_unit_free(kiln_unit* unit);
/// @}

/// @name Options
/// How a program sets kiln up. Without any, everything has its default.
/// @{
typedef struct kiln_options kiln_options;

/// Something that kiln decided or that happened to it: kiln::Event. The library sets `size` and may know of more
/// fields; strings live as long as the call, and are empty where they do not apply.
typedef struct kiln_event {
  size_t size;
  const char* kind;  ///< "hit", "hot_compile": docs/events.md lists them
  const char* unit;
  const char* target;
  const char* key;
  const char* origin;   ///< memory, bundle, disk, remote or compiled
  const char* message;  ///< why, in words
  double ms;            ///< how long it took; it ended when the event is told
  uint64_t bytes;
  uint64_t stream;
  uint64_t flow;  ///< the same for all that happens to one unit and target in this process
  const char* requested;
  const char* selected;
  uint64_t blocks;
  uint32_t block;
  uint32_t advised;
  const char* operation;
  const char* stage;
  uint64_t dispatch;
  uint64_t workflow;
  uint64_t rows;
  const char* residency;
  const char* purpose;
} kiln_event;

/// Told of each event, on whichever thread it happened. It must be quick and must not call kiln.
typedef void (*kiln_event_callback)(const kiln_event* event, void* user);
/// Tells that nobody will use `user` any more.
typedef void (*kiln_release_callback)(void* user);

/// Where device memory comes from: kiln::Allocator.
typedef struct kiln_allocator {
  size_t size;
  /// Memory that may be used on the stream (a CUdeviceptr or cl_mem); NULL where there is none.
  void* (*allocate)(size_t bytes, void* stream, void* user);
  void (*release)(void* memory, size_t bytes, void* stream, void* user);
  /// May be NULL. Why the thread's last `allocate` gave NULL; read before the thread calls again.
  const char* (*why)(void* user);
  const char* kind;  ///< "cuda" or "opencl": for those devices alone; NULL: for whichever the session uses
  void* user;
  kiln_release_callback free_user;  ///< may be NULL
} kiln_allocator;

KILN_C_API kiln_code kiln_options_new(kiln_options** options, kiln_error** error);
/// A setting by its name in docs/configuration.md. Files and KILN_* variables are stronger, unless it is `locked`. A
/// name that is not known, and a value that is of no use, are told as an event: an old setting never stops a program.
KILN_C_API kiln_code kiln_options_set(kiln_options* options, const char* name, const char* value, int locked,
                                      kiln_error** error);
/// `free_user` may be NULL; else it is called once, when nobody can call the callback any more: the options, their
/// sessions and all that came from those were freed.
KILN_C_API kiln_code kiln_options_on_event(kiln_options* options, kiln_event_callback callback, void* user,
                                           kiln_release_callback free_user, kiln_error** error);
KILN_C_API kiln_code kiln_options_allocator(kiln_options* options, const kiln_allocator* allocator, kiln_error** error);
/// OpenCL has no current context: the cl_context and cl_device_id to load into.
KILN_C_API kiln_code kiln_options_opencl(kiln_options* options, void* context, void* device, kiln_error** error);
/// Count events, for kiln_session_metrics.
KILN_C_API kiln_code kiln_options_count_events(kiln_options* options, int yes, kiln_error** error);
/// Believe what this key (as `kiln key show` prints it) signs for a namespace ("acme/vision", "acme/*", "*").
KILN_C_API kiln_code kiln_options_trust(kiln_options* options, const char* key, const char* name_space,
                                        kiln_error** error);
/// Refuse what is older in a namespace, whoever signed it.
KILN_C_API kiln_code kiln_options_minimum_epoch(kiln_options* options, const char* name_space, uint64_t epoch,
                                                kiln_error** error);
/// Believe for 1 to 365 days what certified hosts published in a live namespace.
KILN_C_API kiln_code kiln_options_trust_live(kiln_options* options, const char* name_space, uint64_t days,
                                             kiln_error** error);
/// Believe a key no longer, nor the hosts that it certified.
KILN_C_API kiln_code kiln_options_revoke(kiln_options* options, const char* key, kiln_error** error);
KILN_C_API void kiln_options_free(kiln_options* options);
/// @}

/// @name Sessions
/// kiln in a program: asks the cache, compiles what is not there in the background, loads it, remembers it.
/// @{
typedef struct kiln_session kiln_session;

/// `options` may be NULL, and may be freed or used again afterwards. Opens no file and starts no thread.
KILN_C_API kiln_code kiln_session_open(const kiln_options* options, kiln_session** session, kiln_error** error);
/// The session of those who want none of their own. Freeing what this gives does not end it.
KILN_C_API kiln_code kiln_session_shared(kiln_session** session, kiln_error** error);
/// With the last object of the session ends its work: what has not begun will not, workers are ended, and a compile in
/// this process is waited for.
KILN_C_API void kiln_session_free(kiln_session* session);

/// Says what will be needed, and returns at once. `target` is NULL for every device of the process, or one by its name:
/// "sm_90", "compute_90", "lto_90"; for units of OpenCL what kiln_device has. Asking again is free.
KILN_C_API kiln_code kiln_session_request(kiln_session* session, const kiln_unit* const* units, size_t unit_count,
                                          const char* target, kiln_error** error);
/// Takes a request back. Whoever waits for it gets KILN_CANCELLED.
KILN_C_API kiln_code kiln_session_cancel(kiln_session* session, const kiln_unit* const* units, size_t unit_count,
                                         const char* target, kiln_error** error);
/// Tries again what failed: a failure is remembered until an input changes or this is called.
KILN_C_API kiln_code kiln_session_retry(kiln_session* session, const kiln_unit* const* units, size_t unit_count,
                                        const char* target, kiln_error** error);
/// Writes the trace file, where the setting `trace` names one. The end of the session does too.
KILN_C_API kiln_code kiln_session_write_trace(kiln_session* session, kiln_error** error);
/// For programs that have no context: makes the primary one of a device current in this thread.
KILN_C_API kiln_code kiln_session_make_current(kiln_session* session, const char* kind, size_t device,
                                               kiln_error** error);
/// @}

/// @name Level 1: bytes
/// No device, no context and no driver needed.
/// @{
typedef struct kiln_artifact kiln_artifact;

/// Waits at most `timeout_ns`. The target is as in kiln_session_request, but not NULL.
KILN_C_API kiln_code kiln_session_artifact(kiln_session* session, const kiln_unit* unit, const char* target,
                                           int64_t timeout_ns, kiln_artifact** artifact, kiln_error** error);
KILN_C_API const void* kiln_artifact_data(const kiln_artifact* artifact);
KILN_C_API size_t kiln_artifact_bytes(const kiln_artifact* artifact);
KILN_C_API kiln_form kiln_artifact_form(const kiln_artifact* artifact);
/// The target's name.
KILN_C_API const char* kiln_artifact_target(const kiln_artifact* artifact);
/// The symbol that the compiler made of an entry; NULL where the artifact has no such entry.
KILN_C_API const char* kiln_artifact_symbol(const kiln_artifact* artifact, const char* entry);
/// Which compiler made it.
KILN_C_API const char* kiln_artifact_compiler(const kiln_artifact* artifact);
/// What that compiler printed; warnings, for instance.
KILN_C_API const char* kiln_artifact_log(const kiln_artifact* artifact);
/// How many milliseconds it took to compile, when it was.
KILN_C_API double kiln_artifact_cost_ms(const kiln_artifact* artifact);
KILN_C_API void kiln_artifact_free(kiln_artifact* artifact);
/// @}

/// @name Levels 2 and 3: native handles and launches
/// @{
typedef struct kiln_kernel kiln_kernel;

/// How a kernel is asked for, beyond its name.
typedef struct kiln_wait {
  size_t size;
  int64_t timeout_ns;
  const char* file;  ///< who asks, for the events that say so: __FILE__, or NULL; must live as long as the session …
  int line;          ///< … and __LINE__
  int on_stream;     ///< not zero: for a launch on `stream`, which may record a graph (KILN_CAPTURING)
  void* stream;
} kiln_wait;

/// A size in up to three dimensions. Zero counts as one. Never grows.
typedef struct kiln_dim3 {
  uint32_t x;
  uint32_t y;
  uint32_t z;
} kiln_dim3;

/// A launch attribute as the CUDA driver has it. Never grows.
typedef struct kiln_launch_attribute {
  uint32_t id;
  unsigned char value[64];
} kiln_launch_attribute;

/// How a kernel is launched. What the device does not have is KILN_UNSUPPORTED, never silently something else.
typedef struct kiln_launch {
  size_t size;
  void* stream;  ///< CUstream or cl_command_queue
  kiln_dim3 grid;
  kiln_dim3 block;
  size_t shared_bytes;  ///< dynamic shared memory
  kiln_dim3 cluster;    ///< all zero: none
  int cooperative;
  int programmatic;  ///< may begin before the launch in front of it has ended
  int priority;
  const kiln_launch_attribute* attributes;  ///< any others, handed to the driver as they are
  size_t attribute_count;
} kiln_launch;

/// One argument of a kernel: where its value lies for the time of the call, and how large it is. OpenCL local memory
/// has a size and no data. Never grows.
typedef struct kiln_argument {
  const void* data;
  size_t bytes;
} kiln_argument;

/// A launch size that keeps the device busy.
typedef struct kiln_occupancy {
  size_t size;
  uint32_t block;       ///< threads per block
  uint32_t least_grid;  ///< blocks with which the whole device is in use
} kiln_occupancy;

/// `entry` is one of the unit's, or NULL where it has only one. Ready: at once. Else joins or triggers the compile and
/// waits for this one alone, at most `timeout_ns`. When the time is up the work goes on, and a later call finds it.
/// Keep what this gives: it serves every device of the process, for as long as you like.
KILN_C_API kiln_code kiln_session_get(kiln_session* session, const kiln_unit* unit, const char* entry,
                                      int64_t timeout_ns, kiln_kernel** kernel, kiln_error** error);
/// The same, for a launch on a stream that may record a graph, or with the line that asks.
KILN_C_API kiln_code kiln_session_get_with(kiln_session* session, const kiln_unit* unit, const char* entry,
                                           const kiln_wait* wait, kiln_kernel** kernel, kiln_error** error);
/// Not zero where kiln_session_get would return a kernel at once.
KILN_C_API int kiln_session_ready(kiln_session* session, const kiln_unit* unit, const char* entry);

/// Puts it on the stream, in the thread's current context, and returns at once.
KILN_C_API kiln_code kiln_kernel_launch(const kiln_kernel* kernel, const kiln_launch* how,
                                        const kiln_argument* arguments, size_t argument_count, kiln_error** error);
/// CUkernel or cl_kernel, which belongs to the kernel …
KILN_C_API void* kiln_kernel_native(const kiln_kernel* kernel);
/// … and CUfunction in the thread's current context, or cl_kernel.
KILN_C_API kiln_code kiln_kernel_function(const kiln_kernel* kernel, void** function, kiln_error** error);
/// Set the size of `occupancy`; the rest is filled in.
KILN_C_API kiln_code kiln_kernel_occupancy(const kiln_kernel* kernel, size_t shared_bytes, kiln_occupancy* occupancy,
                                           kiln_error** error);
KILN_C_API const char* kiln_kernel_name(const kiln_kernel* kernel);
KILN_C_API void kiln_kernel_free(kiln_kernel* kernel);
/// @}

/// @name Streams and memory
/// For programs that bring none of their own. Any thread that has the context current in which the stream was made.
/// @{
typedef struct kiln_stream kiln_stream;
typedef struct kiln_buffer kiln_buffer;

/// `kind` is "cuda" or "opencl".
KILN_C_API kiln_code kiln_stream_new(kiln_session* session, const char* kind, kiln_stream** stream, kiln_error** error);
/// CUstream or cl_command_queue, which belongs to the stream.
KILN_C_API void* kiln_stream_native(const kiln_stream* stream);
KILN_C_API kiln_code kiln_stream_synchronise(const kiln_stream* stream, kiln_error** error);
KILN_C_API void kiln_stream_free(kiln_stream* stream);

/// Memory of the device, freed in the order of the stream. `from` is NULL, or has the bytes to put into it.
KILN_C_API kiln_code kiln_buffer_new(const kiln_stream* stream, const void* from, size_t bytes, kiln_buffer** buffer,
                                     kiln_error** error);
/// Copies from the start of `from` to the start of `to`; it has ended when this returns.
KILN_C_API kiln_code kiln_buffer_upload(kiln_buffer* to, const void* from, size_t bytes, kiln_error** error);
KILN_C_API kiln_code kiln_buffer_download(void* to, const kiln_buffer* from, size_t bytes, kiln_error** error);
/// CUdeviceptr or cl_mem, which belongs to the buffer.
KILN_C_API void* kiln_buffer_native(const kiln_buffer* buffer);
KILN_C_API size_t kiln_buffer_bytes(const kiln_buffer* buffer);
/// The buffer as an argument of a launch; good for as long as the buffer.
KILN_C_API kiln_argument kiln_buffer_argument(const kiln_buffer* buffer);
KILN_C_API void kiln_buffer_free(kiln_buffer* buffer);
/// @}

/// @name What there is and what has happened
/// @{
/// The devices of a kind at one moment.
typedef struct kiln_devices kiln_devices;
/// One of them. Strings belong to the list.
typedef struct kiln_device {
  size_t size;
  const char* name;
  const char* target;  ///< what artifacts for it are compiled for
  uint64_t memory;
  uint32_t units;       ///< multiprocessors, compute units
  uint32_t fp64_ratio;  ///< how many times slower it computes in double precision; zero: not at all, or not known
} kiln_device;

/// `kind` is "cuda" or "opencl". Opens the driver; an error says what is missing.
KILN_C_API kiln_code kiln_devices_new(kiln_session* session, const char* kind, kiln_devices** devices,
                                      kiln_error** error);
KILN_C_API size_t kiln_devices_count(const kiln_devices* devices);
/// Set the size of `device`; the rest is filled in.
KILN_C_API kiln_code kiln_devices_at(const kiln_devices* devices, size_t index, kiln_device* device,
                                     kiln_error** error);
KILN_C_API void kiln_devices_free(kiln_devices* devices);

typedef enum kiln_state {
  KILN_STATE_QUEUED = 0,
  KILN_STATE_RUNNING = 1,
  KILN_STATE_READY = 2,
  KILN_STATE_FAILED = 3,
  KILN_STATE_CANCELLED = 4,
  KILN_STATE_ROOM = 0x7fffffff
} kiln_state;

/// Which tier answered.
typedef enum kiln_origin {
  KILN_ORIGIN_COMPILED = 0,
  KILN_ORIGIN_MEMORY = 1,
  KILN_ORIGIN_BUNDLE = 2,
  KILN_ORIGIN_DISK = 3,
  KILN_ORIGIN_REMOTE = 4,
  KILN_ORIGIN_ROOM = 0x7fffffff
} kiln_origin;

/// All units of a session at one moment.
typedef struct kiln_status kiln_status;
/// How many there are of each sort.
typedef struct kiln_totals {
  size_t size;
  size_t submitted;
  size_t compiled;  ///< ready, and a compiler of this process made it
  size_t found;     ///< ready, and a tier had it
  size_t pending;   ///< queued or running
  size_t failed;
  size_t cancelled;
  double wall_ms;  ///< from the first request to the end of the last work, or to now where some is pending
} kiln_totals;
/// What has become of one unit for one target. Strings belong to the status.
typedef struct kiln_unit_status {
  size_t size;
  const char* unit;
  const char* kind;
  const char* target;
  kiln_state state;
  kiln_origin origin;  ///< of one that is ready
  double ms;           ///< from the start of the work on it to its end
  const char* error;   ///< of one that failed; else empty
} kiln_unit_status;

KILN_C_API kiln_code kiln_status_new(kiln_session* session, kiln_status** status, kiln_error** error);
/// Set the size of `totals`; the rest is filled in.
KILN_C_API kiln_code kiln_status_totals(const kiln_status* status, kiln_totals* totals, kiln_error** error);
KILN_C_API size_t kiln_status_count(const kiln_status* status);
/// In the order in which they were submitted. Set the size of `unit`; the rest is filled in.
KILN_C_API kiln_code kiln_status_at(const kiln_status* status, size_t index, kiln_unit_status* unit,
                                    kiln_error** error);
KILN_C_API void kiln_status_free(kiln_status* status);
/// The stable name of a state, "ready", and of an origin, "disk"; "unknown" of others. Never NULL.
KILN_C_API const char* kiln_state_name(kiln_state state);
KILN_C_API const char* kiln_origin_name(kiln_origin origin);

/// A text of the library's.
typedef struct kiln_text kiln_text;
/// The status, and the counts of events where the session counts them, as Prometheus reads them.
KILN_C_API kiln_code kiln_session_metrics(kiln_session* session, kiln_text** text, kiln_error** error);
KILN_C_API const char* kiln_text_data(const kiln_text* text);
KILN_C_API size_t kiln_text_bytes(const kiln_text* text);
KILN_C_API void kiln_text_free(kiln_text* text);
/// @}

#ifdef __cplusplus
}
#endif

#endif
