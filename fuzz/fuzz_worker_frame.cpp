// Any bytes from a worker: as a frame, and as the payload of one.
#include <cstddef>
#include <cstdint>

#include "compile/worker_protocol.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  kiln::Frame frame{kiln::Frame::Type::Compiled, std::string(input)};
  if (auto whole = kiln::decode_frame(input)) {
    kiln::fuzz::require(input.starts_with(encode_frame(*whole)), "a frame is read and written alike");
    frame = std::move(*whole);
  }
  if (const auto reply = kiln::decode_reply(frame)) {
    kiln::fuzz::require(kiln::decode_reply(frame_of(*reply)).ok(), "a reply can be read again");
  }
  if (const auto job = kiln::decode_job(frame.payload)) {
    kiln::fuzz::require(kiln::decode_job(frame_of(*job).payload).ok(), "a job can be read again");
  }
  (void)kiln::decode_failure(frame.payload);
  return 0;
}
