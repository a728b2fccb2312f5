# SPDX-License-Identifier: Apache-2.0
# Prints what fish offers for each command line. The arguments are a completion script and command lines.
source $argv[1]
for line in $argv[2..]
    echo "$line: $(complete -C "$line" | string replace -r '\t.*' '' | string join ' ')"
end
