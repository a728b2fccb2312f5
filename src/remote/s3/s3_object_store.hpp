// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <kiln/result.hpp>

#include "remote/object_store.hpp"
#include "remote/s3/s3_location.hpp"

namespace kiln {

/// Opens an object store in a bucket of an S3-compatible server: the objects `<prefix>/ac/<digest>` and
/// `<prefix>/cas/<digest>`. libcurl signs each request (AWS Signature Version 4). Region, endpoint and credentials come
/// from the variables and files of the AWS tools (read_aws_settings), which the first request reads; if the server
/// rejects the keys, they are read again and the request is repeated once. Returns Code::InvalidArgument for invalid
/// options and Code::Unsupported if kiln was built without HTTP.
Result<std::unique_ptr<ObjectStore>> open_s3_object_store(const S3Options& options);

}  // namespace kiln
