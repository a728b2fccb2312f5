#pragma once

// What `--help` says of each command besides its options: the rest of it and examples.
namespace kiln::cli {

inline constexpr const char* kAbout =
    "kiln keeps GPU code that was compiled at run time, so that nobody waits for the same compile twice.";

inline constexpr const char* kMainFooter =
    "Examples:\n"
    "  kiln doctor                                   what this machine has, what is missing, what to do\n"
    "  kiln compile k.cu --arch sm_80,sm_90          fill the cache; a second run compiles nothing\n"
    "  kiln explain k.cu --arch sm_80                hit or miss, and which input changed\n"
    "  kiln bundle create kiln.toml -o app.kiln      every unit for every architecture, for machines without a "
    "compiler\n"
    "  kiln warm --from kiln.toml                    fill this node from the fleet, and the fleet from this node\n"
    "  kiln cache stats                              what the cache holds\n"
    "  kiln status --watch                           how far the programs are that run now\n"
    "  kiln audit trace.json                         whether a path is one of the GPU's, and if not why\n"
    "\n"
    "'kiln help COMMAND' has more. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 something is missing on this\n"
    "machine, 4 refused by policy. Settings come from files and KILN_* variables: see 'kiln config show'.";

inline constexpr const char* kCompileFooter =
    "Each file is compiled for each target unless a cache has the result. No GPU and no driver is needed for CUDA.\n"
    "What stands behind '--' goes to the compiler as it is. Headers beside a file are found as other compilers do.\n"
    "\n"
    "Examples:\n"
    "  kiln compile k.cu --arch sm_75,sm_80,sm_90 --entry k\n"
    "  kiln compile k.cu --arch sm_90 --entry 'scale<float, 4>' -I include -DN=4 -- -std=c++17 -use_fast_math\n"
    "  kiln compile k.cu --arch compute_90 -o k.ptx          PTX; lto_90 gives LTO-IR\n"
    "  kiln compile k.cl                                     OpenCL, for the default device\n"
    "  kiln compile --cccl radix_sort_u64_i32 --arch sm_90   an algorithm of NVIDIA's CCCL; 'founding' is all 18\n"
    "  kiln compile --manifest kiln.toml                     what a file lists, for the architectures that it lists\n"
    "  kiln compile *.cu --arch sm_90 -o build/ --json | jq '.results[].origin'";

inline constexpr const char* kExplainFooter =
    "On a miss it names each input that differs from the nearest earlier build of the file: the header with both\n"
    "digests, the option, the compiler's version. Give it the same options as 'kiln compile'. It compiles nothing.\n"
    "With --profile it says instead what of all that programs asked for (KILN_RECORD) bundles serve and what they "
    "lack.\n"
    "\n"
    "Examples:\n"
    "  kiln explain k.cu --arch sm_80 -I include\n"
    "  kiln explain k.cu --arch sm_80 --check || echo 'would compile'\n"
    "  kiln explain --profile profile.jsonl --bundle app.kiln --check";

inline constexpr const char* kWarmFooter =
    "A kiln.toml: every unit for every architecture. A profile (KILN_RECORD): what programs asked for; it has no\n"
    "sources, so a kiln.toml says what they are, and bundles serve the rest. What a cache or the remote store has is\n"
    "fetched; what neither has is compiled, by one host of the fleet, and published where this host may. With\n"
    "KILN_COMPILE=never it is only fetched. A bundle: its artifacts are kept beside what was fetched, for programs "
    "that\n"
    "ask by key; where a program can be told KILN_BUNDLES there is no need to. Nobody waits for this, so servers may\n"
    "take ten seconds, whatever remote.budget says.\n"
    "\n"
    "Examples:\n"
    "  kiln warm --from kiln.toml --arch sm_90\n"
    "  kiln warm --from profile.jsonl --manifest app/kiln.toml\n"
    "  kiln warm --from app.kiln --arch sm_90 --json | jq .summary";

inline constexpr const char* kRemoteFooter =
    "The remote store is the one that the setting 'remote' names (KILN_REMOTE), or --remote: an address or a folder.\n"
    "A KEY may be shortened where the server can list what it has. Removing is not revoking: hosts keep what they "
    "have\n"
    "fetched until their policy changes; 'disown --epoch' prints what to write into it.\n"
    "\n"
    "Examples:\n"
    "  kiln remote stats\n"
    "  kiln remote verify --contents --json | jq '.entries[] | select(.fault != \"\")'\n"
    "  kiln remote gc --max-size 500G --dry-run\n"
    "  kiln remote disown 3fa9c2d1e0b7\n"
    "  kiln remote disown --epoch 8 --namespace acme/vision --yes";

inline constexpr const char* kBundleFooter =
    "A BUNDLE is a file, a folder in which one is mounted, or an OCI image layout.\n"
    "\n"
    "Examples:\n"
    "  kiln bundle create kiln.toml -o app.kiln --arch sm_80,sm_90 --key kiln.key\n"
    "  kiln bundle ls app.kiln\n"
    "  kiln bundle verify app.kiln\n"
    "  kiln bundle diff old.kiln app.kiln\n"
    "  kiln bundle layout app.kiln -o app.oci";

inline constexpr const char* kBundleCreateFooter =
    "Nothing is written where anything fails to compile. What the cache has is not compiled again. No GPU is needed.\n"
    "With --from only what was asked for is built: for the architectures seen, or for those of --arch instead.\n"
    "With --foreign nothing is compiled: what Triton, cuda.core or another system has in this user's cache is packed.\n"
    "\n"
    "Examples:\n"
    "  kiln bundle create kiln.toml -o app.kiln\n"
    "  kiln bundle create kiln.toml -o app.kiln --arch sm_80,sm_90,compute_90 --key kiln.key\n"
    "  KILN_RECORD=profile.jsonl ./app; kiln bundle create kiln.toml -o app.kiln --from profile.jsonl\n"
    "  kiln bundle create --foreign triton -o triton.kiln";

inline constexpr const char* kBundleVerifyFooter =
    "Returns 1 where one is damaged, 4 where one is whole but not believed.\n"
    "\n"
    "Examples:\n"
    "  kiln bundle verify app.kiln\n"
    "  kiln bundle verify app.kiln --public kiln-public-1:9a3f…";

inline constexpr const char* kBundleExtractFooter =
    "Examples:\n"
    "  kiln bundle extract app.kiln pip.cu --arch sm_90 -o pip.cubin\n"
    "  kiln bundle extract app.kiln 3fa9 -o - | cuobjdump -sass -";

inline constexpr const char* kBundleDiffFooter =
    "Returns 0 where both have the same artifacts, 1 where they do not. Who signed them is told, and is no "
    "difference.\n"
    "\n"
    "Example:\n"
    "  kiln bundle diff old.kiln new.kiln";

inline constexpr const char* kBundleMergeFooter =
    "Of two artifacts for one unit and target the first bundle's is taken. With --key every bundle must be signed by\n"
    "somebody who is believed here, or by that key.\n"
    "\n"
    "Example:\n"
    "  kiln bundle merge vision.kiln maths.kiln -o all.kiln --namespace acme --key kiln.key";

inline constexpr const char* kBundleLayoutFooter =
    "Each unit is a layer of its own, so that one that did not change does not move. Registries' own tools copy it.\n"
    "\n"
    "Example:\n"
    "  kiln bundle layout app.kiln -o app.oci\n"
    "  skopeo copy --all --preserve-digests oci:app.oci:latest docker://REGISTRY/NAME:TAG";

inline constexpr const char* kCacheFooter =
    "A KEY may be shortened as long as it is unique.\n"
    "\n"
    "Examples:\n"
    "  kiln cache stats\n"
    "  kiln cache ls\n"
    "  kiln cache extract 3fa9 -o k.cubin\n"
    "  kiln cache gc --max-size 5G\n"
    "  kiln cache clear --yes";

inline constexpr const char* kCalibrateFooter =
    "Starts the program that stands behind '--'. It times each of its operations on this processor and on each device\n"
    "here, over sizes, and kiln keeps from how many rows on a device is worth it: mode auto goes by that from then "
    "on.\n"
    "Let the machine do nothing else meanwhile. ± is half of the distance between the quartiles.\n"
    "\n"
    "Examples:\n"
    "  kiln calibrate -- spatial calibrate\n"
    "  kiln calibrate --quick --file here.json -- ./app; KILN_CALIBRATION=here.json ./app\n"
    "  kiln calibrate --show";

inline constexpr const char* kConfigFooter =
    "From weak to strong: default, program, /etc/kiln/config.toml, ~/.config/kiln/config.toml, the file that\n"
    "KILN_CONFIG names, single KILN_* variables.\n"
    "\n"
    "Examples:\n"
    "  kiln config show\n"
    "  KILN_CACHE_DIR=/big/disk kiln config show --json";

inline constexpr const char* kKeyFooter =
    "Whoever has the secret key can sign bundles, and certify hosts; who is believed is said by a policy file, which\n"
    "KILN_TRUST names. No command ever prints a secret key.\n"
    "\n"
    "Examples:\n"
    "  kiln key generate -o kiln.key\n"
    "  kiln key show kiln.key";

inline constexpr const char* kCertifyFooter =
    "A host with a certificate publishes what it compiles in that namespace (KILN_REMOTE_SIGN, "
    "KILN_REMOTE_CERTIFICATE).\n"
    "It is believed where the policy has the key that certified it, and the namespace as a live one. Neither a public\n"
    "key nor a certificate is secret.\n"
    "\n"
    "Example:\n"
    "  kiln key certify host.pub --key authority.key --namespace acme/live --days 30 -o host.cert";

inline constexpr const char* kAuditFooter =
    "Asked in this order: did it run on the device, did it stay there, did it avoid waits on its stream, did it avoid\n"
    "batches that the host drives, are launches right for the hardware, does the evidence show the real path.\n"
    "Returns 0 where nothing of that severity was found, else 10 for LOW, 11 MEDIUM, 12 HIGH, 13 BLOCKING.\n"
    "\n"
    "Examples:\n"
    "  KILN_TRACE=trace.json ./app && kiln audit trace.json\n"
    "  kiln audit trace.json --fail-on high --json | jq '.findings[].rule'";

inline constexpr const char* kHealthFooter =
    "Example:\n"
    "  kiln health traces/*.json";

inline constexpr const char* kReportFooter =
    "The page is one file that needs no network; --json prints what it shows instead.\n"
    "\n"
    "Example, a cold and a warm start side by side:\n"
    "  KILN_TRACE=cold.json ./app; KILN_TRACE=warm.json ./app\n"
    "  kiln report cold.json warm.json -o report.html";

inline constexpr const char* kCompletionsFooter =
    "Examples:\n"
    "  kiln completions bash > ~/.local/share/bash-completion/completions/kiln\n"
    "  kiln completions zsh  > \"${fpath[1]}/_kiln\"\n"
    "  kiln completions fish > ~/.config/fish/completions/kiln.fish";

inline constexpr const char* kStatusFooter =
    "A program that works with kiln says in a file, which only its user can read, what it has asked for, what is "
    "being\n"
    "compiled, what was found and what failed, and who waits. It is there from the first work in the background until\n"
    "the program ends. In a pipe --watch prints a block whenever something has changed, with --json a line.\n"
    "KILN_STATUS_DIR says where these files are; 'off' writes none.\n"
    "\n"
    "Examples:\n"
    "  kiln status\n"
    "  kiln status 4711 --watch\n"
    "  kiln status --json | jq '.processes[] | {pid, pending}'";

}  // namespace kiln::cli
