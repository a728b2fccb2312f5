// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes from a worker as a frame and as the payload of a frame.
#include <cstddef>
#include <cstdint>

#include "fuzz_check.hpp"
#include "worker/worker_protocol.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  kiln::Frame frame{kiln::Frame::Type::Compiled, std::string(input)};
  if (auto whole = kiln::decode_frame(input)) {
    kiln::fuzz::require(input.starts_with(encode_frame(*whole)), "a frame round-trips");
    frame = std::move(*whole);
  }
  if (const auto reply = kiln::decode_reply(frame)) {
    kiln::fuzz::require(kiln::decode_reply(frame_of(*reply)).has_value(), "a reply round-trips");
  }
  if (const auto job = kiln::decode_job(frame.payload)) {
    kiln::fuzz::require(kiln::decode_job(frame_of(*job).payload).has_value(), "a job round-trips");
  }
  if (const auto request = kiln::decode_file_request(frame.payload)) {
    kiln::fuzz::require(frame_of(*request).payload == frame.payload, "a file request round-trips");
  }
  (void)kiln::decode_failure(frame.payload);
  (void)kiln::decode_file_reply(std::move(frame));
  return 0;
}
