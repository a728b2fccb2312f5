// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/kiln/arguments.hpp"
#include "apps/kiln/output/console.hpp"

namespace kiln::cli {

// One function per command. Each returns an exit code of exit_code.hpp.
int split_command(const Arguments& arguments, Console& console);
int compile_command(const Arguments& arguments, Console& console);
int explain_command(const Arguments& arguments, Console& console);
int explain_profile_command(const Arguments& arguments, Console& console);
int warm_command(const Arguments& arguments, Console& console);
int bundle_create_command(const Arguments& arguments, Console& console);
/// Implements `bundle create --external`; called by bundle_create_command.
int bundle_external_command(const Arguments& arguments, Console& console);
int bundle_ls_command(const Arguments& arguments, Console& console);
int bundle_verify_command(const Arguments& arguments, Console& console);
int bundle_extract_command(const Arguments& arguments, Console& console);
int bundle_diff_command(const Arguments& arguments, Console& console);
int bundle_merge_command(const Arguments& arguments, Console& console);
int bundle_split_command(const Arguments& arguments, Console& console);
int bundle_oci_command(const Arguments& arguments, Console& console);
/// Implements `bundle oci --by-arch`; called by bundle_oci_command.
int bundle_oci_parts_command(const Arguments& arguments, Console& console);
int bundle_pull_command(const Arguments& arguments, Console& console);
int bundle_header_command(const Arguments& arguments, Console& console);
int cache_stats_command(const Arguments& arguments, Console& console);
int cache_ls_command(const Arguments& arguments, Console& console);
int cache_show_command(const Arguments& arguments, Console& console);
int cache_extract_command(const Arguments& arguments, Console& console);
int cache_gc_command(const Arguments& arguments, Console& console);
int cache_verify_command(const Arguments& arguments, Console& console);
int cache_clear_command(const Arguments& arguments, Console& console);
int remote_stats_command(const Arguments& arguments, Console& console);
int remote_verify_command(const Arguments& arguments, Console& console);
int remote_gc_command(const Arguments& arguments, Console& console);
int remote_rm_command(const Arguments& arguments, Console& console);
int calibrate_command(const Arguments& arguments, Console& console);
int config_show_command(const Arguments& arguments, Console& console);
int audit_command(const Arguments& arguments, Console& console);
int device_usage_command(const Arguments& arguments, Console& console);
int report_command(const Arguments& arguments, Console& console);
int key_generate_command(const Arguments& arguments, Console& console);
int key_certify_command(const Arguments& arguments, Console& console);
int key_show_command(const Arguments& arguments, Console& console);
int trust_add_command(const Arguments& arguments, Console& console);
int jit_fill_command(const Arguments& arguments, Console& console);
int jit_publish_command(const Arguments& arguments, Console& console);
int jit_list_command(const Arguments& arguments, Console& console);
int jit_explain_command(const Arguments& arguments, Console& console);
/// Returns the exit code of the command that it runs.
int run_command(const Arguments& arguments, Console& console);
int init_command(const Arguments& arguments, Console& console);
int status_command(const Arguments& arguments, Console& console);
int doctor_command(const Arguments& arguments, Console& console);
int selftest_command(const Arguments& arguments, Console& console);
int version_command(const Arguments& arguments, Console& console);
int completions_command(const Arguments& arguments, Console& console);
int man_command(const Arguments& arguments, Console& console);

}  // namespace kiln::cli
