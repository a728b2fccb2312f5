// SPDX-License-Identifier: Apache-2.0
#pragma once

// The text that `--help` prints after the options of each command: details and examples.
namespace kiln::cli {

inline constexpr const char* kAbout = "kiln compiles GPU code in the background and caches it.";

inline constexpr const char* kMainFooter =
    "Examples:\n"
    "  kiln doctor                                   check this machine and suggest fixes\n"
    "  kiln compile k.cu --arch sm_80,sm_90          fill the cache; a second run compiles nothing\n"
    "  kiln explain k.cu --arch sm_80                hit or miss, and which input changed\n"
    "  kiln bundle create kiln.toml -o app.kiln      compile units into a bundle for other machines\n"
    "  kiln warm --from kiln.toml                    fetch units from the fleet, compile and publish the rest\n"
    "  kiln cache stats                              number and size of cache entries\n"
    "  kiln status --watch                           progress of running programs\n"
    "  kiln audit trace.json                         host fallbacks, copies and synchronization in a trace\n"
    "\n"
    "'kiln help COMMAND' prints more. Exit codes: 0 success, 1 failure, 2 wrong usage, 3 something is missing on this\n"
    "machine, 4 denied by policy. Settings come from files and KILN_* variables; see 'kiln config show'.";

inline constexpr const char* kCompileFooter =
    "Each file is compiled for each target unless a cache has the result. CUDA needs neither a GPU nor a driver.\n"
    "Arguments after '--' are passed to the compiler unchanged. Quoted includes are also searched next to the file.\n"
    "\n"
    "Examples:\n"
    "  kiln compile k.cu --arch sm_75,sm_80,sm_90 --entry k\n"
    "  kiln compile k.cu --arch sm_90 --entry 'scale<float, 4>' -I include -DN=4 -- -std=c++17 -use_fast_math\n"
    "  kiln compile k.cu --arch compute_90 -o k.ptx          PTX; lto_90 gives LTO-IR\n"
    "  kiln compile k.cl                                     OpenCL, for the default device\n"
    "  kiln compile --cccl radix_sort_u64_i32 --arch sm_90   a CCCL algorithm; 'all' compiles all 18\n"
    "  kiln compile --manifest kiln.toml                     units and architectures of a manifest\n"
    "  kiln compile *.cu --arch sm_90 -o build/ --json | jq '.results[].origin'";

inline constexpr const char* kExplainFooter =
    "On a miss it prints each input that differs from the most similar earlier build of the file: the header with\n"
    "both digests, the option, the compiler version. Use the same options as for 'kiln compile'. It compiles\n"
    "nothing.\n"
    "With --profile it lists which of the units that programs requested (KILN_RECORD) are in the bundles.\n"
    "With --external it lists the entries of another system that were missing, and why.\n"
    "\n"
    "Examples:\n"
    "  kiln explain k.cu --arch sm_80 -I include\n"
    "  kiln explain k.cu --arch sm_80 --check || echo 'would compile'\n"
    "  kiln explain --profile profile.jsonl --bundle app.kiln --check\n"
    "  kiln explain --external triton";

inline constexpr const char* kSplitFooter =
    "Finds the calls of macros that define a kernel and the explicit instantiations of template kernels, and writes a\n"
    "kiln.toml with one instance for each. If the file contains more than these and one #include, the rest is written\n"
    "to FILE.preamble.cu. No compiler runs, and code that the family does not contain is listed with the reason.\n"
    "\n"
    "Examples:\n"
    "  kiln split gemm.cu --arch sm_80,sm_90\n"
    "  kiln split scale.cu --entry 'scale<float>' --entry 'scale<double>' -o scale.toml\n"
    "  kiln split gemm.cu --force && kiln compile --manifest kiln.toml --arch sm_90";

inline constexpr const char* kWarmFooter =
    "From a kiln.toml: every unit for every architecture. From a profile (KILN_RECORD): the units that programs\n"
    "requested; a profile has no sources, so they come from a kiln.toml or from bundles. Without --arch a host with\n"
    "CUDA devices leaves out what none of them can use, unless it publishes as CI. Units in a cache or in the\n"
    "remote store are fetched. The others are compiled, each by one host of the fleet, and published if this host is\n"
    "allowed to publish. With KILN_COMPILE=never units are only fetched. From a bundle: its artifacts are added to\n"
    "the cache of fetched entries, for programs that request by key and cannot set KILN_BUNDLES. Servers may use\n"
    "ten seconds per unit, regardless of remote.budget.\n"
    "\n"
    "Examples:\n"
    "  kiln warm --from kiln.toml --arch sm_90\n"
    "  kiln warm --from profile.jsonl --manifest app/kiln.toml\n"
    "  kiln warm --from app.kiln --arch sm_90 --json | jq .summary";

inline constexpr const char* kRemoteFooter =
    "The remote store is the URL or directory in the setting 'remote.url' (KILN_REMOTE) or in --remote.\n"
    "A KEY can be shortened if the server can list its entries. Removing does not revoke: hosts keep entries that\n"
    "they have fetched until their policy changes; 'rm --before-epoch' prints the line to add to the policy.\n"
    "\n"
    "Examples:\n"
    "  kiln remote stats\n"
    "  kiln remote verify --download --json | jq '.entries[] | select(.rejection != \"\")'\n"
    "  kiln remote gc --max-size 500G --dry-run\n"
    "  kiln remote rm 3fa9c2d1e0b7\n"
    "  kiln remote rm --before-epoch 8 --namespace acme/vision --yes";

inline constexpr const char* kBundleFooter =
    "A BUNDLE is a file, a directory with a mounted image, or an OCI image layout.\n"
    "\n"
    "Examples:\n"
    "  kiln bundle create kiln.toml -o app.kiln --arch sm_80,sm_90 --key kiln.key\n"
    "  kiln bundle ls app.kiln\n"
    "  kiln bundle verify app.kiln\n"
    "  kiln bundle diff old.kiln app.kiln\n"
    "  kiln bundle split app.kiln -o parts\n"
    "  kiln bundle oci app.kiln -o app.oci";

inline constexpr const char* kBundleCreateFooter =
    "If a unit fails to compile, nothing is written. Cached units are not compiled again. No GPU is needed.\n"
    "With --from only the units in the profile are built, for the architectures in the profile or in --arch.\n"
    "With --provenance or --builder-id the bundle contains a signed provenance statement.\n"
    "With --external nothing is compiled: the entries of Triton, cuda.core or another system in this user's cache are\n"
    "packed.\n"
    "\n"
    "Examples:\n"
    "  kiln bundle create kiln.toml -o app.kiln\n"
    "  kiln bundle create kiln.toml -o app.kiln --arch sm_80,sm_90,compute_90 --key kiln.key\n"
    "  KILN_RECORD=profile.jsonl ./app; kiln bundle create kiln.toml -o app.kiln --from profile.jsonl\n"
    "  kiln bundle create kiln.toml -o app.kiln --key kiln.key --provenance ci\n"
    "  kiln bundle create --external triton -o triton.kiln";

inline constexpr const char* kBundleVerifyFooter =
    "The signature is verified first. The contents of an untrusted bundle are read only with --untrusted.\n"
    "Returns 1 if a bundle is corrupt, 4 if a bundle is not trusted.\n"
    "\n"
    "Examples:\n"
    "  kiln bundle verify app.kiln\n"
    "  kiln bundle verify app.kiln --public-key kiln-public-1:9a3f…\n"
    "  kiln bundle verify app.kiln --json | jq '.bundles[].provenance'";

inline constexpr const char* kBundleExtractFooter =
    "Examples:\n"
    "  kiln bundle extract app.kiln pip.cu --arch sm_90 -o pip.cubin\n"
    "  kiln bundle extract app.kiln 3fa9 -o - | cuobjdump -sass -";

inline constexpr const char* kBundleDiffFooter =
    "Returns 0 if both bundles have the same artifacts, 1 if not. Different signers are printed but do not count as a\n"
    "difference.\n"
    "\n"
    "Example:\n"
    "  kiln bundle diff old.kiln new.kiln";

inline constexpr const char* kBundleMergeFooter =
    "If two bundles have an artifact for the same unit and target, the first bundle wins. With --key every bundle\n"
    "must be signed by a key that this machine trusts, or by that key.\n"
    "\n"
    "Example:\n"
    "  kiln bundle merge vision.kiln maths.kiln -o all.kiln --namespace acme --key kiln.key";

inline constexpr const char* kBundleSplitFooter =
    "Each bundle has what a device of its architecture would use of the whole bundle: the name is that of the bundle\n"
    "with the architecture before the extension. Bundles are signed with --key; the provenance of the whole bundle is\n"
    "not copied, because it states the contents of that bundle.\n"
    "\n"
    "Example:\n"
    "  kiln bundle split app.kiln -o parts --key kiln.key        writes parts/app.sm_80.kiln, parts/app.sm_90.kiln";

inline constexpr const char* kBundleOciFooter =
    "Each unit is a separate layer, so that unchanged units are not transferred again. Any registry tool can copy it.\n"
    "With --by-arch the layout has an image for each architecture (see 'kiln bundle split'), so that a node downloads\n"
    "only what its devices use: 'kiln bundle pull'.\n"
    "\n"
    "Examples:\n"
    "  kiln bundle oci app.kiln -o app.oci\n"
    "  skopeo copy --all --preserve-digests oci:app.oci:latest docker://REGISTRY/NAME:TAG\n"
    "  kiln bundle oci app.kiln -o app.oci --by-arch --key kiln.key";

inline constexpr const char* kBundlePullFooter =
    "Looks for the images TAG-sm_90, TAG-compute_90 and so on of 'kiln bundle oci --by-arch', and copies the one that\n"
    "serves each device of this machine, or each architecture of --arch, best. If the devices use different ones, "
    "each\n"
    "is in a directory below DIR. Runs skopeo, which has the logins; arguments after '--' are its global options.\n"
    "\n"
    "Examples:\n"
    "  kiln bundle pull docker://REGISTRY/NAME:7 -o kernels.oci\n"
    "  kiln bundle pull oci:app.oci:latest -o kernels.oci --arch sm_90";

inline constexpr const char* kCacheFooter =
    "A KEY can be shortened to a unique prefix.\n"
    "\n"
    "Examples:\n"
    "  kiln cache stats\n"
    "  kiln cache ls\n"
    "  kiln cache extract 3fa9 -o k.cubin\n"
    "  kiln cache gc --max-size 5G\n"
    "  kiln cache clear --yes";

inline constexpr const char* kCalibrateFooter =
    "Runs the program after '--'. The program times each of its operations on the CPU and on each device over a range\n"
    "of sizes. kiln stores the size at which a device becomes faster; mode auto uses it from then on.\n"
    "Do not run anything else on the machine during this time. ± is half of the interquartile range.\n"
    "\n"
    "Examples:\n"
    "  kiln calibrate -- spatial calibrate\n"
    "  kiln calibrate --quick --file here.json -- ./app; KILN_CALIBRATION=here.json ./app\n"
    "  kiln calibrate --show";

inline constexpr const char* kConfigFooter =
    "From lowest to highest precedence: default, program, /etc/kiln/config.toml, ~/.config/kiln/config.toml, the file\n"
    "in KILN_CONFIG, single KILN_* variables.\n"
    "\n"
    "Examples:\n"
    "  kiln config show\n"
    "  KILN_CACHE_DIR=/big/disk kiln config show --json";

inline constexpr const char* kKeyFooter =
    "The owner of a secret key can sign bundles and certify hosts. The policy file in KILN_TRUST lists the trusted\n"
    "keys. No command prints a secret key.\n"
    "\n"
    "Examples:\n"
    "  kiln key generate -o kiln.key\n"
    "  kiln key show kiln.key";

inline constexpr const char* kCertifyFooter =
    "A host with a certificate publishes what it compiles in that namespace (KILN_REMOTE_SIGNING_KEY,\n"
    "KILN_REMOTE_CERTIFICATE). Readers trust it if their policy lists the certifying key and the live namespace.\n"
    "Public keys and certificates are not secret.\n"
    "\n"
    "Example:\n"
    "  kiln key certify host.pub --key authority.key --namespace acme/live --days 30 -o host.cert";

inline constexpr const char* kAuditFooter =
    "Checks in this order: did the path run on the device, did its data stay there, did it avoid waits on its stream,\n"
    "did it avoid batches driven by the host, do launches fit the hardware, is the trace complete.\n"
    "Returns 0 if there is no finding of that severity, otherwise 10 for LOW, 11 MEDIUM, 12 HIGH, 13 BLOCKING.\n"
    "Returns 14 if it is inconclusive: no such finding, but the trace lacks evidence, which is listed.\n"
    "Of two traces, prints what improved or regressed: the code of a new finding, 15 for worse numbers only.\n"
    "What --source finds is a suspicion and does not change the exit code.\n"
    "\n"
    "Examples:\n"
    "  KILN_TRACE=trace.json ./app && kiln audit trace.json\n"
    "  kiln audit trace.json --fail-on high --json | jq '.findings[].rule'\n"
    "  kiln audit before.json after.json\n"
    "  nsys export --type=sqlite -o app.sqlite app.nsys-rep && kiln audit app.sqlite\n"
    "  kiln audit trace.json --source src            places in sources, those of findings first";

inline constexpr const char* kDeviceUsageFooter =
    "Example:\n"
    "  kiln device-usage traces/*.json";

inline constexpr const char* kReportFooter =
    "The page is one file that needs no network. --json prints its data instead.\n"
    "\n"
    "Example, a cold and a warm start side by side:\n"
    "  KILN_TRACE=cold.json ./app; KILN_TRACE=warm.json ./app\n"
    "  kiln report cold.json warm.json -o report.html";

inline constexpr const char* kSelftestFooter =
    "Takes up to ten minutes, writes nothing outside of its directory, and uses no setting but nvrtc, cccl,\n"
    "driver and worker.path. Returns 0, 1 if a check failed, 3 if there is no device.\n"
    "\n"
    "Example:\n"
    "  kiln selftest -o report";

inline constexpr const char* kCompletionsFooter =
    "Examples:\n"
    "  kiln completions bash > ~/.local/share/bash-completion/completions/kiln\n"
    "  kiln completions zsh  > \"${fpath[1]}/_kiln\"\n"
    "  kiln completions fish > ~/.config/fish/completions/kiln.fish";

inline constexpr const char* kManFooter =
    "The page is in the format of troff. Packages install it as kiln.1.\n"
    "\n"
    "Example:\n"
    "  kiln man | man -l -";

inline constexpr const char* kStatusFooter =
    "A program that uses kiln writes a status file that only its user can read: requested, running, cached and failed\n"
    "units and waiting threads. The file exists from the first background compile until the program ends. In a pipe\n"
    "--watch prints a block after each change, with --json a line. KILN_STATUS_DIR is the directory of these files;\n"
    "'off' disables them.\n"
    "\n"
    "Examples:\n"
    "  kiln status\n"
    "  kiln status 4711 --watch\n"
    "  kiln status --json | jq '.processes[] | {pid, pending}'";

}  // namespace kiln::cli
